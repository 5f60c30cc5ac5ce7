//! The cause of answers that share a connection: requests that wait for a slow or long one before them.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, counted, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::in_order::{self, RequestWait};
use crate::findings::requests::worst::{LEAST_SERVER_NS, format_client_server, place_in_words};
use crate::statistics::to_f64;
use std::collections::{BTreeMap, BTreeSet};

/// A request waits for a slow one if it takes at most 1 / this of the slow one's time by itself.
const QUICK: i64 = 4;
/// The least number of waiting requests for a finding.
const SEVERAL: usize = 3;

/// The finding about requests that wait behind slow ones.
pub(crate) fn behind_slow(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    let requests = &costs.requests;
    let own_ns = |at: usize| i64::try_from(in_order::own_ns(&requests[at])).unwrap_or(i64::MAX);
    let is_slow = |wait: &&RequestWait| {
        wait.ns as f64 >= LEAST_SERVER_NS && own_ns(wait.waits) <= own_ns(wait.front) / QUICK
    };
    let mut by_front: BTreeMap<(String, String), Vec<&RequestWait>> = BTreeMap::new();
    for wait in costs.waits.iter().filter(is_slow) {
        let front = &requests[wait.front];
        let name = generalise_request(front);
        // If both have the same name, the slow one has another cause of its own.
        if name.is_empty() || name != generalise_request(&requests[wait.waits]) {
            let key = (format_client_server(front), name);
            by_front.entry(key).or_default().push(wait);
        }
    }
    let sum = |waits: &[&RequestWait]| waits.iter().map(|wait| wait.ns).sum::<i64>();
    let ((place, name), waits) = by_front.into_iter().max_by_key(|(_, waits)| sum(waits))?;
    let waited_ns = sum(&waits);
    let fronts: BTreeSet<usize> = waits.iter().map(|wait| wait.front).collect();
    // The others are answered in any order, but their bytes leave in the order in which they were written.
    let is_in_order = fronts
        .iter()
        .any(|front| in_order::answers_in_order(&requests[*front].protocol));
    let share = match is_in_order {
        // At most the time that the slow requests occupy their connections can be gained.
        true => {
            let held_ns: i64 = fronts.iter().map(|front| own_ns(*front)).sum();
            (held_ns as f64 / costs.total_ns.max(1) as f64).min(1.0)
        }
        // The waits are in no other cause's time.
        false => waited_ns as f64 / (costs.total_ns + waited_ns).max(1) as f64,
    };
    if share < LEAST || waits.len() < SEVERAL {
        return None;
    }
    let (why, attempt) = match is_in_order {
        true => (
            "answers come in the order of the requests",
            "send slow requests on a connection of their own, or spread the requests over several connections",
        ),
        false => (
            "their answers were written, but its bytes had to leave first",
            "request large answers on a connection of their own, or let the server write less ahead (TCP_NOTSENT_LOWAT, a smaller send buffer)",
        ),
    };
    let slow = if name.is_empty() { "a slow one" } else { &name };
    let sentence = format!(
        "{} {} wait behind {slow} on the same connection, {} each ({} of the time): {why}",
        counted(waits.len() as u64, "request"),
        place_in_words(&place),
        format_ns(waited_ns as f64 / to_f64(waits.len() as u64)),
        percent(share)
    );
    let rows: Vec<u32> = fronts
        .iter()
        .map(|front| requests[*front].row)
        .take(12)
        .collect();
    let what = format!(
        "{} before others",
        counted(fronts.len() as u64, "slow request")
    );
    Some(
        kind.of_run(share, 0.75, sentence)
            .because(log.evidence(what, &rows))
            .attempt(attempt),
    )
}
