//! Unassigned requests: those that a server made while it had others, without the trace showing on behalf of which one.

use crate::findings::requests::request::{TracedRequest, client_name, server_name};

/// The number of unassigned requests of a server.
pub(crate) fn count_unassigned(all: &[TracedRequest], server: &str) -> u64 {
    let had = all.iter().filter(|request| server_name(request) == server);
    let mut had: Vec<(u64, u64)> = had.filter_map(TracedRequest::at_server).collect();
    had.sort_unstable();
    // For each request of the server, the latest end among it and all that began before.
    let mut until_ns = 0;
    let ends: Vec<u64> = (had.iter())
        .map(|(_, end_ns)| {
            until_ns = until_ns.max(*end_ns);
            until_ns
        })
        .collect();
    let is_unassigned = |request: &&TracedRequest| {
        let begin_ns = request.begin_ns();
        let before = had.partition_point(|(from_ns, _)| *from_ns <= begin_ns);
        let is_within = before > 0 && ends[before - 1] >= request.end_ns;
        request.is_call && request.parent.is_none() && client_name(request) == server && is_within
    };
    all.iter().filter(is_unassigned).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    fn request(client: &str, server: &str, (from, end_ns): (u64, u64)) -> TracedRequest {
        let took = (end_ns - from) as i64;
        TracedRequest {
            is_call: true,
            client: client.into(),
            server: server.into(),
            end_ns,
            times: Some(RequestTimes {
                total: took,
                work: took,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    #[test]
    fn what_a_server_asks_while_it_has_something_is_for_somebody() {
        let mut all = vec![
            request("client", "web", (0, 100)),
            request("client", "web", (10, 90)),
            request("web", "app", (20, 95)),
            request("web", "app", (95, 120)),
            request("client", "app", (20, 80)),
        ];
        assert_eq!(count_unassigned(&all, "web"), 1);
        all[2].parent = Some(0);
        assert_eq!(count_unassigned(&all, "web"), 0);
    }
}
