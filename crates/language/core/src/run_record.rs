//! What one run of one part yielded, as plain data: worlds make it, `runs` stores it, `analyze` reads it.
//!
//! A value that a world could not measure is `None`, with the reason in `absent`; it is never recorded as zero.

use crate::interval_record::SideIntervals;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Values in ascending order with how often each occurred; times are in ns. Worlds round values to three significant
/// digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// `(value, occurrences)`, value ascending.
    pub counts: Vec<(u64, u64)>,
    /// Exact sum of the values recorded.
    pub sum: u64,
    /// Exact sum of their squares.
    pub squares: f64,
    /// Exact least and largest value.
    pub min_max: Option<(u64, u64)>,
}

impl Histogram {
    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.counts.iter().map(|(_, n)| n).sum()
    }

    /// Whether it has no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if !other.counts.is_empty() {
            *self = Self::merged([&*self, other]);
        }
    }

    /// A histogram of the values of all; it takes time in proportion to the number of entries.
    #[must_use]
    pub fn merged<'h>(all: impl IntoIterator<Item = &'h Self>) -> Self {
        let mut whole = Self::default();
        let mut merged: BTreeMap<u64, u64> = BTreeMap::new();
        for one in all {
            for (value, n) in &one.counts {
                *merged.entry(*value).or_default() += n;
            }
            whole.sum += one.sum;
            whole.squares += one.squares;
            whole.min_max = match (whole.min_max, one.min_max) {
                (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                (mine, theirs) => mine.or(theirs),
            };
        }
        whole.counts = merged.into_iter().collect();
        whole
    }
}

/// Data units that did not arrive once and in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitLosses {
    /// Units that never arrived.
    pub lost: u64,
    /// Units that arrived more than once.
    pub duplicated: u64,
    /// Units that arrived after one that was sent later.
    pub reordered: u64,
}

/// CPU time and counters of the kernel for the threads of one side, over the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User CPU seconds.
    pub user_s: f64,
    /// System CPU seconds.
    pub system_s: f64,
    /// Context switches because the thread waited.
    pub voluntary_switches: u64,
    /// Context switches because the thread was preempted.
    pub involuntary_switches: u64,
    /// Page faults without disk access.
    pub minor_faults: u64,
    /// Page faults with disk access (paging).
    pub major_faults: u64,
}

impl Usage {
    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_s: (self.user_s - before.user_s).max(0.0),
            system_s: (self.system_s - before.system_s).max(0.0),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
        }
    }

    /// CPU seconds in user mode and in the kernel together.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Adds the usage of another side or replica.
    pub fn add(&mut self, other: &Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
    }
}

/// CPU time of the whole host over the measured interval (resolution: one tick, 10 ms on each core).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// CPU seconds in user mode, all cores.
    pub user_s: f64,
    /// CPU seconds in the kernel without interrupts.
    pub system_s: f64,
    /// CPU seconds in interrupts.
    pub interrupt_s: f64,
    /// CPU seconds taken by the hypervisor.
    pub steal_s: f64,
    /// CPU seconds idle.
    pub idle_s: f64,
    /// Pages swapped in and out.
    pub swapped_pages: u64,
    /// Seconds for which a control group above the process was throttled, divided by its number of processors.
    pub throttled_s: Option<f64>,
    /// Length of the measured interval, s.
    pub elapsed_s: f64,
    /// Names of values that could not be measured, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
}

impl HostUsage {
    /// Its real numbers with their names, for [`RunRecord::not_finite`].
    fn reals(&self) -> [(&'static str, f64); 7] {
        let Self {
            user_s,
            system_s,
            interrupt_s,
            steal_s,
            idle_s,
            throttled_s,
            elapsed_s,
            ..
        } = self;
        [
            ("host.user_s", *user_s),
            ("host.system_s", *system_s),
            ("host.interrupt_s", *interrupt_s),
            ("host.steal_s", *steal_s),
            ("host.idle_s", *idle_s),
            ("host.throttled_s", throttled_s.unwrap_or_default()),
            ("host.elapsed_s", *elapsed_s),
        ]
    }
}

/// The transport's values for the measured connection, from `TCP_INFO` where there is one. Times are in seconds. A
/// value that a transport does not report is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransportRecord {
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Smoothed round trip time.
    pub rtt_s: f64,
    /// Variation of the round-trip time.
    pub rtt_var_s: Option<f64>,
    /// Congestion window in segments.
    pub cwnd_segments: Option<u64>,
    /// Maximum segment size in bytes.
    pub mss_bytes: u64,
    /// Time in which there was data to send.
    pub busy_s: Option<f64>,
    /// Time in which the receiver's window limited sending.
    pub receive_window_limited_s: Option<f64>,
    /// Time in which the send buffer limited sending.
    pub send_buffer_limited_s: Option<f64>,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: u64,
    /// The rest of the sender's time, where the stack reports what limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SenderLimitTimes>,
}

/// What kept a sender from sending more, in seconds. The times do not overlap one another, nor the times limited by
/// the receiver's window or the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderLimitTimes {
    /// All data that was handed over has been sent: the application is slow.
    pub application_s: f64,
    /// The congestion window, in slow start.
    pub slow_start_s: f64,
    /// The congestion window, outside slow start.
    pub congestion_window_s: f64,
    /// Lost segments are being retransmitted.
    pub recovery_s: f64,
    /// A timer had to expire before a lost segment was retransmitted.
    pub timeout_s: f64,
    /// Nagle's algorithm.
    pub nagle_s: f64,
}

impl SenderLimitTimes {
    /// Combines each time with the same time of another record.
    fn zip(self, other: Self, with: fn(f64, f64) -> f64) -> Self {
        Self {
            application_s: with(self.application_s, other.application_s),
            slow_start_s: with(self.slow_start_s, other.slow_start_s),
            congestion_window_s: with(self.congestion_window_s, other.congestion_window_s),
            recovery_s: with(self.recovery_s, other.recovery_s),
            timeout_s: with(self.timeout_s, other.timeout_s),
            nagle_s: with(self.nagle_s, other.nagle_s),
        }
    }

    /// The sums of both records.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        self.zip(more, |a, b| a + b)
    }

    /// The differences to an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, |a, b| a - b)
    }
}

impl TransportRecord {
    /// Its real numbers with their names, for [`RunRecord::not_finite`].
    fn reals(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("transport.rtt_s", Some(self.rtt_s)),
            ("transport.rtt_var_s", self.rtt_var_s),
            ("transport.busy_s", self.busy_s),
            (
                "transport.receive_window_limited_s",
                self.receive_window_limited_s,
            ),
            (
                "transport.send_buffer_limited_s",
                self.send_buffer_limited_s,
            ),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The record of a fresh connection that reports the same values: counters are 0, gauges are kept.
    #[must_use]
    pub fn without_counts(&self) -> Self {
        let none = |time: Option<f64>| time.map(|_| 0.0);
        Self {
            retransmits: 0,
            busy_s: none(self.busy_s),
            receive_window_limited_s: none(self.receive_window_limited_s),
            send_buffer_limited_s: none(self.send_buffer_limited_s),
            bytes_acked: self.bytes_acked.map(|_| 0),
            bytes_received: 0,
            spent: self.spent.map(|_| SenderLimitTimes::default()),
            ..*self
        }
    }

    /// Combines two records: counters are summed, gauges are those of `self`. A sum with an unknown term is unknown.
    #[must_use]
    pub fn with(self, more: &Self) -> Self {
        let times = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Self {
            retransmits: self.retransmits + more.retransmits,
            busy_s: times(self.busy_s, more.busy_s),
            receive_window_limited_s: times(
                self.receive_window_limited_s,
                more.receive_window_limited_s,
            ),
            send_buffer_limited_s: times(self.send_buffer_limited_s, more.send_buffer_limited_s),
            bytes_acked: self.bytes_acked.zip(more.bytes_acked).map(|(a, b)| a + b),
            bytes_received: self.bytes_received + more.bytes_received,
            spent: self.spent.zip(more.spent).map(|(a, b)| a.with(b)),
            ..self
        }
    }
}

/// The note of a side whose clock stopped while data was in transit: its bytes are not those of the measured time.
pub const IN_TRANSIT: &str = "not confirmed: the clock stopped with data units in transit";

/// The note of a side that cannot say which data units were within the measured interval.
pub const UNPLACED: &str = "not attributed: some data units were lost, so it is unknown which others were within the measured interval";

/// What one side of one part recorded in one run, all its replicas together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideRecord {
    /// CPU time and kernel counters of its threads.
    pub usage: Usage,
    /// CPU time of its whole host.
    pub host: Option<HostUsage>,
    /// The transport's values when the clock started and when it stopped (counters summed over replicas, gauges of the
    /// first).
    pub transport: Option<(TransportRecord, TransportRecord)>,
    /// The settings that the stack really used: `congestion = bbr`, `nodelay = off`, ...
    pub settings: BTreeMap<String, String>,
    /// How often the stack did what it counts, over all connections, by name (see [`crate::connection_count`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Core at the start and at the end of the measured interval, and whether it was pinned (first replica).
    pub cpu: Option<(usize, usize, bool)>,
    /// Data units that arrived.
    pub received_units: u64,
    /// Bytes of the data units that arrived.
    pub received_bytes: u64,
    /// Data units sent.
    pub sent_units: u64,
    /// Bytes of the data units sent.
    pub sent_bytes: u64,
    /// Data units sent that never arrived (datagram stacks).
    pub lost: Option<u64>,
    /// Data units that arrived more than once.
    pub duplicated: Option<u64>,
    /// Data units that arrived after one that was sent later.
    pub reordered: Option<u64>,
    /// Times since the clock started, ns, by the name of the mark.
    pub marks: BTreeMap<String, Histogram>,
    /// Notes that become flags of the result: `zerocopy copied`, `gso refused`.
    pub notes: Vec<String>,
}

impl SideRecord {
    /// Whether its bytes are those that were transferred while the clock ran.
    #[must_use]
    pub fn bytes_are_timed(&self) -> bool {
        !self
            .notes
            .iter()
            .any(|note| note == IN_TRANSIT || note == UNPLACED)
    }

    /// Adds the record of another replica of the same side: counters are summed, gauges stay those of the first.
    pub fn add(&mut self, one: Self) {
        self.usage.add(&one.usage);
        self.transport = match (self.transport, one.transport) {
            (Some((a, b)), Some((c, d))) => Some((a.with(&c), b.with(&d))),
            (mine, theirs) => mine.or(theirs),
        };
        if self.settings.is_empty() {
            self.settings = one.settings;
        }
        for (name, times) in one.counts {
            let sum = self.counts.entry(name).or_default();
            *sum = sum.saturating_add(times);
        }
        self.cpu = self.cpu.or(one.cpu);
        self.received_units += one.received_units;
        self.received_bytes += one.received_bytes;
        self.sent_units += one.sent_units;
        self.sent_bytes += one.sent_bytes;
        self.lost = plus(self.lost, one.lost);
        self.duplicated = plus(self.duplicated, one.duplicated);
        self.reordered = plus(self.reordered, one.reordered);
        for (name, histogram) in one.marks {
            self.marks.entry(name).or_default().merge(&histogram);
        }
        for note in one.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Its real numbers with their names, for [`RunRecord::not_finite`].
    fn reals(&self) -> impl Iterator<Item = (String, f64)> {
        let Usage {
            user_s, system_s, ..
        } = self.usage;
        let usage = [("usage.user_s", user_s), ("usage.system_s", system_s)];
        let host = self.host.iter().flat_map(HostUsage::reals);
        let transport = self
            .transport
            .iter()
            .flat_map(|(start, stop)| start.reals().chain(stop.reals()));
        let named = usage
            .into_iter()
            .chain(host)
            .chain(transport)
            .map(|(name, value)| (name.to_string(), value));
        named.chain(
            self.marks
                .iter()
                .map(|(name, mark)| (format!("marks.{name}.squares"), mark.squares)),
        )
    }
}

/// What passed through one direction of a link of a modelled network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRecord {
    /// The direction's name: `khons>edge`.
    pub name: String,
    /// Packets that left (on links of cells, cells that left a cell switch).
    pub packets: u64,
    /// Bytes of the packets that left, network layer.
    pub bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets dropped or lost, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<String, u64>,
}

/// How well an emulated network kept its times. The lateness of a frame is how long after its due time it was handed
/// to the kernel, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulationRecord {
    /// Frames that left for a host.
    pub departures: u64,
    /// Median lateness, ns.
    pub lateness_p50_ns: u64,
    /// 99th percentile of the lateness, ns.
    pub lateness_p99_ns: u64,
    /// Largest lateness, ns.
    pub lateness_max_ns: u64,
    /// Frames lost because the machine could not keep up.
    pub lost: u64,
    /// Share of one processor that the emulator took, 0 to 1.
    pub cpu_share: f64,
    /// Median round-trip time through the emulator without any emulated delay, measured at its start, ns.
    pub round_trip_ns: Option<u64>,
    /// Set when the machine was overloaded and the result shows that instead of the network: the reason.
    pub overload: Option<String>,
}

/// What a modelled network did during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// The network's name.
    pub name: String,
    /// Link directions at which something was dropped, marked or duplicated, and the busiest of the others.
    pub ports: Vec<PortRecord>,
    /// How the emulator kept its times; present in the emulated world alone.
    pub emulation: Option<EmulationRecord>,
}

/// The sum, or the one that is known.
fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// A call and when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedCall {
    /// When it began, in ns since the first clock of its side started.
    pub begun_ns: u64,
    /// Its response time in ns.
    pub took_ns: u64,
}

/// What opening connections took, of stacks that report it: one value for each connection of the measured interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpeningTimes {
    /// Times of opening the transport's connection (with TCP, its handshake) in ns.
    pub transport: Histogram,
    /// Times of TLS handshakes in ns, each divided by the round trips that it takes.
    pub tls_round_trip: Histogram,
}

impl OpeningTimes {
    /// Whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One run of one part: a row of `results.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part.
    pub part: usize,
    /// Index of the run, from 0; warm-up runs are counted separately.
    pub run: u32,
    /// Whether it is a warm-up run, which no total includes.
    pub warmup: bool,
    /// Number of pairs that ran at the same time.
    pub replicas: u32,
    /// Measured time in ns: the longest of the replicas' own (each from its own clock start to stop).
    pub elapsed_ns: u64,
    /// From the first replica's clock start to the last one's stop, in ns, where all their clocks are on one host.
    pub span_ns: u64,
    /// Whether the time limit ended it.
    pub limited: bool,
    /// Response times of calls in ns, measured from the intended moment where there is one.
    pub calls: Histogram,
    /// Times of connecting plus disconnecting in ns, within the measured interval.
    pub connects: Histogram,
    /// What the parts of connecting took, where the stack reports it.
    #[serde(default, skip_serializing_if = "OpeningTimes::is_empty")]
    pub opening: OpeningTimes,
    /// The calls one by one, in the order in which they began, if the measurement asks for them; of very many, an even choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timed_calls: Vec<TimedCall>,
    /// What the initiators did in each interval, if the measurement asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator_intervals: Option<SideIntervals>,
    /// What the responders did in each interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder_intervals: Option<SideIntervals>,
    /// How long after their intended moments paced operations began, in ns.
    pub lateness: Histogram,
    /// How much of that was the pair's own, in ns: from the intended moment, or from the end of its operation before if that was later.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub own_lateness: Histogram,
    /// The record of the initiators.
    pub initiator: SideRecord,
    /// The record of the responders.
    pub responder: SideRecord,
    /// Names of values that could not be measured, with the reasons.
    pub absent: BTreeMap<String, String>,
    /// What the modelled network did, the same for all parts of a run; absent in the live world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRecord>,
}

impl NetworkRecord {
    /// Keeps the ports at which something was dropped, marked or duplicated, and the `busiest` of the others by bytes.
    #[must_use]
    pub fn notable(name: &str, ports: Vec<PortRecord>, busiest: usize) -> Self {
        let wrong =
            |port: &PortRecord| !port.drops.is_empty() || port.marked > 0 || port.duplicated > 0;
        let mut calm: Vec<u64> = ports
            .iter()
            .filter(|port| !wrong(port))
            .map(|port| port.bytes)
            .collect();
        calm.sort_unstable_by(|a, b| b.cmp(a));
        let least = calm
            .get(busiest.saturating_sub(1))
            .copied()
            .unwrap_or(0)
            .max(1);
        let ports = ports
            .into_iter()
            .filter(|port| wrong(port) || port.bytes >= least)
            .collect();
        Self {
            name: name.to_string(),
            ports,
            emulation: None,
        }
    }
}

impl RunRecord {
    /// The name of a value that is not a finite number, if there is one. Worlds never record such a value; JSON cannot
    /// represent it, so the record could be written but not read.
    #[must_use]
    pub fn not_finite(&self) -> Option<String> {
        let times = [
            ("calls", &self.calls),
            ("connects", &self.connects),
            ("opening.transport", &self.opening.transport),
            ("opening.tls_round_trip", &self.opening.tls_round_trip),
            ("lateness", &self.lateness),
            ("own_lateness", &self.own_lateness),
        ];
        let times = times.map(|(name, histogram)| (format!("{name}.squares"), histogram.squares));
        let sides = [
            ("initiator", &self.initiator),
            ("responder", &self.responder),
        ];
        let sides = sides
            .into_iter()
            .flat_map(|(name, side)| side.reals().map(move |(at, x)| (format!("{name}.{at}"), x)));
        let network = self
            .network
            .iter()
            .filter_map(|network| network.emulation.as_ref());
        let network = network.map(|emulation| {
            (
                "network.emulation.cpu_share".to_string(),
                emulation.cpu_share,
            )
        });
        times
            .into_iter()
            .chain(sides)
            .chain(network)
            .find(|(_, value)| !value.is_finite())
            .map(|(name, _)| name)
    }

    /// Bytes of the data units that arrived at either side.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.initiator.received_bytes + self.responder.received_bytes
    }
}

/// The time to wake a sleeping thread, in seconds: half of a round trip between two threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WakeUp {
    /// Median with both threads on one core.
    pub same_core_s: Option<f64>,
    /// Median with the threads on two cores; absent on a machine with one core.
    pub other_core_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> RunRecord {
        let mut record = RunRecord::default();
        for side in [&mut record.initiator, &mut record.responder] {
            side.host = Some(HostUsage {
                throttled_s: Some(0.0),
                ..HostUsage::default()
            });
            side.transport = Some(<(TransportRecord, TransportRecord)>::default());
            side.marks.insert("first".into(), Histogram::default());
        }
        record
    }

    #[test]
    fn what_is_no_finite_number_is_named() {
        let named = |change: fn(&mut RunRecord)| {
            let mut record = full();
            change(&mut record);
            record.not_finite()
        };
        assert_eq!(named(|_| ()), None);
        assert_eq!(
            named(|r| r.calls.squares = f64::NAN).unwrap(),
            "calls.squares"
        );
        assert_eq!(
            named(|r| r.initiator.usage.user_s = f64::INFINITY).unwrap(),
            "initiator.usage.user_s"
        );
        let throttled = named(|r| r.responder.host.as_mut().unwrap().throttled_s = Some(f64::NAN));
        assert_eq!(throttled.unwrap(), "responder.host.throttled_s");
        let rtt = named(|r| r.responder.transport.as_mut().unwrap().1.rtt_s = f64::NEG_INFINITY);
        assert_eq!(rtt.unwrap(), "responder.transport.rtt_s");
        let mark = named(|r| r.initiator.marks.get_mut("first").unwrap().squares = f64::NAN);
        assert_eq!(mark.unwrap(), "initiator.marks.first.squares");
    }
}
