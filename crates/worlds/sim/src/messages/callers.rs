//! The ends of V's message passing for programs of a simulated application: one program asks, the other answers.

use super::calls::MessageCallPair;
use crate::application::{Mailbox, Signal};
use crate::datagram::SimDatagram;
use crate::run_state::{SimRunState, Timer};
use crate::stacks::packet_wire::BELOW;
use crate::stacks::pair::SimConnectionPair;
use stackline_core::procedure::PairSide;
use stackline_net::{NetworkPacket, NodeIndex};
use stackline_proto::blast::wire::HEADER;
use stackline_proto::ikp::options::{BESIDE, PACKET};
use std::cell::RefCell;
use std::rc::Rc;

/// Makes a pair for V's messages: as the loop of virtual time uses it, and its two ports, that of the asking and that
/// of the answering program.
pub(crate) fn calls<M: 'static>(
    number: u32,
    nodes: [NodeIndex; 2],
    mtu: u64,
    shared: &Rc<SimRunState>,
) -> (Rc<dyn SimConnectionPair>, [CallPort<M>; 2]) {
    let packet = mtu
        .saturating_sub((BELOW + HEADER) as u64 + u64::from(BESIDE))
        .clamp(1, u64::from(PACKET));
    let pair = Rc::new(CallPair {
        number,
        calls: RefCell::new(MessageCallPair::new(number, nodes, packet as u32)),
        arrived: [(); 2].map(|()| Rc::new(Mailbox::new(shared))),
        broken: Signal::new(shared),
        shared: Rc::clone(shared),
    });
    let port = || CallPort(Rc::clone(&pair));
    let ports = [port(), port()];
    (pair, ports)
}

struct CallPair<M> {
    number: u32,
    calls: RefCell<MessageCallPair<M>>,
    /// Answers for the asking side, and questions for the answering side.
    arrived: [Rc<Mailbox<M>>; 2],
    broken: Signal,
    shared: Rc<SimRunState>,
}

/// The port of one of the two programs. Clones are the same port.
pub struct CallPort<M>(Rc<CallPair<M>>);

impl<M> Clone for CallPort<M> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<M: 'static> CallPort<M> {
    /// The most bytes of a message.
    #[must_use]
    pub fn room(&self) -> u64 {
        u64::from(self.0.calls.borrow().room())
    }

    /// Asks, and waits for the answer; nothing else may be asked before it.
    pub async fn ask(&self, bytes: u64, message: M) -> M {
        let now = self.0.shared.now();
        self.0.calls.borrow_mut().ask(now, bytes as u32, message);
        self.0.flush(PairSide::Initiator);
        self.0.arrived[0].next().await
    }

    /// Waits for the next question.
    pub async fn asked(&self) -> M {
        self.0.arrived[1].next().await
    }

    /// Answers the question received last.
    pub fn answer(&self, bytes: u64, message: M) {
        let now = self.0.shared.now();
        self.0.calls.borrow_mut().answer(now, bytes as u32, message);
        self.0.flush(PairSide::Responder);
    }

    /// Waits until the client gives up because nobody answers any more.
    pub async fn broken(&self) {
        self.0.broken.wait().await;
    }
}

impl<M: 'static> CallPair<M> {
    /// Sends what a side has to send, and sets its timer.
    fn flush(&self, side: PairSide) {
        let now = self.shared.now();
        let mut calls = self.calls.borrow_mut();
        while let Some(packet) = calls.poll(now, side) {
            self.shared.send(packet);
        }
        if calls.is_silent() {
            let broken = self.broken.clone();
            return self.shared.tasks.notify(Box::new(move || broken.ring()));
        }
        if let Some(at) = calls.deadline(now, side)
            && calls.alarms[side.index()].is_none_or(|alarm| at < alarm)
        {
            let at = at.max(now);
            calls.alarms[side.index()] = Some(at);
            let (pair, connection) = (self.number, 0);
            self.shared.set_timer(
                at,
                Timer::End {
                    pair,
                    connection,
                    side,
                },
            );
        }
    }
}

impl<M: 'static> SimConnectionPair for CallPair<M> {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        let mut calls = self.calls.borrow_mut();
        let message = calls.arrived(shared.now(), side, &packet.payload);
        drop(calls);
        if let Some(message) = message {
            let mailbox = Rc::clone(&self.arrived[side.index()]);
            shared.tasks.notify(Box::new(move || mailbox.put(message)));
        }
        self.flush(side);
    }

    /// A timer that was replaced by another one does nothing.
    fn timer(&self, _: u32, side: PairSide, shared: &Rc<SimRunState>) {
        let mut calls = self.calls.borrow_mut();
        if calls.alarms[side.index()] == Some(shared.now()) {
            calls.alarms[side.index()] = None;
            drop(calls);
            self.flush(side);
        }
    }
}
