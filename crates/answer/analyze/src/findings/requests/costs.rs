//! The costs of requests by cause. Roots are the requests that were not made on behalf of others. Every part of a root's time is attributed
//! to one cause, and the time of its server's own requests to others to the causes of those. The costs add up to the time of all roots.

use crate::findings::requests::attempts::{Retry, retries};
use crate::findings::requests::behind_bytes::part_waits;
pub(crate) use crate::findings::requests::cause_costs::{
    PlacelessTaker, RequestCause, RequestCauseCost,
};
use crate::findings::requests::ends_in_words::both_ends;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::in_order::RequestWait;
pub(crate) use crate::findings::requests::least_time::LARGE;
use crate::findings::requests::request::{TracedRequest, is_wait};
pub(crate) use crate::findings::requests::request::{client_name, server_name};
use crate::findings::requests::request_account::RequestAccounts;
use crate::findings::requests::request_roots::RequestRoots;
use crate::findings::requests::traced_requests::requests;
use crate::findings::rows::EventRows;
use std::collections::{BTreeMap, HashMap};

/// All requests of a trace, and the time of its roots by cause.
#[derive(Debug, Default)]
pub(crate) struct RequestCosts {
    /// All requests, in the order of their ends.
    pub(crate) requests: Vec<TracedRequest>,
    /// The generalised names of requests, to which costs refer by index.
    pub(crate) names: Vec<String>,
    /// The cost by cause and place: a server, a client, or both as `a > b`.
    pub(crate) costs: BTreeMap<(RequestCause, String), RequestCauseCost>,
    /// The part of the distance that is due to round trips after the first one of a request, by client and server.
    pub(crate) further_trips: BTreeMap<String, RequestCauseCost>,
    /// Requests that wait for the answers to others on their connection.
    pub(crate) waits: Vec<RequestWait>,
    /// The time of all roots, ns; on a connection that answers in order, time in which several are in flight counts once.
    pub(crate) total_ns: i64,
    /// The number of roots.
    pub(crate) roots: u64,
    /// The number of requests of programs other than the one that the trace is about; they are in no figure.
    pub(crate) background: u64,
    /// The number of requests that control a transfer and last as long as that; they are in no figure.
    pub(crate) control: u64,
    /// The rows of requests that nothing answered.
    pub(crate) unanswered: Vec<u32>,
    /// Failed attempts that were made again.
    pub(crate) retries: Vec<Retry>,
    /// How much longer a message and its answer take because of tracing, ns; 0 if it was not measured.
    pub(crate) observer_ns: i64,
}

impl RequestCosts {
    /// Computes the costs of a trace's requests; `None` if it has none.
    pub(crate) fn from_log(log: &EventRows<'_>) -> Option<Self> {
        let mut all = requests(log);
        let waits = part_waits(&mut all);
        if all.is_empty() {
            return None;
        }
        let accounts = RequestAccounts::from_requests(&all, log);
        let mut costs: BTreeMap<(RequestCause, String), RequestCauseCost> = BTreeMap::new();
        let mut further_trips: BTreeMap<String, RequestCauseCost> = BTreeMap::new();
        let roots_of = RequestRoots::from_requests(&all);
        let mut names = RequestNames::default();
        let (mut total_ns, mut roots) = (0, 0);
        for request in all.iter().filter(|request| roots_of.has(request)) {
            let Some(times) = request.own_times.or(request.times) else {
                continue;
            };
            total_ns += times.whole();
            roots += 1;
            accounts.list_parts(request, times, &mut |part| {
                let cost = costs.entry((part.cause, part.place.clone())).or_default();
                cost.add(&part, names.index_of(part.request));
                if let Some(further) = part.further_trips() {
                    let cost = further_trips.entry(further.place.clone()).or_default();
                    cost.add(&further, names.index_of(further.request));
                }
            });
        }
        join_readers(&mut costs);
        let background = roots_of.count_background(&all);
        let control = all.iter().filter(|request| request.is_control).count() as u64;
        let retries = retries(&all);
        for retry in retries.iter().filter(|retry| {
            roots_of.is_root(&all[retry.failed]) && roots_of.is_root(&all[retry.next])
        }) {
            total_ns += i64::try_from(retry.gap_ns).unwrap_or(i64::MAX);
            let (cause, place) = between(&all, retry);
            let cost = costs.entry((cause, place)).or_default();
            let ns = i64::try_from(retry.gap_ns).unwrap_or(i64::MAX);
            let failed = &all[retry.failed];
            cost.add_gap(ns, failed.row, names.index_of(failed));
        }
        let unanswered = unanswered(&all, log.last_ns());
        let observer_ns = observer_ns(log);
        Some(Self {
            requests: all,
            names: names.names,
            costs,
            further_trips,
            waits,
            total_ns,
            roots,
            background,
            control,
            unanswered,
            retries,
            observer_ns,
        })
    }

    /// The share of the time that the network, set-up or losses take, 0 to 1.
    pub(crate) fn share_of(&self, taker: PlacelessTaker) -> f64 {
        let costs = self.costs.iter();
        let ns: i64 = costs
            .filter(|((cause, _), _)| cause.placeless_taker() == Some(taker))
            .map(|(_, cost)| cost.ns)
            .sum();
        ns as f64 / self.total_ns.max(1) as f64
    }

    /// The time that a cause takes at all places, ns.
    pub(crate) fn of_cause(&self, cause: RequestCause) -> i64 {
        self.costs
            .iter()
            .filter(|((of, _), _)| *of == cause)
            .map(|(_, cost)| cost.ns)
            .sum()
    }
}

/// The most generalised names of requests that are distinguished.
const MOST_NAMES: usize = 1024;
/// The most names of one protocol that are cached as they were requested.
const MOST_KNOWN: usize = 65_536;

/// The generalised names of requests, with an index for each.
#[derive(Debug, Default)]
struct RequestNames {
    /// The generalised names by index.
    names: Vec<String>,
    /// The index of each generalised name.
    indices: HashMap<String, u32>,
    /// A cache: the index of each name as it was requested, by protocol. Most names come again.
    known: HashMap<String, HashMap<String, Option<u32>>>,
}

impl RequestNames {
    /// The index of a request's name; `None` for a request without one, and for new names when there are too many.
    fn index_of(&mut self, request: &TracedRequest) -> Option<u32> {
        let known = self.known.get(&request.protocol);
        if let Some(index) = known.and_then(|known| known.get(&request.name))
            && !request.is_unopened
        {
            return *index;
        }
        let index = self.new_index_of(request);
        if !request.is_unopened {
            let known = self.known.entry(request.protocol.clone()).or_default();
            if known.len() < MOST_KNOWN {
                known.insert(request.name.clone(), index);
            }
        }
        index
    }

    /// The index of a name that is not in the cache.
    fn new_index_of(&mut self, request: &TracedRequest) -> Option<u32> {
        let name = generalise_request(request);
        if name.is_empty() || self.names.len() >= MOST_NAMES {
            return self.indices.get(&name).copied();
        }
        Some(*self.indices.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() as u32 - 1
        }))
    }
}

/// Merges the costs of `SlowReader` and `Window` at the same place, as both are due to the same reader, into the greater of the two.
fn join_readers(costs: &mut BTreeMap<(RequestCause, String), RequestCauseCost>) {
    let late = costs
        .iter()
        .filter(|((of, _), _)| *of == RequestCause::SlowReader);
    let readers: Vec<(String, i64)> = late
        .map(|((_, place), cost)| (place.clone(), cost.ns))
        .collect();
    for (place, late_ns) in readers {
        let keys = [RequestCause::SlowReader, RequestCause::Window].map(|of| (of, place.clone()));
        let Some(window) = costs.get(&keys[1]) else {
            continue;
        };
        let [more, less] = match late_ns >= window.ns {
            true => keys,
            false => {
                let [late, window] = keys;
                [window, late]
            }
        };
        if let Some(cost) = costs.remove(&less) {
            costs.entry(more).or_default().merge(cost);
        }
    }
}

/// A request without a byte of its answer hangs if it has waited for at least this long when the trace ends, ns.
const HUNG_NS: u64 = 1_000_000_000;
/// It must also have waited for at least this many times the median of answered requests.
const HUNG_TIMES: u64 = 10;

/// The rows of requests that nothing answered until the end of the log.
fn unanswered(all: &[TracedRequest], last_ns: u64) -> Vec<u32> {
    let hung_ns = least_of_hung(all);
    let is_unanswered = |request: &&TracedRequest| {
        let waited_ns = last_ns.saturating_sub(request.end_ns);
        let has_none = request.unknown.as_deref() == Some("nothing answered it");
        let is_hung = request.is_hung() && waited_ns >= hung_ns;
        request.is_call && !is_wait(request) && (has_none || is_hung)
    };
    let rows = all.iter().filter(is_unanswered);
    rows.map(|request| request.row).collect()
}

/// How long a request without an answer must have waited to count as hanging, ns.
fn least_of_hung(all: &[TracedRequest]) -> u64 {
    let answered = all
        .iter()
        .filter(|request| request.is_call && request.unknown.is_none());
    let mut times: Vec<i64> = answered
        .filter_map(|request| Some(request.times?.total))
        .collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0).max(0);
    HUNG_NS.max(median.unsigned_abs().saturating_mul(HUNG_TIMES))
}

/// The cause and the place of the time between a failed attempt and the next.
fn between(all: &[TracedRequest], retry: &Retry) -> (RequestCause, String) {
    let (failed, next) = (&all[retry.failed], &all[retry.next]);
    let known = match failed.programs.0.is_empty() {
        true => next,
        false => failed,
    };
    match retry.still_waits {
        true => (RequestCause::GivenUp, both_ends(failed)),
        false => (RequestCause::BackOff, client_name(known)),
    }
}

/// How much longer a message and its answer take because of tracing, ns: from `OBSERVER_COST` events, 0 if there are none.
fn observer_ns(log: &EventRows<'_>) -> i64 {
    let more = |row: &u32| Some(log.number(*row, "with_ns")? - log.number(*row, "without_ns")?);
    log.rows("OBSERVER_COST")
        .iter()
        .filter_map(more)
        .max()
        .unwrap_or(0)
        .max(0)
}

/// The most requests that a server had at the same time.
pub(crate) fn most_at_once(requests: &[TracedRequest], server: &str) -> usize {
    let mut moments: Vec<(u64, i32)> = Vec::new();
    for request in requests
        .iter()
        .filter(|request| server_name(request) == server)
    {
        if let Some((from, to)) = request.at_server() {
            moments.extend([(from, 1), (to, -1)]);
        }
    }
    moments.sort_unstable();
    let mut count = 0;
    moments
        .into_iter()
        .map(|(_, change)| {
            count += change;
            count
        })
        .max()
        .unwrap_or(0)
        .max(0) as usize
}
