//! Events that there was no room for: what is not there cannot be explained.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::statistics::to_f64;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "lost_events",
    meaning: "events are missing, and what they would have shown is unknown",
    find: &[Find::Run(find)],
};

/// How many events were lost and kept.
pub(crate) struct LostEventCount {
    count: u64,
    kept: u64,
    rows: Vec<u32>,
    /// They are packets and records of which a trace makes its events.
    is_of_trace: bool,
}

impl LostEventCount {
    pub(crate) fn of(log: &FindingEventLog<'_>) -> Self {
        let hosts = &log.input.index.hosts;
        let rows: Vec<u32> = ["EVENTS_LOST", "NET_EVENTS_LOST"]
            .iter()
            .flat_map(|keyword| log.rows(keyword))
            .copied()
            .collect();
        let number = |field| {
            rows.iter()
                .filter_map(move |row| log.input.events.number(*row as usize, field))
                .map(i64::unsigned_abs)
        };
        let noted = number(0).fold(0, u64::saturating_add);
        let seen = log
            .rows("EVENTS_LOST")
            .iter()
            .filter_map(|row| log.number(*row, "seen"))
            .max();
        let known: u64 = hosts
            .values()
            .map(|host| host.lost)
            .fold(0, u64::saturating_add);
        // Not all that were kept need be at hand.
        let recorded: u64 = hosts
            .values()
            .map(|host| host.recorded)
            .fold(0, u64::saturating_add);
        let kept = seen.map_or(
            recorded.max(log.input.events.len() as u64),
            i64::unsigned_abs,
        );
        Self {
            count: noted.max(known),
            kept,
            rows,
            is_of_trace: seen.is_some(),
        }
    }

    /// Of all.
    pub(crate) fn share(&self) -> f64 {
        to_f64(self.count) / to_f64(self.count.saturating_add(self.kept).max(1))
    }
}

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let lost = LostEventCount::of(log);
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
            "trace fewer or shorter runs, use larger data units, or reserve more memory for events",
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
