//! Events that there was no room for: what is not there cannot be explained.

use super::finding::{Finding, LEAST};
use super::kind::{Find, Kind};
use super::log::Log;
use crate::statistics::real;

pub(super) const KIND: Kind = Kind {
    name: "lost_events",
    meaning: "events are missing, and what they would have shown is not known",
    find: &[Find::Run(find)],
};

fn find(log: &Log<'_>) -> Option<Finding> {
    let hosts = &log.input.index.hosts;
    let rows: Vec<u32> =
        ["EVENTS_LOST", "NET_EVENTS_LOST"].iter().flat_map(|keyword| log.rows(keyword)).copied().collect();
    let noted: u64 = rows
        .iter()
        .filter_map(|row| log.input.events.number(*row as usize, 0))
        .map(i64::unsigned_abs)
        .fold(0, u64::saturating_add);
    let known: u64 = hosts.values().map(|host| host.lost).fold(0, u64::saturating_add);
    let lost = noted.max(known);
    // Not all that were kept need be at hand.
    let recorded: u64 = hosts.values().map(|host| host.recorded).fold(0, u64::saturating_add);
    let kept = recorded.max(log.input.events.len() as u64);
    let share = real(lost) / real(lost.saturating_add(kept).max(1));
    if share < LEAST {
        return None;
    }
    let worst = hosts.iter().max_by_key(|(_, host)| host.lost).filter(|(_, host)| host.lost > 0);
    let host = worst.map_or_else(String::new, |(name, host)| format!(", most of them on {name} ({})", host.lost));
    let what = format!("{lost} events lost, {kept} kept");
    let sentence = format!(
        "{lost} of {} events are missing{host}: what they would have shown is not known",
        lost.saturating_add(kept)
    );
    let finding = KIND.of_run(share, 1.0, sentence).because(log.evidence(what, &rows));
    Some(finding.attempt("trace fewer or shorter runs, or larger data units; more memory for events"))
}
