//! What the threads that hold a server's locks do while its requests wait for these, and for which requests they hold them.

use crate::findings::finding::percent;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::request::{RequestServerWork, TracedRequest, server_name};
use crate::findings::requests::worst::Worst;
use crate::statistics::to_f64;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The least share of the waits whose holders must be known, and that an activity or a name must have to be mentioned.
const MOST: f64 = 0.5;

/// What holders of locks do for most of the time, and what helps.
pub(super) struct LockHolding {
    /// As the end of a sentence about the wait: `; the threads that hold it sleep for 90 % of that time`.
    pub(super) words: String,
    pub(super) attempt: &'static str,
}

/// What the holders of the locks at the worst place do; `None` if that is not known, or is nothing in particular.
pub(super) fn describe_holding(worst: &Worst<'_>) -> Option<LockHolding> {
    let rows: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let at_place = || {
        let requests = worst.costs.requests.iter();
        requests.filter(|request| server_name(request) == worst.place)
    };
    let waiting: Vec<&TracedRequest> = at_place()
        .filter(|request| rows.contains(&request.row))
        .collect();
    let waited: i64 = waiting
        .iter()
        .filter_map(|request| Some(request.work?.lock))
        .sum();
    let sum = |of: fn(&RequestServerWork) -> i64| -> i64 {
        let holders = waiting
            .iter()
            .filter_map(|request| request.holders.as_ref());
        holders.map(of).sum()
    };
    let activities = [
        (sum(|held| held.cpu), "compute", COMPUTING),
        (sum(|held| held.runnable), "get no core", NO_CORE),
        (sum(|held| held.disk), "wait for the disk", WAITING),
        (sum(|held| held.sleep), "sleep", WAITING),
        (sum(|held| held.socket), "wait for a socket", WAITING),
        (sum(|held| held.child), "wait for a process", WAITING),
    ];
    let (ns, does, attempt) = activities.into_iter().max_by_key(|(ns, ..)| *ns)?;
    let share = to_f64(ns.max(0).unsigned_abs()) / to_f64(waited.max(1).unsigned_abs());
    if share < MOST {
        return None;
    }
    let during = held_during(&waiting, at_place())
        .map_or_else(String::new, |name| format!(" during {name}"));
    Some(LockHolding {
        words: format!(
            "; the threads that hold it{during} {does} for {} of that time",
            percent(share.min(1.0))
        ),
        attempt,
    })
}

const COMPUTING: &str = "hold the lock for less time, or use several locks";
const NO_CORE: &str = "give it more cores: the threads that hold the lock get none";
const WAITING: &str = "release the lock before waiting for anything else";

/// The name of the requests that the holders serve meanwhile, if most of the waits are for requests of one name.
fn held_during<'r>(
    waiting: &[&'r TracedRequest],
    at_place: impl Iterator<Item = &'r TracedRequest>,
) -> Option<String> {
    let mut by_thread: HashMap<i64, Vec<&TracedRequest>> = HashMap::new();
    for request in at_place {
        if let Some(work) = &request.work {
            by_thread.entry(work.thread).or_default().push(request);
        }
    }
    for served in by_thread.values_mut() {
        served.sort_by_key(|request| request.end_ns);
    }
    let mut by_name: BTreeMap<String, i64> = BTreeMap::new();
    let mut all = 0_i64;
    for request in waiting {
        let (Some(work), Some(holders)) = (&request.work, &request.holders) else {
            continue;
        };
        all += work.lock;
        let served = by_thread
            .get(&holders.thread)
            .map_or(&[][..], Vec::as_slice);
        // A thread serves one request after another: the first one that ends later than this one began.
        let next = served.partition_point(|held| held.end_ns <= request.begin_ns());
        let held = served.get(next);
        if let Some(held) = held.filter(|held| held.begin_ns() < request.end_ns) {
            *by_name.entry(generalise_request(held)).or_default() += work.lock;
        }
    }
    let (name, ns) = by_name.into_iter().max_by_key(|(_, ns)| *ns)?;
    (2 * ns > all && !name.is_empty()).then_some(name)
}
