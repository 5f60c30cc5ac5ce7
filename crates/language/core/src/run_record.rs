//! What one run of one part yielded, as plain data: worlds make it, `events` keeps it, `analyze` reads it.
//!
//! What a world could not measure is `None` with its reason in `absent`, never zero.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Values in ascending order with how often each occurred; times in ns. The widths come from a histogram of 3 digits.
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
    /// How many values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.counts.iter().map(|(_, n)| n).sum()
    }

    /// Adds another's values.
    pub fn merge(&mut self, other: &Self) {
        if !other.counts.is_empty() {
            *self = Self::merged([&*self, other]);
        }
    }

    /// The values of all of them; takes time in proportion to what they hold, however many they are.
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
    /// Never arrived.
    pub lost: u64,
    /// Arrived again.
    pub duplicated: u64,
    /// Arrived after one sent later.
    pub reordered: u64,
}

/// CPU time and what the kernel counted, over the measured period, for the threads of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User CPU seconds.
    pub user_s: f64,
    /// System CPU seconds.
    pub system_s: f64,
    /// Context switches asked for (waiting).
    pub voluntary_switches: u64,
    /// Context switches forced.
    pub involuntary_switches: u64,
    /// Page faults without disk.
    pub minor_faults: u64,
    /// Page faults with disk: paging.
    pub major_faults: u64,
}

impl Usage {
    /// What was used since an earlier moment.
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

    /// CPU seconds in user mode and in the kernel.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
    }
}

/// The whole host over the measured period (resolution: one tick, 10 ms a core).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// CPU seconds in user mode, all cores.
    pub user_s: f64,
    /// In the kernel, without interrupts.
    pub system_s: f64,
    /// In interrupts.
    pub interrupt_s: f64,
    /// Taken by the hypervisor.
    pub steal_s: f64,
    /// Idle.
    pub idle_s: f64,
    /// Pages swapped in and out.
    pub swapped_pages: u64,
    /// Time a control group above the process was throttled, over its processors.
    pub throttled_s: Option<f64>,
    /// Length of the period.
    pub elapsed_s: f64,
    /// What of this could not be measured and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
}

impl HostUsage {
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

/// What the transport said of the measured connection. Times in seconds, from `TCP_INFO` where there is one. What a transport
/// does not report is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransportRecord {
    /// Segments sent again.
    pub retransmits: u64,
    /// Smoothed round trip time.
    pub rtt_s: f64,
    /// Its variation.
    pub rtt_var_s: Option<f64>,
    /// Congestion window in segments.
    pub cwnd_segments: Option<u64>,
    /// Segment size in bytes.
    pub mss_bytes: u64,
    /// Time with data to send.
    pub busy_s: Option<f64>,
    /// Time limited by the receiver's window.
    pub receive_window_limited_s: Option<f64>,
    /// Time limited by the send buffer.
    pub send_buffer_limited_s: Option<f64>,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: u64,
    /// The rest of its time, where the stack says what kept the sender from sending more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SenderLimitTimes>,
}

/// What kept a sender from sending more, s: no moment is in two of them, nor limited by the receiver's window or the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderLimitTimes {
    /// Everything that was handed over is on its way.
    pub application_s: f64,
    /// The congestion window in slow start.
    pub slow_start_s: f64,
    /// The congestion window otherwise.
    pub congestion_window_s: f64,
    /// What was lost is sent again.
    pub recovery_s: f64,
    /// A timer had to expire before something lost was sent again.
    pub timeout_s: f64,
    /// Nagle's algorithm.
    pub nagle_s: f64,
}

impl SenderLimitTimes {
    /// Each time with another's beside it.
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

    /// Both together.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        self.zip(more, |a, b| a + b)
    }

    /// What was spent since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, |a, b| a - b)
    }
}

impl TransportRecord {
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

    /// A connection's that reports the same and has done nothing yet.
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

    /// The same connection's with another's: counters summed, gauges of this one. A sum with an unknown in it is unknown.
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

/// The note of a side whose clock stopped before the peer had everything: its bytes are not those of its time.
pub const IN_TRANSIT: &str = "not confirmed: the clock stopped with data units in transit";

/// The note of a side that cannot say which data units lay within the clock.
pub const UNPLACED: &str = "not attributed: some data units were lost, so it is unknown which others were within the measured interval";

/// What one side of one part saw in one run, all its replicas together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideRecord {
    /// CPU and counters of its threads.
    pub usage: Usage,
    /// Its host.
    pub host: Option<HostUsage>,
    /// The transport when the clock started and when it stopped (counters summed over replicas, gauges of the first).
    pub transport: Option<(TransportRecord, TransportRecord)>,
    /// What the stack really used: `congestion = bbr`, `nodelay = off`, ...
    pub settings: BTreeMap<String, String>,
    /// Core at the start and at the end of the measured period, and whether it was pinned (first replica).
    pub cpu: Option<(usize, usize, bool)>,
    /// Data units that arrived, and their bytes.
    pub received_units: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Data units sent.
    pub sent_units: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Data units sent that never arrived (datagram stacks).
    pub lost: Option<u64>,
    /// Arrived more than once.
    pub duplicated: Option<u64>,
    /// Arrived after a later one.
    pub reordered: Option<u64>,
    /// Marks: times since the clock started, by name.
    pub marks: BTreeMap<String, Histogram>,
    /// Notes worth a flag: `zerocopy copied`, `gso refused`.
    pub notes: Vec<String>,
}

impl SideRecord {
    /// Whether its bytes are those that were moved while the clock ran.
    #[must_use]
    pub fn bytes_are_timed(&self) -> bool {
        !self
            .notes
            .iter()
            .any(|note| note == IN_TRANSIT || note == UNPLACED)
    }

    /// Adds what another replica of the same side saw: counters are summed, gauges stay the first's.
    pub fn add(&mut self, one: Self) {
        self.usage.add(&one.usage);
        self.transport = match (self.transport, one.transport) {
            (Some((a, b)), Some((c, d))) => Some((a.with(&c), b.with(&d))),
            (mine, theirs) => mine.or(theirs),
        };
        if self.settings.is_empty() {
            self.settings = one.settings;
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

    /// Every value that is not a count, by name.
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

/// What went through one direction of a link of a modelled network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRecord {
    /// Its name: `khons>edge`.
    pub name: String,
    /// Packets that left (on links of cells, cells that left a cell switch).
    pub packets: u64,
    /// Their bytes, network layer.
    pub bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets doubled.
    pub duplicated: u64,
    /// Packets dropped or lost, by reason; only what there was.
    pub drops: BTreeMap<String, u64>,
}

/// How well an emulated network kept its times. Lateness: how long after it was due a frame was handed to the kernel, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulationRecord {
    /// Frames that left for a host.
    pub departures: u64,
    /// Median lateness.
    pub lateness_p50_ns: u64,
    /// 99 of 100 are at most this.
    pub lateness_p99_ns: u64,
    /// The largest.
    pub lateness_max_ns: u64,
    /// Frames lost because the machine could not keep up.
    pub lost: u64,
    /// Share of one processor that the emulator took, 0 to 1.
    pub cpu_share: f64,
    /// Median round trip through the emulator with nothing emulated in it, measured at its start.
    pub round_trip_ns: Option<u64>,
    /// Why the result is the machine's and not the network's, when it is.
    pub overload: Option<String>,
}

/// What a modelled network did during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Its name.
    pub name: String,
    /// Directions of links at which something was dropped, marked or doubled, and the busiest of the others.
    pub ports: Vec<PortRecord>,
    /// In the emulated world.
    pub emulation: Option<EmulationRecord>,
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// One run of one part: a row of `results.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part.
    pub part: usize,
    /// Index of the run, from 0; warm-up runs count apart.
    pub run: u32,
    /// Left out of every total.
    pub warmup: bool,
    /// Pairs at once.
    pub replicas: u32,
    /// Measured period in ns: the longest of the replicas' own (each from its own clock start to stop).
    pub elapsed_ns: u64,
    /// From the first replica's clock start to the last one's stop, in ns, where one host holds all their clocks.
    pub span_ns: u64,
    /// Whether the time limit ended it.
    pub limited: bool,
    /// Response times of calls in ns, from the intended moment where there is one.
    pub calls: Histogram,
    /// Times of connect plus disconnect in ns, within the measured period.
    pub connects: Histogram,
    /// How late paced operations began, in ns.
    pub lateness: Histogram,
    /// The initiators.
    pub initiator: SideRecord,
    /// The responders.
    pub responder: SideRecord,
    /// What could not be measured and why.
    pub absent: BTreeMap<String, String>,
    /// What the modelled network did, the same for all parts of a run; absent in the live world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRecord>,
}

impl NetworkRecord {
    /// Keeps of `ports` those at which something went wrong, and the `busiest` of the others.
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
    /// The name of a value that is no finite number; there is none in a record that a world made. JSON has no such
    /// values, so a record with one could be written and never read.
    #[must_use]
    pub fn not_finite(&self) -> Option<String> {
        let times = [
            ("calls", &self.calls),
            ("connects", &self.connects),
            ("lateness", &self.lateness),
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

    /// Bytes of data units that arrived at either side.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.initiator.received_bytes + self.responder.received_bytes
    }
}

/// What waking a sleeping thread costs, in seconds one way: half of a round trip between two threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WakeUp {
    /// Both on one core (median).
    pub same_core_s: Option<f64>,
    /// One on each of two cores (median); absent where there is only one.
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
