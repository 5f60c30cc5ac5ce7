//! One measured part of a measurement over its counted runs: what it does, over which paths, and where its sender's time went
//! as far as its records say.

use crate::findings::finding::percent;
use crate::findings::measured::turns::TurnCount;
use crate::statistics::to_f64;
use stackline_core::catalogue::FlowControl;
use stackline_core::network::{Network, NetworkInterface};
use stackline_core::plan::{self, World};
use stackline_core::procedure::{self, DelayArgument, OperationCall, PairSide};
use stackline_core::run_record::{Histogram, RunRecord, SideRecord, TransportRecord};
use stackline_core::socket_memory;
use stackline_core::trace_index::UNNAMED;
use stackline_model::path::PathModel;
use stackline_model::slow_start;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartWorkload {
    /// Data units one way; who sends.
    Bulk(PairSide),
    /// Calls.
    Calls,
    /// Data units there and back: one side sends, and waits for what the other sends then.
    Turns,
    /// Connections.
    Connects,
}

/// One measured part over all counted runs.
#[derive(Debug)]
pub(crate) struct MeasuredPart<'c> {
    /// Index in the measurement.
    pub(crate) index: usize,
    pub(crate) plan: &'c plan::MeasurementPart,
    /// Where it was measured.
    pub(crate) world: World,
    pub(crate) records: Vec<&'c RunRecord>,
    pub(crate) work: PartWorkload,
    /// Hosts of initiator and responder.
    pub(crate) hosts: (String, String),
    /// The way there and back, where the network is modelled.
    pub(crate) paths: Option<(PathModel, PathModel)>,
    /// Measured time over all runs, s.
    pub(crate) elapsed_s: f64,
    /// Its share of the measured time of all parts.
    pub(crate) weight: f64,
    /// Whether nothing else is measured beside it.
    pub(crate) alone: bool,
}

/// Where a sender's time went, by its transport: shares of the measured time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderLimits {
    /// Data to send, or on its way.
    pub(crate) busy: f64,
    /// Kept waiting by the receiver's window.
    pub(crate) receive_window: f64,
    /// Kept waiting by a full send buffer.
    pub(crate) send_buffer: f64,
}

impl<'c> MeasuredPart<'c> {
    pub(crate) fn of(
        network: Option<&Network>,
        measurement: &'c plan::Measurement,
        index: usize,
        records: Vec<&'c RunRecord>,
    ) -> Self {
        let plan = &measurement.parts[index];
        let name =
            |host: &Option<String>, unnamed: &str| host.clone().unwrap_or_else(|| unnamed.into());
        let hosts = (name(&plan.from, UNNAMED.0), name(&plan.to, UNNAMED.1));
        let between = |network| {
            Some((
                PathModel::between(network, &hosts.0, &hosts.1)?,
                PathModel::between(network, &hosts.1, &hosts.0)?,
            ))
        };
        let paths = network.and_then(between);
        let elapsed_s = records
            .iter()
            .map(|record| to_f64(record.elapsed_ns) / 1e9)
            .sum();
        let work = work(&records, plan);
        Self {
            index,
            plan,
            world: measurement.world,
            records,
            work,
            hosts,
            paths,
            elapsed_s,
            weight: 0.0,
            alone: true,
        }
    }

    /// The path data takes; of calls the way there.
    pub(crate) fn data_path(&self) -> Option<&PathModel> {
        let (there, back) = self.paths.as_ref()?;
        Some(if self.work == PartWorkload::Bulk(PairSide::Responder) {
            back
        } else {
            there
        })
    }

    /// Round trip of a small packet that waits nowhere, s: by the network where it is modelled, else the least that the
    /// transport smoothed.
    pub(crate) fn round_trip_s(&self) -> Option<f64> {
        if let Some((there, back)) = &self.paths {
            let one_way_s = |path: &PathModel| {
                let hops = path
                    .hops
                    .iter()
                    .map(|hop| hop.delay_s + hop.serialisation_s(SMALL).unwrap_or(0.0));
                hops.sum::<f64>() + interface_s(&path.sender) + interface_s(&path.receiver)
            };
            return Some(one_way_s(there) + one_way_s(back));
        }
        let least = |record: &&RunRecord| {
            let sides = [&record.initiator, &record.responder];
            sides
                .into_iter()
                .filter_map(|side| side.transport)
                .map(|(_, t)| t.rtt_s)
                .filter(|rtt| *rtt > 0.0)
                .reduce(f64::min)
        };
        self.records.iter().filter_map(least).reduce(f64::min)
    }

    /// Whether both ends are on one machine, with no link between them: only the work of processors takes time there. Hosts
    /// without a name are the machine's own; those with one may have a short link.
    pub(crate) fn in_one_machine(&self) -> bool {
        let near = || self.round_trip_s().is_some_and(|trip| trip < LEAST_TRIP_S);
        let unnamed = self.plan.from.is_none() && self.plan.to.is_none();
        self.paths.is_none() && unnamed && (self.plan.stack.facts.one_host || near())
    }

    /// What the threads of one side computed of the measured time; 1 is a full core.
    pub(crate) fn computed(&self, side: PairSide) -> f64 {
        let cpu_s = |record: &&RunRecord| side_of(record, side).usage.cpu_s();
        self.records.iter().map(cpu_s).sum::<f64>() / self.elapsed_s / f64::from(self.threads(side))
    }

    /// How many threads one side has: one for each pair, or as many as the stack says drive all of them.
    pub(crate) fn threads(&self, side: PairSide) -> u32 {
        let pairs = self.plan.replicas.max(1);
        let said =
            |record: &&RunRecord| side_of(record, side).settings.get("threads")?.parse().ok();
        self.records
            .iter()
            .find_map(said)
            .map_or(pairs, |threads: u32| threads.clamp(1, pairs))
    }

    /// How many pairs of initiator and responder do it at once.
    pub(crate) fn replicas(&self) -> f64 {
        f64::from(self.plan.replicas.max(1))
    }

    /// Measured seconds of all pairs.
    pub(crate) fn pairs_s(&self) -> f64 {
        self.elapsed_s * self.replicas()
    }

    /// The host of one side.
    pub(crate) fn host(&self, side: PairSide) -> &str {
        if side == PairSide::Initiator {
            &self.hosts.0
        } else {
            &self.hosts.1
        }
    }

    /// The records of the sender of bulk data and of its receiver.
    pub(crate) fn sides<'r>(
        &self,
        record: &'r RunRecord,
    ) -> Option<(&'r SideRecord, &'r SideRecord)> {
        let sender = self.work.sender()?;
        Some((
            side_of(record, sender),
            side_of(record, opposite_side(sender)),
        ))
    }

    /// The host that sends bulk data, and the one that receives it.
    pub(crate) fn ends(&self) -> Option<(&str, &str)> {
        let sender = self.work.sender()?;
        Some((self.host(sender), self.host(opposite_side(sender))))
    }

    /// Where the sender's time went; `None` when its transport does not report it.
    pub(crate) fn limits(&self) -> Option<SenderLimits> {
        let mut sum = SenderLimits::default();
        for record in &self.records {
            let (start, stop) = self.sides(record)?.0.transport?;
            let spent = |get: fn(&TransportRecord) -> Option<f64>| Some(get(&stop)? - get(&start)?);
            sum.busy += spent(|t| t.busy_s)?;
            sum.receive_window += spent(|t| t.receive_window_limited_s)?;
            // A blast leaves straight from the application's memory.
            sum.send_buffer += spent(|t| t.send_buffer_limited_s).unwrap_or(0.0);
        }
        let share = |s: f64| (s / self.pairs_s()).clamp(0.0, 1.0);
        Some(SenderLimits {
            busy: share(sum.busy),
            receive_window: share(sum.receive_window),
            send_buffer: share(sum.send_buffer),
        })
    }

    /// Whether its sender has a congestion window, which opens round trip by round trip.
    pub(crate) fn opens_a_window(&self) -> bool {
        self.sender_reports(|transport| transport.cwnd_segments.is_some())
    }

    fn sender_reports(&self, what: fn(&TransportRecord) -> bool) -> bool {
        let reports =
            |record: &&RunRecord| self.sides(record)?.0.transport.map(|(_, stop)| what(&stop));
        self.records
            .iter()
            .filter_map(reports)
            .any(|reports| reports)
    }

    /// Bytes that the receiver of bulk data allows in flight: of a stream its buffer, of blasts what it grants.
    pub(crate) fn receive_buffer(&self) -> Option<u64> {
        let granted = || {
            self.granted()
                .map(|usual| self.plan.stack.number("buffer").unwrap_or(usual))
        };
        let buffer = self.setting_bytes("receive_buffer", true);
        buffer
            .map(|memory| self.offered_of(memory))
            .or_else(granted)
    }

    /// The window that a receive buffer of so many bytes offers: a kernel's buffer is memory, of which packets take more than
    /// they carry.
    pub(crate) fn offered_of(&self, memory: u64) -> u64 {
        let sides = self
            .records
            .first()
            .map(|record| [&record.initiator, &record.responder]);
        let segment = sides
            .into_iter()
            .flatten()
            .filter_map(|side| side.transport)
            .map(|(_, stop)| stop.mss_bytes)
            .max();
        match (self.plan.stack.facts.flow_control, segment) {
            (FlowControl::KernelBuffers, Some(segment)) if segment > 0 => {
                socket_memory::offered_window(memory, segment)
            }
            _ => memory,
        }
    }

    /// Bytes that the receiver grants where the specification names none, when it grants at all.
    fn granted(&self) -> Option<u64> {
        match self.plan.stack.facts.flow_control {
            FlowControl::Grant(bytes) => Some(bytes),
            FlowControl::Buffers | FlowControl::KernelBuffers => None,
        }
    }

    /// Whether the receiver grants what may be on its way.
    pub(crate) fn grants(&self) -> bool {
        self.granted().is_some()
    }

    /// Segments sent again, both sides, all runs; `None` when no transport reports it.
    pub(crate) fn retransmits(&self) -> Option<u64> {
        let sides = self
            .records
            .iter()
            .flat_map(|record| [&record.initiator, &record.responder]);
        let counts: Vec<u64> = sides
            .filter_map(|side| side.transport)
            .map(|(a, b)| b.retransmits.saturating_sub(a.retransmits))
            .collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }

    /// Segment size in bytes, by the sender's transport or by the path.
    pub(crate) fn segment_bytes(&self) -> Option<u64> {
        let transport = self
            .records
            .iter()
            .find_map(|record| record.initiator.transport.or(record.responder.transport));
        let reported = transport.map(|(_, t)| t.mss_bytes).filter(|mss| *mss > 0);
        reported.or_else(|| {
            self.data_path()
                .map(|path| path.mtu_bytes().saturating_sub(52))
        })
    }

    /// A setting of the sender or the receiver of bulk data, in bytes: `65536 B`.
    pub(crate) fn setting_bytes(&self, name: &str, of_receiver: bool) -> Option<u64> {
        let (sender, receiver) = self.sides(self.records.first()?)?;
        let side = if of_receiver { receiver } else { sender };
        side.settings
            .get(name)?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// Bytes of data units that arrived, all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.data_bytes()).sum()
    }

    /// A setting of one side, in bytes: `65536 B`.
    pub(crate) fn setting_of(&self, side: PairSide, name: &str) -> Option<u64> {
        side_of(self.records.first()?, side)
            .settings
            .get(name)?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// Response times of all runs.
    pub(crate) fn calls(&self) -> Histogram {
        Histogram::merged(self.records.iter().map(|record| &record.calls))
    }

    /// How many times something is sent and its answer waited for, in all runs.
    pub(crate) fn exchanges(&self) -> u64 {
        match self.work {
            PartWorkload::Calls => self.calls().n(),
            PartWorkload::Turns => count_turns(&self.records, self.plan),
            PartWorkload::Bulk(_) | PartWorkload::Connects => 0,
        }
    }

    /// Bytes that go one way before anything is waited for, on average, the longer of both ways: of a transfer all of it.
    pub(crate) fn longest_message(&self) -> u64 {
        let received = |side: PairSide| -> u64 {
            let grew = |record: &&RunRecord| {
                let (start, stop) = side_of(record, side).transport?;
                Some(stop.bytes_received.saturating_sub(start.bytes_received))
            };
            self.records.iter().filter_map(grew).sum()
        };
        let bytes = received(PairSide::Initiator)
            .max(received(PairSide::Responder))
            .max(self.bytes());
        let runs = self.records.len() as u64 * u64::from(self.plan.replicas.max(1));
        bytes / self.exchanges().max(self.set_up().1).max(runs).max(1)
    }

    /// Seconds in which connections were opened and closed while the clock ran, and how many, where data goes over them.
    pub(crate) fn set_up(&self) -> (f64, u64) {
        if self.work == PartWorkload::Connects {
            return (0.0, 0);
        }
        let connects = self.records.iter().map(|record| &record.connects);
        connects.fold((0.0, 0), |(seconds, n), connects| {
            (seconds + to_f64(connects.sum) / 1e9, n + connects.n())
        })
    }

    /// The time that shares of it refer to: measured seconds of all pairs; of calls the sum of their response times and of the times that
    /// connections for them took, where they begin at moments of their own and pauses lie between them. A late call's response time
    /// begins at its scheduled moment and holds the time of those before it: together they took no longer than was measured. A lost call
    /// took the time until it was given up.
    pub(crate) fn basis_s(&self) -> f64 {
        let measured = self.pairs_s();
        let calls = if self.work == PartWorkload::Calls {
            to_f64(self.calls().sum) / 1e9 + to_f64(self.lost_calls()) * GIVEN_UP_S
        } else {
            0.0
        };
        if calls > 0.0 {
            (calls + self.set_up().0).min(measured)
        } else {
            measured
        }
    }

    /// Calls that nobody answered.
    pub(crate) fn lost_calls(&self) -> u64 {
        let lost = |record: &&RunRecord| record.initiator.lost.or(record.responder.lost);
        let all: u64 = self.records.iter().filter_map(lost).sum();
        if self.work == PartWorkload::Calls {
            all
        } else {
            0
        }
    }

    /// A share of the part's own time in words: `12 % of the time`, and of which part's where there are others.
    pub(crate) fn of_its_time(&self, share: f64) -> String {
        let whose = if self.alone {
            String::new()
        } else {
            format!(" of `{}`", self.plan.text)
        };
        format!("{} of the time{whose}", percent(share))
    }

    /// Rate that bulk data went at, bit/s.
    pub(crate) fn rate_bit_s(&self) -> f64 {
        8.0 * to_f64(self.bytes()) / self.elapsed_s
    }

    /// The same of one of its pairs.
    pub(crate) fn pair_bit_s(&self) -> f64 {
        self.rate_bit_s() / self.replicas()
    }

    /// Slowest hop's rate of the data path, bit/s.
    pub(crate) fn bottleneck_bit_s(&self) -> Option<f64> {
        let path = self.data_path()?;
        path.bottleneck(path.mtu_bytes())?.rate_bit_s
    }

    /// What the path holds in a round trip, bytes.
    pub(crate) fn bandwidth_delay_bytes(&self) -> Option<f64> {
        Some(stackline_model::pipe::bandwidth_delay_bytes(
            self.bottleneck_bit_s()?,
            self.round_trip_s()?,
        ))
    }

    /// Seconds a transfer without losses takes over its path while its window opens; `None` where the path is not known, or
    /// there is no such window.
    pub(crate) fn without_loss_s(&self) -> Option<f64> {
        if !self.opens_a_window() {
            return None;
        }
        let segment = self.segment_bytes()?;
        let share = to_f64(segment) / to_f64(segment + 52);
        let transfer = slow_start::SlowStartTransfer {
            bytes: self.bytes()
                / (self.records.len() as u64).max(1)
                / u64::from(self.plan.replicas.max(1)),
            segment_bytes: segment,
            initial_segments: slow_start::INITIAL_SEGMENTS,
            rate_bit_s: self
                .bottleneck_bit_s()
                .map(|rate| rate * share / self.replicas()),
            rtt_s: self.round_trip_s()?,
            window_bytes: None,
        };
        slow_start::time_transfer(&transfer).map(|sent| sent.time_s)
    }

    /// Whether the reader, not its buffer's size, keeps the window closed: a sender that waits for nothing but a small window
    /// sends a whole window each round trip, so its rate is at least `window_bit_s` for that share of the time.
    pub(crate) fn window_is_closed_by_reader(
        &self,
        limits: SenderLimits,
        window_bit_s: f64,
    ) -> bool {
        self.pair_bit_s() < LEAST_WINDOW * limits.receive_window * window_bit_s
    }

    /// Seconds that calls took from when they really began: without their wait for the calls before them.
    pub(crate) fn own_calls_s(&self) -> f64 {
        let late: u64 = self.records.iter().map(|record| record.lateness.sum).sum();
        to_f64(self.calls().sum.saturating_sub(late)) / 1e9
    }

    /// Whether calls come faster than they are answered, so that they wait for one another at their caller: then its pace is
    /// intended, and its time is not.
    pub(crate) fn falls_behind(&self) -> bool {
        let (calls, own) = (to_f64(self.calls().sum) / 1e9, self.own_calls_s());
        let paced = self.paces(PairSide::Initiator) && !self.paces(PairSide::Responder);
        paced && own >= BEHIND.0 * self.pairs_s() && calls - own >= BEHIND.1 * calls
    }

    /// Whether that side has a pace in the specification.
    pub(crate) fn paces(&self, side: PairSide) -> bool {
        procedure::contains_call(self.plan.procedure.side(side), &|call| match call {
            OperationCall::Pace(DelayArgument::Timing(at)) => self.plan.data.timings.len() > *at,
            OperationCall::Pace(DelayArgument::Drawn(_)) => true,
            _ => false,
        })
    }
}

/// Callers that fall behind are in their calls for so much of the time, and wait before them for so much of response times.
const BEHIND: (f64, f64) = (0.9, 0.1);

impl PartWorkload {
    /// Who sends bulk data; `None` for calls and connections.
    pub(crate) const fn sender(self) -> Option<PairSide> {
        match self {
            Self::Bulk(side) => Some(side),
            Self::Calls | Self::Turns | Self::Connects => None,
        }
    }

    /// Whether both sides send, and each waits for the other.
    pub(crate) const fn is_answered(self) -> bool {
        matches!(self, Self::Calls | Self::Turns)
    }
}

/// The peer of a side.
pub(crate) const fn opposite_side(side: PairSide) -> PairSide {
    match side {
        PairSide::Initiator => PairSide::Responder,
        PairSide::Responder => PairSide::Initiator,
    }
}

/// The record of one side.
pub(crate) const fn side_of(record: &RunRecord, side: PairSide) -> &SideRecord {
    match side {
        PairSide::Initiator => &record.initiator,
        PairSide::Responder => &record.responder,
    }
}

/// A call over datagrams is lost when nothing has answered it after this time (s).
pub(crate) const GIVEN_UP_S: f64 = 1.0;

/// A round trip shorter than this crosses no network: processors wake one another (s).
pub(crate) const LEAST_TRIP_S: f64 = 100e-6;

/// A kernel offers at least this share of a buffer as its window; the rest is for what packets cost beside their data.
const LEAST_WINDOW: f64 = 0.5;

/// A packet without data, bytes.
const SMALL: u64 = 52;

/// Seconds an interface takes for a small packet.
fn interface_s(interface: &NetworkInterface) -> f64 {
    interface_packet_s(interface, SMALL)
}

/// Seconds an interface's processor takes to copy a packet in or out.
pub(crate) fn interface_packet_s(interface: &NetworkInterface, bytes: u64) -> f64 {
    let time =
        interface.copy_per_packet.seconds() + interface.copy_ns_per_byte * to_f64(bytes) / 1e9;
    time / interface.copy_speed()
}

/// From so many turns a run on it is those that are judged, and not the data that goes one way.
const LEAST_TURNS: u64 = 5;

fn count_turns(records: &[&RunRecord], plan: &plan::MeasurementPart) -> u64 {
    let received: u64 = records
        .iter()
        .map(|record| record.initiator.received_units)
        .sum();
    TurnCount::of(plan.procedure.timed(PairSide::Initiator)).scaled(received)
}

/// Whether a part that has calls sends data in bulk besides, and its calls take less than half of its time: a file, and what is said before it.
fn is_mostly_bulk(records: &[&RunRecord], plan: &plan::MeasurementPart) -> bool {
    let ends_bulk = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::StopBulkPut | OperationCall::StopBulkGet
        )
    };
    let calls: u64 = records.iter().map(|record| record.calls.sum).sum();
    let elapsed: u64 = records.iter().map(|record| record.elapsed_ns).sum();
    procedure::contains_call(plan.procedure.timed(PairSide::Initiator), &ends_bulk)
        && calls.saturating_mul(2) < elapsed.saturating_mul(u64::from(plan.replicas.max(1)))
}

fn work(records: &[&RunRecord], plan: &plan::MeasurementPart) -> PartWorkload {
    let sum = |get: fn(&RunRecord) -> u64| records.iter().map(|record| get(record)).sum::<u64>();
    let pairs = records.len() as u64 * u64::from(plan.replicas.max(1));
    if sum(|record| record.calls.n()) > 0 && !is_mostly_bulk(records, plan) {
        return PartWorkload::Calls;
    }
    if pairs > 0 && count_turns(records, plan) >= LEAST_TURNS * pairs {
        return PartWorkload::Turns;
    }
    let there = sum(|record| {
        record
            .responder
            .received_bytes
            .max(record.initiator.sent_bytes)
    });
    let back = sum(|record| {
        record
            .initiator
            .received_bytes
            .max(record.responder.sent_bytes)
    });
    match (there, back) {
        (0, 0) => PartWorkload::Connects,
        (there, back) if there >= back => PartWorkload::Bulk(PairSide::Initiator),
        _ => PartWorkload::Bulk(PairSide::Responder),
    }
}
