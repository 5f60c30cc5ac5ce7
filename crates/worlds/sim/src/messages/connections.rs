//! A connection of a simulated application: two ends, each with its protocol machine, the messages written to it, and
//! the messages on their way.

use super::blasts::MessageBlastEnd;
use super::message_end::{MessageEndMachine, MessageRoute, fit_options};
use super::port::{MessagePort, PortState};
use super::{MessageTrace, Traces};
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::run_state::{SimRunState, Timer};
use crate::stacks::pair::SimConnectionPair;
use crate::stacks::tcp_options;
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::{NetworkPacket, NodeIndex};
use stackline_proto::papers::pup::PupOptions;
use stackline_proto::tcp::{TcpConnection, TcpFacts};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The first port of the side that opens connections, and the port of the other side.
const PORTS: (u16, u16) = (49_152, 7480);
/// The timer of an end whose machine has something to do.
const MACHINE: u32 = 0;
/// The timer of an end whose application continues to read.
const READ: u32 = 1;

/// The machines of a connection's two ends.
pub(crate) type EndMachines = [MessageEndMachine; 2];

/// The two ends of a new `tcp` connection, with options for each.
///
/// # Errors
/// When a stack is not `tcp`.
pub(crate) fn tcp_ends(
    now: Instant,
    number: u32,
    stacks: [&Stack; 2],
    mtu: u64,
    ecn: bool,
) -> Result<EndMachines> {
    let mtu = u32::try_from(mtu).unwrap_or(65_535).clamp(68, 65_535);
    let options = |stack| {
        let mut options = tcp_options(stack, mtu, ecn)?;
        options.timer_phase = Duration(u64::from(number.wrapping_mul(2_654_435_761)));
        Ok::<_, Error>(options)
    };
    let (own, peer) = (PORTS.0.wrapping_add(number as u16), PORTS.1);
    let first = number.wrapping_mul(2_654_435_761);
    let dialling = TcpConnection::connect(now, options(stacks[0])?, (own, peer), first);
    let first = number.wrapping_mul(2_246_822_519);
    let listening = TcpConnection::listen(now, options(stacks[1])?, peer, first);
    Ok([dialling, listening].map(|machine| MessageEndMachine::Tcp(Box::new(machine))))
}

/// The two ends of a new PUP connection.
pub(crate) fn pup_ends(now: Instant, number: u32, options: PupOptions, mtu: u64) -> EndMachines {
    let options = fit_options(options, mtu);
    MessageEndMachine::pups(now, options, number.wrapping_mul(2_654_435_761))
}

/// The two ends of a new blast connection.
///
/// # Errors
/// When packets of that stack do not fit the path.
pub(crate) fn blast_ends(
    now: Instant,
    number: u32,
    nodes: [NodeIndex; 2],
    stack: &Stack,
    mtu: u64,
) -> Result<EndMachines> {
    let ends = MessageBlastEnd::both(now, nodes, number, stack, mtu)?;
    Ok(ends.map(|end| MessageEndMachine::Blasts(Box::new(end))))
}

/// Opens a connection: returns it as the loop of virtual time uses it, and the ports of its two sides.
pub(crate) fn connection<M: 'static>(
    number: u32,
    nodes: [NodeIndex; 2],
    machines: EndMachines,
    shared: Rc<SimRunState>,
    traces: Option<Traces>,
) -> (Rc<dyn SimConnectionPair>, [MessagePort<M>; 2]) {
    let ends = machines.map(|mut machine| {
        if traces.is_some() {
            machine.enable_trace();
        }
        RefCell::new(MessageEnd::new(machine, &shared))
    });
    let connection = Rc::new(MessageConnection {
        number,
        nodes,
        ends,
        is_there: Cell::new(false),
        is_broken: Cell::new(false),
        shared,
        traces,
    });
    connection.flush(PairSide::Initiator);
    let ports = [PairSide::Initiator, PairSide::Responder]
        .map(|side| MessagePort::new(Rc::clone(&connection), side));
    (connection, ports)
}

/// One end of a connection.
struct MessageEnd<M> {
    machine: MessageEndMachine,
    /// Bytes of messages that the send buffer has not taken yet.
    unsent: VecDeque<u64>,
    /// Bytes of all messages written so far.
    handed: u64,
    /// Bytes of the stream up to the end of the last message that the application has.
    received: u64,
    /// Bytes read from the receive buffer beyond `received`.
    ahead: u64,
    /// The least number of bytes that the application reads at once.
    piece: u64,
    /// Messages and parts of messages on their way here, with the stream offset at which each ends.
    coming: VecDeque<(u64, Option<M>)>,
    /// The application does not read.
    paused: bool,
    /// The application waits for room in the send buffer for the rest of a message.
    waits: bool,
    /// The application waits for room before it begins a message.
    asks: bool,
    /// The next timer of the machine.
    alarm: Option<Instant>,
    /// The state that its program sees.
    port: Rc<PortState<M>>,
}

impl<M> MessageEnd<M> {
    fn new(machine: MessageEndMachine, shared: &Rc<SimRunState>) -> Self {
        Self {
            machine,
            unsent: VecDeque::new(),
            handed: 0,
            received: 0,
            ahead: 0,
            piece: 0,
            coming: VecDeque::new(),
            paused: false,
            waits: false,
            asks: false,
            alarm: None,
            port: Rc::new(PortState::new(shared)),
        }
    }

    /// Whether no writer waits, or there is room for it.
    fn is_awake(&self) -> bool {
        !(self.waits || self.asks) || self.machine.has_room()
    }
}

/// A connection of an application.
pub(super) struct MessageConnection<M> {
    pub(super) number: u32,
    nodes: [NodeIndex; 2],
    ends: [RefCell<MessageEnd<M>>; 2],
    is_there: Cell<bool>,
    is_broken: Cell<bool>,
    pub(super) shared: Rc<SimRunState>,
    traces: Option<Traces>,
}

impl<M: 'static> MessageConnection<M> {
    fn end(&self, side: PairSide) -> &RefCell<MessageEnd<M>> {
        &self.ends[side.index()]
    }

    /// The state that the program of a side sees.
    pub(super) fn port(&self, side: PairSide) -> Rc<PortState<M>> {
        Rc::clone(&self.end(side).borrow().port)
    }

    /// Writes bytes, and the message that ends with them (`None` for a part of a message).
    pub(super) fn put(&self, side: PairSide, bytes: u64, message: Option<M>) {
        let ends_at = {
            let mut end = self.end(side).borrow_mut();
            let bytes = bytes.max(1) + end.machine.before_each();
            end.handed += bytes;
            end.unsent.push_back(bytes);
            end.handed
        };
        let mut other = self.end(side.other()).borrow_mut();
        other.coming.push_back((ends_at, message));
        drop(other);
        self.hand_over(side);
    }

    /// Whether that side's send buffer has enough room that a writer would be woken.
    pub(super) fn has_room(&self, side: PairSide) -> bool {
        let end = self.end(side).borrow();
        end.unsent.is_empty() && end.machine.has_room()
    }

    /// Notes that the program waits for room.
    pub(super) fn ask_for_room(&self, side: PairSide) {
        self.end(side).borrow_mut().asks = true;
        self.hand_over(side);
    }

    pub(super) fn set_reading(&self, side: PairSide, reads: bool) {
        self.end(side).borrow_mut().paused = !reads;
        if reads {
            self.read(side);
            self.flush(side);
        }
    }

    pub(super) fn set_piece(&self, side: PairSide, bytes: u64) {
        self.end(side).borrow_mut().piece = bytes;
    }

    pub(super) fn facts(&self, side: PairSide) -> Option<TcpFacts> {
        let end = self.end(side).borrow();
        end.machine
            .tcp()
            .map(|machine| machine.facts(self.shared.now()))
    }

    fn set_timer(&self, at: Instant, connection: u32, side: PairSide) {
        let pair = self.number;
        self.shared.set_timer(
            at.max(self.shared.now()),
            Timer::End {
                pair,
                connection,
                side,
            },
        );
    }

    /// Has something happen to the program of a side, once all programs wait.
    fn notify(&self, end: &MessageEnd<M>, what: impl FnOnce(&PortState<M>) + 'static) {
        let port = Rc::clone(&end.port);
        self.shared.tasks.notify(Box::new(move || what(&port)));
    }

    /// Reads what has arrived, message by message, while the application reads.
    fn read(&self, side: PairSide) {
        let now = self.shared.now();
        let mut end = self.end(side).borrow_mut();
        let end = &mut *end;
        while !end.paused
            && let Some((ends_at, _)) = end.coming.front()
        {
            let wanted = ends_at - end.received;
            if end.ahead < wanted {
                let Some(bytes) = end.machine.receive(now, end.piece.max(wanted - end.ahead))
                else {
                    return;
                };
                end.ahead += bytes;
                continue;
            }
            (end.ahead, end.received) = (end.ahead - wanted, *ends_at);
            if let Some((_, Some(message))) = end.coming.pop_front() {
                self.notify(end, |port| port.arrived.put(message));
                // The application decides after each message whether it reads on.
                return self.set_timer(now, READ, side);
            }
        }
    }

    /// Writes what there is room for, if a waiting writer would be woken.
    fn hand_over(&self, side: PairSide) {
        // As in a kernel, a waiting writer is woken when there is enough room, perhaps after what is sent now.
        if !self.end(side).borrow().is_awake() {
            self.flush(side);
            if !self.end(side).borrow().is_awake() {
                return;
            }
        }
        self.fill_send_buffer(side);
        self.flush(side);
    }

    fn fill_send_buffer(&self, side: PairSide) {
        let now = self.shared.now();
        let mut end = self.end(side).borrow_mut();
        let end = &mut *end;
        end.waits = false;
        while let Some(left) = end.unsent.front_mut() {
            let Some(taken) = end.machine.send(now, *left) else {
                break;
            };
            *left -= taken;
            if *left > 0 {
                end.waits = true;
                break;
            }
            end.unsent.pop_front();
            self.notify(end, PortState::is_taken);
        }
        if end.asks && end.unsent.is_empty() {
            end.asks = false;
            self.notify(end, PortState::has_room);
        }
    }

    /// Sends packets and sets the next timer.
    fn flush(&self, side: PairSide) {
        self.read(side);
        let now = self.shared.now();
        let (from, to) = (self.nodes[side.index()], self.nodes[side.other().index()]);
        let route = MessageRoute {
            connection: self.number,
            from,
            to,
        };
        let mut end = self.end(side).borrow_mut();
        let end = &mut *end;
        while let Some(packet) = end.machine.poll(now, route) {
            self.shared.send(packet);
        }
        if let Some(traces) = &self.traces {
            let events = end.machine.take_events().into_iter();
            traces.borrow_mut().extend(events.map(|event| MessageTrace {
                at: now,
                connection: self.number,
                side,
                event,
            }));
        }
        if side == PairSide::Initiator && end.machine.is_closed() && !self.is_broken.replace(true) {
            self.notify(end, |port| port.broken.ring());
        }
        if let Some(at) = end.machine.deadline(now)
            && end.alarm.is_none_or(|alarm| at < alarm)
        {
            end.alarm = Some(at.max(now));
            self.set_timer(at, MACHINE, side);
        }
    }
}

impl<M: 'static> SimConnectionPair for MessageConnection<M> {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        {
            let mut end = self.end(side).borrow_mut();
            end.machine.handle(shared.now(), &packet.payload);
            if side == PairSide::Initiator && end.machine.is_there() && !self.is_there.replace(true)
            {
                self.notify(&end, PortState::is_connected);
            }
        }
        self.read(side);
        self.hand_over(side);
    }

    /// A timer of the machine that was replaced by another one does nothing.
    fn timer(&self, what: u32, side: PairSide, shared: &Rc<SimRunState>) {
        if what == MACHINE {
            let mut end = self.end(side).borrow_mut();
            if end.alarm != Some(shared.now()) {
                return;
            }
            end.alarm = None;
        }
        self.hand_over(side);
    }
}
