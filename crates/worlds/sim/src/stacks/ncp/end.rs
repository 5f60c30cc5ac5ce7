//! One end of a connection: hands the machine's messages to its host's interface, and it what comes. It decides nothing of the
//! protocol.

use crate::datagram::{Body, Datagram, Verdict, ipv4};
use crate::executor::{ConnectionEnd, Executor, Timer};
use crate::stacks::byte_stream::{Got, StreamEnd};
use crate::stacks::pair::Route;
use crate::trace::{Info, Log};
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_events::Keyword;
use stackline_net::{Ecn, Node, Packet, Segments};
use stackline_proto::imp::Failure;
use stackline_proto::ncp::{Connection, MESSAGE_BYTES, Message, Received, State};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

static INFO: Keyword = Keyword::new("TCP_INFO");

/// The number of an experiment's protocol (RFC 3692): captures show messages as IPv4 packets of it.
const PROTOCOL: u8 = 253;

/// One end of a connection.
pub(super) struct End {
    touched: Cell<bool>,
    pair: u32,
    connection: u32,
    side: Side,
    from: Node,
    to: Node,
    endpoint: u32,
    /// The application has let go of it.
    orphan: Cell<bool>,
    /// The earliest timer that has not come yet.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<Connection>,
    /// What it told of itself last, while the run is traced.
    looked: Cell<Info>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of connection {} of pair {}",
            self.side, self.connection, self.pair
        )
    }
}

impl End {
    pub(super) fn new(route: &Route, connection: u32, side: Side, machine: Connection) -> Self {
        Self {
            touched: Cell::new(false),
            pair: route.pair,
            connection,
            side,
            from: route.node(side),
            to: route.node(side.other()),
            endpoint: route.endpoint(side),
            orphan: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
            looked: Cell::default(),
        }
    }

    pub(super) const fn connection(&self) -> u32 {
        self.connection
    }

    pub(super) fn state(&self) -> State {
        self.machine.borrow().state()
    }

    /// There may be something to send.
    pub(super) fn touch(self: &Rc<Self>, executor: &Executor) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            executor.touch(end);
        }
    }

    pub(super) fn arrived(self: &Rc<Self>, datagram: &Datagram, executor: &Executor) {
        let mut machine = self.machine.borrow_mut();
        match datagram.body() {
            Body::Message(message) => machine.handle(message),
            Body::Answer(link, Verdict::Delivered) => machine.answered(executor.now(), *link),
            Body::Answer(link, Verdict::Failed(why)) => machine.failed(executor.now(), *link, *why),
            _ => {}
        }
        if self.orphan.get() && machine.readable() && machine.waiting().2 > 0 {
            // Nobody will take it.
            machine.abort();
        }
        drop(machine);
        self.touch(executor);
        executor.wake(self.endpoint);
    }

    /// Its timer came.
    pub(super) fn rang(self: &Rc<Self>, executor: &Executor) {
        if self
            .alarm
            .get()
            .is_some_and(|alarm| alarm <= executor.now())
        {
            self.alarm.set(None);
        }
        self.touch(executor);
    }

    /// Records how it is. Whether there was something to record.
    pub(super) fn sample(&self, at: Instant, log: &Log) -> bool {
        let now = self.info(at);
        let before = self.looked.replace(now);
        let waits = [
            now.in_flight_bytes,
            now.unsent_bytes,
            now.receive_queue_bytes,
        ]
        .into_iter()
        .flatten()
        .sum::<u64>();
        let tells = waits > 0 || now.acked_bytes != before.acked_bytes;
        if tells {
            log.info(&INFO, (self.pair, self.side), at, &before, &now);
        }
        tells
    }

    fn info(&self, now: Instant) -> Info {
        let machine = self.machine.borrow();
        let (counts, (undelivered, unsent, unread)) = (machine.counts(), machine.waiting());
        Info {
            in_flight_bytes: Some(undelivered - unsent),
            rtt: Some(counts.round_trip),
            retransmits: counts.repeated,
            receive_window_limited: Some(machine.waited(now).0),
            unsent_bytes: Some(unsent),
            receive_queue_bytes: Some(unread),
            mss_bytes: Some(u64::from(MESSAGE_BYTES)),
            acked_bytes: Some(counts.delivered),
            ..Info::default()
        }
    }

    fn packet(&self, message: Message) -> Packet<Datagram> {
        let bytes = message.bits() / 8;
        let header = ipv4(self.from, self.to, PROTOCOL, 20 + bytes as usize, 0, 0);
        let payload = Datagram::of_message(self.pair, self.connection, &header, message);
        let (from, to, flow, segments) = (self.from, self.to, self.pair, Segments::one(bytes));
        Packet {
            number: 0,
            from,
            to,
            flow,
            ecn: Ecn::NotCapable,
            segments,
            payload,
        }
    }
}

impl ConnectionEnd for End {
    fn pair(&self) -> u32 {
        self.pair
    }

    fn side(&self) -> Side {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, executor: &Executor) {
        let (mut machine, now) = (self.machine.borrow_mut(), executor.now());
        while let Some(message) = machine.poll(now) {
            executor.send(self.packet(message));
        }
        if let Some(next) = machine.deadline(now).filter(|next| *next > now)
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            let (pair, connection, side) = (self.pair, self.connection, self.side);
            executor.set_timer(
                next,
                Timer::End {
                    pair,
                    connection,
                    side,
                },
            );
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && matches!(self.state(), State::Over | State::Broken)
    }
}

impl StreamEnd for Rc<End> {
    fn answered(&self) -> Option<bool> {
        match self.state() {
            State::Opening => None,
            State::Broken => Some(false),
            State::Open | State::Over => Some(true),
        }
    }

    fn send(&self, bytes: usize, executor: &Executor) -> Option<usize> {
        let done = self.machine.borrow_mut().send(bytes as u64)?;
        self.touch(executor);
        usize::try_from(done).ok()
    }

    fn receive(&self, most: usize, executor: &Executor) -> Got {
        match self.machine.borrow_mut().receive(most as u64) {
            Received::Bytes(bytes) => {
                self.touch(executor);
                Got::Bytes(bytes as usize)
            }
            Received::Nothing => Got::Nothing,
            Received::End => Got::End,
            Received::Broken => Got::Broken,
        }
    }

    fn broken_by(&self) -> Option<&'static str> {
        self.machine.borrow().broken_by().map(|why| match why {
            Failure::DeadImp => {
                "for two minutes the IMPs answered that the other side's IMP cannot be reached"
            }
            Failure::DeadHost => {
                "for two minutes the IMPs answered that the other side's host is dead"
            }
            Failure::HostSlow => "the other side's host did not take messages",
            Failure::Incomplete => "the IMPs lost messages on the way",
        })
    }

    fn close(&self, executor: &Executor) {
        self.machine.borrow_mut().close();
        self.touch(executor);
    }

    fn abandon(&self, executor: &Executor) {
        self.orphan.set(true);
        let mut machine = self.machine.borrow_mut();
        if machine.waiting().2 > 0 {
            machine.abort();
        } else {
            machine.close();
        }
        drop(machine);
        self.touch(executor);
    }

    /// Nothing is held back for company.
    fn push(&self, _executor: &Executor) {}

    fn transport(&self, now: Instant) -> Transport {
        let machine = self.machine.borrow();
        let counts = machine.counts();
        Transport {
            retransmits: counts.repeated,
            rtt_s: counts.round_trip.seconds(),
            mss_bytes: u64::from(MESSAGE_BYTES),
            receive_window_limited_s: Some(machine.waited(now).0.seconds()),
            bytes_acked: Some(counts.delivered),
            bytes_received: counts.received,
            ..Transport::default()
        }
    }

    fn settings(&self, _now: Instant) -> BTreeMap<String, String> {
        let options = *self.machine.borrow().options();
        let settings = [
            ("links", options.links.to_string()),
            ("allocate", format!("{} B", options.allocate)),
            ("send_buffer", format!("{} B", options.send_buffer)),
        ];
        settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}
