//! Events that there was no room for: what is not there cannot be explained.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::statistics::to_f64;
use stackline_core::trace_index::HostTrace;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "lost_events",
    meaning: "events are missing, and what they would have shown is unknown",
    find: &[Find::Run(find)],
};

/// How many events were lost, and how many were kept.
pub(crate) struct LostEventCount {
    count: u64,
    kept: u64,
    rows: Vec<u32>,
    /// Whether the counts are packets and records of a trace, not events.
    is_of_trace: bool,
}

impl LostEventCount {
    pub(crate) fn from_log(log: &FindingEventLog<'_>) -> Self {
        let hosts = &log.input.index.hosts;
        let rows = log.rows("EVENTS_LOST").to_vec();
        let numbers = |field: &str| -> Vec<u64> {
            let of = |row: &u32| log.number(*row, field).map(i64::unsigned_abs);
            rows.iter().filter_map(of).collect()
        };
        // Each event has what was lost since the one before, and what a trace has seen since its beginning.
        let lost_by_events = numbers("count").into_iter().fold(0, u64::saturating_add);
        let seen_by_trace = numbers("seen").into_iter().max();
        let sum = |of: fn(&HostTrace) -> u64| hosts.values().map(of).fold(0, u64::saturating_add);
        let lost_by_index = sum(|host| host.lost);
        // The table may hold only an excerpt of what was recorded.
        let recorded = sum(|host| host.recorded).max(log.input.events.len() as u64);
        Self {
            count: lost_by_events.max(lost_by_index),
            kept: seen_by_trace.unwrap_or(recorded),
            rows,
            is_of_trace: seen_by_trace.is_some(),
        }
    }

    /// The share of all events that was lost.
    pub(crate) fn share(&self) -> f64 {
        to_f64(self.count) / to_f64(self.count.saturating_add(self.kept).max(1))
    }
}

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let lost = LostEventCount::from_log(log);
    let share = lost.share();
    if share < LEAST {
        return None;
    }
    let LostEventCount {
        count,
        kept,
        rows,
        is_of_trace,
    } = lost;
    let hosts = &log.input.index.hosts;
    let worst = hosts
        .iter()
        .max_by_key(|(_, host)| host.lost)
        .filter(|(_, host)| host.lost > 0);
    let host = worst.map_or_else(String::new, |(name, host)| {
        format!(", most of them on {name} ({})", host.lost)
    });
    let (what, less) = match is_of_trace {
        true => (
            "packets and records of the trace",
            "trace for a shorter time, or trace less (`--see packets`); traffic of other programs on this host takes buffer space too",
        ),
        false => (
            "events",
            "trace fewer or shorter runs, use larger data units, reserve more memory for events, or free some room on the disk if that was full",
        ),
    };
    let all = count.saturating_add(kept);
    let sentence = format!(
        "{what} are missing{host}: {count} of {all}; what they would have shown is unknown"
    );
    let finding = KIND
        .of_run(share, 1.0, sentence)
        .because(log.evidence(format!("{count} lost, {kept} kept"), &rows));
    Some(finding.attempt(less))
}
