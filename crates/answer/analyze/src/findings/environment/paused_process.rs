//! Paused process: a measured process could not run, as it was stopped, swapped out or starved.

use crate::findings::environment::processors::{NO_CORE, waited_ns};
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::statistics::to_f64;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "paused_process",
    meaning: "a process was stopped, swapped out or starved",
    find: &[Find::Measurement(find)],
};

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let log = measurement.log;
    let stopped = |row: &u32| log.text(*row, "reason") != Some(NO_CORE);
    let rows = measurement
        .rows_within("PROCESS_PAUSED")
        .filter(stopped)
        .filter(|row| stood_still(log, *row));
    let rows: Vec<u32> = rows.collect();
    let seconds: f64 = rows
        .iter()
        .filter_map(|row| waited_ns(log, *row))
        .map(|ns| ns as f64 / 1e9)
        .sum();
    let share = (seconds / measurement.span_s).min(1.0);
    let first = *rows.first()?;
    if share < LEAST {
        return None;
    }
    let host = log.host(first);
    let pid = log
        .number(first, "pid")
        .map_or_else(String::new, |pid| format!(" {pid}"));
    let sentence = format!(
        "the process{pid} on {host} could not run for {}, {} of the time",
        units::format_time(seconds),
        percent(share)
    );
    let mut evidence = log.evidence(
        format!(
            "pauses: {}, {} in total",
            rows.len(),
            units::format_time(seconds)
        ),
        &rows,
    );
    // An event is emitted at the end of its interval.
    let ns = log.number(first, "interval_ns").unwrap_or(0).unsigned_abs();
    evidence.from_ns = evidence.from_ns.saturating_sub(ns);
    let finding = KIND
        .finding(context, share, 0.95, sentence)
        .because(evidence);
    let waited = context.waits.iter().filter(|wait| {
        rows.iter().any(|row| {
            log.at(*row) >= wait.from_ns && log.at(*row) <= wait.to_ns.saturating_add(ns)
        })
    });
    let waited: Vec<u32> = waited
        .filter(|wait| to_f64(wait.to_ns - wait.from_ns) > 0.5 * to_f64(ns))
        .map(|wait| wait.row)
        .collect();
    let finding = if waited.is_empty() {
        finding
    } else {
        finding.because(log.evidence(
            format!("waits that cover a pause: {}", waited.len()),
            &waited,
        ))
    };
    Some(finding.attempt(format!(
        "find out what stops the process on {host}: signals, a debugger, a freezer, swapping (`vmstat 1`), other work on its core"
    )))
}

/// Whether the host's operations leave room for a pause of that length: a process that could not run did nothing meanwhile. At least half
/// of the pause must fit into a gap between events.
fn stood_still(log: &FindingEventLog<'_>, row: u32) -> bool {
    let span = |field| log.number(row, field).map(i64::unsigned_abs);
    let (Some(interval), Some(waited)) = (
        span("interval_ns"),
        waited_ns(log, row).map(i64::unsigned_abs),
    ) else {
        return true;
    };
    let (from, to) = (log.at(row).saturating_sub(interval), log.at(row));
    let mut did: Vec<u64> = Vec::new();
    for keyword in DONE {
        let rows = log.rows(keyword);
        let first = rows.partition_point(|row| log.at(*row) < from);
        let within = rows[first..].iter().take_while(|row| log.at(**row) <= to);
        did.extend(
            within
                .filter(|done| log.host(**done) == log.host(row))
                .map(|done| log.at(*done)),
        );
    }
    did.sort_unstable();
    let edges = [from]
        .into_iter()
        .chain(did.iter().copied())
        .zip(did.iter().copied().chain([to]));
    edges
        .map(|(before, after)| after - before)
        .max()
        .unwrap_or(0)
        >= waited / 2
}

/// Events that show that an endpoint was running: it completed an operation.
const DONE: [&str; 8] = [
    "APP_SENT",
    "APP_RECEIVED",
    "APP_RESPONSE",
    "APP_INDICATION",
    "APP_REPLIED",
    "APP_CONNECTED",
    "SOCK_SENT",
    "SOCK_RECEIVED",
];
