//! Events that there was no room for: what is not there cannot be explained.

use super::log::Log;
use super::{Finding, Kind, LEAST};
use crate::statistics::real;

pub(super) fn find(log: &Log<'_>) -> Option<Finding> {
    let hosts = &log.input.index.hosts;
    let rows: Vec<u32> =
        ["EVENTS_LOST", "NET_EVENTS_LOST"].iter().flat_map(|keyword| log.rows(keyword)).copied().collect();
    let told: u64 = rows
        .iter()
        .filter_map(|row| log.input.events.number(*row as usize, 0))
        .map(i64::unsigned_abs)
        .fold(0, u64::saturating_add);
    let known: u64 = hosts.values().map(|host| host.lost).fold(0, u64::saturating_add);
    let lost = told.max(known);
    let kept = log.input.events.len() as u64;
    let share = real(lost) / real(lost.saturating_add(kept).max(1));
    if share < LEAST {
        return None;
    }
    let worst = hosts.iter().max_by_key(|(_, host)| host.lost).filter(|(_, host)| host.lost > 0);
    let host = worst.map_or_else(String::new, |(name, host)| format!(", most of them on {name} ({})", host.lost));
    let what = format!("{lost} events lost, {kept} kept");
    Some(Finding {
        kind: Kind::LostEvents,
        sentence: format!(
            "{lost} of {} events are missing{host}: what they would have shown is not known",
            lost.saturating_add(kept)
        ),
        confidence: 1.0,
        share,
        evidence: vec![log.evidence(what, &rows)],
        tries: vec!["trace fewer or shorter runs, or larger data units; more memory for events".into()],
        measurement: None,
    })
}
