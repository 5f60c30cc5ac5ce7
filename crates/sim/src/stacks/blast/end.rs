//! One end of a connection: the machine of `proto::blast`, what its application has handed over and taken, and when it is
//! looked at again. It decides nothing of the protocol.

use super::super::byte_stream::Got;
use super::super::packet_wire::Wire;
use super::super::send_credit::SendCredit;
use super::super::time_accounting::{Held, TimeAccount};
use crate::datagram::Datagram;
use crate::error::Error;
use crate::executor::{ConnectionEnd, Executor, Timer};
use crate::trace::{Info, Log};
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_events::Keyword;
use stackline_proto::blast::trace::Tracer;
use stackline_proto::blast::{Arrival, Connection, Failure as Broken, Options, Output, State};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

static INFO: Keyword = Keyword::new("BLAST_INFO");

/// What is asked of a connection together, handed to its machine no sooner than it can be cut into whole blasts: at a time
/// limit what has not been handed over stays.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    unit: u64,
    left: u64,
}

struct Machine {
    connection: Connection,
    stretch: Stretch,
    /// Whether the last packet sent was the last of its round: the next may be the first of a blast.
    between: bool,
    /// Stream position up to which the application has taken what arrived.
    taken: u64,
    /// When data units were handed over, and how many, while the run is traced.
    handed: Option<Vec<(Instant, u64)>>,
    spent: TimeAccount,
    /// What it told of itself last, while the run is traced, and the bytes that had arrived then.
    looked: (Info, u64),
}

impl Machine {
    /// Hands over what the next blast can take.
    fn top_up(&mut self, now: Instant) {
        let Stretch { unit, left } = self.stretch;
        let room = u64::from(self.connection.options().size).saturating_sub(self.connection.sender().waiting());
        if left == 0 || room == 0 || !self.between || self.connection.state() != State::Open {
            return;
        }
        let units = room.div_ceil(unit.max(1)).min(left);
        self.connection.send(unit.saturating_mul(units));
        self.stretch.left -= units;
        if let Some(handed) = &mut self.handed {
            handed.push((now, units));
        }
    }

    /// Books its time, once everything has left that may.
    fn account(&mut self, now: Instant) {
        let sender = self.connection.sender();
        let held = if sender.waits_for_grant() { Held::ReceiveWindow } else { Held::Network };
        let idle = sender.is_idle();
        if !idle || self.spent.is_busy() {
            self.spent.turn(held, now);
        }
        if idle {
            self.spent.end();
        }
    }

    /// How it is now; it has no congestion window and no buffer of its own.
    fn info(&self, now: Instant) -> Info {
        let (sender, facts) = (self.connection.sender(), self.connection.facts());
        let receiver = self.connection.receiver();
        Info {
            in_flight_bytes: Some(sender.in_flight()),
            rtt: facts.rtt.map(|(smoothed, ..)| smoothed),
            retransmits: facts.sent.repeated,
            busy: Some(self.spent.busy(now)),
            receive_window_limited: Some(self.spent.by(Held::ReceiveWindow, now)),
            unsent_bytes: Some(sender.waiting()),
            receive_queue_bytes: Some(receiver.delivered().saturating_sub(self.taken)),
            send_window_bytes: Some(sender.window()),
            mss_bytes: Some(u64::from(self.connection.options().packet)),
            acked_bytes: Some(facts.sent.acknowledged),
            ..Info::default()
        }
    }

    /// What an application may wait for.
    fn seen(&self) -> (State, u64, bool, bool) {
        let (sender, receiver) = (self.connection.sender(), self.connection.receiver());
        (self.connection.state(), receiver.delivered(), receiver.ended(), sender.is_idle())
    }

    const fn is_over(&self) -> bool {
        matches!(self.connection.state(), State::Closed | State::Failed(_))
    }
}

/// One end of a connection.
pub(crate) struct End {
    touched: Cell<bool>,
    wire: Wire,
    side: Side,
    number: u32,
    endpoint: u32,
    credit: Rc<SendCredit>,
    /// The application has let go of it.
    orphan: Cell<bool>,
    /// Something waits for room in the host's interface.
    blocked: Cell<bool>,
    /// The earliest timer that has not come yet.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<Machine>,
    /// While the run is traced.
    tracer: RefCell<Option<Tracer>>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of connection {} of pair {}", self.side, self.number, self.wire.pair)
    }
}

impl End {
    pub(super) fn new(
        wire: Wire,
        credit: &Rc<SendCredit>,
        (side, endpoint): (Side, u32),
        number: u32,
        connection: Connection,
    ) -> Self {
        let machine = Machine {
            connection,
            stretch: Stretch::default(),
            between: true,
            taken: 0,
            handed: None,
            spent: TimeAccount::default(),
            looked: Default::default(),
        };
        Self {
            touched: Cell::new(false),
            wire,
            side,
            number,
            endpoint,
            credit: Rc::clone(credit),
            orphan: Cell::new(false),
            blocked: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
            tracer: RefCell::default(),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// There may be something to send.
    pub(super) fn touch(self: &Rc<Self>, executor: &Executor) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            executor.touch(end);
        }
    }

    // --- the network's side ---

    pub(super) fn arrived(self: &Rc<Self>, datagram: &Datagram, executor: &Executor) {
        let Some(arrived) = self.wire.read(datagram) else { return };
        if executor.log.is_some() {
            self.tracer.borrow_mut().get_or_insert_default().arrived(&arrived.header);
        }
        let mut machine = self.machine.borrow_mut();
        let before = machine.seen();
        let came = machine.connection.handle(executor.now(), &arrived.header, arrived.body, arrived.payload);
        if let Arrival::Place { check: Some(check), .. } = came {
            // Nothing in a simulated network spoils a byte.
            machine.connection.checked(check.blast.number, true);
        }
        self.touch(executor);
        if machine.seen() != before {
            executor.wake(self.endpoint);
        }
    }

    pub(super) fn rang(self: &Rc<Self>, executor: &Executor) {
        if self.alarm.get().is_some_and(|alarm| alarm <= executor.now()) {
            self.alarm.set(None);
        }
        self.touch(executor);
    }

    /// There may be room in the host's interface.
    pub(super) fn departed(self: &Rc<Self>, executor: &Executor) {
        if self.blocked.get() {
            self.touch(executor);
        }
    }

    /// When it wants to be looked at again.
    fn send_all(&self, machine: &mut Machine, executor: &Executor) -> Option<Instant> {
        let now = executor.now();
        loop {
            machine.top_up(now);
            let next = machine.connection.deadline(now).map(|(at, _)| at);
            let wants = next.is_some_and(|at| at <= now);
            let room = if wants { self.credit.room(executor) } else { Ok(()) };
            self.blocked.set(room.is_err());
            match room {
                Err(when) => return when,
                Ok(()) if !wants => return next,
                Ok(()) => {}
            }
            let output = machine.connection.poll(now, 1);
            if let (Some(log), Some(output)) = (&executor.log, &output) {
                let packet = machine.connection.options().packet;
                let mut tracer = self.tracer.borrow_mut();
                let tell = |told| log.blast((self.wire.pair, self.side), now, told);
                tracer.get_or_insert_default().leaves(output, packet, tell);
            }
            match output {
                Some(Output::Run(run)) => {
                    machine.between = run.requests_ack;
                    self.send(self.wire.data_at(&run.header(0, 0), run.span(0)), executor);
                }
                Some(Output::Control(header, body)) => self.send(self.wire.control(&header, body), executor),
                None => return machine.connection.deadline(now).map(|(at, _)| at),
            }
        }
    }

    fn send(&self, packet: stackline_net::Packet<Datagram>, executor: &Executor) {
        self.credit.handed(packet.bytes());
        executor.send(packet);
    }

    // --- the application's side ---

    /// Whether the connection came about; nothing while that is not known.
    pub(super) fn answered(&self) -> Option<bool> {
        match self.machine.borrow().connection.state() {
            State::Listening | State::Opening => None,
            State::Open | State::Closing => Some(true),
            State::Closed | State::Failed(_) => Some(false),
        }
    }

    /// Asks for so many data units to be sent.
    pub(super) fn begin(self: &Rc<Self>, unit: u64, times: u64, executor: &Executor) {
        let mut machine = self.machine.borrow_mut();
        machine.handed = executor.log.is_some().then(Vec::new);
        if unit > 0 {
            machine.stretch = Stretch { unit, left: times };
        }
        self.touch(executor);
    }

    /// When how many of them were handed over, where the run is traced.
    pub(super) fn handed(&self) -> Vec<(Instant, u64)> {
        self.machine.borrow_mut().handed.take().unwrap_or_default()
    }

    /// Sends no more of them; how many were not begun.
    pub(super) fn stop_short(&self) -> u64 {
        std::mem::take(&mut self.machine.borrow_mut().stretch.left)
    }

    /// Hands over bytes that nobody waits for.
    pub(super) fn hand_over(self: &Rc<Self>, bytes: u64, executor: &Executor) {
        if bytes > 0 {
            self.machine.borrow_mut().connection.send(bytes);
            self.touch(executor);
        }
    }

    /// Whether everything asked for has arrived at the peer; nothing while that is not known. The peer may have closed the
    /// connection first.
    pub(super) fn is_sent(&self) -> Option<bool> {
        let machine = self.machine.borrow();
        let sent = machine.stretch.left == 0 && machine.connection.sender().is_idle();
        if sent || machine.is_over() { Some(sent) } else { None }
    }

    /// Whether there is something to take; false at the end of the stream, nothing while that is not known.
    pub(super) fn has_come(&self) -> Option<bool> {
        let machine = self.machine.borrow();
        let receiver = machine.connection.receiver();
        let comes = receiver.delivered() > machine.taken;
        if comes || receiver.ended() || machine.is_over() { Some(comes) } else { None }
    }

    /// Takes at most so many bytes.
    pub(super) fn take(self: &Rc<Self>, most: u64, executor: &Executor) -> Got {
        let Some(comes) = self.has_come() else { return Got::Nothing };
        let mut machine = self.machine.borrow_mut();
        if !comes {
            return if matches!(machine.connection.state(), State::Failed(_)) { Got::Broken } else { Got::End };
        }
        let bytes = (machine.connection.receiver().delivered() - machine.taken).min(most);
        machine.taken += bytes;
        let position = machine.taken;
        machine.connection.consume(position);
        self.touch(executor);
        Got::Bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Nothing more comes from this side.
    pub(super) fn finish(self: &Rc<Self>, executor: &Executor) {
        self.machine.borrow_mut().connection.finish();
        self.touch(executor);
    }

    /// Closes the connection once everything has arrived.
    pub(super) fn close(self: &Rc<Self>, executor: &Executor) {
        self.machine.borrow_mut().connection.close(executor.now());
        self.touch(executor);
    }

    /// Whether the connection is closed, by either side, or broken.
    pub(super) fn is_closed(&self) -> bool {
        self.machine.borrow().is_over()
    }

    /// The application lets go of it.
    pub(super) fn abandon(self: &Rc<Self>, executor: &Executor) {
        self.orphan.set(true);
        self.close(executor);
    }

    /// Why it broke, where it did.
    pub(super) fn broken(&self) -> Option<Error> {
        let machine = self.machine.borrow();
        let State::Failed(why) = machine.connection.state() else { return None };
        let patience = machine.connection.options().patience;
        Some(match why {
            Broken::Silent => Error::measurement(format!("the peer has been silent for {patience}"))
                .hint("it ended, or the network loses everything; the option `patience` says how long is waited"),
            Broken::Refused(refusal) => Error::measurement(format!("the peer refuses the connection: {refusal:?}"))
                .hint("both sides need the same stack with the same options"),
        })
    }

    pub(super) fn options(&self) -> Options {
        *self.machine.borrow().connection.options()
    }

    /// Tells of itself when something is under way or has happened; whether it did.
    pub(super) fn sample(&self, at: Instant, log: &Log) -> bool {
        let mut machine = self.machine.borrow_mut();
        let now = (machine.info(at), machine.connection.receiver().delivered());
        let before = std::mem::replace(&mut machine.looked, now);
        let tells = machine.spent.is_busy() || now.0.acked_bytes != before.0.acked_bytes || now.1 != before.1;
        if tells {
            log.info(&INFO, (self.pair(), self.side), at, &before.0, &now.0);
        }
        tells
    }

    pub(super) fn transport(&self, now: Instant) -> Transport {
        let machine = self.machine.borrow();
        let facts = machine.connection.facts();
        let (rtt, variation) = facts.rtt.map_or_else(Default::default, |(rtt, variation, _)| (rtt, variation));
        Transport {
            retransmits: facts.sent.repeated,
            rtt_s: rtt.seconds(),
            rtt_var_s: Some(variation.seconds()),
            cwnd_segments: None,
            mss_bytes: u64::from(machine.connection.options().packet),
            busy_s: Some(machine.spent.busy(now).seconds()),
            receive_window_limited_s: Some(machine.spent.by(Held::ReceiveWindow, now).seconds()),
            send_buffer_limited_s: None,
            bytes_acked: Some(facts.sent.acknowledged),
            bytes_received: machine.connection.receiver().delivered(),
        }
    }
}

impl ConnectionEnd for End {
    fn pair(&self) -> u32 {
        self.wire.pair
    }

    fn side(&self) -> Side {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, executor: &Executor) {
        let mut machine = self.machine.borrow_mut();
        let state = machine.connection.state();
        let next = self.send_all(&mut machine, executor);
        machine.account(executor.now());
        if machine.connection.state() != state {
            // It was given up: whoever waits for it has to know.
            executor.wake(self.endpoint);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            executor.set_timer(next, Timer::End { pair: self.wire.pair, connection: self.number, side: self.side });
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && !self.blocked.get() && self.machine.borrow().is_over()
    }
}
