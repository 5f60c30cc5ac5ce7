//! The time that a server takes for a request: how much of it the server waits for requests of its own, and how much its thread waits while
//! the answer is already leaving.

use crate::critical_path::waited_for;
use crate::findings::requests::request::{RequestTimes, TracedRequest};
use crate::findings::requests::request_part::{RemainingLimit, RequestPart};
use std::collections::BTreeSet;

/// A request that a server waited for while it had another one.
#[derive(Clone, Copy)]
pub(super) struct AwaitedRequest<'r> {
    /// The request.
    pub(super) request: &'r TracedRequest,
    /// The parts of its time.
    pub(super) times: RequestTimes,
    /// When the server began to wait for it, reference time.
    pub(super) begin_ns: u64,
    /// How long the server waited for it.
    pub(super) ns: i64,
    /// How much shorter the wait would be without it, ns: other requests at the same time may last as long.
    pub(super) removable_ns: i64,
}

impl AwaitedRequest<'_> {
    /// When the server waited for it: begin and end, ns.
    fn span(&self) -> (u64, u64) {
        let end = self.begin_ns.saturating_add(self.ns.max(0).unsigned_abs());
        (self.begin_ns, end)
    }

    /// Limits what can be removed of a part of this request by what the waiting server would save.
    pub(super) fn bound<'p>(&self, part: RequestPart<'p>) -> RequestPart<'p> {
        if part.removable_ns <= self.removable_ns {
            return part;
        }
        RequestPart {
            removable_ns: self.removable_ns,
            limit: Some(RemainingLimit::Beside),
            ..part
        }
    }
}

/// Of the requests that a server had in flight on behalf of one, those that it waited for, one after another. Each gets the time that would
/// be saved without it: what it took after the last of the others at the same time had ended.
pub(super) fn list_awaited(all: Vec<AwaitedRequest<'_>>) -> Vec<AwaitedRequest<'_>> {
    let units = |of: &[AwaitedRequest<'_>]| of.iter().map(|one| one.request.unit).collect();
    let spans: Vec<(i64, u64)> = all
        .iter()
        .map(|one| (one.request.unit, one.span().1))
        .collect();
    let mut awaited = waited_for(all, |one| (one.request.begin_ns(), one.request.end_ns));
    let chosen: BTreeSet<i64> = units(&awaited);
    let beside: Vec<u64> = spans
        .into_iter()
        .filter(|(unit, _)| !chosen.contains(unit))
        .map(|(_, end)| end)
        .collect();
    for one in &mut awaited {
        let (begin, end) = one.span();
        let within = beside.iter().filter(|at| (begin..=end).contains(*at));
        let remains = within.max().map_or(0, |last| last - begin);
        let remains = i64::try_from(remains).unwrap_or(i64::MAX);
        one.removable_ns = one.ns.saturating_sub(remains).max(0);
    }
    awaited
}

/// The time that a server takes for a request, ns.
#[derive(Clone, Copy)]
pub(super) struct ServerTime {
    /// All of it.
    pub(super) ns: i64,
    /// How long it waited meanwhile for requests of its own.
    pub(super) waited: i64,
}

impl ServerTime {
    /// The part of it that is due to its own requests.
    pub(super) fn nested(self) -> i64 {
        self.waited.min(self.ns.max(0))
    }

    /// How long its thread waited for other things than the network while the answer was leaving, ns: its waits beyond the time before the
    /// answer began. Waits for the network are subtracted, as they held the answer up too.
    pub(super) fn waits_in_answer(self, request: &TracedRequest) -> i64 {
        let Some(work) = request.work.filter(|_| request.responder.is_none()) else {
            return 0;
        };
        let of_network = (work.socket - self.waited).max(0);
        (work.waits() - (self.ns - self.nested()).max(0) - of_network).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestServerWork;

    fn waits(ns: i64, waited: i64, disk: i64, socket: i64) -> i64 {
        let request = TracedRequest {
            work: Some(RequestServerWork {
                disk,
                socket,
                ..RequestServerWork::default()
            }),
            ..TracedRequest::default()
        };
        ServerTime { ns, waited }.waits_in_answer(&request)
    }

    #[test]
    fn without_one_request_its_server_waits_for_the_others_beside_it() {
        let made = |unit: i64, total: i64, end_ns: u64| TracedRequest {
            unit,
            end_ns,
            times: Some(RequestTimes {
                total,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        // Two side by side, of which one takes 240; one before them.
        let all = [made(1, 240, 300), made(2, 16, 80), made(3, 40, 50)];
        let awaited = all.iter().map(|request| AwaitedRequest {
            request,
            times: request.times.unwrap_or_default(),
            begin_ns: request.begin_ns(),
            ns: request.times.map_or(0, |times| times.total),
            removable_ns: 0,
        });
        let found = list_awaited(awaited.collect());
        let found: Vec<(i64, i64, i64)> = found
            .iter()
            .map(|one| (one.request.unit, one.ns, one.removable_ns))
            .collect();
        assert_eq!(found, [(3, 40, 40), (1, 240, 220)]);
    }

    #[test]
    fn a_wait_that_there_is_no_time_for_before_the_answer_is_within_it() {
        assert_eq!(waits(10, 0, 400, 0), 390);
        // There was time for all of it before.
        assert_eq!(waits(500, 0, 400, 0), 0);
        // The network held the answer up as long, or for some of it.
        assert_eq!(waits(10, 0, 400, 500), 0);
        assert_eq!(waits(10, 0, 400, 100), 290);
        // What it waited for at a socket before were requests of its own.
        assert_eq!(waits(110, 100, 400, 100), 390);
        assert_eq!(
            ServerTime { ns: 10, waited: 0 }.waits_in_answer(&TracedRequest::default()),
            0
        );
    }
}
