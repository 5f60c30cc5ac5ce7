//! One end of a connection whose machine sends packets by itself: what the end waits for and when it is polled again.
//! It decides nothing of the protocol.

use super::packet_wire::{ArrivedSimPacket, PacketWire};
use super::send_credit::SendCredit;
use crate::datagram::SimDatagram;
use crate::run_state::{ConnectionEnd, SimRunState, Timer};
use crate::run_trace::SimTraceLog;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// The protocol machine of one end.
pub(super) trait PacketEndMachine: 'static {
    /// The state of the machine; its application is woken when it changes while packets are sent.
    type State: PartialEq;

    fn state(&self) -> Self::State;
    /// Handles a packet. Returns whether its application has to be woken.
    fn handle(&mut self, arrived: &ArrivedSimPacket<'_>, shared: &SimRunState) -> bool;
    /// When the machine has something to do, if that is known.
    fn deadline(&mut self, now: Instant) -> Option<Instant>;
    /// The next packet to send now.
    fn poll(
        &mut self,
        wire: &PacketWire,
        shared: &SimRunState,
    ) -> Option<NetworkPacket<SimDatagram>>;
    /// Called when everything that may be sent was sent.
    fn sent(&mut self, _now: Instant) {}
    /// Called when its application gives up the end.
    fn abandon(&mut self, now: Instant);
    /// Whether nothing more is sent, once its application has given it up.
    fn is_over(&self) -> bool;
    /// Records the state of the machine for the trace. Returns whether there was something to record.
    fn sample(&mut self, _wire: &PacketWire, _at: Instant, _log: &SimTraceLog) -> bool {
        false
    }
}

/// One end of a connection.
pub(super) struct PacketEnd<M> {
    touched: Cell<bool>,
    wire: PacketWire,
    number: u32,
    endpoint: u32,
    credit: Rc<SendCredit>,
    /// The application has given up the end.
    orphan: Cell<bool>,
    /// A packet waits for room in the host's interface.
    blocked: Cell<bool>,
    /// The earliest timer that has not expired.
    alarm: Cell<Option<Instant>>,
    pub(super) machine: RefCell<M>,
}

impl<M> fmt::Debug for PacketEnd<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of connection {} of pair {}",
            self.wire.side, self.number, self.wire.pair
        )
    }
}

impl<M: PacketEndMachine> PacketEnd<M> {
    /// An end of the connection with that number, for an endpoint.
    pub(super) fn new(
        wire: PacketWire,
        credit: &Rc<SendCredit>,
        endpoint: u32,
        number: u32,
        machine: M,
    ) -> Self {
        Self {
            touched: Cell::new(false),
            wire,
            number,
            endpoint,
            credit: Rc::clone(credit),
            orphan: Cell::new(false),
            blocked: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Notes that there may be something to send.
    pub(super) fn touch(self: &Rc<Self>, shared: &SimRunState) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            shared.touch(end);
        }
    }

    pub(super) fn arrived(self: &Rc<Self>, datagram: &SimDatagram, shared: &SimRunState) {
        let Some(arrived) = self.wire.read(datagram) else {
            return;
        };
        let wakes = self.machine.borrow_mut().handle(&arrived, shared);
        self.touch(shared);
        if wakes {
            shared.wake(self.endpoint);
        }
    }

    /// Handles its timer.
    pub(super) fn rang(self: &Rc<Self>, shared: &SimRunState) {
        if self.alarm.get().is_some_and(|alarm| alarm <= shared.now()) {
            self.alarm.set(None);
        }
        self.touch(shared);
    }

    /// Notes that there may be room in the host's interface.
    pub(super) fn departed(self: &Rc<Self>, shared: &SimRunState) {
        if self.blocked.get() {
            self.touch(shared);
        }
    }

    /// Gives up the end, for its application.
    pub(super) fn abandon(self: &Rc<Self>, shared: &SimRunState) {
        self.orphan.set(true);
        self.machine.borrow_mut().abandon(shared.now());
        self.touch(shared);
    }

    /// Records the state for the trace. Returns whether there was something to record.
    pub(super) fn sample(&self, at: Instant, log: &SimTraceLog) -> bool {
        self.machine.borrow_mut().sample(&self.wire, at, log)
    }

    /// Sends all packets that may be sent. Returns when there is something to do again.
    fn send_all(&self, machine: &mut M, shared: &SimRunState) -> Option<Instant> {
        let now = shared.now();
        loop {
            let next = machine.deadline(now);
            let wants = next.is_some_and(|at| at <= now);
            let room = if wants {
                self.credit.room(shared)
            } else {
                Ok(())
            };
            self.blocked.set(room.is_err());
            match room {
                Err(when) => return when,
                Ok(()) if !wants => return next,
                Ok(()) => {}
            }
            let Some(packet) = machine.poll(&self.wire, shared) else {
                return machine.deadline(now).filter(|at| *at > now);
            };
            self.credit.handed(packet.bytes());
            shared.send(packet);
        }
    }
}

impl<M: PacketEndMachine> ConnectionEnd for PacketEnd<M> {
    fn pair(&self) -> u32 {
        self.wire.pair
    }

    fn side(&self) -> PairSide {
        self.wire.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, shared: &SimRunState) {
        let mut machine = self.machine.borrow_mut();
        let state = machine.state();
        let next = self.send_all(&mut machine, shared);
        machine.sent(shared.now());
        if machine.state() != state {
            // The connection was given up: whoever waits for it has to know.
            shared.wake(self.endpoint);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            shared.set_timer(
                next,
                Timer::End {
                    pair: self.pair(),
                    connection: self.number,
                    side: self.side(),
                },
            );
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && !self.blocked.get() && self.machine.borrow().is_over()
    }
}
