//! Numbers of logs that nothing gives a unit (Apache writes microseconds, milliseconds or seconds, as somebody chose): the unit by which
//! they agree with what the capture saw of the same requests.

use super::entry::AccessLogEntry;
use super::join;
use crate::capture::CapturedRequest;

/// Units by their length, ns; of those that agree alike the first.
const UNITS_NS: [u64; 4] = [1_000, 1_000_000, 1_000_000_000, 1];
/// The server's own time and that at its door are that near to each other.
const NEAR_NS: u64 = 2_000_000;
const SECOND: u64 = 1_000_000_000;

/// Sets the times of such entries by the unit that agrees with most requests, and more than half of them.
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

/// A number that was read as one of seconds, in another unit.
const fn in_unit(number_ns: u64, unit_ns: u64) -> u64 {
    (number_ns as u128 * unit_ns as u128 / SECOND as u128) as u64
}
