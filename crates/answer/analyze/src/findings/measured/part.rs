//! A measured part: one stack and procedure of a measurement, run by one or more pairs of initiator and responder, over all counted runs.
//! What it does, over which paths, and how its sender spent its time according to its records.

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

/// The kind of work that a part does, which decides what its time is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartWorkload {
    /// Data units in one direction; the side is the sender.
    Bulk(PairSide),
    /// Requests, each of which waits for its response.
    Calls,
    /// Data units in both directions: one side sends, and then waits for what the other sends.
    Turns,
    /// Connections are opened and closed, and carry no data.
    Connects,
}

/// One measured part over all counted runs.
#[derive(Debug)]
pub(crate) struct MeasuredPart<'c> {
    /// Index of the part in the measurement.
    pub(crate) index: usize,
    pub(crate) plan: &'c plan::MeasurementPart,
    /// Where it was measured: live, emulated or simulated.
    pub(crate) world: World,
    /// Its records, one for each counted run.
    pub(crate) records: Vec<&'c RunRecord>,
    pub(crate) work: PartWorkload,
    /// The host of the initiator and the host of the responder.
    pub(crate) hosts: (String, String),
    /// The paths from initiator to responder and back, where the network is modelled.
    pub(crate) paths: Option<(PathModel, PathModel)>,
    /// Measured time over all runs, s.
    pub(crate) elapsed_s: f64,
    /// Its share of the measured time of all parts, 0 to 1.
    pub(crate) weight: f64,
    /// Whether it is the only measured part.
    pub(crate) alone: bool,
}

/// How a sender of bulk data spent its time according to its transport, as shares of the measured time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderLimits {
    /// It had data to send or in flight.
    pub(crate) busy: f64,
    /// It was limited by the receiver's window.
    pub(crate) receive_window: f64,
    /// It was limited by its send buffer.
    pub(crate) send_buffer: f64,
}

impl<'c> MeasuredPart<'c> {
    pub(crate) fn new(
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

    /// The path that bulk data takes; for other work the path from initiator to responder.
    pub(crate) fn data_path(&self) -> Option<&PathModel> {
        let (there, back) = self.paths.as_ref()?;
        Some(if self.work == PartWorkload::Bulk(PairSide::Responder) {
            back
        } else {
            there
        })
    }

    /// The round trip of a small packet on an idle path, s: computed from the network where it is modelled, else the least smoothed round
    /// trip that a transport reported.
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

    /// Whether both ends are on one machine without a link between them, so that only processors take time. Ends without a host name are
    /// on this machine; named hosts may have a short link between them.
    pub(crate) fn in_one_machine(&self) -> bool {
        let near = || self.round_trip_s().is_some_and(|trip| trip < LEAST_TRIP_S);
        let unnamed = self.plan.from.is_none() && self.plan.to.is_none();
        self.paths.is_none() && unnamed && (self.plan.stack.facts.one_host || near())
    }

    /// The CPU time of one side as a share of the measured time, per thread; 1 is a fully used core.
    pub(crate) fn computed(&self, side: PairSide) -> f64 {
        let cpu_s = |record: &&RunRecord| side_of(record, side).usage.cpu_s();
        self.records.iter().map(cpu_s).sum::<f64>() / self.elapsed_s / f64::from(self.threads(side))
    }

    /// The number of threads of one side: one for each pair, or what the stack reports in its setting `threads`.
    pub(crate) fn threads(&self, side: PairSide) -> u32 {
        let pairs = self.plan.replicas.max(1);
        let said =
            |record: &&RunRecord| side_of(record, side).settings.get("threads")?.parse().ok();
        self.records
            .iter()
            .find_map(said)
            .map_or(pairs, |threads: u32| threads.clamp(1, pairs))
    }

    /// The number of pairs of initiator and responder that run at the same time.
    pub(crate) fn replicas(&self) -> f64 {
        f64::from(self.plan.replicas.max(1))
    }

    /// The measured time, counted once for each pair, s.
    pub(crate) fn pairs_s(&self) -> f64 {
        self.elapsed_s * self.replicas()
    }

    /// How many connections there are for each pair, at most 1: pairs with the option `streams` share them.
    pub(crate) fn connections_per_pair(&self) -> f64 {
        f64::from(self.plan.connections()) / self.replicas()
    }

    /// The host of one side.
    pub(crate) fn host(&self, side: PairSide) -> &str {
        if side == PairSide::Initiator {
            &self.hosts.0
        } else {
            &self.hosts.1
        }
    }

    /// The records of the sender of bulk data and of its receiver; `None` for other work.
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

    /// The host that sends bulk data, and the one that receives it; `None` for other work.
    pub(crate) fn ends(&self) -> Option<(&str, &str)> {
        let sender = self.work.sender()?;
        Some((self.host(sender), self.host(opposite_side(sender))))
    }

    /// How the sender of bulk data spent its time; `None` if its transport does not report it, and for other work.
    pub(crate) fn limits(&self) -> Option<SenderLimits> {
        let mut sum = SenderLimits::default();
        for record in &self.records {
            let (start, stop) = self.sides(record)?.0.transport?;
            let spent = |get: fn(&TransportRecord) -> Option<f64>| Some(get(&stop)? - get(&start)?);
            sum.busy += spent(|t| t.busy_s)?;
            sum.receive_window += spent(|t| t.receive_window_limited_s)?;
            // The stack `blast` has no send buffer: it sends from the application's memory.
            sum.send_buffer += spent(|t| t.send_buffer_limited_s).unwrap_or(0.0);
        }
        let share = |s: f64| (s / (self.pairs_s() * self.connections_per_pair())).clamp(0.0, 1.0);
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

    /// The bytes that the receiver of bulk data allows in flight: the window of its receive buffer, or for blasts what it grants.
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

    /// The window that a receive buffer of `memory` bytes offers. In a kernel it is smaller than the buffer, as packets take more memory
    /// than the data they carry.
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

    /// The bytes that the receiver grants by default; `None` if the stack has no grants.
    fn granted(&self) -> Option<u64> {
        match self.plan.stack.facts.flow_control {
            FlowControl::Grant(bytes) => Some(bytes),
            FlowControl::Buffers | FlowControl::KernelBuffers => None,
        }
    }

    /// Whether the receiver grants the sender how many bytes may be in flight.
    pub(crate) fn grants(&self) -> bool {
        self.granted().is_some()
    }

    /// Segments retransmitted by both sides in all runs; `None` if no transport reports it.
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

    /// The segment size, bytes: reported by a transport, or else the MTU of the path minus 52 bytes of headers (IPv4, TCP with timestamps).
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

    /// A setting of the sender or the receiver of bulk data, in bytes; settings are text such as `65536 B`.
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

    /// The bytes of data units that arrived, over all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.data_bytes()).sum()
    }

    /// A setting of one side, in bytes; settings are text such as `65536 B`.
    pub(crate) fn setting_of(&self, side: PairSide, name: &str) -> Option<u64> {
        side_of(self.records.first()?, side)
            .settings
            .get(name)?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// The histogram of response times of all runs, ns.
    pub(crate) fn calls(&self) -> Histogram {
        Histogram::merged(self.records.iter().map(|record| &record.calls))
    }

    /// The number of calls or turns in all runs: how many times something was sent and its answer waited for; 0 for other work.
    pub(crate) fn exchanges(&self) -> u64 {
        match self.work {
            PartWorkload::Calls => self.calls().n(),
            PartWorkload::Turns => count_turns(&self.records, self.plan),
            PartWorkload::Bulk(_) | PartWorkload::Connects => 0,
        }
    }

    /// The mean number of bytes that go in one direction before anything is waited for, in the direction with more bytes: the size of a
    /// message, or for a transfer all of it.
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

    /// The seconds spent on opening and closing connections while the clock ran, and the number of connections; 0 if connections are the
    /// work itself.
    pub(crate) fn set_up(&self) -> (f64, u64) {
        if self.work == PartWorkload::Connects {
            return (0.0, 0);
        }
        let connects = self.records.iter().map(|record| &record.connects);
        connects.fold((0.0, 0), |(seconds, n), connects| {
            (seconds + to_f64(connects.sum) / 1e9, n + connects.n())
        })
    }

    /// The time that shares of this part refer to, s: the measured time of all pairs. For calls, which may have pauses between them, it is
    /// the sum of response times and of the times to set up connections; a lost call counts with the time until it was given up. The
    /// response time of a late call begins at its scheduled moment and overlaps with the calls before it, so the sum is limited to the
    /// measured time.
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

    /// The number of calls without an answer.
    pub(crate) fn lost_calls(&self) -> u64 {
        let lost = |record: &&RunRecord| record.initiator.lost.or(record.responder.lost);
        let all: u64 = self.records.iter().filter_map(lost).sum();
        if self.work == PartWorkload::Calls {
            all
        } else {
            0
        }
    }

    /// A share of the part's own time in words: `12 % of the time`, followed by the part's name if there are several.
    pub(crate) fn of_its_time(&self, share: f64) -> String {
        let whose = if self.alone {
            String::new()
        } else {
            format!(" of `{}`", self.plan.text)
        };
        format!("{} of the time{whose}", percent(share))
    }

    /// The mean rate of bulk data over all pairs, bit/s.
    pub(crate) fn rate_bit_s(&self) -> f64 {
        8.0 * to_f64(self.bytes()) / self.elapsed_s
    }

    /// The mean rate of bulk data of one pair, bit/s.
    pub(crate) fn pair_bit_s(&self) -> f64 {
        self.rate_bit_s() / self.replicas()
    }

    /// The rate of the slowest hop on the data path, bit/s.
    pub(crate) fn bottleneck_bit_s(&self) -> Option<f64> {
        let path = self.data_path()?;
        path.bottleneck(path.mtu_bytes())?.rate_bit_s
    }

    /// The bandwidth-delay product of the data path, bytes.
    pub(crate) fn bandwidth_delay_bytes(&self) -> Option<f64> {
        Some(stackline_model::pipe::bandwidth_delay_bytes(
            self.bottleneck_bit_s()?,
            self.round_trip_s()?,
        ))
    }

    /// The time that a transfer without losses takes over its path, slow start included, s; `None` if the path is not known or the sender
    /// has no congestion window.
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

    /// Whether a slow reader, and not the size of its buffer, keeps the window closed. A sender that waits only for a small window sends a
    /// whole window each round trip, so in that share of the time its rate is about `window_bit_s`; here it is clearly less.
    pub(crate) fn window_is_closed_by_reader(
        &self,
        limits: SenderLimits,
        window_bit_s: f64,
    ) -> bool {
        self.pair_bit_s() < LEAST_WINDOW * limits.receive_window * window_bit_s
    }

    /// The seconds that calls took from when they were really sent, without the wait for earlier calls after their scheduled moment.
    pub(crate) fn own_calls_s(&self) -> f64 {
        let late: u64 = self.records.iter().map(|record| record.lateness.sum).sum();
        to_f64(self.calls().sum.saturating_sub(late)) / 1e9
    }

    /// Whether calls are scheduled faster than they are answered, so that they wait for each other at their caller. The pace is intended by
    /// the specification then, but the resulting delay is not.
    pub(crate) fn falls_behind(&self) -> bool {
        let (calls, own) = (to_f64(self.calls().sum) / 1e9, self.own_calls_s());
        let paced = self.paces(PairSide::Initiator) && !self.paces(PairSide::Responder);
        paced && own >= BEHIND.0 * self.pairs_s() && calls - own >= BEHIND.1 * calls
    }

    /// Whether the procedure of that side has a `Pace` with a timing.
    pub(crate) fn paces(&self, side: PairSide) -> bool {
        procedure::contains_call(self.plan.procedure.side(side), &|call| match call {
            OperationCall::Pace(DelayArgument::Timing(at)) => self.plan.data.timings.len() > *at,
            OperationCall::Pace(DelayArgument::Drawn(_)) => true,
            _ => false,
        })
    }
}

/// The least share of the time that callers who fall behind spend in their calls, and the least share of response times that is lateness.
const BEHIND: (f64, f64) = (0.9, 0.1);

impl PartWorkload {
    /// The side that sends bulk data; `None` for other work.
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

/// A call over datagrams counts as lost if it has no answer after this time, s.
pub(crate) const GIVEN_UP_S: f64 = 1.0;

/// A round trip shorter than this crosses no network and is only the time of processors to wake each other, s.
pub(crate) const LEAST_TRIP_S: f64 = 100e-6;

/// The least share of a receive buffer that a kernel offers as its window; the rest is overhead of packets.
const LEAST_WINDOW: f64 = 0.5;

/// The size of a packet without data: headers of IPv4 and TCP with timestamps, bytes.
const SMALL: u64 = 52;

/// The time that an interface takes to copy a small packet, s.
fn interface_s(interface: &NetworkInterface) -> f64 {
    interface_packet_s(interface, SMALL)
}

/// The time that an interface's processor takes to copy a packet of `bytes` in or out, s.
pub(crate) fn interface_packet_s(interface: &NetworkInterface, bytes: u64) -> f64 {
    let time =
        interface.copy_per_packet.seconds() + interface.copy_ns_per_byte * to_f64(bytes) / 1e9;
    time / interface.copy_speed()
}

/// A part without calls is judged by its turns if each pair makes at least this many in a run, else by its bulk data.
const LEAST_TURNS: u64 = 5;

/// The number of turns of the initiator in all runs.
fn count_turns(records: &[&RunRecord], plan: &plan::MeasurementPart) -> u64 {
    let received: u64 = records
        .iter()
        .map(|record| record.initiator.received_units)
        .sum();
    TurnCount::from_steps(plan.procedure.timed(PairSide::Initiator)).scaled(received)
}

/// Whether a part with calls also sends bulk data, and its calls take less than half of its time: such as a file transfer with a few
/// commands before it.
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

/// The kind of work of a part, from what its records counted.
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
