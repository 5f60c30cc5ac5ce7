//! Finds the unit of durations that are logged without one (Apache can log microseconds, milliseconds or seconds): the unit with which
//! they agree with the captured times of the same requests.

use super::entry::AccessLogEntry;
use super::join;
use crate::capture::CapturedRequest;

/// The possible units in ns; if several agree equally well, the first is taken.
const UNITS_NS: [u64; 4] = [1_000, 1_000_000, 1_000_000_000, 1];
/// A logged duration agrees with the captured one if they differ by no more than this, ns (or a quarter of it, or one unit).
const NEAR_NS: u64 = 2_000_000;
const SECOND: u64 = 1_000_000_000;

/// Sets the durations of such entries in the unit that agrees with the most requests, if these are more than half.
pub(super) fn settle_units(
    entries: &mut [AccessLogEntry],
    asked: &[CapturedRequest],
    server: Option<&str>,
) {
    if entries.iter().all(|entry| entry.number_ns.is_none()) {
        return;
    }
    let untimed: Vec<AccessLogEntry> = entries
        .iter()
        .map(|entry| AccessLogEntry {
            took_ns: entry.took_ns.filter(|_| entry.number_ns.is_none()),
            ..entry.clone()
        })
        .collect();
    let pairs: Vec<(u64, u64)> = join(&untimed, asked, server)
        .pairs
        .into_iter()
        .filter_map(|(line, request)| {
            let (from, to) = asked[request].at_ns;
            Some((untimed[line].number_ns?, to.saturating_sub(from)))
        })
        .collect();
    let agreeing = |unit_ns: &u64| {
        let agrees = |(number_ns, seen_ns): &&(u64, u64)| {
            let took_ns = in_unit(*number_ns, *unit_ns);
            took_ns.abs_diff(*seen_ns) <= NEAR_NS.max(seen_ns / 4).max((*unit_ns).min(SECOND))
        };
        pairs.iter().filter(agrees).count()
    };
    let most = UNITS_NS.iter().map(agreeing).max().unwrap_or(0);
    let unit = UNITS_NS.iter().find(|unit| agreeing(unit) == most);
    let Some(unit_ns) = unit.filter(|_| most * 2 > pairs.len()) else {
        return;
    };
    for entry in entries {
        let took_ns = entry
            .number_ns
            .map(|number_ns| in_unit(number_ns, *unit_ns));
        entry.took_ns = took_ns.or(entry.took_ns);
    }
}

/// Converts a number that was read as seconds to another unit.
const fn in_unit(number_ns: u64, unit_ns: u64) -> u64 {
    (number_ns as u128 * unit_ns as u128 / SECOND as u128) as u64
}
