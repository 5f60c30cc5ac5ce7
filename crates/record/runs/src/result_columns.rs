//! The columns of `results.parquet`: a table with one line for each column.
//!
//! A row is one run of one part. A value that could not be measured is null, never zero.

use stackline_core::plan::{Measurement, MeasurementPart, Plan, Size};
use stackline_core::run_record::{
    EmulationRecord, Histogram, HostUsage, PortRecord, RunRecord, SideRecord, TransportRecord,
};
use std::fmt::Write as _;

/// The data that a row is made from.
#[derive(Clone, Copy, Debug)]
pub struct ResultRow<'r> {
    /// The measurement, when the plan is known.
    pub measurement: Option<&'r Measurement>,
    /// The part of the measurement.
    pub part: Option<&'r MeasurementPart>,
    /// The record of the run.
    pub record: &'r RunRecord,
}

impl<'r> ResultRow<'r> {
    /// The row of a record.
    #[must_use]
    pub fn new(plan: Option<&'r Plan>, record: &'r RunRecord) -> Self {
        let measurement = plan.and_then(|plan| plan.measurements.get(record.measurement));
        let part = measurement.and_then(|measurement| measurement.parts.get(record.part));
        Self {
            measurement,
            part,
            record,
        }
    }
}

/// The type of a column and the function that gets its value from a row.
#[derive(Clone, Copy, Debug)]
pub enum Get {
    /// UTF-8 text, or null.
    Text(fn(&ResultRow<'_>) -> Option<String>),
    /// 64-bit integer, or null. Counters above `i64::MAX` become `i64::MAX`.
    Int(fn(&ResultRow<'_>) -> Option<i64>),
    /// Double, or null.
    Real(fn(&ResultRow<'_>) -> Option<f64>),
    /// Boolean, or null.
    Flag(fn(&ResultRow<'_>) -> Option<bool>),
    /// A list of 64-bit integers, which may be empty.
    Ints(fn(&ResultRow<'_>) -> Vec<i64>),
}

impl Get {
    const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Int(_) => "integer",
            Self::Real(_) => "double",
            Self::Flag(_) => "boolean",
            Self::Ints(_) => "integers",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct ResultColumn {
    /// The column's name in the file.
    pub name: &'static str,
    /// The column's type and value.
    pub get: Get,
    /// The description, with the unit.
    pub help: &'static str,
}

const fn text(
    name: &'static str,
    get: fn(&ResultRow<'_>) -> Option<String>,
    help: &'static str,
) -> ResultColumn {
    ResultColumn {
        name,
        get: Get::Text(get),
        help,
    }
}

const fn int(
    name: &'static str,
    get: fn(&ResultRow<'_>) -> Option<i64>,
    help: &'static str,
) -> ResultColumn {
    ResultColumn {
        name,
        get: Get::Int(get),
        help,
    }
}

const fn real(
    name: &'static str,
    get: fn(&ResultRow<'_>) -> Option<f64>,
    help: &'static str,
) -> ResultColumn {
    ResultColumn {
        name,
        get: Get::Real(get),
        help,
    }
}

const fn flag(
    name: &'static str,
    get: fn(&ResultRow<'_>) -> Option<bool>,
    help: &'static str,
) -> ResultColumn {
    ResultColumn {
        name,
        get: Get::Flag(get),
        help,
    }
}

const fn ints(
    name: &'static str,
    get: fn(&ResultRow<'_>) -> Vec<i64>,
    help: &'static str,
) -> ResultColumn {
    ResultColumn {
        name,
        get: Get::Ints(get),
        help,
    }
}

/// The column that holds the complete record as JSON.
pub const RECORD: &str = "record";

/// Every column, in the order of the file.
#[rustfmt::skip]
pub const COLUMNS: &[ResultColumn] = &[
    int("measurement", |r| whole(r.record.measurement as u64), "index of the measurement in the plan, from 0"),
    text("text", |r| r.measurement.map(|m| m.text.clone()), "the measurement as written, with variables and stack filled in"),
    int("part", |r| whole(r.record.part as u64), "index of the part, from 0"),
    text("part_text", |r| r.part.map(|p| p.text.clone()), "the part as written"),
    text("application", |r| r.part.map(|p| p.procedure.name.clone()), "name of the application type"),
    text("stack", |r| r.part.map(|p| p.stack.to_string()), "name of the stack with its options"),
    text("world", |r| r.measurement.map(|m| m.world.to_string()), "live, emulated or simulated"),
    text("from", |r| r.part.map(|p| host(p.from.as_deref())), "initiator host; `local` if none"),
    text("to", |r| r.part.map(|p| host(p.to.as_deref())), "responder host; `local` if none"),
    flag("background", |r| r.part.map(|p| p.background), "whether the part is background load, which is not measured"),
    int("run", |r| Some(i64::from(r.record.run)), "index of the run, from 0; warm-up runs are counted separately"),
    flag("warmup", |r| Some(r.record.warmup), "whether the run is a warm-up run, which is left out of every total"),
    int("replicas", |r| Some(i64::from(r.record.replicas)), "number of concurrent pairs"),
    text("variables", variables, "values of the swept variables, as a JSON object keyed by name; null where nothing is swept"),
    int("unit_bytes", |r| r.part.and_then(unit_bytes), "size of a data unit in bytes; null if sizes are random"),
    real("elapsed_s", |r| Some(seconds(r.record.elapsed_ns)), "measured period: that of the slowest replica"),
    real("span_s", |r| (r.record.span_ns > 0).then(|| seconds(r.record.span_ns)), "time from the first replica's clock start to the last one's stop"),
    flag("limited", |r| Some(r.record.limited), "whether the time limit ended the run"),
    int("data_bytes", |r| whole(r.record.data_bytes()), "bytes of data units that arrived at either side"),
    int("initiator_received_units", |r| whole(r.record.initiator.received_units), "data units that arrived at the initiator"),
    int("initiator_received_bytes", |r| whole(r.record.initiator.received_bytes), "their bytes"),
    int("initiator_sent_units", |r| whole(r.record.initiator.sent_units), "data units the initiator sent"),
    int("initiator_sent_bytes", |r| whole(r.record.initiator.sent_bytes), "their bytes"),
    int("responder_received_units", |r| whole(r.record.responder.received_units), "data units that arrived at the responder"),
    int("responder_received_bytes", |r| whole(r.record.responder.received_bytes), "their bytes"),
    int("responder_sent_units", |r| whole(r.record.responder.sent_units), "data units the responder sent"),
    int("responder_sent_bytes", |r| whole(r.record.responder.sent_bytes), "their bytes"),
    int("calls", |r| counted(&r.record.calls), "number of calls; null if there were none"),
    real("call_mean_s", |r| mean(&r.record.calls), "mean response time"),
    real("call_min_s", |r| least(&r.record.calls), "minimum response time"),
    real("call_max_s", |r| largest(&r.record.calls), "maximum response time"),
    ints("call_ns", |r| values(&r.record.calls), "distinct response times, in ns, ascending"),
    ints("call_count", |r| occurrences(&r.record.calls), "how often each of these response times occurred"),
    int("connects", |r| counted(&r.record.connects), "number of connections opened and closed within the measured period"),
    real("connect_mean_s", |r| mean(&r.record.connects), "mean time of connect plus disconnect"),
    real("connect_min_s", |r| least(&r.record.connects), "minimum of these times"),
    real("connect_max_s", |r| largest(&r.record.connects), "maximum of these times"),
    ints("connect_ns", |r| values(&r.record.connects), "distinct times of connect plus disconnect, in ns, ascending"),
    ints("connect_count", |r| occurrences(&r.record.connects), "how often each of these times occurred"),
    int("paced", |r| counted(&r.record.lateness), "number of paced operations"),
    real("lateness_mean_s", |r| mean(&r.record.lateness), "mean delay of their starts"),
    real("lateness_max_s", |r| largest(&r.record.lateness), "maximum delay of their starts"),
    ints("lateness_ns", |r| values(&r.record.lateness), "distinct delays, in ns, ascending"),
    ints("lateness_count", |r| occurrences(&r.record.lateness), "how often each of these delays occurred"),
    real("initiator_user_s", |r| Some(r.record.initiator.usage.user_s), "user CPU seconds of the initiators' threads"),
    real("initiator_system_s", |r| Some(r.record.initiator.usage.system_s), "system CPU seconds of the same threads"),
    int("initiator_voluntary_switches", |r| whole(r.record.initiator.usage.voluntary_switches), "voluntary context switches"),
    int("initiator_involuntary_switches", |r| whole(r.record.initiator.usage.involuntary_switches), "involuntary context switches"),
    int("initiator_minor_faults", |r| whole(r.record.initiator.usage.minor_faults), "page faults without disk access"),
    int("initiator_major_faults", |r| whole(r.record.initiator.usage.major_faults), "major page faults (disk access)"),
    real("responder_user_s", |r| Some(r.record.responder.usage.user_s), "user CPU seconds of the responders' threads"),
    real("responder_system_s", |r| Some(r.record.responder.usage.system_s), "system CPU seconds of the same threads"),
    int("responder_voluntary_switches", |r| whole(r.record.responder.usage.voluntary_switches), "voluntary context switches"),
    int("responder_involuntary_switches", |r| whole(r.record.responder.usage.involuntary_switches), "involuntary context switches"),
    int("responder_minor_faults", |r| whole(r.record.responder.usage.minor_faults), "page faults without disk access"),
    int("responder_major_faults", |r| whole(r.record.responder.usage.major_faults), "major page faults (disk access)"),
    real("initiator_host_user_s", |r| on_host(&r.record.initiator, |h| h.user_s), "whole initiator host: user CPU seconds, all cores"),
    real("initiator_host_system_s", |r| on_host(&r.record.initiator, |h| h.system_s), "CPU seconds in the kernel, excluding interrupts"),
    real("initiator_host_interrupt_s", |r| on_host(&r.record.initiator, |h| h.interrupt_s), "CPU seconds in interrupts"),
    real("initiator_host_steal_s", |r| on_host(&r.record.initiator, |h| h.steal_s), "CPU seconds taken by the hypervisor"),
    real("initiator_host_idle_s", |r| on_host(&r.record.initiator, |h| h.idle_s), "idle CPU seconds"),
    real("initiator_host_throttled_s", |r| r.record.initiator.host.as_ref().and_then(|h| h.throttled_s), "seconds during which the agent's control group, or one above it, was throttled; null if not counted"),
    int("initiator_host_swapped_pages", |r| swapped(&r.record.initiator), "pages swapped in and out"),
    real("responder_host_user_s", |r| on_host(&r.record.responder, |h| h.user_s), "whole responder host: user CPU seconds, all cores"),
    real("responder_host_system_s", |r| on_host(&r.record.responder, |h| h.system_s), "CPU seconds in the kernel, excluding interrupts"),
    real("responder_host_interrupt_s", |r| on_host(&r.record.responder, |h| h.interrupt_s), "CPU seconds in interrupts"),
    real("responder_host_steal_s", |r| on_host(&r.record.responder, |h| h.steal_s), "CPU seconds taken by the hypervisor"),
    real("responder_host_idle_s", |r| on_host(&r.record.responder, |h| h.idle_s), "idle CPU seconds"),
    real("responder_host_throttled_s", |r| r.record.responder.host.as_ref().and_then(|h| h.throttled_s), "seconds during which the agent's control group, or one above it, was throttled; null if not counted"),
    int("responder_host_swapped_pages", |r| swapped(&r.record.responder), "pages swapped in and out"),
    int("initiator_retransmits", |r| grown(&r.record.initiator, |t| t.retransmits), "segments retransmitted by the initiator in the measured period"),
    real("initiator_rtt_s", |r| at_stop(&r.record.initiator, |t| Some(t.rtt_s)), "smoothed round-trip time when the clock stopped"),
    real("initiator_rtt_var_s", |r| at_stop(&r.record.initiator, |t| t.rtt_var_s), "its variation"),
    int("initiator_cwnd_segments", |r| gauge(&r.record.initiator, |t| t.cwnd_segments), "congestion window when the clock stopped, in segments"),
    int("initiator_mss_bytes", |r| gauge(&r.record.initiator, |t| Some(t.mss_bytes)), "segment size in bytes"),
    real("initiator_busy_s", |r| spent(&r.record.initiator, |t| t.busy_s), "time with data to send"),
    real("initiator_receive_window_limited_s", |r| spent(&r.record.initiator, |t| t.receive_window_limited_s), "part of it limited by the receiver's window"),
    real("initiator_send_buffer_limited_s", |r| spent(&r.record.initiator, |t| t.send_buffer_limited_s), "part of it limited by the send buffer"),
    int("responder_retransmits", |r| grown(&r.record.responder, |t| t.retransmits), "segments retransmitted by the responder in the measured period"),
    real("responder_rtt_s", |r| at_stop(&r.record.responder, |t| Some(t.rtt_s)), "smoothed round-trip time when the clock stopped"),
    real("responder_rtt_var_s", |r| at_stop(&r.record.responder, |t| t.rtt_var_s), "its variation"),
    int("responder_cwnd_segments", |r| gauge(&r.record.responder, |t| t.cwnd_segments), "congestion window when the clock stopped, in segments"),
    int("responder_mss_bytes", |r| gauge(&r.record.responder, |t| Some(t.mss_bytes)), "segment size in bytes"),
    real("responder_busy_s", |r| spent(&r.record.responder, |t| t.busy_s), "time with data to send"),
    real("responder_receive_window_limited_s", |r| spent(&r.record.responder, |t| t.receive_window_limited_s), "part of it limited by the receiver's window"),
    real("responder_send_buffer_limited_s", |r| spent(&r.record.responder, |t| t.send_buffer_limited_s), "part of it limited by the send buffer"),
    int("lost", |r| both(r, |s| s.lost), "data units sent in either direction that never arrived; null if the stack does not know"),
    int("duplicated", |r| both(r, |s| s.duplicated), "data units that arrived more than once"),
    int("reordered", |r| both(r, |s| s.reordered), "data units that arrived after a later one"),
    int("initiator_core", |r| core(&r.record.initiator), "core of the initiator's first thread when the clock stopped"),
    flag("initiator_pinned", |r| r.record.initiator.cpu.map(|(.., pinned)| pinned), "whether the thread was pinned"),
    int("responder_core", |r| core(&r.record.responder), "core of the responder's first thread when the clock stopped"),
    flag("responder_pinned", |r| r.record.responder.cpu.map(|(.., pinned)| pinned), "whether the thread was pinned"),
    text("initiator_congestion", |r| r.record.initiator.settings.get("congestion").cloned(), "congestion control actually used by the initiator"),
    text("responder_congestion", |r| r.record.responder.settings.get("congestion").cloned(), "congestion control actually used by the responder"),
    text("network", |r| r.record.network.as_ref().map(|n| n.name.clone()), "name of the modelled network; null in the live world, like the network and emulation columns below. Each part's row holds the figures for the whole network"),
    int("network_drops", |r| over_ports(r, |port| port.drops.values().fold(0, |sum, n| sum.saturating_add(*n))), "packets dropped or lost in it"),
    int("network_marks", |r| over_ports(r, |port| port.marked), "packets marked in it"),
    text("network_ports", ports, "JSON list of the link directions in which something was dropped, marked or duplicated, and of the busiest others: `name`, `packets` that left, their `bytes`, `marked`, `duplicated`, `drops` by reason"),
    int("emulation_departures", |r| emulation(r).and_then(|e| whole(e.departures)), "frames that left the emulator for a host; null in other worlds, like the other emulation columns"),
    real("emulation_lateness_p50_s", |r| late_by(r, |e| e.lateness_p50_ns), "how late they left: median; null if none left"),
    real("emulation_lateness_p99_s", |r| late_by(r, |e| e.lateness_p99_ns), "how late they left: 99th percentile"),
    real("emulation_lateness_max_s", |r| late_by(r, |e| e.lateness_max_ns), "how late they left: maximum"),
    int("emulation_lost", |r| emulation(r).and_then(|e| whole(e.lost)), "frames lost because the machine could not keep up"),
    real("emulation_cpu_share", |r| emulation(r).map(|e| e.cpu_share), "share of one processor used by the emulator, 0 to 1"),
    real("emulation_round_trip_s", |r| emulation(r).and_then(|e| e.round_trip_ns).map(seconds), "median round trip through the emulator with nothing emulated in it, measured at its start"),
    text("emulation_overload", |r| emulation(r).and_then(|e| e.overload.clone()), "why the result reflects the machine and not the network, if it does"),
    text(RECORD, |r| serde_json::to_string(r.record).ok(), "the exact record as JSON, with everything above and more"),
];

/// The table of columns in Markdown, as the documentation prints it.
#[must_use]
pub fn documentation() -> String {
    let mut out = String::from("| column | type | holds |\n| --- | --- | --- |\n");
    for column in COLUMNS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            column.name,
            column.get.type_name(),
            column.help
        );
    }
    out
}

fn variables(row: &ResultRow<'_>) -> Option<String> {
    let swept = &row.measurement?.variables;
    let object: serde_json::Map<_, _> = swept
        .iter()
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

/// The number, or `i64::MAX` when it is larger.
fn whole(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits of nanoseconds are 104 days, exact"
)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn host(name: Option<&str>) -> String {
    name.unwrap_or("local").to_owned()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "float to int casts saturate"
)]
fn unit_bytes(part: &MeasurementPart) -> Option<i64> {
    match &part.data.unit {
        Size::Bytes(bytes) => whole(*bytes),
        Size::Drawn(distribution) => distribution.constant().map(|bytes| bytes.round() as i64),
    }
}

fn counted(histogram: &Histogram) -> Option<i64> {
    let n = histogram.n();
    if n > 0 { whole(n) } else { None }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a mean for reading; the record column is exact"
)]
fn mean(histogram: &Histogram) -> Option<f64> {
    let n = histogram.n();
    (n > 0).then(|| histogram.sum as f64 / n as f64 / 1e9)
}

fn least(histogram: &Histogram) -> Option<f64> {
    histogram.min_max.map(|(least, _)| seconds(least))
}

fn largest(histogram: &Histogram) -> Option<f64> {
    histogram.min_max.map(|(_, largest)| seconds(largest))
}

fn values(histogram: &Histogram) -> Vec<i64> {
    histogram
        .counts
        .iter()
        .filter_map(|(value, _)| whole(*value))
        .collect()
}

fn occurrences(histogram: &Histogram) -> Vec<i64> {
    histogram
        .counts
        .iter()
        .filter_map(|(_, n)| whole(*n))
        .collect()
}

fn on_host(side: &SideRecord, get: fn(&HostUsage) -> f64) -> Option<f64> {
    side.host.as_ref().map(get)
}

/// Pages swapped in and out on the side's host.
fn swapped(side: &SideRecord) -> Option<i64> {
    side.host
        .as_ref()
        .and_then(|host| whole(host.swapped_pages))
}

/// The growth of a counter of the transport from clock start to stop.
fn grown(side: &SideRecord, get: fn(&TransportRecord) -> u64) -> Option<i64> {
    side.transport
        .as_ref()
        .and_then(|(start, stop)| whole(get(stop).saturating_sub(get(start))))
}

/// The growth of a time of the transport from clock start to stop.
fn spent(side: &SideRecord, get: fn(&TransportRecord) -> Option<f64>) -> Option<f64> {
    side.transport
        .as_ref()
        .and_then(|(start, stop)| Some((get(stop)? - get(start)?).max(0.0)))
}

/// A value of the transport when the clock stopped.
fn at_stop(side: &SideRecord, get: fn(&TransportRecord) -> Option<f64>) -> Option<f64> {
    side.transport.as_ref().and_then(|(_, stop)| get(stop))
}

fn gauge(side: &SideRecord, get: fn(&TransportRecord) -> Option<u64>) -> Option<i64> {
    side.transport
        .as_ref()
        .and_then(|(_, stop)| get(stop))
        .and_then(whole)
}

fn core(side: &SideRecord) -> Option<i64> {
    side.cpu.and_then(|(_, stop, _)| whole(stop as u64))
}

/// The sum over both sides of the values that are known.
fn both(row: &ResultRow<'_>, get: fn(&SideRecord) -> Option<u64>) -> Option<i64> {
    let known = [get(&row.record.initiator), get(&row.record.responder)];
    known
        .into_iter()
        .flatten()
        .reduce(u64::saturating_add)
        .and_then(whole)
}

/// The sum over the ports of a modelled network. Ports that the record leaves out dropped and marked nothing.
fn over_ports(row: &ResultRow<'_>, get: fn(&PortRecord) -> u64) -> Option<i64> {
    let network = row.record.network.as_ref()?;
    whole(network.ports.iter().map(get).fold(0, u64::saturating_add))
}

fn ports(row: &ResultRow<'_>) -> Option<String> {
    row.record
        .network
        .as_ref()
        .and_then(|network| serde_json::to_string(&network.ports).ok())
}

fn emulation<'r>(row: &ResultRow<'r>) -> Option<&'r EmulationRecord> {
    row.record
        .network
        .as_ref()
        .and_then(|network| network.emulation.as_ref())
}

/// A lateness in seconds; null if no frame left the emulator.
fn late_by(row: &ResultRow<'_>, get: fn(&EmulationRecord) -> u64) -> Option<f64> {
    emulation(row)
        .filter(|emulation| emulation.departures > 0)
        .map(|emulation| seconds(get(emulation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len());
    }

    #[test]
    fn the_documentation_holds_the_table() {
        let page = include_str!("../../../../docs/JSON.md");
        assert!(
            page.contains(&documentation()),
            "docs/JSON.md should hold:\n{}",
            documentation()
        );
    }

    #[test]
    fn absent_is_null_and_not_zero() {
        let record = RunRecord::default();
        let row = ResultRow::new(None, &record);
        let null = [
            "text",
            "variables",
            "unit_bytes",
            "span_s",
            "calls",
            "call_mean_s",
            "initiator_retransmits",
            "lost",
            "initiator_host_idle_s",
            "network",
            "network_drops",
            "network_ports",
            "emulation_departures",
            "emulation_lateness_p99_s",
            "emulation_overload",
        ];
        for column in COLUMNS.iter().filter(|column| null.contains(&column.name)) {
            let absent = match column.get {
                Get::Text(get) => get(&row).is_none(),
                Get::Int(get) => get(&row).is_none(),
                Get::Real(get) => get(&row).is_none(),
                Get::Flag(get) => get(&row).is_none(),
                Get::Ints(_) => false,
            };
            assert!(absent, "{}", column.name);
        }
    }
}
