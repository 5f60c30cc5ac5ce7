//! The table of requests of traced programs, by name: how many there were, how many failed, how long they took, and who took most of that
//! time. Parts of names that differ in each request (numbers, UUIDs, digests) are replaced by `:id`. A request that a server makes on
//! behalf of another one is a row of its own; whoever took its time also took time of the other.

use crate::findings::input::AnalysisInput;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::request::{TracedRequest, is_wait, server_name};
use crate::findings::requests::request_account::RequestAccounts;
use crate::findings::requests::traced_requests::requests;
use crate::findings::rows::EventRows;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NamedRequests {
    /// The generalised name: `GET /item/:id`.
    pub name: String,
    /// The protocol.
    pub protocol: String,
    /// Who answers: a program and its host.
    pub server: String,
    /// Whether all of them were made on behalf of other requests.
    pub is_made_for_others: bool,
    /// Whether all of them were made by programs other than the one that the trace is about, as far as that is known.
    pub is_background: bool,
    /// The processes that answered, where they were seen.
    pub server_pids: BTreeSet<i64>,
    /// The number of requests.
    pub count: u64,
    /// The number of them that failed: without an answer, or with one that says so.
    pub failed: u64,
    /// The median time of those that were answered, ns.
    pub p50_ns: Option<u64>,
    /// The 99th percentile of the time of those that were answered, ns.
    pub p99_ns: Option<u64>,
    /// The sum of the times of all of them, ns.
    pub total_ns: u64,
    /// Who took most of it: a program and its host, or the network.
    pub most_of_it: String,
    /// The share of the time that `most_of_it` took, 0 to 1.
    pub share: f64,
    /// The times of those that were answered, in ascending order, ns.
    #[serde(skip)]
    pub times_ns: Vec<u64>,
    /// The ids (units) of all of them.
    #[serde(skip)]
    pub units: Vec<i64>,
}

impl NamedRequests {
    /// The name, or the protocol in brackets if there is no name.
    #[must_use]
    pub fn label(&self) -> String {
        match self.name.as_str() {
            "" => format!("({})", self.protocol),
            name => name.to_owned(),
        }
    }

    /// Whether no other row has the same name and protocol: then the server need not be shown.
    #[must_use]
    pub fn is_alone_among(&self, all: &[Self]) -> bool {
        let same = |other: &&Self| other.name == self.name && other.protocol == self.protocol;
        all.iter().filter(same).count() <= 1
    }
}

/// A generalised name, a protocol, and who answers.
type RequestKind = (String, String, String);

/// All requests of a run by name and by who answers: those of the caller before background ones, and those with the greatest total time
/// first.
#[must_use]
pub fn find_named_requests(input: &AnalysisInput<'_>) -> Vec<NamedRequests> {
    let log = EventRows::from_input(input);
    let all = requests(&log);
    named_requests(&all, &RequestAccounts::from_requests(&all, &log))
}

/// The time by who took it, ns.
type TimeByTaker = BTreeMap<String, i64>;

fn named_requests<'r>(
    all: &'r [TracedRequest],
    accounts: &RequestAccounts<'r>,
) -> Vec<NamedRequests> {
    let mut by_name: BTreeMap<RequestKind, (NamedRequests, TimeByTaker)> = BTreeMap::new();
    for request in all.iter().filter(|request| is_counted(request)) {
        let key = (
            generalise_request(request),
            request.protocol.clone(),
            server_name(request),
        );
        let (named, takers) = by_name.entry(key).or_default();
        named.is_made_for_others =
            request.parent.is_some() && (named.count == 0 || named.is_made_for_others);
        named.count += 1;
        named.units.push(request.unit);
        named.failed += u64::from(request.has_no_good_answer());
        // A request made on behalf of another one is not background.
        let is_background = request.parent.is_none() && request.is_background();
        named.is_background = is_background && (named.count == 1 || named.is_background);
        named.server_pids.extend(request.server_pid);
        let Some(times) = request.times else { continue };
        // Seen at its server alone, a request lacks the way there and back, which its client waits for too.
        let total_ns = times.whole().max(0).unsigned_abs();
        named.total_ns = named.total_ns.saturating_add(total_ns);
        if request.unknown.is_none() {
            named.times_ns.push(total_ns);
        }
        accounts.list_parts(request, times, &mut |part| {
            *takers.entry(part.taker()).or_default() += part.ns;
        });
    }
    let mut found: Vec<NamedRequests> = by_name
        .into_iter()
        .map(
            |((name, protocol, server), (named, takers))| NamedRequests {
                name,
                protocol,
                server,
                ..finished(named, &takers)
            },
        )
        .collect();
    found.sort_by(|a, b| {
        (a.is_background.cmp(&b.is_background))
            .then_with(|| b.total_ns.cmp(&a.total_ns))
            .then_with(|| (&a.name, &a.server).cmp(&(&b.name, &b.server)))
    });
    found
}

/// Whether somebody waits for the answer to a request: no blocking wait, no control of a transfer, no DNS query.
fn is_counted(request: &TracedRequest) -> bool {
    let is_tried = request.is_call || request.is_unopened || request.has_failed();
    is_tried && !is_wait(request) && !request.is_control && request.protocol != "DNS"
}

/// Computes shares and percentiles of a row.
fn finished(named: NamedRequests, takers: &BTreeMap<String, i64>) -> NamedRequests {
    let mut named = named;
    named.times_ns.sort_unstable();
    let all: i64 = takers.values().map(|ns| (*ns).max(0)).sum();
    let most = takers.iter().max_by_key(|(_, ns)| **ns);
    if let Some((who, ns)) = most.filter(|_| all > 0) {
        named.most_of_it.clone_from(who);
        named.share = *ns as f64 / all as f64;
    }
    // Nearest rank: the least time that is not exceeded by that percentage of requests.
    let rank = |percent: usize| (named.times_ns.len() * percent).div_ceil(100).max(1) - 1;
    (named.p50_ns, named.p99_ns) = (
        named.times_ns.get(rank(50)).copied(),
        named.times_ns.get(rank(99)).copied(),
    );
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;
    use std::collections::HashMap;

    #[test]
    fn what_a_server_waits_for_is_who_takes_it() {
        let request = |unit, parent, server: &str, end_ns: u64, work: i64| TracedRequest {
            unit,
            parent,
            end_ns,
            is_call: true,
            // The last program of the trace asked the web server, which asked the others.
            is_callers: Some(unit == 0),
            protocol: "HTTP/1.1".into(),
            name: "GET /a/1".into(),
            server: server.into(),
            times: Some(RequestTimes {
                total: work + 10,
                there: 10,
                work,
                is_transit_known: true,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        // The web server asks twice, one after the other, and once beside the second.
        let all = [
            request(1, Some(0), "app", 400, 290),
            request(2, Some(0), "app", 900, 400),
            request(3, Some(0), "cache", 700, 90),
            request(0, None, "web", 1_010, 1_000),
        ];
        let accounts = RequestAccounts::on_network(&all, None, HashMap::new());
        let found = named_requests(&all, &accounts);
        assert!(found.iter().all(|named| !named.is_background));
        let rows: Vec<(&str, u64, bool, &str, f64)> = found
            .iter()
            .map(|named| {
                (
                    named.server.as_str(),
                    named.count,
                    named.is_made_for_others,
                    named.most_of_it.as_str(),
                    (named.share * 100.0).round(),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("web", 1, false, "app", 68.0),
                ("app", 2, true, "app", 97.0),
                ("cache", 1, true, "cache", 90.0),
            ]
        );
    }

    #[test]
    fn percentiles_are_of_those_that_were_answered() {
        let named = NamedRequests {
            times_ns: (1..=100).rev().collect(),
            ..NamedRequests::default()
        };
        let takers = BTreeMap::from([("web".to_owned(), 30), ("network".to_owned(), 10)]);
        let named = finished(named, &takers);
        assert_eq!((named.p50_ns, named.p99_ns), (Some(50), Some(99)));
        assert_eq!((named.most_of_it.as_str(), named.share), ("web", 0.75));
        let none = finished(NamedRequests::default(), &BTreeMap::new());
        assert_eq!((none.p50_ns, none.most_of_it.as_str()), (None, ""));
    }
}
