//! Units that arrive one delayed acknowledgement after they were handed over, as seen by both programs: evidence of Nagle's algorithm for
//! traces of a kernel, whose segments are not recorded. Pauses between units do not matter: only the time that a receiver waited after a
//! unit was handed over counts.

use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use std::collections::BTreeMap;

/// Units of one part that were held back.
pub(super) struct HeldArrivals {
    /// The number of units that were held back.
    pub(super) times: u64,
    /// The number of all units that were waited for.
    pub(super) units: u64,
    /// How long the held units were waited for in total, s.
    pub(super) held_s: f64,
    /// The events that show it.
    pub(super) rows: Vec<u32>,
}

/// A unit that its sender handed over to the stack.
struct Handed {
    /// Offset behind its last byte in the stream.
    to: i64,
    /// Its size.
    bytes: i64,
    /// When it was handed over, reference time.
    at_ns: u64,
    /// The row of the event.
    row: u32,
}

/// A unit that its receiver waited for.
struct Arrival {
    /// How long it was waited for after it was handed over.
    held_ns: u64,
    /// How long after the unit before it in the stream it was handed over; `None` for the first.
    behind_ns: Option<u64>,
    /// Whether it is smaller than a segment.
    small: bool,
    /// The rows of the events of handing over and of arrival.
    rows: [u32; 2],
}

/// The units that a delayed acknowledgement of `delay_s` held back; `near(time_s, delay_s, round_trip_s)` says whether a time matches that.
/// `None` if most late units are late by other times, or the clocks are not exact enough.
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

/// The units that the receivers of a part waited for.
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
            // The wait before the unit was handed over is due to its sender.
            held_ns: wait.to_ns.saturating_sub(unit.at_ns.max(wait.from_ns)),
            behind_ns: before.map(|before| unit.at_ns.saturating_sub(before.at_ns)),
            small: unit.bytes < segment,
            rows: [unit.row, wait.row],
        })
    });
    Some(arrival.collect())
}

/// The units that were handed over, by stream and in the order of their bytes.
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
