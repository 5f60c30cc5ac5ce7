//! A distributed application in virtual time: whole messages over simulated `tcp`, PUP or blasts between hosts of a network, V's messages, what its
//! programs take of processors, and timers. The application says what is sent and when it reads; what is in a message nobody here knows.
//!
//! ```text
//! connect(from, to)            a connection is asked for; connect_pup(from, to) one of PUP,
//!                              connect_blast(from, to, stack) one of blasts
//! send(connection, side, ..)   a message is handed over; it is sent as there is room in the send buffer
//! send_part(connection, ..)    bytes of a message that will be handed over; so it can still become a shorter one
//! call_to(from, to)            two programs that ask and answer, over `ikp`
//! work(host, kind, takes, ..)  a program wants its host's processor for so long
//! next(until)                  the next thing that happens to the application, and when
//! ```

mod blasts;
mod calls;
mod exchange;
mod message_end;

use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::port_events::SimProcessorSpending;
use crate::processor::{SimProcessor, SimProcessorTurn};
use crate::stacks::tcp_options;
use blasts::MessageBlastEnd;
use calls::MessageCallPair;
use message_end::{MessageEndMachine, MessageRoute};
use stackline_core::network as plan;
use stackline_core::network::WorkKind;
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{Delivery, NetworkPacket, NodeIndex, PacketNetwork, PortCounters, Tap};
/// What connections do and know of themselves.
pub use stackline_proto::tcp::{TcpConnectionEvent, TcpFacts};
use stackline_proto::{pup, tcp};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Where connections are asked for: the first port of the side that asks, and the other's.
const PORTS: (u16, u16) = (49_152, 7480);
/// Most packets and steps at one instant.
const STEPS_AN_INSTANT: u64 = 4_000_000;

/// What happens to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening<M> {
    /// A connection is there, at the side that asked for it.
    Connected(u32),
    /// A message has come whole.
    Arrived {
        /// Over which connection.
        connection: u32,
        /// To which side of it.
        side: PairSide,
        /// The message.
        message: M,
    },
    /// The send buffer has taken all of a message.
    Sent {
        /// Of which connection.
        connection: u32,
        /// From which side of it.
        side: PairSide,
    },
    /// There is room to begin another message, after [`MessageNetwork::wait_for_room`].
    Room {
        /// Of which connection.
        connection: u32,
        /// At which side of it.
        side: PairSide,
    },
    /// A timer came.
    Timer(u64),
    /// A processor has done what [`MessageNetwork::work`] asked of it.
    Worked(u64),
    /// A program is asked, in those calls.
    Asked(u32, M),
    /// It has answered.
    Answered(u32, M),
    /// A connection is broken.
    Broken(u32),
}

/// One end of a connection.
struct MessageEnd<M> {
    machine: MessageEndMachine,
    /// Bytes of messages that the send buffer has not taken yet.
    unsent: VecDeque<u64>,
    /// Bytes of all messages handed over so far.
    handed: u64,
    /// Bytes of messages that the application has, those that it took out of the receive buffer beyond them, and how much it takes at once
    /// at least.
    received: u64,
    ahead: u64,
    piece: u64,
    /// Messages on their way here, and where in the stream they end; and parts of them.
    coming: VecDeque<(u64, Option<M>)>,
    /// The application does not read.
    paused: bool,
    /// The application waits for room in the send buffer: with the rest of a message, or before it begins one.
    waits: bool,
    asks: bool,
    alarm: Option<Instant>,
}

struct MessageEndPair<M> {
    nodes: [NodeIndex; 2],
    ends: [MessageEnd<M>; 2],
    is_there: bool,
    broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MessageAlarm {
    End { connection: u32, side: usize },
    Read { connection: u32, side: usize },
    Calls { calls: u32, side: usize },
    Processor(u32),
    Application(u64),
}

/// Calls have numbers beyond those of all connections.
const CALLS: u32 = 1 << 31;

/// What a connection did, where it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTrace {
    /// When.
    pub at: Instant,
    /// Which connection.
    pub connection: u32,
    /// The side that sends.
    pub side: PairSide,
    /// What.
    pub event: TcpConnectionEvent,
}

/// An application's connections.
pub struct MessageNetwork<M, T: Tap<SimDatagram>> {
    network: PacketNetwork<SimDatagram, T>,
    ecn: bool,
    now: Instant,
    pairs: Vec<MessageEndPair<M>>,
    calls: Vec<MessageCallPair<M>>,
    processors: Vec<SimProcessor<u64>>,
    alarms: BinaryHeap<Reverse<(Instant, u64, MessageAlarm)>>,
    alarms_set: u64,
    happened: VecDeque<Happening<M>>,
    traced: Option<Vec<MessageTrace>>,
    steps: u64,
}

impl<M, T: Tap<SimDatagram>> std::fmt::Debug for MessageNetwork<M, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages")
            .field("now", &self.now)
            .field("pairs", &self.pairs.len())
            .finish_non_exhaustive()
    }
}

impl<M, T: Tap<SimDatagram>> MessageNetwork<M, T> {
    /// Over that network; `tap` receives every event of it. `traced`: what connections do is kept.
    pub fn new(network: &plan::Network, seed: Seed, tap: T, traced: bool) -> Self {
        Self {
            network: PacketNetwork::new(network, seed.child("network"), tap),
            ecn: network.marks(),
            now: Instant(0),
            pairs: Vec::new(),
            calls: Vec::new(),
            processors: network.hosts.iter().map(SimProcessor::new).collect(),
            alarms: BinaryHeap::new(),
            alarms_set: 0,
            happened: VecDeque::new(),
            traced: traced.then(Vec::new),
            steps: 0,
        }
    }

    /// The present.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// A connection is asked for, with those options of `tcp` at its two ends, that of who asks first.
    ///
    /// # Errors
    /// When no path leads there and back, or the stack is not `tcp`.
    pub fn connect(&mut self, from: NodeIndex, to: NodeIndex, stacks: [&Stack; 2]) -> Result<u32> {
        let connection = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let mtu = self.path_mtu(from, to, connection)?;
        let options = |stack| {
            let mut options = tcp_options(
                stack,
                u32::try_from(mtu).unwrap_or(65_535).clamp(68, 65_535),
                self.ecn,
            )?;
            options.timer_phase = Duration(u64::from(connection.wrapping_mul(2_654_435_761)));
            Ok::<_, Error>(options)
        };
        let (own, peer) = (PORTS.0.wrapping_add(connection as u16), PORTS.1);
        let number = connection.wrapping_mul(2_654_435_761);
        let dialling =
            tcp::TcpConnection::connect(self.now, options(stacks[0])?, (own, peer), number);
        let number = connection.wrapping_mul(2_246_822_519);
        let listening = tcp::TcpConnection::listen(self.now, options(stacks[1])?, peer, number);
        let machines =
            [dialling, listening].map(|machine| MessageEndMachine::Tcp(Box::new(machine)));
        Ok(self.pair([from, to], machines))
    }

    /// The same by PUP, whose packets are as long as the path lets them be, and no longer than the options say.
    ///
    /// # Errors
    /// When no path leads there and back.
    pub fn connect_pup(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        options: pup::PupOptions,
    ) -> Result<u32> {
        let connection = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let options = message_end::fit_options(options, self.path_mtu(from, to, connection)?);
        let machines =
            MessageEndMachine::pups(self.now, options, connection.wrapping_mul(2_654_435_761));
        Ok(self.pair([from, to], machines))
    }

    /// The same by `blast`, `saw` or `window`: what is handed over at once is sent when the other side has all of it.
    ///
    /// # Errors
    /// When no path leads there and back, or its packets are too small.
    pub fn connect_blast(&mut self, from: NodeIndex, to: NodeIndex, stack: &Stack) -> Result<u32> {
        let connection = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let mtu = self.path_mtu(from, to, connection)?;
        let ends = MessageBlastEnd::both(self.now, [from, to], connection, stack, mtu)?;
        Ok(self.pair(
            [from, to],
            ends.map(|end| MessageEndMachine::Blasts(Box::new(end))),
        ))
    }

    fn pair(&mut self, nodes: [NodeIndex; 2], machines: [MessageEndMachine; 2]) -> u32 {
        let connection = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let mut ends = machines.map(|machine| MessageEnd {
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
        });
        if self.traced.is_some() {
            ends.iter_mut().for_each(|end| end.machine.enable_trace());
        }
        self.pairs.push(MessageEndPair {
            nodes,
            ends,
            is_there: false,
            broken: false,
        });
        self.flush(connection, 0);
        connection
    }

    /// The largest packet that fits both ways.
    fn path_mtu(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Result<u64> {
        let path = |from, to| {
            self.network.path(from, to, flow).ok_or_else(|| {
                Error::input("no path leads from one host of the application to another")
                    .hint("links with `->` need others for the way back")
            })
        };
        Ok(path(from, to)?.mtu.min(path(to, from)?.mtu))
    }

    /// A program, by its number, wants its host's processor for so long; [`Happening::Worked`] says when it has had it.
    pub fn work(
        &mut self,
        (host, program): (NodeIndex, u32),
        kind: WorkKind,
        takes: Duration,
        token: u64,
    ) {
        let Some(processor) = self.processors.get_mut(host.0 as usize) else {
            return;
        };
        processor.want(program, (kind, takes), token);
        if processor.is_idle() {
            self.set_alarm(self.now, MessageAlarm::Processor(host.0));
        }
    }

    /// Hands a message over. `bytes` is what it takes on the connection, at least 1; [`Happening::Sent`] says when the
    /// send buffer has taken all of it.
    pub fn send(&mut self, connection: u32, side: PairSide, bytes: u64, message: M) {
        self.put(connection, side, bytes, Some(message));
    }

    /// Hands over the next bytes of a message, at least 1: what the message is, is said with its last ones. The other side reads
    /// them as they come; [`Happening::Sent`] says when the send buffer has taken them.
    pub fn send_part(&mut self, connection: u32, side: PairSide, bytes: u64) {
        self.put(connection, side, bytes, None);
    }

    fn put(&mut self, connection: u32, side: PairSide, bytes: u64, message: Option<M>) {
        let Some(pair) = self.pairs.get_mut(connection as usize) else {
            return;
        };
        let (own, other) = (side.index(), side.other().index());
        let bytes = bytes.max(1) + pair.ends[own].machine.before_each();
        pair.ends[own].handed += bytes;
        let ends_at = pair.ends[own].handed;
        pair.ends[own].unsent.push_back(bytes);
        pair.ends[other].coming.push_back((ends_at, message));
        self.hand_over(connection, own);
    }

    /// Whether that side's send buffer has enough room that a writer would be woken.
    pub fn has_room(&self, connection: u32, side: PairSide) -> bool {
        let pair = self.pairs.get(connection as usize);
        pair.is_some_and(|pair| {
            pair.ends[side.index()].unsent.is_empty() && pair.ends[side.index()].machine.has_room()
        })
    }

    /// [`Happening::Room`] comes when there is room.
    pub fn wait_for_room(&mut self, connection: u32, side: PairSide) {
        if let Some(pair) = self.pairs.get_mut(connection as usize) {
            pair.ends[side.index()].asks = true;
            self.hand_over(connection, side.index());
        }
    }

    /// Whether the application of that side reads.
    pub fn set_reading(&mut self, connection: u32, side: PairSide, reads: bool) {
        if let Some(pair) = self.pairs.get_mut(connection as usize) {
            pair.ends[side.index()].paused = !reads;
            if reads {
                self.read(connection, side.index());
                self.flush(connection, side.index());
            }
        }
    }

    /// The application of that side reads so many bytes at once, where they are there, and finds its messages in them; else it reads each
    /// message by itself, as far as it has come.
    pub fn set_piece(&mut self, connection: u32, side: PairSide, bytes: u64) {
        if let Some(pair) = self.pairs.get_mut(connection as usize) {
            pair.ends[side.index()].piece = bytes;
        }
    }

    /// A timer for the application.
    pub fn set_timer(&mut self, at: Instant, token: u64) {
        self.set_alarm(at, MessageAlarm::Application(token));
    }

    /// What happens next, not after `until`.
    ///
    /// # Errors
    /// When time stands still: something sends without end and nothing slows it down.
    pub fn next(&mut self, until: Instant) -> Result<Option<(Instant, Happening<M>)>> {
        loop {
            if let Some(happening) = self.happened.pop_front() {
                return Ok(Some((self.now, happening)));
            }
            let alarm = self.alarms.peek().map(|Reverse((at, ..))| *at);
            let limit = alarm.map_or(until, |at| at.min(until));
            if let Some(Delivery { due, packet }) = self.network.poll(limit) {
                self.come_to(due)?;
                self.deliver(&packet);
            } else if alarm.is_some_and(|at| at <= until)
                && let Some(Reverse((at, _, alarm))) = self.alarms.pop()
            {
                self.come_to(at)?;
                self.ring(at, alarm);
            } else {
                self.now = self.now.max(until);
                return Ok(None);
            }
        }
    }

    /// What a side's connection of `tcp` knows of itself.
    pub fn facts(&self, connection: u32, side: PairSide) -> Option<TcpFacts> {
        let machine = &self.pairs.get(connection as usize)?.ends[side.index()].machine;
        machine.tcp().map(|machine| machine.facts(self.now))
    }

    /// What connections did since this was asked last, where they are traced.
    pub fn take_traced(&mut self) -> Vec<MessageTrace> {
        self.traced.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What went through each direction of each link.
    pub fn counters(&self) -> Vec<PortCounters> {
        self.network.counters().collect()
    }

    /// What the processor of each host has been spent on.
    pub fn spent(&self) -> Vec<SimProcessorSpending> {
        let of = |(host, processor): (u32, &SimProcessor<u64>)| SimProcessorSpending {
            copied_ns: self.network.copied_ns(NodeIndex(host), self.now),
            worked_ns: processor.spent_ns(self.now),
        };
        (0..).zip(&self.processors).map(of).collect()
    }

    /// The tap, at the end.
    pub fn into_tap(self) -> T {
        self.network.into_tap()
    }

    fn come_to(&mut self, at: Instant) -> Result<()> {
        self.steps = if at > self.now { 0 } else { self.steps + 1 };
        self.now = self.now.max(at);
        if self.steps > STEPS_AN_INSTANT {
            return Err(Error::measurement(format!("time stands still at {at} s"))
                .hint("an application sends without end, and no link slows it down: give a link a rate"));
        }
        Ok(())
    }

    fn set_alarm(&mut self, at: Instant, alarm: MessageAlarm) {
        self.alarms_set += 1;
        self.alarms
            .push(Reverse((at.max(self.now), self.alarms_set, alarm)));
    }

    /// An alarm came; one that another took the place of does nothing.
    fn ring(&mut self, at: Instant, alarm: MessageAlarm) {
        match alarm {
            MessageAlarm::Read { connection, side } => self.hand_over(connection, side),
            MessageAlarm::Application(token) => self.happened.push_back(Happening::Timer(token)),
            MessageAlarm::Processor(host) => self.worked(host),
            MessageAlarm::Calls { calls, side } => {
                let known = self.calls.get_mut(calls.wrapping_sub(CALLS) as usize);
                if let Some(known) = known.filter(|known| known.alarms[side] == Some(at)) {
                    known.alarms[side] = None;
                    self.flush_calls(
                        calls,
                        if side == 0 {
                            PairSide::Initiator
                        } else {
                            PairSide::Responder
                        },
                    );
                }
            }
            MessageAlarm::End { connection, side } => {
                let pair = self.pairs.get_mut(connection as usize);
                if let Some(pair) = pair.filter(|pair| pair.ends[side].alarm == Some(at)) {
                    pair.ends[side].alarm = None;
                    self.hand_over(connection, side);
                }
            }
        }
    }

    /// The processor of a host may have done something, or has something to do.
    fn worked(&mut self, host: u32) {
        let (now, copied_ns) = (self.now, self.network.copied_ns(NodeIndex(host), self.now));
        let Some(processor) = self.processors.get_mut(host as usize) else {
            return;
        };
        match processor.turn(now, copied_ns) {
            SimProcessorTurn::Done(token) => {
                self.happened.push_back(Happening::Worked(token));
                self.set_alarm(now, MessageAlarm::Processor(host));
            }
            SimProcessorTurn::Until(ends) => self.set_alarm(ends, MessageAlarm::Processor(host)),
            SimProcessorTurn::Nothing => {}
        }
    }

    fn deliver(&mut self, packet: &NetworkPacket<SimDatagram>) {
        let connection = packet.payload.pair;
        if connection >= CALLS {
            return self.deliver_to_calls(packet);
        }
        let Some(pair) = self.pairs.get_mut(connection as usize) else {
            return;
        };
        let side = usize::from(packet.to == pair.nodes[1]);
        pair.ends[side].machine.handle(self.now, &packet.payload);
        if !pair.is_there && side == 0 && pair.ends[0].machine.is_there() {
            pair.is_there = true;
            self.happened.push_back(Happening::Connected(connection));
        }
        self.read(connection, side);
        self.hand_over(connection, side);
    }

    /// Takes what has come, message by message, as long as the application reads.
    fn read(&mut self, connection: u32, side: usize) {
        let now = self.now;
        let Some(pair) = self.pairs.get_mut(connection as usize) else {
            return;
        };
        let end = &mut pair.ends[side];
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
                let side = if side == 0 {
                    PairSide::Initiator
                } else {
                    PairSide::Responder
                };
                self.happened.push_back(Happening::Arrived {
                    connection,
                    side,
                    message,
                });
                // The application decides after each message whether it reads on.
                return self.set_alarm(
                    now,
                    MessageAlarm::Read {
                        connection,
                        side: side.index(),
                    },
                );
            }
        }
    }

    /// Hands over what there is room for.
    fn hand_over(&mut self, connection: u32, side: usize) {
        let now = self.now;
        // As a kernel does, a writer that waits is woken when there is enough room, perhaps by what leaves now.
        if !self.is_awake(connection, side) {
            self.flush(connection, side);
            if !self.is_awake(connection, side) {
                return;
            }
        }
        let Some(pair) = self.pairs.get_mut(connection as usize) else {
            return;
        };
        let end = &mut pair.ends[side];
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
            let side = if side == 0 {
                PairSide::Initiator
            } else {
                PairSide::Responder
            };
            self.happened
                .push_back(Happening::Sent { connection, side });
        }
        if end.asks && end.unsent.is_empty() {
            end.asks = false;
            let side = if side == 0 {
                PairSide::Initiator
            } else {
                PairSide::Responder
            };
            self.happened
                .push_back(Happening::Room { connection, side });
        }
        self.flush(connection, side);
    }

    /// Whether a writer of that end does not wait, or there is room for it.
    fn is_awake(&self, connection: u32, side: usize) -> bool {
        let end = self
            .pairs
            .get(connection as usize)
            .map(|pair| &pair.ends[side]);
        end.is_none_or(|end| !(end.waits || end.asks) || end.machine.has_room())
    }

    /// Sends what may leave.
    fn flush(&mut self, connection: u32, side: usize) {
        let now = self.now;
        self.read(connection, side);
        let Some(pair) = self.pairs.get_mut(connection as usize) else {
            return;
        };
        let (from, to) = (pair.nodes[side], pair.nodes[1 - side]);
        let end = &mut pair.ends[side];
        while let Some(packet) = end.machine.poll(
            now,
            MessageRoute {
                connection,
                from,
                to,
            },
        ) {
            self.network.handle(now, packet);
        }
        if let Some(traced) = &mut self.traced {
            let side = if side == 0 {
                PairSide::Initiator
            } else {
                PairSide::Responder
            };
            traced.extend(
                end.machine
                    .take_events()
                    .into_iter()
                    .map(|event| MessageTrace {
                        at: now,
                        connection,
                        side,
                        event,
                    }),
            );
        }
        if !pair.broken && end.machine.is_closed() && side == 0 {
            pair.broken = true;
            self.happened.push_back(Happening::Broken(connection));
        }
        let deadline = end.machine.deadline(now);
        if let Some(at) = deadline
            && end.alarm.is_none_or(|alarm| at < alarm)
        {
            end.alarm = Some(at.max(now));
            self.set_alarm(at, MessageAlarm::End { connection, side });
        }
    }
}
