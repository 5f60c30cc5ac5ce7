//! Requests of foreign programs by name: how many, how many failed, how long they took, and where most of that went. What a name
//! has of its own in each request (numbers, UUIDs, long digests) counts as one, `:id`. A request that a server makes for another
//! one is a row of its own, and what took its time took that of the other.

use crate::findings::input::AnalysisInput;
use crate::findings::requests::attempts::is_wait;
use crate::findings::requests::costs::{client_name, server_name};
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::request::{TracedRequest, requests};
use crate::findings::rows::EventRows;
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NamedRequests {
    /// What is asked: `GET /item/:id`.
    pub name: String,
    /// By which protocol.
    pub protocol: String,
    /// Who answers: a program and its host.
    pub server: String,
    /// Whether all of them were made for other requests.
    pub is_made_for_others: bool,
    /// How many there were.
    pub count: u64,
    /// How many of them failed: no answer, or one that says so.
    pub failed: u64,
    /// The median of those that were answered, ns.
    pub p50_ns: Option<u64>,
    /// Their 99th percentile, ns.
    pub p99_ns: Option<u64>,
    /// What all of them took, ns.
    pub total_ns: u64,
    /// Who took most of it: a program and its host, or the way.
    pub most_of_it: String,
    /// Which share of it that is.
    pub share: f64,
    /// Of those that were answered, ns, in order.
    #[serde(skip)]
    pub times_ns: Vec<u64>,
}

impl NamedRequests {
    /// Its name, or its protocol where it has none.
    #[must_use]
    pub fn label(&self) -> String {
        match self.name.as_str() {
            "" => format!("({})", self.protocol),
            name => name.to_owned(),
        }
    }

    /// Whether there is no other of its name and protocol: then who answers need not be said.
    #[must_use]
    pub fn is_alone_among(&self, all: &[Self]) -> bool {
        let same = |other: &&Self| other.name == self.name && other.protocol == self.protocol;
        all.iter().filter(same).count() <= 1
    }
}

/// The template of a name, a protocol, who answers.
type RequestKind = (String, String, String);

/// All requests of a run by name and by who answers, those that took most in all first.
#[must_use]
pub fn find_named_requests(input: &AnalysisInput<'_>) -> Vec<NamedRequests> {
    named_requests(&requests(&EventRows::of(input)))
}

/// Who took how much of the time, ns.
type TimeByTaker = BTreeMap<String, i64>;

fn named_requests(all: &[TracedRequest]) -> Vec<NamedRequests> {
    let made_for = RequestsBehind::of(all);
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
        named.failed += u64::from(request.unknown.is_some() || request.has_failed());
        let Some(times) = request.times else { continue };
        let total_ns = times.total.max(0).unsigned_abs();
        named.total_ns = named.total_ns.saturating_add(total_ns);
        if request.unknown.is_none() {
            named.times_ns.push(total_ns);
        }
        made_for.add_takers(request, takers, 0);
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
        b.total_ns
            .cmp(&a.total_ns)
            .then_with(|| (&a.name, &a.server).cmp(&(&b.name, &b.server)))
    });
    found
}

/// Requests behind each other at most; what is further counts as its server's time.
const DEEPEST: usize = 32;

/// Which requests were made for which others.
struct RequestsBehind<'r> {
    children: BTreeMap<i64, Vec<&'r TracedRequest>>,
}

impl<'r> RequestsBehind<'r> {
    fn of(all: &'r [TracedRequest]) -> Self {
        let mut children: BTreeMap<i64, Vec<&TracedRequest>> = BTreeMap::new();
        for request in all {
            if let Some(parent) = request.parent.filter(|_| is_counted(request)) {
                children.entry(parent).or_default().push(request);
            }
        }
        Self { children }
    }

    /// Adds the parts of a request's time by who takes them; what its server waited for others is theirs.
    fn add_takers(
        &self,
        request: &TracedRequest,
        takers: &mut BTreeMap<String, i64>,
        depth: usize,
    ) {
        let server = server_name(request);
        let mut own: BTreeMap<String, i64> = BTreeMap::new();
        for (who, ns) in shares(request) {
            *own.entry(who).or_default() += ns;
        }
        if depth < DEEPEST {
            let mut left = own.get(&server).copied().unwrap_or(0);
            for child in self.waited_for(request) {
                let total = child.times.map_or(0, |times| times.total.max(0));
                if total <= left {
                    left -= total;
                    self.add_takers(child, takers, depth + 1);
                }
            }
            own.insert(server, left);
        }
        for (who, ns) in own {
            *takers.entry(who).or_default() += ns;
        }
    }

    /// The requests that a server waited for while it had one, one after the other: from the end backwards, each time the one
    /// that was answered last before the next was made.
    fn waited_for(&self, request: &TracedRequest) -> Vec<&'r TracedRequest> {
        let mut children = self
            .children
            .get(&request.unit)
            .cloned()
            .unwrap_or_default();
        children.sort_by_key(|child| std::cmp::Reverse(child.end_ns));
        let mut until = u64::MAX;
        children.retain(|child| {
            let is_before = child.end_ns <= until;
            if is_before {
                until = child.begin_ns();
            }
            is_before
        });
        children
    }
}

/// Whether it is a request that somebody waits for the answer of.
fn is_counted(request: &TracedRequest) -> bool {
    let is_tried = request.is_call || request.is_unopened || request.has_failed();
    is_tried && !is_wait(request) && request.protocol != "DNS"
}

fn finished(named: NamedRequests, takers: &BTreeMap<String, i64>) -> NamedRequests {
    let mut named = named;
    named.times_ns.sort_unstable();
    let all: i64 = takers.values().map(|ns| (*ns).max(0)).sum();
    let most = takers.iter().max_by_key(|(_, ns)| **ns);
    if let Some((who, ns)) = most.filter(|_| all > 0) {
        named.most_of_it.clone_from(who);
        named.share = *ns as f64 / all as f64;
    }
    // Nearest rank: the least of which so many percent are not longer.
    let rank = |percent: usize| (named.times_ns.len() * percent).div_ceil(100).max(1) - 1;
    (named.p50_ns, named.p99_ns) = (
        named.times_ns.get(rank(50)).copied(),
        named.times_ns.get(rank(99)).copied(),
    );
    named
}

/// Parts of a request's time by who takes them.
fn shares(request: &TracedRequest) -> Vec<(String, i64)> {
    let Some(times) = request.times else {
        return Vec::new();
    };
    let unseen = if times.is_of_client {
        times
            .round_trip
            .unwrap_or(0)
            .saturating_mul(times.trips())
            .clamp(0, times.work.max(0))
    } else {
        0
    };
    let net = request.network;
    let way = times.there + times.back;
    // What the network recorded of it is not the way's.
    let on_its_way = |ns: i64, seen: i64| if seen > 0 { 0 } else { ns };
    let (paused_there, paused_back) = (
        on_its_way(net.paused_there_ns, times.hold),
        on_its_way(net.paused_back_ns, times.sending),
    );
    let (no_room_there, no_room_back) = (
        on_its_way(net.window_there_ns, times.hold),
        on_its_way(net.window_back_ns, times.sending),
    );
    let losses = net.again_there_ns + net.again_back_ns;
    // A sender that is seen waits for them before it has sent all.
    let hold = times.hold - net.again_there_ns.clamp(0, times.hold.max(0));
    let sending = times.sending - net.again_back_ns.clamp(0, times.sending.max(0));
    let on_way = losses - (times.hold - hold) - (times.sending - sending);
    // What a program has handed over goes as fast as acknowledgements come back.
    let unhindered = |ns: i64, paused: i64, no_room: i64| (ns - paused - no_room).max(0);
    let on_way_there = unhindered(hold, net.paused_there_ns, net.window_there_ns);
    let on_way_back = unhindered(sending, net.paused_back_ns, net.window_back_ns);
    let (hold, sending) = (hold - on_way_there, sending - on_way_back);
    let client = times.client + hold + times.client_unread + paused_there + no_room_back;
    let server = times.unread + times.work - unseen + sending + paused_back + no_room_there;
    let else_than_way = paused_there + paused_back + no_room_there + no_room_back + on_way;
    let way = (way - else_than_way).max(0) + on_way_there + on_way_back + unseen + times.connect;
    let answers = request.responder.as_ref().map_or_else(
        || server_name(request),
        |responder| responder.name.trim_end_matches(',').to_owned(),
    );
    vec![
        ("set-up".to_owned(), times.lookup + times.handshake),
        (client_name(request), client),
        ("the way".to_owned(), way),
        ("losses".to_owned(), losses),
        (answers, server),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    #[test]
    fn what_a_server_waits_for_is_who_takes_it() {
        let request = |unit, parent, server: &str, end_ns: u64, work: i64| TracedRequest {
            unit,
            parent,
            end_ns,
            is_call: true,
            protocol: "HTTP/1.1".into(),
            name: "GET /a/1".into(),
            server: server.into(),
            times: Some(RequestTimes {
                total: work + 10,
                there: 10,
                work,
                is_way_known: true,
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
        let found = named_requests(&all);
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
        let takers = BTreeMap::from([("web".to_owned(), 30), ("the way".to_owned(), 10)]);
        let named = finished(named, &takers);
        assert_eq!((named.p50_ns, named.p99_ns), (Some(50), Some(99)));
        assert_eq!((named.most_of_it.as_str(), named.share), ("web", 0.75));
        let none = finished(NamedRequests::default(), &BTreeMap::new());
        assert_eq!((none.p50_ns, none.most_of_it.as_str()), (None, ""));
    }
}
