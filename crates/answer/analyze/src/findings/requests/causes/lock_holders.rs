//! What the threads do that end a server's waits for locks, and for which requests. Such a thread held the lock, or did the work that another
//! thread waited for.

use crate::findings::finding::percent;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::request::{RequestServerWork, TracedRequest, server_name};
use crate::findings::requests::worst::Worst;
use crate::statistics::to_f64;
use std::collections::{BTreeMap, HashMap};

/// The least share of the waits that an activity or a name must have to be mentioned.
const MOST: f64 = 0.5;
/// Requests of one thread at the time of a wait that are looked at.
const AMONG: usize = 64;

/// What these threads do for most of the time, and what helps.
pub(super) struct LockHolding {
    /// As the end of a sentence about the wait: `; the threads that end these waits sleep for 90 % of that time`.
    pub(super) words: String,
    pub(super) attempt: &'static str,
}

/// What is done by the threads that end the waits for locks at the worst place; `None` if that is not known, or is nothing in particular.
pub(super) fn describe_holding(worst: &Worst<'_>) -> Option<LockHolding> {
    let requests = worst.costs.requests.iter();
    let at_place: Vec<&TracedRequest> = requests
        .filter(|request| server_name(request) == worst.place)
        .collect();
    let locked = |request: &TracedRequest| request.work.map_or(0, |work| work.lock);
    let waited: i64 = at_place.iter().map(|request| locked(request)).sum();
    let sum = |of: fn(&RequestServerWork) -> i64| -> i64 {
        let holders = at_place
            .iter()
            .filter_map(|request| request.holders.as_ref());
        holders.map(of).sum()
    };
    let activities = [
        (sum(|held| held.cpu), "compute", COMPUTING),
        (sum(|held| held.runnable), "wait for a core", NO_CORE),
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
    let served =
        name_served(&at_place).map_or_else(String::new, |name| format!(" serve {name} and"));
    Some(LockHolding {
        words: format!(
            "; the threads that end these waits{served} {does} for {} of that time",
            percent(share.min(1.0))
        ),
        attempt,
    })
}

const COMPUTING: &str = "hold the lock for less time, or use several locks";
const NO_CORE: &str = "give it more cores: the threads that it waits for get none";
const WAITING: &str = "release a lock before waiting for anything else; if a thread does work for another, see what it waits for";

/// The name of the requests that these threads serve meanwhile, if most of the waits are for requests of one name.
fn name_served(at_place: &[&TracedRequest]) -> Option<String> {
    let mut by_thread: HashMap<i64, Vec<ServedTime<'_>>> = HashMap::new();
    for request in at_place {
        if let Some((work, (from_ns, to_ns))) = request.work.zip(request.at_server()) {
            let served = ServedTime {
                request,
                from_ns,
                to_ns,
            };
            by_thread.entry(work.thread).or_default().push(served);
        }
    }
    for served in by_thread.values_mut() {
        served.sort_by_key(|one| one.to_ns);
    }
    let mut by_name: BTreeMap<String, i64> = BTreeMap::new();
    let mut all = 0_i64;
    for request in at_place {
        let (Some(work), Some(holders)) = (&request.work, &request.holders) else {
            continue;
        };
        all += work.lock;
        let Some((from_ns, to_ns)) = request.at_server() else {
            continue;
        };
        let served = by_thread
            .get(&holders.thread)
            .map_or(&[][..], Vec::as_slice);
        let next = served.partition_point(|one| one.to_ns <= from_ns);
        let meanwhile = served[next..].iter().take(AMONG);
        let overlap = |one: &&ServedTime<'_>| {
            let until_ns = one.to_ns.min(to_ns);
            until_ns.saturating_sub(one.from_ns.max(from_ns))
        };
        let longest = meanwhile.max_by_key(overlap);
        if let Some(held) = longest.filter(|one| overlap(one) > 0) {
            *by_name.entry(generalise_request(held.request)).or_default() += work.lock;
        }
    }
    let (name, ns) = by_name.into_iter().max_by_key(|(_, ns)| *ns)?;
    (2 * ns > all && !name.is_empty()).then_some(name)
}

/// The time in which a thread served a request, reference time, ns.
struct ServedTime<'r> {
    request: &'r TracedRequest,
    from_ns: u64,
    to_ns: u64,
}
