//! Observed unread data: received data lies in a socket according to a monitor, because the program that should read it is busy with
//! something else.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedSymptom, collect_monitored, format_ns, is_observed, report_worst_connection,
};
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_unread",
    meaning: "in watched connections: data lies unread in the receiver's socket, because its program is slower than the network",
    find: &[Find::Run(find)],
};

/// Fewer unread bytes than this (a few segments) are normal: they are just about to be read.
const FEW: i64 = 16 << 10;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let many = collect_monitored(log)
        .into_iter()
        .filter(|one| one.unread_bytes >= FEW);
    let found = many.map(|one| {
        let share = one.unread_ns / one.time_ns.max(1.0);
        let unread = units::format_size(one.unread_bytes.unsigned_abs());
        let sentence = format!(
            "up to {unread} lay unread at {} (from {}) for {} of the watched time",
            one.local,
            one.remote,
            percent(share)
        );
        let figures = format!(
            "{} < {}: unread for {}",
            one.local,
            one.remote,
            format_ns(one.unread_ns)
        );
        ObservedSymptom {
            share,
            sentence,
            figures,
            rows: one.rows,
        }
    });
    let found = report_worst_connection(&KIND, log, found)?;
    Some(found.attempt(
        "speed up the program that reads there; a larger buffer would only delay the data",
    ))
}
