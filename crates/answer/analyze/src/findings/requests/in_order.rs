//! Pipelines: requests that are in flight at the same time on one connection and are answered in order. Each gets as its own time only that
//! from the previous answer on, so that own times add up to the time in which any of them was in flight; the time before is a wait behind
//! others.

use crate::findings::requests::request::{RequestTimes, TracedRequest};
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// Protocols that answer in the order of requests.
const IN_ORDER: [&str; 6] = [
    "HTTP/1.0",
    "HTTP/1.1",
    "MySQL",
    "PostgreSQL",
    "RESP",
    "memcached",
];
/// Whether connections of that protocol carry answers one after another, in the order of requests.
pub(crate) fn answers_in_order(protocol: &str) -> bool {
    IN_ORDER.contains(&protocol)
}

/// The most earlier requests among which the one that a request waits for is searched for.
const AMONG: usize = 4096;

/// A request that waits for the answer to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestWait {
    /// The index of the request that waits.
    pub(crate) waits: usize,
    /// The index of the request that it waits for: of the unanswered ones before it, the one with the longest own time.
    pub(crate) front: usize,
    /// How long it waits for that, ns.
    pub(crate) ns: i64,
}

/// Sets the own time of each request on connections that answer in order: its time without that of earlier requests. Returns which requests
/// wait for which.
pub(crate) fn part_overlaps(all: &mut [TracedRequest]) -> Vec<RequestWait> {
    let mut by_flow: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, request) in all.iter().enumerate() {
        if request.is_call
            && request.exact
            && request.times.is_some()
            && answers_in_order(&request.protocol)
        {
            let flow = unit_ids::parts(request.unit).0;
            by_flow.entry(flow).or_default().push(at);
        }
    }
    let mut waits = Vec::new();
    for mut flow in by_flow.into_values() {
        flow.sort_by_key(|at| unit_ids::parts(all[*at].unit).1);
        part_flow(all, &flow, &mut waits);
    }
    waits
}

/// The same for the requests of one connection, given by their indices in order.
fn part_flow(all: &mut [TracedRequest], flow: &[usize], waits: &mut Vec<RequestWait>) {
    let mut until_ns = 0;
    // The requests not answered when the current one began, with decreasing own times: the first is the longest, the last the latest.
    let mut fronts: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
    for at in flow {
        let (begin_ns, end_ns) = (all[*at].begin_ns(), all[*at].end_ns);
        let Some(times) = all[*at].times else {
            continue;
        };
        while fronts
            .front()
            .is_some_and(|front| all[*front].end_ns <= begin_ns)
        {
            fronts.pop_front();
        }
        let before_ns = until_ns.min(end_ns).saturating_sub(begin_ns);
        let own = times.without_first(i64::try_from(before_ns).unwrap_or(i64::MAX));
        all[*at].own_times = Some(own);
        if let Some(front) = fronts.front() {
            let from_ns = all[*front].end_ns - own_ns(&all[*front]);
            let ns = all[*front]
                .end_ns
                .min(end_ns)
                .saturating_sub(from_ns.max(begin_ns));
            waits.push(RequestWait {
                waits: *at,
                front: *front,
                ns: i64::try_from(ns).unwrap_or(i64::MAX),
            });
        }
        until_ns = until_ns.max(end_ns);
        while fronts
            .back()
            .is_some_and(|last| own_ns(&all[*last]) <= own_ns(&all[*at]))
        {
            fronts.pop_back();
        }
        if fronts.len() < AMONG {
            fronts.push_back(*at);
        }
    }
}

/// The own time of a request without the set-up of its connection, ns.
pub(crate) fn own_ns(request: &TracedRequest) -> u64 {
    let own = request.own_times.or(request.times);
    own.map_or(0, |times| {
        let set_up = times.lookup + times.connect + times.handshake + times.client;
        (times.total - set_up).max(0).unsigned_abs()
    })
}

impl RequestTimes {
    /// The times without the first `ns` of them: parts are reduced in their order in time.
    pub(crate) fn without_first(self, ns: i64) -> Self {
        let mut left = ns.max(0);
        let mut rest = self;
        for part in [
            &mut rest.lookup,
            &mut rest.connect,
            &mut rest.handshake,
            &mut rest.client,
            &mut rest.hold,
            &mut rest.there,
            &mut rest.unread,
            &mut rest.work,
            &mut rest.sending,
            &mut rest.back,
            &mut rest.client_unread,
        ] {
            let taken = left.min((*part).max(0));
            *part -= taken;
            left -= taken;
        }
        rest.total = (self.total - ns.max(0)).max(0);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, begin: u64, end: u64) -> TracedRequest {
        let total = (end - begin) as i64;
        TracedRequest {
            unit: unit_ids::unit(3, number),
            is_call: true,
            exact: true,
            protocol: "RESP".into(),
            end_ns: end,
            times: Some(RequestTimes {
                total,
                there: 10,
                work: total - 20,
                back: 10,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    fn own(all: &[TracedRequest]) -> Vec<i64> {
        let own = |one: &TracedRequest| one.own_times.map(|times| times.total);
        all.iter().filter_map(own).collect()
    }

    #[test]
    fn times_of_a_pipeline_add_up_to_the_time_in_which_any_was_under_way() {
        let mut all = [
            request(0, 1000, 1500),
            request(1, 1000, 1510),
            request(2, 1100, 1530),
            request(3, 1600, 1700),
        ];
        let waits = part_overlaps(&mut all);
        assert_eq!(own(&all), [500, 10, 20, 100]);
        let whom: Vec<(usize, usize, i64)> = waits
            .iter()
            .map(|wait| (wait.waits, wait.front, wait.ns))
            .collect();
        assert_eq!(whom, [(1, 0, 500), (2, 0, 400)]);
        // What remains of one that waited is the end of its way.
        assert_eq!(
            all[1].own_times.map(|own| (own.there, own.work, own.back)),
            Some((0, 0, 10))
        );
    }

    #[test]
    fn the_slowest_before_a_request_is_whom_it_waits_for() {
        let mut all = [
            request(0, 1000, 1030),
            request(1, 1000, 1900),
            request(2, 1000, 1950),
            request(3, 1000, 1990),
        ];
        let fronts: Vec<usize> = part_overlaps(&mut all)
            .iter()
            .map(|wait| wait.front)
            .collect();
        assert_eq!(fronts, [0, 1, 1]);
        assert_eq!(own(&all), [30, 870, 50, 40]);
    }

    #[test]
    fn streams_that_are_answered_in_any_order_keep_their_times() {
        let mut all = [request(0, 1000, 1500), request(1, 1000, 1200)];
        all.iter_mut()
            .for_each(|one| one.protocol = "HTTP/2".into());
        assert!(part_overlaps(&mut all).is_empty() && own(&all).is_empty());
    }
}
