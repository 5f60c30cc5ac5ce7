//! Answers that share a connection, such as streams of HTTP/2: while a long one fills it, the server's other answers wait for room.

use super::slow_reader::paused_by_reader;
use crate::findings::requests::in_order::answers_in_order;
use crate::findings::requests::least_time::LARGE;
use crate::findings::requests::message_delays::answer_delays;
use crate::findings::requests::request::TracedRequest;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// The most answers before the end of a wait that are examined for filling the connection.
const AMONG: usize = 256;

/// When a long answer was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SendingSpan {
    from_ns: u64,
    to_ns: u64,
    unit: i64,
}

/// When long answers were sent on each connection that several answers share.
#[derive(Debug, Default)]
pub(super) struct SharedConnections {
    sending: BTreeMap<u32, Vec<SendingSpan>>,
}

impl SharedConnections {
    pub(super) fn from_requests(all: &[TracedRequest]) -> Self {
        let mut sending: BTreeMap<u32, Vec<SendingSpan>> = BTreeMap::new();
        let long = |request: &&TracedRequest| {
            request.bytes.1 >= LARGE && !answers_in_order(&request.protocol)
        };
        for request in all.iter().filter(long) {
            let (Some((_, from_ns)), Some(times)) = (request.at_server(), request.times) else {
                continue;
            };
            // An answer that waits for its reader does not fill the connection.
            let for_reader =
                answer_delays(request, times).window + paused_by_reader(request, times);
            if for_reader > times.sending / 2 {
                continue;
            }
            let flow = unit_ids::parts(request.unit).0;
            sending.entry(flow).or_default().push(SendingSpan {
                from_ns,
                to_ns: from_ns.saturating_add(times.sending.max(0).unsigned_abs()),
                unit: request.unit,
            });
        }
        sending.values_mut().for_each(|spans| spans.sort_unstable());
        Self { sending }
    }

    /// How long other answers filled the connection while the server had a request, ns; at most the time that its thread waited for
    /// sockets.
    pub(super) fn waited_ns(&self, request: &TracedRequest) -> i64 {
        let (Some((from_ns, to_ns)), Some(work)) = (request.at_server(), request.work) else {
            return 0;
        };
        let flow = unit_ids::parts(request.unit).0;
        let spans = self.sending.get(&flow).map_or(&[][..], Vec::as_slice);
        let begun = spans.partition_point(|span| span.from_ns < to_ns);
        let (mut filled_ns, mut until_ns) = (0_u64, from_ns);
        for span in &spans[begun.saturating_sub(AMONG)..begun] {
            let end_ns = span.to_ns.min(to_ns);
            if span.unit != request.unit && end_ns > until_ns {
                filled_ns += end_ns - span.from_ns.max(until_ns);
                until_ns = end_ns;
            }
        }
        i64::try_from(filled_ns)
            .unwrap_or(i64::MAX)
            .min(work.socket.max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::{RequestServerWork, RequestTimes};

    /// A request that a server receives, answers and has sent at those moments.
    fn request(unit: i64, protocol: &str, moments: [i64; 3], bytes: i64) -> TracedRequest {
        let [received, answered, sent] = moments;
        TracedRequest {
            unit,
            is_call: true,
            protocol: protocol.into(),
            bytes: (100, bytes),
            end_ns: sent as u64,
            times: Some(RequestTimes {
                total: sent - received,
                work: answered - received,
                sending: sent - answered,
                ..RequestTimes::default()
            }),
            work: Some(RequestServerWork {
                socket: 1_000,
                ..RequestServerWork::default()
            }),
            ..TracedRequest::default()
        }
    }

    #[test]
    fn a_short_answer_waits_while_long_ones_fill_its_connection() {
        let all = [
            request(1, "HTTP/2", [0, 100, 500], 1 << 20),
            request(2, "HTTP/2", [50, 300, 700], 1 << 20),
            request(3, "HTTP/2", [200, 900, 910], 300),
        ];
        let shared = SharedConnections::from_requests(&all);
        // From 200 to 700 one of them or both are sent.
        assert_eq!(shared.waited_ns(&all[2]), 500);
        // What fills the connection waits for the other one alone.
        assert_eq!(shared.waited_ns(&all[1]), 200);
        let mut busy = all[2].clone();
        busy.work = Some(RequestServerWork::default());
        assert_eq!(shared.waited_ns(&busy), 0, "its thread did not wait");
    }

    #[test]
    fn other_connections_short_answers_and_answers_in_order_fill_nothing() {
        let waits = request(3, "HTTP/2", [200, 900, 910], 300);
        let elsewhere = unit_ids::unit(7, 0);
        for other in [
            request(elsewhere, "HTTP/2", [0, 100, 500], 1 << 20),
            request(1, "HTTP/2", [0, 100, 500], 300),
            request(1, "HTTP/1.1", [0, 100, 500], 1 << 20),
        ] {
            let shared = SharedConnections::from_requests(&[other, waits.clone()]);
            assert_eq!(shared.waited_ns(&waits), 0);
        }
    }
}
