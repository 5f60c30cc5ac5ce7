//! Charts of monitored values over time: one data field of monitor events, such as `cwnd_bytes`, with a curve for each stream, core or
//! interface. A value is drawn at the end of its interval.

use crate::chart::{Axis, AxisScale, Chart, ChartCurve};
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_events::catalogue::{self, CatalogueEntry};
use std::collections::{BTreeMap, BTreeSet};

/// Most curves in a chart; more could not be distinguished.
pub const MOST_CURVES: usize = 6;

/// Fields that identify what a monitor measured, such as the core.
const WHICH: [&str; 6] = ["core", "interface", "port", "resource", "stream", "pid"];

/// A time range in seconds since the first event; without a bound it reaches to the first or last event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MonitoredSpan {
    /// The first moment.
    pub from: Option<f64>,
    /// The last moment.
    pub to: Option<f64>,
}

impl MonitoredSpan {
    fn contains(self, at: f64) -> bool {
        self.from.is_none_or(|from| at >= from) && self.to.is_none_or(|to| at <= to)
    }
}

/// The chart of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Monitored {
    /// The chart, with the curves that have the largest values.
    pub chart: Chart,
    /// How many curves there are in total.
    pub of_curves: usize,
}

/// The names of the fields that the run's monitors recorded as numbers.
#[must_use]
pub fn fields(events: &EventTable) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for (row, entry) in monitors(events) {
        let numbers = entry
            .data
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(at, _)| events.number(row, *at).is_some());
        found.extend(
            numbers
                .map(|(_, name)| *name)
                .filter(|name| !WHICH.contains(name)),
        );
    }
    found
}

/// Draws a field; `None` if no monitor recorded it in the time range.
#[must_use]
pub fn monitored(
    index: &Index,
    events: &EventTable,
    origin_ns: u64,
    field: &str,
    span: MonitoredSpan,
) -> Option<Monitored> {
    let mut curves = curves_of(index, events, origin_ns, field, span);
    let of_curves = curves.len();
    // If there are too many curves, those with the largest values are kept, in the order of their names.
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|a, b| largest(&curves[*b]).total_cmp(&largest(&curves[*a])));
    order.truncate(MOST_CURVES);
    let mut at = 0..;
    curves.retain(|_| at.next().is_some_and(|at| order.contains(&at)));
    let high = curves.iter().map(largest).fold(0.0, f64::max);
    let moments = || {
        curves
            .iter()
            .flat_map(|curve| &curve.line)
            .map(|(at, _)| *at)
    };
    let begins = span.from.unwrap_or(0.0);
    let ends = span.to.unwrap_or_else(|| moments().fold(begins, f64::max));
    moments().next()?;
    let shown = if of_curves > curves.len() {
        format!(" The {MOST_CURVES} largest of {of_curves} curves are shown.")
    } else {
        String::new()
    };
    let chart = Chart {
        title: field.to_owned(),
        x: Axis {
            name: "time since the first event, s".into(),
            scale: AxisScale::Linear,
            from: begins,
            to: ends.max(begins + 1e-6),
        },
        y: Axis {
            name: format!("{field}{}", unit(field).1),
            scale: AxisScale::Linear,
            from: 0.0,
            to: if high > 0.0 { 1.05 * high } else { 1.0 },
        },
        band: None,
        curves,
        below: format!("Each value is drawn at the end of its interval.{shown}"),
    };
    Some(Monitored { chart, of_curves })
}

/// All curves of a field, ordered by name.
fn curves_of(
    index: &Index,
    events: &EventTable,
    origin_ns: u64,
    field: &str,
    span: MonitoredSpan,
) -> Vec<ChartCurve> {
    let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let (scale, _) = unit(field);
    for (row, entry) in monitors(events) {
        let Some(value) = entry.field(field).and_then(|at| events.number(row, at)) else {
            continue;
        };
        let at_ns = events.at_ns[row];
        let at_ns = index
            .hosts
            .get(events.host(row))
            .map_or(at_ns, |host| host.clock.reference_ns(at_ns));
        let at = at_ns.saturating_sub(origin_ns) as f64 * 1e-9;
        if span.contains(at) {
            curves
                .entry(name(events, row, entry))
                .or_default()
                .push((at, value as f64 * scale));
        }
    }
    curves
        .into_iter()
        .map(|(name, mut line)| {
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            ChartCurve {
                name,
                points: Vec::new(),
                line,
            }
        })
        .collect()
}

fn largest(curve: &ChartCurve) -> f64 {
    let values = curve.line.iter().map(|(_, value)| *value);
    values.fold(0.0, f64::max)
}

/// The rows of monitor events with their catalogue entries: those whose first field is `interval_ns`.
fn monitors(events: &EventTable) -> impl Iterator<Item = (usize, &'static CatalogueEntry)> {
    let mut known: BTreeMap<u32, Option<&'static CatalogueEntry>> = BTreeMap::new();
    let entry = |keyword: &str| {
        catalogue::find(keyword).filter(|entry| entry.data.first() == Some(&"interval_ns"))
    };
    (0..events.len()).filter_map(move |row| {
        let keyword = events.keyword[row];
        Some((
            row,
            (*known
                .entry(keyword)
                .or_insert_with(|| entry(events.keyword(row))))?,
        ))
    })
}

/// The name of a curve: the host, and its stream, core or interface.
fn name(events: &EventTable, row: usize, entry: &CatalogueEntry) -> String {
    let which = entry
        .data
        .iter()
        .enumerate()
        .filter(|(_, field)| WHICH.contains(field));
    let which = which
        .map(|(at, field)| (field, events.value(row, at).to_string()))
        .filter(|(_, which)| !which.is_empty());
    let which = which.map(|(field, which)| {
        if which.parse::<i64>().is_ok() {
            format!(" {field} {which}")
        } else {
            format!(" {which}")
        }
    });
    format!("{}{}", events.host(row), which.collect::<String>())
}

/// The factor by which a field's values are multiplied, and the unit they then have, by the ending of its name.
fn unit(field: &str) -> (f64, &'static str) {
    match field.rsplit('_').next() {
        Some("bytes") => (1e-3, ", kB"),
        Some("ns") => (1e-6, ", ms"),
        Some("ppm") => (1e-4, ", %"),
        _ => (1.0, ", per interval"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::EventValue;

    /// A window of each of so many streams, growing, and the processor.
    fn events(streams: i64) -> EventTable {
        let mut table = EventTable::default();
        for tick in 1..=5_i64 {
            for stream in 0..streams {
                let mut data = vec![EventValue::Absent; 16];
                (data[0], data[1], data[4]) = (
                    100_000_000.into(),
                    stream.into(),
                    (tick * 1_000 * (stream + 1)).into(),
                );
                table.push(
                    "TCP_INFO",
                    "edc",
                    7_000_000_000 + tick as u64 * 100_000_000,
                    &data,
                );
            }
            table.push(
                "CPU_USE",
                "edc",
                7_000_000_000,
                &[100_000_000.into(), 0.into(), 5.into()],
            );
        }
        table
    }

    #[test]
    fn a_window_over_time_is_one_curve_a_stream() {
        let drawn = monitored(
            &Index::default(),
            &events(2),
            7_000_000_000,
            "cwnd_bytes",
            MonitoredSpan::default(),
        )
        .unwrap();
        let curves = &drawn.chart.curves;
        assert_eq!(
            curves
                .iter()
                .map(|curve| curve.name.as_str())
                .collect::<Vec<_>>(),
            ["edc stream 0", "edc stream 1"]
        );
        let near = |(at, value): (f64, f64), expected: (f64, f64)| {
            (at - expected.0).abs() < 1e-9 && (value - expected.1).abs() < 1e-9
        };
        assert!(near(curves[1].line[4], (0.5, 10.0)), "{:?}", curves[1].line);
        assert_eq!(drawn.chart.y.name, "cwnd_bytes, kB");
        let svg = crate::chart(&drawn.chart);
        assert!(svg.contains("edc stream 1") && svg.contains("time since the first event, s"));
    }

    #[test]
    fn of_many_streams_those_with_the_largest_values_are_drawn() {
        let drawn = monitored(
            &Index::default(),
            &events(9),
            7_000_000_000,
            "cwnd_bytes",
            MonitoredSpan {
                from: Some(0.2),
                to: Some(0.4),
            },
        )
        .unwrap();
        assert_eq!((drawn.of_curves, drawn.chart.curves.len()), (9, 6));
        assert_eq!(
            (
                drawn.chart.curves[0].name.as_str(),
                drawn.chart.curves[0].line.len()
            ),
            ("edc stream 3", 3)
        );
        assert!(drawn.chart.below.contains("6 largest of 9"));
    }

    #[test]
    fn what_no_monitor_recorded_is_none_and_the_fields_are_listed() {
        let events = events(1);
        assert_eq!(
            monitored(
                &Index::default(),
                &events,
                0,
                "queue_bytes",
                MonitoredSpan::default()
            ),
            None
        );
        assert!(fields(&events).contains("cwnd_bytes") && !fields(&events).contains("stream"));
    }
}
