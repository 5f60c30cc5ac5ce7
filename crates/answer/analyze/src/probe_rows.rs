//! A series of probes over time: hours, days or other spans with what their probes yielded together, as rows and as curves.

use crate::curves::{Curve, CurveAxis, CurveKind, CurvePoint, CurveSet};
use crate::statistics::{SampleStatistics, to_f64};
use stackline_core::run_record::Histogram;
use stackline_core::units::Quantity;
use stackline_runs::probe_series::{ProbeRecord, ProbedMeasurement};
use std::collections::BTreeMap;

/// Spans of rows in ms: the least that gives no more than [`MOST_ROWS`] rows is taken.
const SPANS_MS: [u64; 9] = [
    1_000,
    10_000,
    60_000,
    600_000,
    3_600_000,
    6 * 3_600_000,
    86_400_000,
    7 * 86_400_000,
    28 * 86_400_000,
];
/// Most rows that are shown of one measurement.
const MOST_ROWS: u64 = 48;
/// Most points of a curve.
const MOST_POINTS: u64 = 400;

/// Units of the axis of time in ms: the largest that the series is at least twice as long as.
const AXIS_UNITS: [(&str, u64); 4] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1_000),
];

/// What the probes of a span yielded for one measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeSpanRow {
    /// When the span begins, ms since 1970.
    pub from_ms: u64,
    /// Probes that were made.
    pub probes: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Times of calls, else of connects, in seconds.
    pub times_s: Option<SampleStatistics>,
    /// Throughput of the probes in bit/s.
    pub throughput_bit_s: Option<SampleStatistics>,
    /// Data units or calls that were lost.
    pub lost: u64,
    /// In how many probes each kind of finding was made.
    pub findings: BTreeMap<String, u64>,
    /// The reason of the last failure.
    pub reason: Option<String>,
}

/// The figure that curves show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeFigure {
    /// Median and 99th percentile of the times.
    Times,
    /// Mean throughput.
    Throughput,
}

/// The names of the measurements of a series, in the order in which they first came.
#[must_use]
pub fn probed_names(records: &[ProbeRecord]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in records.iter().flat_map(|record| &record.measurements) {
        if !names.contains(&one.text.as_str()) {
            names.push(&one.text);
        }
    }
    names
}

/// How long the spans of rows are, in ms.
#[must_use]
pub fn row_span_ms(records: &[ProbeRecord]) -> u64 {
    span_for(records, MOST_ROWS)
}

fn span_for(records: &[ProbeRecord], most: u64) -> u64 {
    let times = || records.iter().map(|record| record.at_ms);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let fits = |span: &&u64| last / **span - first / **span < most;
    *SPANS_MS.iter().find(fits).unwrap_or(&SPANS_MS[8])
}

/// The rows of a measurement, by time. A span without a probe has none.
#[must_use]
pub fn probe_rows(records: &[ProbeRecord], name: &str, span_ms: u64) -> Vec<ProbeSpanRow> {
    let mut spans: BTreeMap<u64, Vec<&ProbedMeasurement>> = BTreeMap::new();
    for record in records {
        let mine = record.measurements.iter().filter(|one| one.text == name);
        let span = record.at_ms / span_ms.max(1);
        mine.for_each(|one| spans.entry(span).or_default().push(one));
    }
    let row = |(span, probes): (u64, Vec<&ProbedMeasurement>)| row_of(span * span_ms, &probes);
    spans.into_iter().map(row).collect()
}

fn row_of(from_ms: u64, probes: &[&ProbedMeasurement]) -> ProbeSpanRow {
    let failed = probes.iter().filter(|one| one.failure.is_some());
    let times = Histogram::merged(probes.iter().map(|one| &one.times_ns));
    let rates: Vec<f64> = probes
        .iter()
        .filter_map(|one| one.throughput_bit_s)
        .collect();
    let mut findings: BTreeMap<String, u64> = BTreeMap::new();
    let found = probes.iter().filter_map(|one| one.findings.as_ref());
    for kind in found.flat_map(BTreeMap::keys) {
        *findings.entry(kind.clone()).or_default() += 1;
    }
    let reasons = probes.iter().rev().filter_map(|one| one.failure.clone());
    ProbeSpanRow {
        from_ms,
        probes: probes.len() as u64,
        failed: failed.count() as u64,
        times_s: SampleStatistics::from_histogram(&times, 1e-9),
        throughput_bit_s: SampleStatistics::from_values(&rates),
        lost: probes.iter().filter_map(|one| one.lost).sum(),
        findings,
        reason: reasons.into_iter().next(),
    }
}

/// Whether a series has times; else curves show its throughput.
#[must_use]
pub fn own_figure(records: &[ProbeRecord]) -> ProbeFigure {
    let mut all = records.iter().flat_map(|record| &record.measurements);
    match all.any(|one| !one.times_ns.counts.is_empty()) {
        true => ProbeFigure::Times,
        false => ProbeFigure::Throughput,
    }
}

/// Curves of a series over time: a panel for each measurement.
#[must_use]
pub fn probe_curves(records: &[ProbeRecord], figure: ProbeFigure, began: &str) -> CurveSet {
    let names = probed_names(records);
    let span_ms = span_for(records, MOST_POINTS);
    let times = || records.iter().map(|record| record.at_ms);
    let first_ms = times().min().unwrap_or(0) / span_ms * span_ms;
    let length_ms = times().max().unwrap_or(0).saturating_sub(first_ms);
    let fits = |(_, unit_ms): &&(&str, u64)| length_ms >= 2 * unit_ms;
    let (unit, unit_ms) = *AXIS_UNITS.iter().find(fits).unwrap_or(&AXIS_UNITS[3]);
    let mut set = CurveSet {
        kind: CurveKind::Sweep,
        x: CurveAxis {
            name: format!("time since {began}"),
            quantity: Quantity::Number,
            unit,
        },
        y: axis(figure),
        by: None,
        panels: Vec::new(),
        curves: Vec::new(),
        left_out: BTreeMap::new(),
    };
    let failed = records.iter().flat_map(|record| &record.measurements);
    let failed = failed.filter(|one| one.failure.is_some()).count();
    if failed > 0 {
        set.left_out.insert("the probe failed".to_owned(), failed);
    }
    for name in names.iter() {
        let rows = probe_rows(records, name, span_ms);
        let lines = lines(&rows, figure);
        if lines.iter().all(|(_, points)| points.is_empty()) {
            let reason = format!("no {}", set.y.name);
            *set.left_out.entry(reason).or_default() += 1;
            continue;
        }
        let panel = set.panels.len();
        set.panels.push(match names.len() {
            1 => String::new(),
            _ => (*name).to_owned(),
        });
        set.curves.extend(lines.into_iter().map(|(line, points)| {
            Curve {
                name: line.to_owned(),
                number: None,
                panel,
                points: points
                    .into_iter()
                    .map(|point| CurvePoint {
                        x: (point.x - to_f64(first_ms)) / to_f64(unit_ms),
                        ..point
                    })
                    .collect(),
            }
        }));
    }
    set
}

fn axis(figure: ProbeFigure) -> CurveAxis {
    let (name, quantity) = match figure {
        ProbeFigure::Times => ("response time", Quantity::Time),
        ProbeFigure::Throughput => ("throughput", Quantity::Rate),
    };
    CurveAxis {
        name: name.to_owned(),
        quantity,
        unit: "",
    }
}

/// The lines of a measurement; their places are ms since 1970.
fn lines(rows: &[ProbeSpanRow], figure: ProbeFigure) -> Vec<(&'static str, Vec<CurvePoint>)> {
    let line = |value: fn(&ProbeSpanRow) -> Option<f64>| -> Vec<CurvePoint> {
        let mut is_missing = false;
        let point = |row: &ProbeSpanRow| {
            let y = value(row);
            let begins = std::mem::replace(&mut is_missing, y.is_none());
            Some(CurvePoint {
                x: to_f64(row.from_ms),
                y: y?,
                interval: None,
                n: row.times_s.map_or(row.probes, |times| times.n),
                begins,
            })
        };
        rows.iter().filter_map(point).collect()
    };
    match figure {
        ProbeFigure::Times => vec![
            ("median", line(|row| row.times_s.map(|times| times.median))),
            ("p99", line(|row| row.times_s.map(|times| times.p99))),
        ],
        ProbeFigure::Throughput => vec![(
            "throughput",
            line(|row| row.throughput_bit_s.map(|rates| rates.mean)),
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe at a minute whose ten calls took so many ms; without, it failed.
    fn probe(minute: u64, ms: Option<u64>) -> ProbeRecord {
        let value = ms.unwrap_or(0) * 1_000_000;
        let times_ns = Histogram {
            counts: vec![(value, 10)],
            sum: 10 * value,
            squares: 10.0 * to_f64(value).powi(2),
            min_max: Some((value, value)),
        };
        ProbeRecord {
            at_ms: minute * 60_000,
            measurements: vec![ProbedMeasurement {
                text: "rr".to_owned(),
                failure: ms.is_none().then(|| "the server is down".to_owned()),
                times_ns: ms.map_or_else(Histogram::default, |_| times_ns),
                ..ProbedMeasurement::default()
            }],
            ..ProbeRecord::default()
        }
    }

    #[test]
    fn rows_pool_calls_and_count_failures() {
        let records: Vec<ProbeRecord> = (0..120)
            .map(|minute| probe(minute, (minute != 7).then_some(1 + minute / 60)))
            .collect();
        let rows = probe_rows(&records, "rr", 3_600_000);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].probes, rows[0].failed), (60, 1));
        assert_eq!(rows[0].reason.as_deref(), Some("the server is down"));
        let times = rows[0].times_s.unwrap();
        assert_eq!((times.n, times.median), (590, 0.001));
        assert_eq!((rows[1].failed, rows[1].from_ms), (0, 3_600_000));
        assert_eq!(rows[1].times_s.unwrap().max, 0.002);
    }

    #[test]
    fn spans_grow_with_the_series() {
        let series = |minutes: u64| -> Vec<ProbeRecord> {
            (0..minutes).map(|at| probe(at, Some(1))).collect()
        };
        assert_eq!(row_span_ms(&series(1)), 1_000);
        assert_eq!(row_span_ms(&series(48)), 60_000);
        assert_eq!(row_span_ms(&series(49)), 600_000);
        assert_eq!(row_span_ms(&series(24 * 60)), 3_600_000);
        assert_eq!(row_span_ms(&series(20 * 24 * 60)), 86_400_000);
        assert_eq!(row_span_ms(&[]), 1_000);
    }

    #[test]
    fn a_failed_probe_is_no_point_of_a_curve() {
        let records = [probe(0, Some(2)), probe(1, None), probe(2, Some(4))];
        let set = probe_curves(&records, own_figure(&records), "now");
        assert_eq!(set.panels, [""]);
        let names: Vec<&str> = set.curves.iter().map(|curve| &curve.name[..]).collect();
        assert_eq!(names, ["median", "p99"]);
        let points: Vec<(f64, f64)> = set.curves[0].points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(0.0, 0.002), (2.0, 0.004)]);
        // The line does not lead across the outage.
        assert!(!set.curves[0].points[0].begins && set.curves[0].points[1].begins);
        assert_eq!(set.x.unit, "min");
        let none = probe_curves(&records, ProbeFigure::Throughput, "now");
        let failed = "1 row was left out: the probe failed";
        assert_eq!(set.omissions(), [failed]);
        assert_eq!(
            none.omissions(),
            ["1 row was left out: no throughput", failed]
        );
    }
}
