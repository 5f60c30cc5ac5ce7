//! One end of an `ncp` connection (the Host-Host protocol of 1972): passes messages between the machine of `proto::papers::ncp` and its
//! host's interface. All protocol decisions are the machine's.

use crate::connection_info::ConnectionInfo;
use crate::datagram::{ImpDeliveryVerdict, SimDatagram, SimDatagramBody, ipv4_header};
use crate::run_state::{ConnectionEnd, SimRunState, Timer};
use crate::run_trace::SimTraceLog;
use crate::stacks::byte_stream::{Got, StreamEnd};
use crate::stacks::pair::SimPairRoute;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_events::catalogue::families::ConnectionReportEvent;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use stackline_proto::papers::imp::ImpDeliveryFailure;
use stackline_proto::papers::ncp::{
    MESSAGE_BYTES, NcpConnection, NcpMessage, NcpReceived, NcpState,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// The IPv4 protocol number for experiments (RFC 3692), with which captures show NCP messages.
const PROTOCOL: u8 = 253;

/// One end of a connection.
pub(super) struct SimNcpEnd {
    touched: Cell<bool>,
    pair: u32,
    connection: u32,
    side: PairSide,
    from: NodeIndex,
    to: NodeIndex,
    endpoint: u32,
    /// The application has abandoned it: nobody reads what arrives.
    orphan: Cell<bool>,
    /// When the earliest timer that is set will expire.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<NcpConnection>,
    /// The state that was sampled last, while the run is traced.
    looked: Cell<ConnectionInfo>,
}

impl fmt::Debug for SimNcpEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of connection {} of pair {}",
            self.side, self.connection, self.pair
        )
    }
}

impl SimNcpEnd {
    pub(super) fn new(
        route: &SimPairRoute,
        connection: u32,
        side: PairSide,
        machine: NcpConnection,
    ) -> Self {
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

    pub(super) fn state(&self) -> NcpState {
        self.machine.borrow().state()
    }

    /// Registers the end to be flushed, as there may be something to send.
    pub(super) fn touch(self: &Rc<Self>, shared: &SimRunState) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            shared.touch(end);
        }
    }

    /// Handles a message of the peer, or the IMPs' verdict on a message of its own.
    pub(super) fn arrived(self: &Rc<Self>, datagram: &SimDatagram, shared: &SimRunState) {
        let mut machine = self.machine.borrow_mut();
        match datagram.body() {
            SimDatagramBody::Message(message) => machine.handle(message),
            SimDatagramBody::Answer(link, ImpDeliveryVerdict::Delivered) => {
                machine.answered(shared.now(), *link)
            }
            SimDatagramBody::Answer(link, ImpDeliveryVerdict::Failed(why)) => {
                machine.failed(shared.now(), *link, *why)
            }
            _ => {}
        }
        if self.orphan.get() && machine.readable() && machine.waiting().2 > 0 {
            // Nobody will read it.
            machine.abort();
        }
        drop(machine);
        self.touch(shared);
        shared.wake(self.endpoint);
    }

    /// A timer of this end has expired.
    pub(super) fn rang(self: &Rc<Self>, shared: &SimRunState) {
        if self.alarm.get().is_some_and(|alarm| alarm <= shared.now()) {
            self.alarm.set(None);
        }
        self.touch(shared);
    }

    /// Records an INFO event if data is under way or was delivered since the last sample. Whether it did.
    pub(super) fn sample(&self, at: Instant, log: &SimTraceLog) -> bool {
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
        let reports = waits > 0 || now.acked_bytes != before.acked_bytes;
        if reports {
            log.info(
                ConnectionReportEvent::TcpInfo,
                self.pair,
                self.side,
                at,
                &before,
                &now,
            );
        }
        reports
    }

    fn info(&self, now: Instant) -> ConnectionInfo {
        let machine = self.machine.borrow();
        let (counts, (undelivered, unsent, unread)) = (machine.counts(), machine.waiting());
        ConnectionInfo {
            in_flight_bytes: Some(undelivered - unsent),
            rtt: Some(counts.round_trip),
            retransmits: counts.repeated,
            receive_window_limited: Some(machine.waited(now).0),
            unsent_bytes: Some(unsent),
            receive_queue_bytes: Some(unread),
            mss_bytes: Some(u64::from(MESSAGE_BYTES)),
            acked_bytes: Some(counts.delivered),
            ..ConnectionInfo::default()
        }
    }

    fn packet(&self, message: NcpMessage) -> NetworkPacket<SimDatagram> {
        let bytes = message.bits() / 8;
        let header = ipv4_header(self.from, self.to, PROTOCOL, 20 + bytes as usize, 0, 0);
        let payload = SimDatagram::of_message(self.pair, self.connection, &header, message);
        let (from, to, flow, segments) = (self.from, self.to, self.pair, SegmentSizes::one(bytes));
        NetworkPacket {
            number: 0,
            from,
            to,
            flow,
            ecn: EcnMarking::NotCapable,
            dscp: 0,
            segments,
            payload,
        }
    }
}

impl ConnectionEnd for SimNcpEnd {
    fn pair(&self) -> u32 {
        self.pair
    }

    fn side(&self) -> PairSide {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, shared: &SimRunState) {
        let (mut machine, now) = (self.machine.borrow_mut(), shared.now());
        while let Some(message) = machine.poll(now) {
            shared.send(self.packet(message));
        }
        if let Some(next) = machine.deadline(now).filter(|next| *next > now)
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            let (pair, connection, side) = (self.pair, self.connection, self.side);
            shared.set_timer(
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
        self.orphan.get() && matches!(self.state(), NcpState::Over | NcpState::Broken)
    }
}

impl StreamEnd for Rc<SimNcpEnd> {
    fn answered(&self) -> Option<bool> {
        match self.state() {
            NcpState::Opening => None,
            NcpState::Broken => Some(false),
            NcpState::Open | NcpState::Over => Some(true),
        }
    }

    fn send(&self, bytes: usize, shared: &SimRunState) -> Option<usize> {
        let done = self.machine.borrow_mut().send(bytes as u64)?;
        self.touch(shared);
        usize::try_from(done).ok()
    }

    fn receive(&self, most: usize, shared: &SimRunState) -> Got {
        match self.machine.borrow_mut().receive(most as u64) {
            NcpReceived::Bytes(bytes) => {
                self.touch(shared);
                Got::Bytes(bytes as usize)
            }
            NcpReceived::Nothing => Got::Nothing,
            NcpReceived::End => Got::End,
            NcpReceived::Broken => Got::Broken,
        }
    }

    fn broken_by(&self) -> Option<&'static str> {
        self.machine.borrow().broken_by().map(|why| match why {
            ImpDeliveryFailure::DeadImp => {
                "for two minutes, the IMPs reported that the other side's IMP was unreachable"
            }
            ImpDeliveryFailure::DeadHost => {
                "for two minutes, the IMPs reported that the other side's host was dead"
            }
            ImpDeliveryFailure::HostSlow => "the other side's host did not accept messages",
            ImpDeliveryFailure::Incomplete => "the IMPs lost messages in transit",
        })
    }

    fn unanswered_because(&self) -> Option<&'static str> {
        self.machine.borrow().last_failure().map(|why| match why {
            ImpDeliveryFailure::DeadImp => {
                "the IMPs report that the other side's IMP is unreachable"
            }
            ImpDeliveryFailure::DeadHost => "the IMPs report that the other side's host is dead",
            ImpDeliveryFailure::HostSlow => {
                "the IMPs report that the other side's host does not accept messages"
            }
            ImpDeliveryFailure::Incomplete => "the IMPs lost messages in transit",
        })
    }

    fn close(&self, shared: &SimRunState) {
        self.machine.borrow_mut().close();
        self.touch(shared);
    }

    fn abandon(&self, shared: &SimRunState) {
        self.orphan.set(true);
        let mut machine = self.machine.borrow_mut();
        if machine.waiting().2 > 0 {
            machine.abort();
        } else {
            machine.close();
        }
        drop(machine);
        self.touch(shared);
    }

    /// Does nothing: no data is held back to be sent with more.
    fn push(&self, _executor: &SimRunState) {}

    fn transport(&self, now: Instant) -> Option<TransportRecord> {
        let machine = self.machine.borrow();
        let counts = machine.counts();
        Some(TransportRecord {
            retransmits: counts.repeated,
            rtt_s: counts.round_trip.seconds(),
            mss_bytes: u64::from(MESSAGE_BYTES),
            receive_window_limited_s: Some(machine.waited(now).0.seconds()),
            bytes_acked: Some(counts.delivered),
            bytes_received: counts.received,
            ..TransportRecord::default()
        })
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
