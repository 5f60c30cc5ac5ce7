//! The time of an answer that its reader (the client) takes: it lets bytes lie unread, so that the sender has no room or pauses, or its
//! thread has no core when the end arrives.

use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::message_delays::answer_delays;
use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// How long the server sent nothing in the middle of its answer because the client let bytes lie unread, ns: the client had been sent all
/// that there was room for.
pub(super) fn paused_by_reader(request: &TracedRequest, times: RequestTimes) -> i64 {
    let paused = answer_delays(request, times).paused;
    let leaves = times.sending.max(0) + times.back.max(0) + times.client_unread.max(0);
    // The pause and the time unread must overlap by as much as both together exceed the time of the answer.
    (request.network.late_back_ns + paused - leaves).clamp(0, paused.max(0))
}

/// The cause of missing room at the client: its late reading if bytes lay unread for most of that time, else its small buffer.
pub(super) fn no_room(request: &TracedRequest, times: RequestTimes, window: i64) -> RequestCause {
    let late = request.network.late_back_ns.max(times.client_unread);
    if late > window / 2 {
        RequestCause::SlowReader
    } else {
        RequestCause::Window
    }
}

/// The causes of the time that the end of an answer lay unread at the client, ns: its thread had no core, was stopped or waited for garbage
/// collection; else it did something else.
pub(super) fn client_unread(
    request: &TracedRequest,
    times: RequestTimes,
) -> Vec<(RequestCause, i64)> {
    let mut left = times.client_unread;
    let Some(wait) = request.answer_wait else {
        return vec![(RequestCause::SlowReader, left)];
    };
    let known = [
        (RequestCause::NoCore, wait.runnable),
        (RequestCause::Stopped, wait.stopped),
        (RequestCause::Collect, wait.collect),
        (RequestCause::Observer, wait.observer),
    ];
    let mut parts: Vec<(RequestCause, i64)> = Vec::new();
    for (cause, ns) in known {
        let part = ns.min(left).max(0);
        parts.push((cause, part));
        left -= part;
    }
    parts.push((RequestCause::SlowReader, left));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestServerWork;

    const MS: i64 = 1_000_000;

    /// An answer of 5 s in which the server paused for so long and the client let bytes lie for so long, ms.
    fn answer(paused_ms: i64, late_ms: i64) -> (TracedRequest, RequestTimes) {
        let mut request = TracedRequest::default();
        request.network.paused_back_ns = paused_ms * MS;
        request.network.late_back_ns = late_ms * MS;
        let times = RequestTimes {
            sending: 5_000 * MS,
            ..RequestTimes::default()
        };
        (request, times)
    }

    #[test]
    fn a_sender_that_pauses_while_bytes_lie_unread_waits_for_the_reader() {
        let of_reader = |paused_ms, late_ms| {
            let (request, times) = answer(paused_ms, late_ms);
            paused_by_reader(&request, times) / MS
        };
        assert_eq!(of_reader(900, 4_990), 890);
        assert_eq!(of_reader(900, 4_500), 400);
        // There is time for both, one after the other.
        assert_eq!(of_reader(900, 4_000), 0);
        assert_eq!(of_reader(900, 0), 0);
    }

    #[test]
    fn no_room_is_for_late_reading_where_bytes_lie() {
        let (request, times) = answer(0, 4_900);
        assert_eq!(
            no_room(&request, times, 3_500 * MS),
            RequestCause::SlowReader
        );
        let (request, times) = answer(0, 0);
        assert_eq!(no_room(&request, times, 3_500 * MS), RequestCause::Window);
    }

    #[test]
    fn a_client_without_a_core_does_not_read_late() {
        let request = TracedRequest {
            answer_wait: Some(RequestServerWork {
                cpu: MS,
                runnable: 4 * MS,
                ..RequestServerWork::default()
            }),
            ..TracedRequest::default()
        };
        let times = RequestTimes {
            client_unread: 5 * MS,
            ..RequestTimes::default()
        };
        let of = |wanted| {
            let parts = client_unread(&request, times);
            parts
                .iter()
                .filter(|(cause, _)| *cause == wanted)
                .map(|(_, ns)| ns / MS)
                .sum::<i64>()
        };
        assert_eq!(
            (of(RequestCause::NoCore), of(RequestCause::SlowReader)),
            (4, 1)
        );
    }
}
