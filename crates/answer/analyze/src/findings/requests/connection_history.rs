//! What happened before a request on its connection: hardly any data, so that the sender still has its initial window, or losses, which
//! keep its window small.

use crate::findings::requests::least_time::FIRST_WINDOW;
use crate::findings::requests::request::TracedRequest;
use stackline_events::unit_ids;
use std::collections::{BTreeMap, BTreeSet};

/// What earlier requests mean for the windows of their connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionHistory {
    /// Messages that leave before their sender has sent a full initial window: unit of the request, and whether it is the answer.
    first: BTreeSet<(i64, bool)>,
    /// Since when a connection has lost data of requests (false) or answers (true), by its flow, reference time, ns.
    lossy_since: BTreeMap<(u32, bool), u64>,
}

impl ConnectionHistory {
    pub(super) fn from_requests(all: &[TracedRequest]) -> Self {
        let mut by_flow: BTreeMap<u32, Vec<&TracedRequest>> = BTreeMap::new();
        for request in all {
            by_flow.entry(flow(request)).or_default().push(request);
        }
        let mut history = Self::default();
        for (flow, mut requests) in by_flow {
            requests.sort_by_key(|request| request.begin_ns());
            if requests.first().is_some_and(|first| is_set_up_seen(first)) {
                history.add_first(&requests);
            }
            for is_answer in [false, true] {
                let lossy = requests.iter().find(|request| is_lossy(request, is_answer));
                if let Some(request) = lossy {
                    let since_ns = request.begin_ns();
                    history.lossy_since.insert((flow, is_answer), since_ns);
                }
            }
        }
        history
    }

    fn add_first(&mut self, requests: &[&TracedRequest]) {
        let (mut there, mut back) = (0_i64, 0_i64);
        for request in requests {
            let sides = [
                (false, &mut there, request.bytes.0),
                (true, &mut back, request.bytes.1),
            ];
            for (is_answer, sent, bytes) in sides {
                if *sent < FIRST_WINDOW {
                    self.first.insert((request.unit, is_answer));
                }
                *sent = sent.saturating_add(bytes.max(0));
            }
        }
    }

    /// Whether a message leaves with its connection's initial window.
    pub(super) fn begins_slowly(&self, request: &TracedRequest, is_answer: bool) -> bool {
        self.first.contains(&(request.unit, is_answer))
    }

    /// Whether the connection has lost data of a message's direction, of this request or earlier ones, which keeps its window small.
    pub(super) fn is_after_loss(&self, request: &TracedRequest, is_answer: bool) -> bool {
        let since = self.lossy_since.get(&(flow(request), is_answer));
        since.is_some_and(|since_ns| *since_ns <= request.begin_ns())
    }
}

fn flow(request: &TracedRequest) -> u32 {
    unit_ids::parts(request.unit).0
}

fn is_set_up_seen(request: &TracedRequest) -> bool {
    request
        .times
        .is_some_and(|times| times.has_connect || times.round_trip.is_some())
}

fn is_lossy(request: &TracedRequest, is_answer: bool) -> bool {
    let again = match is_answer {
        true => request.network.again_back,
        false => request.network.again_there,
    };
    again > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    fn request(number: u64, begin_ms: u64, response_bytes: i64, again: i64) -> TracedRequest {
        let mut request = TracedRequest {
            unit: unit_ids::unit(7, number),
            bytes: (100, response_bytes),
            end_ns: (begin_ms + 5) * 1_000_000,
            times: Some(RequestTimes {
                total: 5_000_000,
                round_trip: Some(1_000_000),
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        request.network.again_back = again;
        request
    }

    #[test]
    fn a_window_is_the_first_until_it_was_sent_once() {
        let all = [
            request(1, 0, 500, 0),
            request(2, 10, 100_000, 0),
            request(3, 20, 100_000, 2),
            request(4, 30, 100_000, 0),
        ];
        let history = ConnectionHistory::from_requests(&all);
        let begins: Vec<bool> = all
            .iter()
            .map(|request| history.begins_slowly(request, true))
            .collect();
        assert_eq!(begins, [true, true, false, false]);
        let lossy: Vec<bool> = all
            .iter()
            .map(|request| history.is_after_loss(request, true))
            .collect();
        assert_eq!(lossy, [false, false, true, true]);
        assert!(!history.is_after_loss(&all[3], false), "of answers alone");
        // Of a connection that was there before, nothing is known.
        let old = TracedRequest {
            times: Some(RequestTimes::default()),
            ..request(1, 0, 100_000, 0)
        };
        assert!(
            !ConnectionHistory::from_requests(std::slice::from_ref(&old)).begins_slowly(&old, true)
        );
    }
}
