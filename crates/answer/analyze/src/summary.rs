//! The data of a summary: the results of the counted runs of one part of a measurement, or of all parts together. The counted runs
//! are those that are not warm-up.

use crate::core_sharing::CoreSharing;
use crate::statistics::{SampleStatistics, percentile};
use serde::Serialize;
use stackline_core::plan::{VariableUnit, World, describe_swept_values};
use stackline_core::run_record::{Histogram, HostUsage, TransportRecord, Usage};
use std::collections::{BTreeMap, BTreeSet};

/// The metrics by which runs are judged and compared.
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
    /// Median response time of a run's calls, in seconds.
    #[serde(rename = "response_p50")]
    ResponseP50,
    /// 90th percentile of a run's response times, in seconds.
    #[serde(rename = "response_p90")]
    ResponseP90,
    /// 99th percentile of a run's response times, in seconds.
    #[serde(rename = "response_p99")]
    ResponseP99,
}

impl RunMetric {
    /// What a run is judged by: the first of these that it has.
    pub const MAIN: [Self; 3] = [Self::Throughput, Self::Response, Self::Connect];
    /// Percentiles of response times that a gate judges where it is asked for.
    pub const PERCENTILES: [Self; 3] = [Self::ResponseP50, Self::ResponseP90, Self::ResponseP99];
    /// All metrics that runs are compared by.
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
            Self::ResponseP50 => "median response time",
            Self::ResponseP90 => "p90 of response time",
            Self::ResponseP99 => "p99 of response time",
        }
    }

    /// Which percentile of response times it is, in per cent; `None` for other metrics.
    #[must_use]
    pub const fn percent(self) -> Option<f64> {
        match self {
            Self::ResponseP50 => Some(50.0),
            Self::ResponseP90 => Some(90.0),
            Self::ResponseP99 => Some(99.0),
            _ => None,
        }
    }

    /// Whether it is a percentile, whose values have three digits.
    #[must_use]
    pub const fn is_percentile(self) -> bool {
        self.percent().is_some()
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

/// Work that a run repeats, besides moving data units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedWork {
    /// Calls.
    Call,
    /// Connections opened and closed in the measured period, where no calls were made.
    Connection,
}

/// For each metric, one value for each counted run that has it, in the order of the runs.
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
    /// Of each of [`RunMetric::PERCENTILES`], in seconds; empty unless every run that made calls made enough of them.
    #[serde(skip)]
    pub response_percentiles_s: [Vec<f64>; 3],
}

impl RunValues {
    /// The values of a metric.
    #[must_use]
    pub fn values_of(&self, metric: RunMetric) -> &[f64] {
        match metric {
            RunMetric::Throughput => &self.throughput_bit_s,
            RunMetric::Response => &self.response_s,
            RunMetric::Connect => &self.connect_s,
            RunMetric::CpuPerGb => &self.cpu_s_per_gb,
            RunMetric::CpuPerCall | RunMetric::CpuPerConnection => &self.cpu_us_per_call,
            RunMetric::ResponseP50 => &self.response_percentiles_s[0],
            RunMetric::ResponseP90 => &self.response_percentiles_s[1],
            RunMetric::ResponseP99 => &self.response_percentiles_s[2],
        }
    }

    /// The metric the runs are judged by.
    #[must_use]
    pub fn main(&self) -> Option<RunMetric> {
        RunMetric::MAIN
            .into_iter()
            .find(|metric| !self.values_of(*metric).is_empty())
    }
}

/// CPU time per unit of work.
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
    /// The core when the clock started.
    pub start: usize,
    /// The core when the clock stopped.
    pub end: usize,
    /// Whether it was pinned.
    pub pinned: bool,
}

/// One side over all counted runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SideSummary {
    /// The settings that the stack really used, in the last counted run.
    pub settings: BTreeMap<String, String>,
    /// How often the stack did what it counts, over all connections of all counted runs, by name.
    pub counts: BTreeMap<String, u64>,
    /// CPU time and counters of the side's threads, summed.
    pub usage: Usage,
    /// CPU seconds over measured seconds times replicas; 1 is a full core for each replica.
    pub cpu_share: Option<f64>,
    /// The usage of the whole host, summed.
    pub host: Option<HostUsage>,
    /// The transport's state at the start and at the stop of the last counted run.
    pub transport: Option<(TransportRecord, TransportRecord)>,
    /// Segments retransmitted in all counted runs.
    pub retransmits: Option<u64>,
    /// Time with data to send over the measured time times replicas.
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

/// A modelled network over the counted runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Its name.
    pub name: String,
    /// Directions of links at which packets were dropped, marked or duplicated, and the busiest of the others; sorted by drops, then
    /// marks, duplicates and bytes, the most first.
    pub ports: Vec<PortSummary>,
    /// How punctual the emulation was; only in the emulated world.
    pub emulation: Option<EmulationSummary>,
}

/// One direction of a link over the counted runs; several links between the same nodes are summed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortSummary {
    /// Its name, such as `khons>edge`.
    pub name: String,
    /// How many counted runs recorded it; a run records only ports where something notable happened, and the busiest.
    pub runs: u32,
    /// Packets that arrived at it: those that left and those dropped before.
    pub offered: u64,
    /// Packets that left, including those then lost on the link.
    pub packets: u64,
    /// Bytes of these packets at the network layer.
    pub bytes: u64,
    /// Packets marked (ECN).
    pub marked: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets dropped or lost.
    pub dropped: u64,
    /// Packets dropped or lost, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Dropped over offered, 0 to 1; absent if nothing was offered, or one counts packets and the other cells.
    pub drop_share: Option<f64>,
    /// Whether `offered` and `packets` count cells instead of packets.
    pub cells: bool,
    /// Whether `dropped` counts cells instead of packets.
    pub cells_dropped: bool,
}

/// How punctual an emulated network was in the counted runs. Lateness is how long after it was due a frame was handed to the kernel,
/// in seconds; it is absent if no frame left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EmulationSummary {
    /// Frames that left for a host.
    pub departures: u64,
    /// Median of the runs' median lateness.
    pub lateness_p50_s: Option<f64>,
    /// The largest of the runs' 99th percentiles of the lateness.
    pub lateness_p99_s: Option<f64>,
    /// The largest lateness of all runs.
    pub lateness_max_s: Option<f64>,
    /// Frames lost because the machine could not keep up.
    pub lost: u64,
    /// The share of one processor that the emulator used, 0 to 1, in the run where it was largest.
    pub cpu_share: f64,
    /// The median round-trip time through the emulator without any emulated delay, in seconds; the median over runs.
    pub round_trip_s: Option<f64>,
    /// Runs in which the machine could not keep up, so that their results reflect the machine, not the network.
    pub overloaded: u32,
    /// The reasons; of texts that differ only in numbers, the last run's.
    pub overload: Vec<String>,
}

/// Results of the counted runs of one part, or of all parts of a measurement together. Warm-up runs are left out.
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
    /// Names of the options written in the specification; all other settings of the stack are defaults.
    pub options: BTreeSet<String>,
    /// The world it ran in: live, emulated or simulated.
    pub world: World,
    /// The initiator's host; `local` if none is given.
    pub from: String,
    /// The responder's host; `local` if none is given.
    pub to: String,
    /// Whether it is background load, which is not measured.
    pub background: bool,
    /// The number of initiator-responder pairs at once.
    pub replicas: u32,
    /// Values of the swept variables.
    pub variables: Vec<(String, f64)>,
    /// What these values are about, in the same order; empty where all are plain numbers.
    #[serde(skip)]
    pub variable_units: Vec<VariableUnit>,
    /// The line of the specification that the measurement begins on, counted from 1.
    #[serde(skip)]
    pub line: usize,
    /// The number of counted runs.
    pub runs: u32,
    /// The mean number per run of data units; if none, of calls; if none, of connections.
    pub units: f64,
    /// Size of a data unit or request in bytes, if constant.
    pub unit_bytes: Option<u64>,
    /// Size of a reply in bytes, if constant.
    pub reply_bytes: Option<u64>,
    /// Whether each run moves one amount of data, or a whole file, to its end, so that the measured period is the transfer time.
    pub is_transfer: bool,
    /// Measured period of a run in seconds.
    pub elapsed_s: Option<SampleStatistics>,
    /// Throughput over runs in bit/s, if data units were moved.
    pub throughput_bit_s: Option<SampleStatistics>,
    /// How equally the parts of `parallel` or `total` that move data units share the throughput, over runs: Jain's index, 1 if all have
    /// the same throughput; absent with fewer than two such parts.
    pub fairness: Option<SampleStatistics>,
    /// Response times of all calls in seconds; the interval from the runs' means when there are two or more.
    pub response_s: Option<SampleStatistics>,
    /// The response times themselves, ns.
    #[serde(skip)]
    pub response_ns: Histogram,
    /// The response times of each run that has any, ns.
    #[serde(skip)]
    pub response_run_ns: Vec<Histogram>,
    /// The runs' mean response times in seconds.
    pub response_run_s: Option<SampleStatistics>,
    /// Times of connect plus disconnect in seconds; the interval as for calls.
    pub connect_s: Option<SampleStatistics>,
    /// The connect times themselves, ns.
    #[serde(skip)]
    pub connect_ns: Histogram,
    /// The connect times of each run that has any, ns.
    #[serde(skip)]
    pub connect_run_ns: Vec<Histogram>,
    /// The runs' mean connect times in seconds.
    pub connect_run_s: Option<SampleStatistics>,
    /// What `rate_per_s` and `cpu_us_per_call` count: calls or connections.
    pub rate_of: Option<RepeatedWork>,
    /// Calls, else connections, per second over runs.
    pub rate_per_s: Option<SampleStatistics>,
    /// For runs that open connections and make calls on them in the measured period: a run's mean time of one connection with its calls,
    /// from its connect to the next, in seconds, over runs.
    pub transaction_s: Option<SampleStatistics>,
    /// Such connections per second, over runs.
    pub transactions_per_s: Option<SampleStatistics>,
    /// How late paced operations began, in seconds.
    pub lateness_s: Option<SampleStatistics>,
    /// How much of that was the generator's own, in seconds: it could have begun, and did not yet. Absent where operations do not tell
    /// when they ended.
    pub generator_lateness_s: Option<SampleStatistics>,
    /// The share of paced operations that the generator began more than 100 us late by itself.
    pub generator_late_share: Option<f64>,
    /// If callers could not keep their pace: the mean wait of a call for the calls before it, in seconds; it is part of the response
    /// time.
    pub backlog_s: Option<f64>,
    /// Times since the clock started at each mark, in seconds.
    pub marks: BTreeMap<String, SampleStatistics>,
    /// The metric by which the runs are judged.
    pub main: Option<RunMetric>,
    /// The standard deviation of the main metric over runs, divided by its mean.
    pub normalised_sd: Option<f64>,
    /// The values of each run.
    pub run_values: RunValues,
    /// How both ends shared cores, if they are on one machine.
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
    /// CPU seconds of the whole hosts per GB, including everything else that ran there; in `both`, one machine counts once.
    pub host_cpu_s_per_gb: Option<CpuCost>,
    /// CPU microseconds of the whole hosts per call, else per connection.
    pub host_cpu_us_per_call: Option<CpuCost>,
    /// Data units that were sent and never arrived, or lost calls; absent if the stack does not count them.
    pub lost: Option<u64>,
    /// Lost units over units sent, or lost calls over calls made, 0 to 1.
    pub lost_share: Option<f64>,
    /// Data units that arrived more than once.
    pub duplicated: Option<u64>,
    /// Data units that arrived after a later one.
    pub reordered: Option<u64>,
    /// The modelled network; absent in the live world.
    pub network: Option<NetworkSummary>,
    /// By name of a figure: why it could not be measured.
    pub absent: BTreeMap<String, String>,
    /// Warnings about the figures: see [`crate::flags`].
    pub flags: Vec<String>,
}

impl Summary {
    /// The measurement's text without its stack, for tables that show the stack separately.
    #[must_use]
    pub fn text_without_stack(&self) -> String {
        without_stack(&self.text)
    }

    /// Counted runs in which the machine could not keep up with the emulated network.
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

    /// A percentile of the times of calls or connections, in seconds; `None` with fewer values than
    /// [`values_needed`](crate::values_needed), and for metrics that are not times.
    #[must_use]
    pub fn percentile(&self, metric: RunMetric, percent: f64) -> Option<f64> {
        match metric {
            RunMetric::Response => percentile(&self.response_ns, percent),
            RunMetric::Connect => percentile(&self.connect_ns, percent),
            _ => None,
        }
    }

    /// The 95 % interval of such a percentile, in seconds: Student's t over the percentiles of single runs; `None` where fewer than two runs
    /// have enough values for it.
    #[must_use]
    pub fn percentile_interval(&self, metric: RunMetric, percent: f64) -> Option<(f64, f64)> {
        let whole = self.percentile(metric, percent)?;
        let runs = match metric {
            RunMetric::Response => &self.response_run_ns,
            RunMetric::Connect => &self.connect_run_ns,
            _ => return None,
        };
        let each = runs.iter().filter_map(|run| percentile(run, percent));
        let half = SampleStatistics::from_values(&each.collect::<Vec<_>>())
            .and_then(|s| s.half_width())?;
        Some(((whole - half).max(0.0), whole + half))
    }

    /// The values of the swept variables as people read them: `D = 40 ms, L = 1 %`; empty without any.
    #[must_use]
    pub fn swept_values(&self) -> String {
        describe_swept_values(&self.variables, &self.variable_units)
    }

    /// The values of a metric, one for each counted run that has it; empty if the metric counts work (calls or connections) other than
    /// [`Summary::rate_of`].
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
            self.run_values.values_of(metric)
        }
    }
}

/// A measurement's text without its clause `over STACK(OPTIONS)`.
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
