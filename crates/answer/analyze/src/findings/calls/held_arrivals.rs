//! Ends of units that arrive a delayed acknowledgement after they were handed over, as both programs saw it: for traces of a kernel whose
//! segments are not recorded. Pauses between the units do not matter, as only what a receiver waited for after it was handed over counts.

use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use std::collections::BTreeMap;

/// Units of one part that were held back.
pub(super) struct HeldArrivals {
    /// How many.
    pub(super) times: u64,
    /// Of how many that were waited for.
    pub(super) units: u64,
    /// For how long together, s.
    pub(super) held_s: f64,
    /// The events that show it.
    pub(super) rows: Vec<u32>,
}

/// A unit that was handed over: the byte behind its last, its size, when, row.
struct Handed {
    to: i64,
    bytes: i64,
    at_ns: u64,
    row: u32,
}

/// A unit that was waited for: how long after it was handed over it came, how long after the one before it that was handed over, ns.
struct Arrival {
    held_ns: u64,
    behind_ns: Option<u64>,
    small: bool,
    rows: [u32; 2],
}

/// The units whose ends a delayed acknowledgement of so many seconds held back; `near` judges a time by that and a round trip. `None` where
/// others are late by other times, or clocks do not show it.
pub(super) fn held_arrivals(
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    delay_s: f64,
    near: impl Fn(f64, f64, f64) -> bool,
) -> Option<HeldArrivals> {
    let error_ns = context.measurement.log.input.lifelines.clock_error_ns;
    if to_f64(error_ns) / 1e9 > delay_s / 8.0 {
        return None;
    }
    let arrivals = arrivals(context, part)?;
    // A transport's own round trips may hold delayed acknowledgements already.
    let least_ns = arrivals.iter().map(|arrival| arrival.held_ns).min()?;
    let trip_s = 2.0 * to_f64(least_ns) / 1e9;
    let is_late = |arrival: &&Arrival| to_f64(arrival.held_ns) / 1e9 >= delay_s / 8.0;
    let is_held = |arrival: &&Arrival| {
        arrival.small
            && arrival.behind_ns.is_some_and(|behind_ns| {
                to_f64(behind_ns) / 1e9 < delay_s
                    && near(to_f64(arrival.held_ns + behind_ns) / 1e9, delay_s, trip_s)
            })
    };
    let late = arrivals.iter().filter(is_late).count();
    let held: Vec<&Arrival> = arrivals.iter().filter(is_held).collect();
    if 2 * held.len() <= late || held.is_empty() {
        return None;
    }
    Some(HeldArrivals {
        times: held.len() as u64,
        units: arrivals.len() as u64,
        held_s: held.iter().map(|one| to_f64(one.held_ns) / 1e9).sum(),
        rows: held.iter().flat_map(|one| one.rows).collect(),
    })
}

/// What the ends of a part waited for, unit by unit.
fn arrivals(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Vec<Arrival>> {
    let log = context.measurement.log;
    let segment = part.segment_bytes()? as i64;
    let handed = handed(context);
    let is_mine = |row: u32| {
        let flow = log.flow(row).and_then(|flow| log.input.index.flow(flow));
        flow.is_some_and(|flow| flow.part == part.index)
    };
    let received = context.waits.iter().filter(|wait| {
        log.input.events.keyword(wait.row as usize) == "APP_RECEIVED" && is_mine(wait.row)
    });
    let arrival = received.filter_map(|wait| {
        let needs = wait.needs.last()?;
        let stream = handed.get(&needs.stream)?;
        let at = stream.partition_point(|unit| unit.to < needs.to);
        let unit = stream.get(at).filter(|unit| unit.to == needs.to)?;
        let before = at.checked_sub(1).map(|before| &stream[before]);
        Some(Arrival {
            // What was waited for before it was handed over is its sender's.
            held_ns: wait.to_ns.saturating_sub(unit.at_ns.max(wait.from_ns)),
            behind_ns: before.map(|before| unit.at_ns.saturating_sub(before.at_ns)),
            small: unit.bytes < segment,
            rows: [unit.row, wait.row],
        })
    });
    Some(arrival.collect())
}

/// The units of each stream in the order of their bytes.
fn handed(context: &FindingContext<'_>) -> BTreeMap<i64, Vec<Handed>> {
    let log = context.measurement.log;
    let mut streams: BTreeMap<i64, Vec<Handed>> = BTreeMap::new();
    for row in context.measurement.rows("APP_SEND") {
        if let Some(range) = log.range(row) {
            streams.entry(range.stream).or_default().push(Handed {
                to: range.to,
                bytes: range.to - range.from,
                at_ns: log.at(row),
                row,
            });
        }
    }
    streams
        .values_mut()
        .for_each(|units| units.sort_unstable_by_key(|unit| unit.to));
    streams
}
