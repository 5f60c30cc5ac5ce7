//! Finds the parent of a request: the request that a server was answering when it made this one. It goes by the thread, or with less
//! certainty by the process and the time; if several requests could be the parent, none is chosen.

mod by_count;

use by_count::add_by_count;
use stackline_dissect::left_out::{Bound, LeftOut};
use std::collections::HashMap;
use std::net::SocketAddr;

/// What is needed of a request to find its parent: who asks, who answers, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpan {
    /// The unit of the request: the number under which its events are found.
    pub unit: i64,
    /// The client's host, by number; `None` if it is not observed.
    pub client_host: Option<usize>,
    /// The thread that asks, and its process; 0 if not known.
    pub client: (u32, u32),
    /// When it began and was answered, ns.
    pub asked: (u64, u64),
    /// The server's host, by number; `None` if it is not observed.
    pub server_host: Option<usize>,
    /// The server's address and port.
    pub service: Option<SocketAddr>,
    /// The thread that read it, the thread that answered it, and their process; 0 if not known.
    pub server: (u32, u32, u32),
    /// When the server had it, and when its answer had left, ns.
    pub served: (u64, u64),
}

/// The certainty, in parts per million, if the thread that asks is one that serves the parent.
pub const BY_THREAD: u32 = 980_000;
/// The certainty if the process is the same, and served only one request at that time.
pub const BY_PROCESS: u32 = 850_000;
/// The certainty if several requests are possible, and the thread has read only one of them since it asked last.
pub const BY_TURN: u32 = 900_000;
/// The certainty if only the host and the time match.
pub const BY_TIME: u32 = 600_000;
/// A request that is made within this after another was read may follow from it at once, ns.
const RIGHT_BEHIND_NS: u64 = 2_000_000;
/// The most requests that are being served at a time; beyond that no parent is looked for.
const MOST: usize = Bound::Parents.most();

/// Finds the parents of all requests. Returns the unit of each request, the unit of its parent, and the certainty in parts per
/// million.
#[must_use]
pub fn find_parents(spans: &[RequestSpan], left_out: &mut LeftOut) -> Vec<(i64, i64, u32)> {
    let mut served: Vec<&RequestSpan> = spans
        .iter()
        .filter(|span| span.server_host.is_some())
        .collect();
    served.sort_unstable_by_key(|span| span.served.0);
    let mut asked: Vec<&RequestSpan> = spans
        .iter()
        .filter(|span| span.client_host.is_some())
        .collect();
    asked.sort_unstable_by_key(|span| span.asked.0);
    let (mut next, mut open, mut found) = (0, Vec::<&RequestSpan>::new(), Vec::new());
    // When each thread made its last request, ns.
    let mut last: HashMap<(Option<usize>, u32), u64> = HashMap::new();
    for child in asked {
        while next < served.len() && served[next].served.0 <= child.asked.0 {
            open.push(served[next]);
            next += 1;
        }
        open.retain(|span| span.served.1 >= child.asked.0);
        let asked_before = last
            .insert((child.client_host, child.client.0), child.asked.0)
            .unwrap_or(0);
        if open.len() > MOST {
            left_out.add(Bound::Parents, 1);
            continue;
        }
        let holds = |span: &&&RequestSpan| {
            span.server_host == child.client_host
                && span.unit != child.unit
                && span.served.1 >= child.asked.1
        };
        found.extend(parent(
            child,
            &open.iter().filter(holds).copied().collect::<Vec<_>>(),
            asked_before,
        ));
    }
    add_by_count(spans, &mut found);
    found
}

/// The parent of one request among the requests that its host was serving the whole time.
fn parent(
    child: &RequestSpan,
    candidates: &[&RequestSpan],
    asked_before: u64,
) -> Option<(i64, i64, u32)> {
    let (thread, process) = child.client;
    let only = |kept: Vec<&&RequestSpan>, ppm: u32| match kept[..] {
        [one] => Some((child.unit, one.unit, ppm)),
        _ => in_turn(child, &kept, asked_before).map(|one| (child.unit, one.unit, BY_TURN)),
    };
    if thread != 0 {
        let same = candidates
            .iter()
            .filter(|span| span.server.0 == thread || span.server.1 == thread)
            .collect::<Vec<_>>();
        if !same.is_empty() {
            return only(same, BY_THREAD);
        }
        let same = candidates
            .iter()
            .filter(|span| span.server.2 == process && process != 0)
            .collect();
        return only(same, BY_PROCESS);
    }
    only(
        candidates
            .iter()
            .filter(|span| span.server.2 == 0)
            // A service seldom asks itself, and often has several clients at the same time.
            .filter(|span| span.service != child.service || child.service.is_none())
            .collect(),
        BY_TIME,
    )
}

/// Of several candidates, the only one that was read since the thread made its last request, and right before this one: a server
/// that does one thing after the other passes a request on when it has read it.
fn in_turn<'s>(
    child: &RequestSpan,
    candidates: &[&&'s RequestSpan],
    asked_before: u64,
) -> Option<&'s RequestSpan> {
    let since = |span: &&&&RequestSpan| {
        span.served.0 >= asked_before && child.asked.0 - span.served.0 <= RIGHT_BEHIND_NS
    };
    let read: Vec<&'s RequestSpan> = candidates.iter().filter(since).map(|span| **span).collect();
    let [one] = read[..] else { return None };
    Some(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(spans: &[RequestSpan]) -> Vec<(i64, i64, u32)> {
        find_parents(spans, &mut LeftOut::default())
    }

    fn span(
        unit: i64,
        client: u32,
        server: u32,
        asked: (u64, u64),
        served: (u64, u64),
    ) -> RequestSpan {
        RequestSpan {
            unit,
            client_host: Some(usize::from(client >= 10)),
            client: (client, client),
            asked,
            server_host: Some(usize::from(server >= 10)),
            service: None,
            server: (server, server, server),
            served,
        }
    }

    #[test]
    fn what_a_thread_asks_while_it_has_a_request_is_for_that() {
        let outer = span(1, 5, 10, (0, 100), (10, 90));
        let other = span(2, 6, 11, (0, 100), (10, 90));
        let inner = span(3, 10, 2, (20, 40), (25, 35));
        let later = span(4, 10, 2, (95, 99), (96, 98));
        assert_eq!(parents(&[outer, other, inner, later]), [(3, 1, BY_THREAD)]);
    }

    #[test]
    fn of_several_that_could_be_meant_none_is() {
        let outer = |unit| RequestSpan {
            server: (0, 0, 0),
            ..span(unit, 5, 10, (0, 100), (10, 90))
        };
        let inner = RequestSpan {
            client: (0, 0),
            ..span(3, 10, 2, (20, 40), (25, 35))
        };
        assert_eq!(parents(&[outer(1), inner]), [(3, 1, BY_TIME)]);
        assert_eq!(parents(&[outer(1), outer(2), inner]), []);
        // Two clients of one service are no chain.
        let at = |span: RequestSpan, port: u16| RequestSpan {
            service: Some(([127, 0, 0, 1], port).into()),
            ..span
        };
        assert_eq!(parents(&[at(outer(1), 80), at(inner, 80)]), []);
        assert_eq!(
            parents(&[at(outer(1), 80), at(inner, 6379)]),
            [(3, 1, BY_TIME)]
        );
    }

    #[test]
    fn who_passes_requests_on_in_turn_asks_right_behind_each() {
        const MS: u64 = 1_000_000;
        // One thread reads two requests, passes each on at once, gets both answers and passes them back.
        let outer = |unit, from: u64| {
            span(
                unit,
                5,
                10,
                (from, from + 62 * MS),
                (from + MS / 10, from + 61 * MS),
            )
        };
        let inner = |unit, from: u64| {
            span(
                unit,
                10,
                2,
                (from + MS / 5, from + 60 * MS),
                (from + MS, from + 59 * MS),
            )
        };
        let all = [outer(1, 0), outer(2, MS / 2), inner(3, 0), inner(4, MS / 2)];
        assert_eq!(parents(&all), [(3, 1, BY_THREAD), (4, 2, BY_TURN)]);
        // A second one of either cannot be distinguished from the other's.
        let later = RequestSpan {
            asked: (MS, 30 * MS),
            ..inner(5, 0)
        };
        assert_eq!(parents(&[&all[..], &[later]].concat()).len(), 2);
    }
}
