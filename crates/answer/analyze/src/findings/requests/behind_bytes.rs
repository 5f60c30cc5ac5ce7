//! Answers that share a connection in any order, as those of HTTP/2 do: one that was written behind the bytes of another waits in its
//! server's stack until these have left. That wait belongs to the other one, as in a pipeline.

use crate::findings::requests::in_order::{RequestWait, answers_in_order, part_overlaps};
use crate::findings::requests::request::{RequestTimes, TracedRequest};
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// The most other requests of a connection among which the one in front is searched for.
const AMONG: usize = 4096;

/// Sets the own time of each request without what it waited for others on its connection. Returns which requests wait for which.
pub(crate) fn part_waits(all: &mut [TracedRequest]) -> Vec<RequestWait> {
    let mut waits = part_overlaps(all);
    let mut by_flow: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, request) in all.iter().enumerate() {
        if request.is_call && request.times.is_some() && !answers_in_order(&request.protocol) {
            let flow = unit_ids::parts(request.unit).0;
            by_flow.entry(flow).or_default().push(at);
        }
    }
    for flow in by_flow.values().filter(|flow| flow.len() > 1) {
        for (place, at) in flow.iter().enumerate() {
            waits.extend(part_behind(all, flow, place, *at));
        }
    }
    waits
}

/// A shorter answer keeps no other one waiting for long, bytes.
const LONG: i64 = 256 << 10;

/// Whether answers may have waited behind a long one on their connection although that was not seen, as their server's calls were not: at
/// least half of the requests with that many ns at their server had a long answer leaving beside them meanwhile.
pub(crate) fn may_wait_behind<'r>(
    all: &[TracedRequest],
    of_place: impl Iterator<Item = &'r TracedRequest>,
    ns: i64,
) -> bool {
    let flow_of = |request: &TracedRequest| unit_ids::parts(request.unit).0;
    let is_shared =
        |request: &TracedRequest| request.is_call && !answers_in_order(&request.protocol);
    let mut long: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for request in all
        .iter()
        .filter(|one| is_shared(one) && one.bytes.1 >= LONG)
    {
        if let Some((_, leaves)) = request.at_server() {
            let of_flow = long.entry(flow_of(request)).or_default();
            of_flow.push((leaves, request.end_ns));
        }
    }
    let (mut beside, mut others) = (0_u64, 0_u64);
    for request in of_place.filter(|one| one.bytes.1 < LONG) {
        let Some((from, to)) = request.at_server().filter(|(from, to)| {
            is_shared(request) && request.work.is_none() && to - from >= ns.unsigned_abs()
        }) else {
            continue;
        };
        let half = (to - from) / 2;
        let spans = long.get(&flow_of(request)).map_or(&[][..], Vec::as_slice);
        let is_beside = spans
            .iter()
            .any(|(begins, ends)| to.min(*ends).saturating_sub(from.max(*begins)) >= half);
        match is_beside {
            true => beside += 1,
            false => others += 1,
        }
    }
    beside > 0 && beside >= others
}

/// Sets the own time of the request at `place` of a connection's requests, which are in the order of their ends, if it waited.
fn part_behind(
    all: &mut [TracedRequest],
    flow: &[usize],
    place: usize,
    at: usize,
) -> Option<RequestWait> {
    let request = &all[at];
    let times = request.times?;
    let ns = request.network.behind_back_ns.min(times.work);
    if ns <= 0 {
        return None;
    }
    let (from, to) = request.at_server()?;
    let from = to.saturating_sub(ns.unsigned_abs()).max(from);
    // Of the answers that were leaving meanwhile, the one with most bytes.
    let near = &flow[place.saturating_sub(AMONG / 2)..(place + AMONG / 2).min(flow.len())];
    let is_leaving = |other: &&usize| {
        let leaves = all[**other].at_server().map(|(_, begins)| begins);
        **other != at && leaves.is_some_and(|leaves| leaves < to) && all[**other].end_ns > from
    };
    let front = near
        .iter()
        .filter(is_leaving)
        .max_by_key(|other| all[**other].bytes.1)
        .copied()?;
    all[at].own_times = Some(RequestTimes {
        total: times.total - ns,
        work: times.work - ns,
        ..times
    });
    Some(RequestWait {
        waits: at,
        front,
        ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of HTTP/2: its answer's size, when it began and when it ended, how long it was at its server and how long it had been
    /// written meanwhile.
    fn request(bytes: i64, begin: u64, end: u64, work: i64, behind: i64) -> TracedRequest {
        let total = (end - begin) as i64;
        let mut request = TracedRequest {
            unit: unit_ids::unit(3, begin),
            is_call: true,
            protocol: "HTTP/2".into(),
            bytes: (50, bytes),
            end_ns: end,
            times: Some(RequestTimes {
                total,
                there: 10,
                work,
                sending: total - work - 20,
                back: 10,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        request.network.behind_back_ns = behind;
        request
    }

    fn own(request: &TracedRequest) -> Option<(i64, i64)> {
        request.own_times.map(|own| (own.total, own.work))
    }

    #[test]
    fn what_waits_behind_a_long_answer_is_that_ones_time() {
        let mut all = [
            request(300, 500, 530, 10, 0),
            request(300, 1100, 1900, 780, 770),
            request(300, 1200, 1905, 685, 680),
            request(5_000_000, 1000, 2000, 20, 0),
        ];
        let waits = part_waits(&mut all);
        let whom: Vec<(usize, usize, i64)> = waits
            .iter()
            .map(|wait| (wait.waits, wait.front, wait.ns))
            .collect();
        assert_eq!(whom, [(1, 3, 770), (2, 3, 680)]);
        assert_eq!(
            [own(&all[1]), own(&all[2])],
            [Some((30, 10)), Some((25, 5))]
        );
        assert_eq!([own(&all[0]), own(&all[3])], [None, None]);
    }

    #[test]
    fn a_wait_that_was_not_seen_may_be_one_behind_a_long_answer() {
        let all = [
            request(300, 1100, 1900, 780, 0),
            request(300, 1200, 1905, 685, 0),
            request(5_000_000, 1000, 2000, 20, 0),
            request(300, 3000, 3900, 880, 0),
        ];
        assert!(may_wait_behind(&all, all.iter(), 500));
        // The one that had its connection to itself waited for the server.
        assert!(!may_wait_behind(&all, all[3..].iter(), 500));
        assert!(!may_wait_behind(&all[..2], all[..2].iter(), 500));
    }

    #[test]
    fn where_nothing_else_was_leaving_the_time_stays() {
        let mut all = [
            request(5_000_000, 1000, 1100, 20, 0),
            request(300, 2000, 2800, 780, 770),
        ];
        assert!(part_waits(&mut all).is_empty());
        assert_eq!(own(&all[1]), None);
    }
}
