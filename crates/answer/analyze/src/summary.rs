//! What a summary holds: the results of the counted runs of one part, or of all parts together.

use crate::core_sharing::CoreSharing;
use crate::statistics::{SampleStatistics, percentile};
use serde::Serialize;
use stackline_core::plan::World;
use stackline_core::run_record::{Histogram, HostUsage, TransportRecord, Usage};
use std::collections::{BTreeMap, BTreeSet};

/// What a run is judged by, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMetric {
    /// Bytes of data units over the measured period, in bit/s.
    Throughput,
    /// Mean response time of a run's calls, in seconds.
    Response,
    /// Mean time of a run's connects plus disconnects, in seconds.
    Connect,
    /// CPU seconds of both sides per GB (1e9 bytes) of data units.
    #[serde(rename = "cpu_s_per_gb")]
    CpuPerGb,
    /// CPU microseconds of both sides per call.
    #[serde(rename = "cpu_us_per_call")]
    CpuPerCall,
    /// CPU microseconds of both sides per connection.
    #[serde(rename = "cpu_us_per_connection")]
    CpuPerConnection,
}

impl RunMetric {
    /// What a run is judged by: the first of these that it has.
    pub const MAIN: [Self; 3] = [Self::Throughput, Self::Response, Self::Connect];
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Throughput,
        Self::Response,
        Self::Connect,
        Self::CpuPerGb,
        Self::CpuPerCall,
        Self::CpuPerConnection,
    ];

    /// Its name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Response => "response time",
            Self::Connect => "connect time",
            Self::CpuPerGb => "CPU per GB",
            Self::CpuPerCall => "CPU per call",
            Self::CpuPerConnection => "CPU per connection",
        }
    }

    /// Whether it is a cost: less or more of it, not faster or slower.
    #[must_use]
    pub const fn is_cost(self) -> bool {
        matches!(
            self,
            Self::CpuPerGb | Self::CpuPerCall | Self::CpuPerConnection
        )
    }

    /// Whether more of it is faster.
    #[must_use]
    pub const fn more_is_faster(self) -> bool {
        matches!(self, Self::Throughput)
    }
}

/// What is done again and again besides moving data units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedWork {
    /// Calls.
    Call,
    /// Connections opened and closed in the measured period, where no calls were made.
    Connection,
}

/// One value a counted run, in the order of the runs; empty where a run has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunValues {
    /// Throughput in bit/s.
    pub throughput_bit_s: Vec<f64>,
    /// Mean response time in seconds.
    pub response_s: Vec<f64>,
    /// Mean connect time in seconds.
    pub connect_s: Vec<f64>,
    /// CPU seconds of both sides per GB of data units.
    pub cpu_s_per_gb: Vec<f64>,
    /// CPU microseconds of both sides per call, else per connection.
    pub cpu_us_per_call: Vec<f64>,
}

impl RunValues {
    /// The values of a metric.
    #[must_use]
    pub fn of(&self, metric: RunMetric) -> &[f64] {
        match metric {
            RunMetric::Throughput => &self.throughput_bit_s,
            RunMetric::Response => &self.response_s,
            RunMetric::Connect => &self.connect_s,
            RunMetric::CpuPerGb => &self.cpu_s_per_gb,
            RunMetric::CpuPerCall | RunMetric::CpuPerConnection => &self.cpu_us_per_call,
        }
    }

    /// The metric the runs are judged by.
    #[must_use]
    pub fn main(&self) -> Option<RunMetric> {
        RunMetric::MAIN
            .into_iter()
            .find(|metric| !self.of(*metric).is_empty())
    }
}

/// CPU per unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuCost {
    /// Initiators and responders together.
    pub both: f64,
    /// Initiators alone.
    pub initiator: f64,
    /// Responders alone.
    pub responder: f64,
}

/// Where a thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadPlacement {
    /// Core when the clock started.
    pub start: usize,
    /// Core when it stopped.
    pub end: usize,
    /// Whether it was pinned.
    pub pinned: bool,
}

/// One side over all counted runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SideSummary {
    /// What the stack really used (last counted run).
    pub settings: BTreeMap<String, String>,
    /// CPU and counters, summed.
    pub usage: Usage,
    /// CPU seconds over measured seconds and replicas; 1 is a full core a replica.
    pub cpu_share: Option<f64>,
    /// The whole host, summed.
    pub host: Option<HostUsage>,
    /// The transport at start and stop of the last counted run.
    pub transport: Option<(TransportRecord, TransportRecord)>,
    /// Segments sent again in all counted runs.
    pub retransmits: Option<u64>,
    /// Time with data to send over the measured time, a replica.
    pub busy_share: Option<f64>,
    /// Share of the busy time limited by the receiver's window.
    pub receive_window_limited_share: Option<f64>,
    /// Share of the busy time limited by the send buffer.
    pub send_buffer_limited_share: Option<f64>,
    /// Where the first replica ran in the last counted run.
    pub placement: Option<ThreadPlacement>,
    /// Data units that arrived in all counted runs.
    pub received_units: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Data units sent.
    pub sent_units: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
}

/// What a modelled network did in the counted runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Its name.
    pub name: String,
    /// Directions of links at which something was dropped, marked or doubled, and the busiest of the others; most drops
    /// first, then most marks, most doubled, most bytes.
    pub ports: Vec<PortSummary>,
    /// In the emulated world.
    pub emulation: Option<EmulationSummary>,
}

/// What went through one direction of a link in the counted runs; several links between the same nodes are one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortSummary {
    /// Its name: `khons>edge`.
    pub name: String,
    /// Counted runs it is summed over; a run records the ports alone that were worth it.
    pub runs: u32,
    /// Packets that came to it: those that left and those dropped before that.
    pub offered: u64,
    /// Packets that left; those lost on the link are among them.
    pub packets: u64,
    /// Their bytes, network layer.
    pub bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets doubled.
    pub duplicated: u64,
    /// Packets dropped or lost.
    pub dropped: u64,
    /// The same by reason.
    pub drops: BTreeMap<String, u64>,
    /// Dropped over offered, 0 to 1; absent when nothing was offered, or the two do not count the same.
    pub drop_share: Option<f64>,
    /// Whether what was offered and left are cells.
    pub cells: bool,
    /// Whether what was dropped are cells.
    pub cells_dropped: bool,
}

/// How well an emulated network kept its times in the counted runs. Lateness: how long after it was due a frame was
/// handed to the kernel, in seconds; absent when no frame left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EmulationSummary {
    /// Frames that left for a host.
    pub departures: u64,
    /// Median of the runs' median lateness.
    pub lateness_p50_s: Option<f64>,
    /// In the worst run, 99 of 100 are at most this.
    pub lateness_p99_s: Option<f64>,
    /// The largest of all runs.
    pub lateness_max_s: Option<f64>,
    /// Frames lost because the machine could not keep up.
    pub lost: u64,
    /// Share of one processor that the emulator took, 0 to 1, in the run where it was most.
    pub cpu_share: f64,
    /// Median round trip through the emulator with nothing emulated in it, in seconds; over runs the median of it.
    pub round_trip_s: Option<f64>,
    /// Runs whose result is the machine's and not the network's.
    pub overloaded: u32,
    /// Why; of texts that differ in numbers only, the last run's.
    pub overload: Vec<String>,
}

/// Results of the counted runs of one part, or of all parts of a measurement together. Warm-up runs are not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part; absent for all parts together.
    pub part_index: Option<usize>,
    /// The measurement as written.
    pub text: String,
    /// The part as written; `all` for all parts together.
    pub part: String,
    /// Name of the application type; several with ` + ` between.
    pub application: String,
    /// Name of the stack with the options written; several with ` + ` between.
    pub stack: String,
    /// Names of the options written for it; what else the stack used were defaults.
    pub options: BTreeSet<String>,
    /// Where it ran.
    pub world: World,
    /// Initiator host; `local` without one.
    pub from: String,
    /// Responder host; `local` without one.
    pub to: String,
    /// Whether it is load and not measured.
    pub background: bool,
    /// Pairs at once.
    pub replicas: u32,
    /// Values of the swept variables.
    pub variables: Vec<(String, f64)>,
    /// Counted runs.
    pub runs: u32,
    /// Data units, else calls, else connects a run, on average.
    pub units: f64,
    /// Size of a data unit or request in bytes, where it is always the same.
    pub unit_bytes: Option<u64>,
    /// Size of a reply in bytes, where it is always the same.
    pub reply_bytes: Option<u64>,
    /// Whether a run moves one amount of data in bulk, or a whole file, to its end: its measured period is the time that takes.
    pub is_transfer: bool,
    /// Measured period of a run in seconds.
    pub elapsed_s: Option<SampleStatistics>,
    /// Throughput over runs in bit/s, where data units moved.
    pub throughput_bit_s: Option<SampleStatistics>,
    /// How equally the parts of `parallel` or `total` that move data units share it, over runs: Jain's index, 1 where all have
    /// the same throughput; absent with fewer than two such parts.
    pub fairness: Option<SampleStatistics>,
    /// Response times of all calls in seconds; the interval from the runs' means when there are two or more.
    pub response_s: Option<SampleStatistics>,
    /// The response times behind it, ns.
    #[serde(skip)]
    pub response_ns: Histogram,
    /// The runs' mean response times in seconds.
    pub response_run_s: Option<SampleStatistics>,
    /// Times of connect plus disconnect in seconds; the interval as for calls.
    pub connect_s: Option<SampleStatistics>,
    /// The times behind it, ns.
    #[serde(skip)]
    pub connect_ns: Histogram,
    /// The runs' mean connect times in seconds.
    pub connect_run_s: Option<SampleStatistics>,
    /// What the next figure, and the CPU per call, are about.
    pub rate_of: Option<RepeatedWork>,
    /// Calls, else connections, per second over runs.
    pub rate_per_s: Option<SampleStatistics>,
    /// Where connections with calls come and go in the measured period: a run's mean time of one with all that belongs to it,
    /// from its connect to the next, over runs, in seconds.
    pub transaction_s: Option<SampleStatistics>,
    /// The same connections per second over runs.
    pub transactions_per_s: Option<SampleStatistics>,
    /// How late paced operations began, in seconds.
    pub lateness_s: Option<SampleStatistics>,
    /// Where callers could not keep the times they were to call at: the mean wait of a call for those before it, in seconds,
    /// which is in its response time.
    pub backlog_s: Option<f64>,
    /// Times since the clock started at each mark, in seconds.
    pub marks: BTreeMap<String, SampleStatistics>,
    /// What the runs are judged by.
    pub main: Option<RunMetric>,
    /// Standard deviation over the mean of the main metric over runs.
    pub normalised_sd: Option<f64>,
    /// The values behind it.
    pub run_values: RunValues,
    /// How both ends shared cores, where they are on one machine.
    #[serde(skip)]
    pub core_sharing: Option<CoreSharing>,
    /// The initiators.
    pub initiator: SideSummary,
    /// The responders.
    pub responder: SideSummary,
    /// CPU seconds per GB (1e9 bytes) of data units.
    pub cpu_s_per_gb: Option<CpuCost>,
    /// CPU microseconds per call, else per connection.
    pub cpu_us_per_call: Option<CpuCost>,
    /// The same of the whole hosts, with everything else that ran there; one machine counts once in `both`.
    pub host_cpu_s_per_gb: Option<CpuCost>,
    /// The same per call, else per connection.
    pub host_cpu_us_per_call: Option<CpuCost>,
    /// Data units sent that never arrived; absent where the stack does not count them.
    pub lost: Option<u64>,
    /// The same over the units sent, or lost calls over the calls made, 0 to 1.
    pub lost_share: Option<f64>,
    /// Arrived more than once.
    pub duplicated: Option<u64>,
    /// Arrived after a later one.
    pub reordered: Option<u64>,
    /// What the modelled network did; absent in the live world.
    pub network: Option<NetworkSummary>,
    /// What could not be measured and why.
    pub absent: BTreeMap<String, String>,
    /// What a reader has to know before believing the figures.
    pub flags: Vec<String>,
}

impl Summary {
    /// The measurement without its stack, which stands beside it.
    #[must_use]
    pub fn text_without_stack(&self) -> String {
        without_stack(&self.text)
    }

    /// Counted runs whose result is the machine's and not the emulated network's.
    #[must_use]
    pub fn overloaded(&self) -> u32 {
        let emulation = self
            .network
            .as_ref()
            .and_then(|network| network.emulation.as_ref());
        emulation.map_or(0, |emulation| emulation.overloaded)
    }

    /// Statistics of the main metric: throughput over runs, response and connect times over calls.
    #[must_use]
    pub const fn main_statistics(&self) -> Option<&SampleStatistics> {
        match self.main {
            Some(RunMetric::Throughput) => self.throughput_bit_s.as_ref(),
            Some(RunMetric::Response) => self.response_s.as_ref(),
            Some(RunMetric::Connect) => self.connect_s.as_ref(),
            _ => None,
        }
    }

    /// How many percent of the times of calls or connections are not above what is returned, in seconds; nothing where there
    /// are fewer than [`values_needed`](crate::values_needed), and of a metric that is no time.
    #[must_use]
    pub fn percentile(&self, metric: RunMetric, percent: f64) -> Option<f64> {
        match metric {
            RunMetric::Response => percentile(&self.response_ns, percent),
            RunMetric::Connect => percentile(&self.connect_ns, percent),
            _ => None,
        }
    }

    /// One value a counted run of a metric; none where it is about other work than was done.
    #[must_use]
    pub fn values(&self, metric: RunMetric) -> &[f64] {
        let other_work = match metric {
            RunMetric::CpuPerCall => self.rate_of != Some(RepeatedWork::Call),
            RunMetric::CpuPerConnection => self.rate_of != Some(RepeatedWork::Connection),
            _ => false,
        };
        if other_work {
            &[]
        } else {
            self.run_values.of(metric)
        }
    }
}

/// A measurement's text without its clause `over STACK(OPTIONS)`, in whatever order the options were written.
fn without_stack(text: &str) -> String {
    let Some((before, clause)) = text.split_once(" over ") else {
        return text.to_owned();
    };
    let name = |c: char| !c.is_alphanumeric() && c != '_';
    let options = clause.find(name).unwrap_or(clause.len());
    let mut depth = 0_i32;
    let end = clause[options..].find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c != ')'
    });
    let end = end.map_or(clause.len(), |at| options + at);
    format!("{before}{}", &clause[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_of_the_stack_is_left_out_however_its_options_stand() {
        for stack in [
            "tcp",
            "tcp(nodelay, congestion = reno)",
            "blast(selective, packet = 1024)",
        ] {
            let text = format!("3 from a to b rr 10*20 over {stack} across near");
            assert_eq!(without_stack(&text), "3 from a to b rr 10*20 across near");
        }
        assert_eq!(without_stack("3 rr 10 over tcp(nodelay)"), "3 rr 10");
        assert_eq!(without_stack("5 rr 32*10"), "5 rr 32*10");
    }
}
