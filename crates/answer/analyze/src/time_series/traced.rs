//! Series from the events of a traced run: of connections and cores as monitors report them. A value that is reported for an interval
//! counts where that interval ends.

use super::series_data::{
    MOST_BINS, SeriesBins, SeriesKind, SeriesLine, SeriesLines, SeriesRun, round_interval_s,
};
use super::traced_queues::QueueLevels;
use super::traced_units::TracedUnits;
use crate::findings::AnalysisInput;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_events::unit_ids::{EventStreamDirection, stream_parts};
use std::collections::BTreeMap;

/// Fields of a connection's report, by place.
const STREAM: usize = 1;
const LOCAL: usize = 2;
const REMOTE: usize = 3;
/// The same of a connection that is opened.
const OPENED: [usize; 2] = [4, 5];
const WINDOW: usize = 4;
const ROUND_TRIP: usize = 6;
const RETRANSMITS: usize = 7;
const ACKNOWLEDGED: usize = 15;
/// A connection that carried less than this share of the one with the most data carried none to speak of.
const NOTABLE: f64 = 0.01;
/// A core that is used less than this, in percent, is idle beside others.
const IDLE: f64 = 1.0;

/// A moment in reference time, ns.
fn reference_ns(index: &Index, events: &EventTable, row: usize) -> u64 {
    let at_ns = events.at_ns[row];
    let host = index.hosts.get(events.host(row));
    host.map_or(at_ns, |host| host.clock.reference_ns(at_ns))
}

/// The intervals of a traced run, from the first initiator's clock start to the last one's stop; `None` if it was not traced.
pub(super) fn bins(
    input: &AnalysisInput<'_>,
    run: &SeriesRun<'_>,
    every_s: Option<f64>,
) -> Result<Option<SeriesBins>, String> {
    let Some(span) = run.span.filter(|_| !input.events.is_empty()) else {
        return Ok(None);
    };
    let events = input.events;
    let (mut from_ns, mut to_ns) = (None, None);
    for row in 0..events.len() {
        let keyword = events.keyword(row);
        let (is_start, is_stop) = (keyword == "APP_START", keyword == "APP_STOP");
        if !is_start && !is_stop {
            continue;
        }
        let stream = events.number(row, 1).map(stream_parts);
        let Some((flow, EventStreamDirection::There)) = stream else {
            continue;
        };
        if !is_of_run(input.index, run, flow) {
            continue;
        }
        let at_ns = reference_ns(input.index, events, row);
        if is_start {
            from_ns = Some(from_ns.map_or(at_ns, |from: u64| from.min(at_ns)));
        } else {
            to_ns = Some(to_ns.map_or(at_ns, |to: u64| to.max(at_ns)));
        }
    }
    let from_ns = from_ns.unwrap_or(span.from_ns);
    let length_ns = to_ns.unwrap_or(span.to_ns).saturating_sub(from_ns);
    if length_ns == 0 {
        return Ok(None);
    }
    let length_s = length_ns as f64 * 1e-9;
    let every_s = every_s.unwrap_or_else(|| round_interval_s(length_s));
    if length_s / every_s > MOST_BINS {
        let count = length_s / every_s;
        return Err(format!(
            "the run would have {count:.0} intervals; at most {MOST_BINS:.0} are made"
        ));
    }
    Ok(Some(SeriesBins {
        origin_ns: from_ns,
        every_ns: ((every_s * 1e9) as u64).max(1),
        length_ns,
    }))
}

/// Whether a flow belongs to the run.
fn is_of_run(index: &Index, run: &SeriesRun<'_>, flow: u32) -> bool {
    index
        .flow(flow)
        .is_some_and(|flow| flow.measurement == run.index && flow.run == run.run && !flow.warmup)
}

/// All lines that have a value.
pub(super) fn lines(
    input: &AnalysisInput<'_>,
    run: &SeriesRun<'_>,
    bins: SeriesBins,
) -> SeriesLines {
    let (index, events) = (input.index, input.events);
    let mut units = TracedUnits::new(bins);
    let mut queues = QueueLevels::new(bins);
    let mut connections: BTreeMap<String, ConnectionValues> = BTreeMap::new();
    let mut cores: BTreeMap<String, BinMeans> = BTreeMap::new();
    let streams = streams_by_address(events);
    for row in 0..events.len() {
        let keyword = events.keyword(row);
        let is_unit = keyword.starts_with("APP_");
        let is_packet = keyword.starts_with("NET_");
        let is_report = keyword.ends_with("_INFO");
        if !(is_unit || is_packet || is_report || keyword == "CPU_USE") {
            continue;
        }
        let at_ns = reference_ns(index, events, row);
        if is_unit {
            units.event(keyword, events, row, at_ns, |flow| {
                is_of_run(index, run, flow)
            });
        } else if is_packet {
            queues.event(keyword, events, row, at_ns);
        } else if let Some(bin) = bins.index(at_ns) {
            if is_report {
                if let Some(name) = connection_name(index, run, (events, row), &streams) {
                    let values = connections
                        .entry(name)
                        .or_insert_with(|| ConnectionValues::new(bins));
                    values.add(events, row, bin);
                }
            } else {
                let core = events.number(row, 1).unwrap_or_default();
                let name = format!("{} core {core}", events.host(row));
                let used = (2..=6).filter_map(|at| events.number(row, at)).sum::<i64>();
                let means = cores.entry(name).or_insert_with(|| BinMeans::new(bins));
                means.add(bin, used as f64 / 1e4);
            }
        }
    }
    let mut all = units.lines(input, run);
    all.extend(connection_lines(bins, connections));
    all.push((SeriesKind::Queue, queues.lines()));
    all.push((SeriesKind::Processor, core_lines(bins, cores)));
    all.retain(|(_, lines)| !lines.is_empty());
    all
}

/// The addresses of a connection's end, and of the other one.
type AddressPair = [String; 2];

/// The streams that connections of pairs send, by the addresses of their ends.
fn streams_by_address(events: &EventTable) -> BTreeMap<AddressPair, i64> {
    let opens = |row: &usize| matches!(events.keyword(*row), "APP_CONNECTED" | "APP_ACCEPTED");
    let connections = (0..events.len()).filter(opens).filter_map(|row| {
        let ends = OPENED.map(|at| events.value(row, at).to_string());
        Some((ends, events.number(row, STREAM)?))
    });
    connections.collect()
}

/// The name of a connection that an event reports: by its pair, or by its addresses; `None` if it belongs to another run.
fn connection_name(
    index: &Index,
    run: &SeriesRun<'_>,
    reported: (&EventTable, usize),
    streams: &BTreeMap<AddressPair, i64>,
) -> Option<String> {
    let (events, row) = reported;
    let ends = || [LOCAL, REMOTE].map(|at| events.value(row, at).to_string());
    let stream = events.number(row, STREAM);
    let Some(stream) = stream.or_else(|| streams.get(&ends()).copied()) else {
        let [local, remote] = ends();
        return Some(format!("{} {local}>{remote}", events.host(row)));
    };
    let (flow, way) = stream_parts(stream);
    let flow = index
        .flow(flow)
        .filter(|flow| is_of_run(index, run, flow.id))?;
    let name = run.name(flow.part, Some(flow.replica));
    let way = match way {
        EventStreamDirection::There => format!("{}>{}", flow.hosts.0, flow.hosts.1),
        EventStreamDirection::Back => format!("{}>{}", flow.hosts.1, flow.hosts.0),
    };
    Some(format!("{name} {way}").trim_start().to_owned())
}

/// What a connection reported.
struct ConnectionValues {
    window: BinMeans,
    round_trip: BinMeans,
    retransmits: Vec<f64>,
    acknowledged: f64,
}

impl ConnectionValues {
    fn new(bins: SeriesBins) -> Self {
        Self {
            window: BinMeans::new(bins),
            round_trip: BinMeans::new(bins),
            retransmits: vec![0.0; bins.count()],
            acknowledged: 0.0,
        }
    }

    fn add(&mut self, events: &EventTable, row: usize, bin: usize) {
        let value = |at: usize| events.number(row, at).filter(|value| *value >= 0);
        if let Some(window) = value(WINDOW) {
            self.window.add(bin, window as f64);
        }
        if let Some(trip) = value(ROUND_TRIP).filter(|trip| *trip > 0) {
            self.round_trip.add(bin, trip as f64 * 1e-9);
        }
        self.retransmits[bin] += value(RETRANSMITS).unwrap_or(0) as f64;
        self.acknowledged += value(ACKNOWLEDGED).unwrap_or(0) as f64;
    }
}

/// The mean of what was reported in each interval.
struct BinMeans(Vec<(f64, u32)>);

impl BinMeans {
    fn new(bins: SeriesBins) -> Self {
        Self(vec![(0.0, 0); bins.count()])
    }

    fn add(&mut self, bin: usize, value: f64) {
        let (sum, n) = &mut self.0[bin];
        *sum += value;
        *n += 1;
    }

    fn values(&self) -> impl Iterator<Item = Option<f64>> {
        let each = self.0.iter();
        each.map(|(sum, n)| (*n > 0).then(|| sum / f64::from(*n)))
    }

    fn most(&self) -> f64 {
        self.values().flatten().fold(0.0, f64::max)
    }
}

/// Of the connections that carried data: windows, round trips, what was sent again.
fn connection_lines(bins: SeriesBins, all: BTreeMap<String, ConnectionValues>) -> SeriesLines {
    let most = all.values().map(|one| one.acknowledged).fold(0.0, f64::max);
    let (mut windows, mut trips, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for (name, one) in all {
        if one.retransmits.iter().any(|count| *count > 0.0) {
            let counts = one.retransmits.iter().copied().map(Some);
            again.push(bins.line(name.clone(), counts));
        }
        if one.acknowledged >= NOTABLE * most {
            windows.push(bins.line(name.clone(), one.window.values()));
            trips.push(bins.line(name, one.round_trip.values()));
        }
    }
    for lines in [&mut windows, &mut trips] {
        lines.retain(|line| !line.points.is_empty());
    }
    vec![
        (SeriesKind::Window, windows),
        (SeriesKind::RoundTrip, trips),
        (SeriesKind::Retransmissions, again),
    ]
}

/// The cores that were used; all if none was.
fn core_lines(bins: SeriesBins, cores: BTreeMap<String, BinMeans>) -> Vec<SeriesLine> {
    let is_any_used = cores.values().any(|core| core.most() >= IDLE);
    cores
        .into_iter()
        .filter(|(_, core)| !is_any_used || core.most() >= IDLE)
        .map(|(name, core)| bins.line(name, core.values()))
        .collect()
}
