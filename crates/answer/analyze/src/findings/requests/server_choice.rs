//! Servers of one kind among which a client chooses, as a load balancer does: whether it gives one of them more of the same requests than
//! the others, and whether that one takes longer for them.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::in_order::own_ns;
use crate::findings::requests::program_ports::without_port;
use crate::findings::requests::request::{TracedRequest, client_name, server_name};
use crate::statistics::to_f64;
use std::collections::{BTreeMap, BTreeSet};

/// A server stands out if it has, or takes, at least this many times what the others do.
const OUTSTANDING: f64 = 2.0;
/// With fewer requests at any of the servers compared in time, or altogether where their numbers are compared, nothing is said.
const LEAST_EACH: usize = 3;
const LEAST_ALL: usize = 12;

/// One server beside the others that get the same requests from the same client.
#[derive(Debug, PartialEq)]
pub(crate) struct ServerChoice {
    /// The client that chooses.
    client: String,
    /// The number of requests that the server got.
    count: usize,
    /// Their median time, ns.
    median_ns: u64,
    /// The numbers of requests that the others got.
    other_counts: Vec<usize>,
    /// The longest median time of one of the others that got enough of them, ns.
    other_median_ns: Option<u64>,
}

/// The times of requests by server, ns.
type TimesByServer = BTreeMap<String, Vec<u64>>;

impl ServerChoice {
    /// Compares a server with the others of the client that sends it most requests; `None` if there are no others, or too few requests.
    pub(crate) fn find(all: &[TracedRequest], server: &str) -> Option<Self> {
        if server.contains(" > ") {
            return None; // It is a client with its server.
        }
        let of_server = all.iter().filter(|one| server_name(one) == server);
        let mut clients: BTreeMap<String, Vec<&TracedRequest>> = BTreeMap::new();
        for request in of_server.filter(|one| is_compared(one)) {
            clients
                .entry(client_name(request))
                .or_default()
                .push(request);
        }
        let (client, requests) = clients.into_iter().max_by_key(|(_, all)| all.len())?;
        let program = without_port(&requests.first()?.programs.1);
        let kinds: BTreeSet<_> = requests.iter().map(|one| kind_of(one)).collect();
        let mut times = TimesByServer::new();
        let same = all.iter().filter(|one| {
            is_compared(one)
                && without_port(&one.programs.1) == program
                && client_name(one) == client
                && kinds.contains(&kind_of(one))
        });
        for request in same {
            let of_server = times.entry(server_name(request)).or_default();
            of_server.push(own_ns(request));
        }
        times.values_mut().for_each(|times| times.sort_unstable());
        let own = times.remove(server)?;
        let others = times.values();
        let compared = others.clone().filter(|times| times.len() >= LEAST_EACH);
        let choice = Self {
            client,
            count: own.len(),
            median_ns: own[own.len() / 2],
            other_counts: others.map(Vec::len).collect(),
            other_median_ns: compared.map(|times| times[times.len() / 2]).max(),
        };
        let stands_out = choice.has_more() || choice.is_slower();
        (!choice.other_counts.is_empty() && stands_out).then_some(choice)
    }

    /// Whether the server gets many more requests than the others.
    fn has_more(&self) -> bool {
        let most = self.other_counts.iter().max().copied().unwrap_or(0);
        let all = self.count + self.other_counts.iter().sum::<usize>();
        all >= LEAST_ALL && to_f64(self.count as u64) >= OUTSTANDING * to_f64(most as u64)
    }

    /// Whether the server takes much longer than the others.
    fn is_slower(&self) -> bool {
        let others = self.other_median_ns.filter(|_| self.count >= LEAST_EACH);
        others.is_some_and(|others| to_f64(self.median_ns) >= OUTSTANDING * to_f64(others))
    }

    /// Adds the comparison to a finding about the server.
    pub(crate) fn report(&self, finding: Finding, log: &FindingEventLog<'_>) -> Finding {
        let all = self.count + self.other_counts.iter().sum::<usize>();
        let others = self.other_counts.len();
        let mut words = format!(
            "{} sends {} of {all} such requests there, the rest to {}",
            self.client,
            self.count,
            match others {
                1 => "1 other server".to_owned(),
                _ => format!("{others} other servers"),
            }
        );
        if let Some(other_ns) = self.other_median_ns {
            words += &format!(
                "; median {} there, {} or less at the others",
                format_ns(to_f64(self.median_ns)),
                format_ns(to_f64(other_ns))
            );
        }
        let attempt = match self.has_more() {
            true => format!(
                "let {} spread such requests evenly, or prefer the server with the fewest open ones",
                self.client
            ),
            false => format!(
                "find out what distinguishes it from the other servers; until then, let {} prefer the server with the fewest open requests",
                self.client
            ),
        };
        finding.because(log.evidence(words, &[])).attempt(attempt)
    }
}

/// Whether a request is an answered call, whose time can be compared.
fn is_compared(request: &TracedRequest) -> bool {
    request.is_call && request.times.is_some() && request.unknown.is_none()
}

/// What is asked: protocol and generalised name.
fn kind_of(request: &TracedRequest) -> (&str, String) {
    (&request.protocol, generalise_request(request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    /// Calls of a load balancer: to which port, how many, and how long each takes.
    fn calls(servers: &[(u16, usize, i64)]) -> Vec<TracedRequest> {
        let call = |(port, ms): (u16, i64)| TracedRequest {
            is_call: true,
            protocol: "HTTP/1.1".into(),
            name: "GET /item/7".into(),
            client: "lb".into(),
            server: "app".into(),
            programs: ("haproxy".into(), format!("python3 (port {port})")),
            times: Some(RequestTimes {
                total: ms * 1_000_000,
                work: ms * 1_000_000,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        let each = servers
            .iter()
            .flat_map(|(port, count, ms)| std::iter::repeat_n((*port, *ms), *count));
        each.map(call).collect()
    }

    fn stands_out(all: &[TracedRequest], port: u16) -> Option<(bool, bool)> {
        let server = format!("python3 (port {port}) on app");
        let choice = ServerChoice::find(all, &server)?;
        Some((choice.has_more(), choice.is_slower()))
    }

    #[test]
    fn a_server_with_more_requests_or_slower_ones_stands_out() {
        let more = calls(&[(1, 90, 10), (2, 5, 9), (3, 5, 11)]);
        assert_eq!(stands_out(&more, 1), Some((true, false)));
        assert_eq!(stands_out(&more, 2), None);
        let slower = calls(&[(1, 10, 200), (2, 10, 9), (3, 10, 60)]);
        assert_eq!(stands_out(&slower, 1), Some((false, true)));
        assert_eq!(stands_out(&slower, 3), None);
        let both = calls(&[(1, 30, 200), (2, 10, 9)]);
        assert_eq!(stands_out(&both, 1), Some((true, true)));
    }

    #[test]
    fn servers_with_other_requests_or_other_programs_are_not_compared() {
        let mut others = calls(&[(1, 90, 10), (2, 5, 1)]);
        for request in others.iter_mut().skip(90) {
            request.name = "GET /image".into();
        }
        assert_eq!(stands_out(&others, 1), None);
        let mut others = calls(&[(1, 90, 10), (2, 5, 1)]);
        for request in others.iter_mut().skip(90) {
            request.programs.1 = "java".into();
        }
        assert_eq!(stands_out(&others, 1), None);
        // Few requests are chance.
        assert_eq!(stands_out(&calls(&[(1, 6, 10), (2, 3, 9)]), 1), None);
        assert_eq!(stands_out(&calls(&[(1, 40, 10)]), 1), None);
    }
}
