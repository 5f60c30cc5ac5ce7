//! Series from the sums that endpoints kept in each interval.

use super::series_data::{SeriesKind, SeriesLine, SeriesLines, SeriesPoint, SeriesRun};
use stackline_core::far_end::is_address;
use stackline_core::interval_record::{IntervalRow, SideIntervals};
use stackline_core::run_record::RunRecord;

/// The length of the intervals, s; 0 without any.
pub(super) fn every_s(run: &SeriesRun<'_>) -> f64 {
    let all = run.records.iter().flat_map(|record| sides(record));
    all.map(|side| side.every_ns).max().unwrap_or(0) as f64 * 1e-9
}

/// From clock start to clock stop, s; 0 if nothing was kept.
pub(super) fn length_s(run: &SeriesRun<'_>) -> f64 {
    let all = run.records.iter().flat_map(|record| sides(record));
    all.map(|side| side.length_ns).max().unwrap_or(0) as f64 * 1e-9
}

fn sides(record: &RunRecord) -> impl Iterator<Item = &SideIntervals> {
    let both = [&record.initiator_intervals, &record.responder_intervals];
    both.into_iter().flatten()
}

/// All lines that have a value.
pub(super) fn lines(run: &SeriesRun<'_>) -> SeriesLines {
    let mut all: SeriesLines = SeriesKind::ALL.map(|kind| (kind, Vec::new())).into();
    for record in &run.records {
        let parts = [
            throughput(run, record),
            calls(run, record),
            latency(run, record),
            transport(run, record),
            datagrams(run, record),
        ];
        for (kind, line) in parts.into_iter().flatten() {
            let of_kind = all.iter_mut().find(|(found, _)| *found == kind);
            if let Some((_, lines)) = of_kind.filter(|_| !line.points.is_empty()) {
                lines.push(line);
            }
        }
    }
    all.retain(|(_, lines)| !lines.is_empty());
    all
}

/// A figure of an interval's calls, ns.
type CallFigure = fn(&IntervalRow) -> Option<u64>;

type KindLines = Vec<(SeriesKind, SeriesLine)>;

/// A line of the intervals of which `value` knows something; it gets the row and the length, s.
fn line(
    name: String,
    side: &SideIntervals,
    rows: &[IntervalRow],
    value: impl Fn(&IntervalRow, f64) -> Option<f64>,
) -> SeriesLine {
    let points = rows.iter().enumerate().filter_map(|(index, row)| {
        let (from_ns, to_ns) = side.bounds_ns(index);
        let (from_s, to_s) = (from_ns as f64 * 1e-9, to_ns as f64 * 1e-9);
        let length_s = to_s - from_s;
        let value = value(row, length_s).filter(|_| length_s > 0.0)?;
        Some(SeriesPoint {
            from_s,
            to_s,
            value,
        })
    });
    SeriesLine {
        name,
        points: points.collect(),
    }
}

/// The sum of all pairs, and each pair, with their numbers.
fn with_pairs(side: &SideIntervals) -> impl Iterator<Item = (Option<u32>, &[IntervalRow])> {
    let pairs = (0..).zip(&side.pairs);
    let pairs = pairs.map(|(pair, rows)| (Some(pair), rows.as_slice()));
    std::iter::once((None, side.sum.as_slice())).chain(pairs)
}

fn throughput(run: &SeriesRun<'_>, record: &RunRecord) -> KindLines {
    let to = run.measurement.parts.get(record.part);
    let to = to.and_then(|part| part.to.as_ref());
    let is_far = to.is_some_and(|to| is_address(to));
    let mut lines = Vec::new();
    for (side, is_initiator) in [
        (&record.initiator_intervals, true),
        (&record.responder_intervals, false),
    ] {
        let Some(side) = side else { continue };
        // A server outside the run counts nothing: what it was sent counts.
        let bytes = |row: &IntervalRow| match is_far && is_initiator {
            true => row.received_bytes.saturating_add(row.sent_bytes),
            false => row.received_bytes,
        };
        if side.sum.iter().all(|row| bytes(row) == 0) {
            continue;
        }
        for (pair, rows) in with_pairs(side) {
            let rate = |row: &IntervalRow, s: f64| Some(bytes(row) as f64 * 8.0 / s);
            let line = line(run.name(record.part, pair), side, rows, rate);
            lines.push((SeriesKind::Throughput, line));
        }
    }
    if lines.len() > 1 {
        direct(&mut lines, record);
    }
    lines
}

/// Where data arrives on both sides, says on which.
fn direct(lines: &mut KindLines, record: &RunRecord) {
    let both = [&record.initiator_intervals, &record.responder_intervals];
    let arrives = |side: &&Option<SideIntervals>| {
        let mut rows = side.iter().flat_map(|side| &side.sum);
        rows.any(|row| row.received_bytes > 0)
    };
    if !both.iter().all(arrives) {
        return;
    }
    let first = both[0].as_ref().map_or(0, |side| side.pairs.len() + 1);
    for (at, (_, line)) in lines.iter_mut().enumerate() {
        let way = if at < first { "back" } else { "there" };
        line.name = format!("{} {way}", line.name).trim_start().to_owned();
    }
}

fn calls(run: &SeriesRun<'_>, record: &RunRecord) -> KindLines {
    let Some(side) = &record.initiator_intervals else {
        return Vec::new();
    };
    if side.sum.iter().all(|row| row.calls.is_none()) {
        return Vec::new();
    }
    let rate = |row: &IntervalRow, s: f64| Some(row.calls.map_or(0, |calls| calls.n) as f64 / s);
    let line = line(run.name(record.part, None), side, &side.sum, rate);
    vec![(SeriesKind::Calls, line)]
}

fn latency(run: &SeriesRun<'_>, record: &RunRecord) -> KindLines {
    let Some(side) = &record.initiator_intervals else {
        return Vec::new();
    };
    let figures: [(&str, CallFigure); 3] = [
        ("median", |row| row.calls?.median_ns),
        ("p99", |row| row.calls?.p99_ns),
        ("max", |row| row.calls.map(|calls| calls.max_ns)),
    ];
    let of = |(name, figure): (&str, CallFigure)| {
        let part = run.name(record.part, None);
        let name = format!("{part} {name}").trim_start().to_owned();
        let value = |row: &IntervalRow, _: f64| figure(row).map(|ns| ns as f64 * 1e-9);
        (SeriesKind::Latency, line(name, side, &side.sum, value))
    };
    figures.map(of).into()
}

/// Of the side that sends more: its windows and round trips; of both, what was sent again.
fn transport(run: &SeriesRun<'_>, record: &RunRecord) -> KindLines {
    let mut lines = Vec::new();
    let sender = match record.responder.sent_bytes > record.initiator.sent_bytes {
        true => &record.responder_intervals,
        false => &record.initiator_intervals,
    };
    if let Some(side) = sender {
        for (pair, rows) in with_pairs(side) {
            // A sum of windows says nothing beside the windows.
            if pair.is_none() && !side.pairs.is_empty() {
                continue;
            }
            let name = || run.name(record.part, pair.or(Some(0)));
            let window = |row: &IntervalRow, _: f64| Some(row.transport?.window_bytes? as f64);
            lines.push((SeriesKind::Window, line(name(), side, rows, window)));
            let trip = |row: &IntervalRow, _: f64| {
                let ns = row.transport?.round_trip_ns;
                (ns > 0).then_some(ns as f64 * 1e-9)
            };
            lines.push((SeriesKind::RoundTrip, line(name(), side, rows, trip)));
        }
    }
    for side in sides(record) {
        let count = |row: &IntervalRow, _: f64| {
            let transport = row.transport.as_ref();
            Some(transport.map_or(0, |transport| transport.retransmits) as f64)
        };
        let line = line(run.name(record.part, None), side, &side.sum, count);
        if line.points.iter().any(|point| point.value > 0.0) {
            lines.push((SeriesKind::Retransmissions, line));
        }
    }
    lines
}

fn datagrams(run: &SeriesRun<'_>, record: &RunRecord) -> KindLines {
    let mut lines = Vec::new();
    for side in sides(record) {
        let name = || run.name(record.part, None);
        let lost = line(name(), side, &side.sum, |row, _| {
            row.lost.map(|lost| lost as f64)
        });
        if side.sum.iter().any(|row| row.received_units > 0) {
            lines.push((SeriesKind::Lost, lost));
        }
        for (pair, rows) in with_pairs(side) {
            if pair.is_none() && !side.pairs.is_empty() {
                continue;
            }
            let jitter = |row: &IntervalRow, _: f64| row.jitter_ns.map(|ns| ns as f64 * 1e-9);
            let name = run.name(record.part, pair.or(Some(0)));
            lines.push((SeriesKind::Jitter, line(name, side, rows, jitter)));
        }
    }
    lines
}
