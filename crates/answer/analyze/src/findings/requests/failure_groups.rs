//! Groups of failed requests by client and server, with their consequences: if a request that a server made on behalf of another one
//! failed, and the other one failed too, the first is the cause and the second its consequence.

use crate::findings::requests::ends_in_words::{
    address, both_ends, client_in_words, server_with_port,
};
use crate::findings::requests::failed_status::{is_client_alert, status_in_words};
use crate::findings::requests::request::{REFUSED, SILENT, TracedRequest};
use std::collections::{BTreeMap, BTreeSet};

/// The most statuses that are named.
const NAMED: usize = 3;

/// The failed requests of one program to one server.
pub(super) struct FailedGroup<'l> {
    /// The failed requests between the two programs that have most of them.
    pub(super) failed: Vec<&'l TracedRequest>,
    /// The number of failed requests between other programs.
    pub(super) elsewhere: usize,
    /// The consequence in words, to follow the name of the program that asked: `, which answered curl with 502`; or empty.
    pub(super) consequence: String,
}

impl<'l> FailedGroup<'l> {
    /// The largest group of these failed requests, of which there must be at least one.
    pub(super) fn largest(failed: &[&'l TracedRequest], all: &'l [TracedRequest]) -> Self {
        let mut by_ends: BTreeMap<(bool, String), Vec<&TracedRequest>> = BTreeMap::new();
        for request in failed {
            let by_client = is_client_alert(&request.protocol, &request.status);
            let ended = by_ends.entry((by_client, both_ends(request)));
            ended.or_default().push(request);
        }
        let largest = by_ends
            .into_values()
            .max_by_key(Vec::len)
            .unwrap_or_default();
        Self {
            elsewhere: failed.len() - largest.len(),
            consequence: consequence(&largest, all),
            failed: largest,
        }
    }

    /// The first request of the group.
    pub(super) fn first(&self) -> &'l TracedRequest {
        self.failed[0]
    }

    /// What their server did, in a sentence: `nginx answered 10 of 40 requests from curl with 502 (10); 3 more elsewhere`. `how` stands
    /// behind the client, `detail` behind what came of it.
    pub(super) fn requests_in_words(
        &self,
        all: &[TracedRequest],
        did: &str,
        how: &str,
        detail: &str,
    ) -> String {
        let counted = self.count_among(all);
        self.sentence(&server_with_port(self.first()), did, &counted, how, detail)
    }

    /// Handshakes that the client ended: `curl ended 1 of 1 handshake with nginx: client alert 48, an unknown ... (1)`.
    pub(super) fn ended_by_client_in_words(&self, all: &[TracedRequest], how: &str) -> String {
        let (client, server) = (
            client_in_words(self.first()),
            server_with_port(self.first()),
        );
        let ends = both_ends(self.first());
        let handshakes = all
            .iter()
            .filter(|one| one.protocol == self.first().protocol && both_ends(one) == ends);
        let (failed, handshakes) = (self.failed.len(), count(handshakes.count(), "handshake"));
        let (consequence, elsewhere) = (&self.consequence, self.elsewhere());
        format!(
            "{client} ended {failed} of {handshakes} with {server}: {how}{consequence}{elsewhere}"
        )
    }

    /// The same for connections that were not set up.
    pub(super) fn connections_in_words(
        &self,
        all: &[TracedRequest],
        did: &str,
        detail: &str,
    ) -> String {
        let counted = self.count_among_connections(all);
        self.sentence(&address(self.first()), did, &counted, "", detail)
    }

    fn sentence(&self, server: &str, did: &str, counted: &str, how: &str, detail: &str) -> String {
        let client = client_in_words(self.first());
        let (consequence, elsewhere) = (&self.consequence, self.elsewhere());
        format!("{server} {did} {counted} from {client}{how}{consequence}{detail}{elsewhere}")
    }

    /// The number of failed requests of all calls between the two programs, in words: `10 of 40 requests`.
    fn count_among(&self, all: &[TracedRequest]) -> String {
        let ends = both_ends(self.first());
        let calls = all.iter().filter(|one| one.is_call || one.has_failed());
        let calls = calls.filter(|one| both_ends(one) == ends).count();
        format!("{} of {}", self.failed.len(), count(calls, "request"))
    }

    /// The same for connections that were not set up.
    fn count_among_connections(&self, all: &[TracedRequest]) -> String {
        let first = self.first();
        let is_alike = |one: &&TracedRequest| {
            let (same, port) = (one.programs.0 == first.programs.0, one.port == first.port);
            same && port && one.client == first.client && one.server == first.server
        };
        let flow = |one: &TracedRequest| stackline_events::unit_ids::parts(one.unit).0;
        let connections: BTreeSet<u32> = all.iter().filter(is_alike).map(flow).collect();
        let connections = connections.len().max(self.failed.len());
        format!(
            "{} of {}",
            self.failed.len(),
            count(connections, "connection")
        )
    }

    /// The number of failures between other programs, in words: `; 3 more elsewhere`.
    fn elsewhere(&self) -> String {
        match self.elsewhere {
            0 => String::new(),
            more => format!("; {more} more elsewhere"),
        }
    }
}

fn count(n: usize, what: &str) -> String {
    crate::findings::finding::counted(n as u64, what)
}

/// The consequence in words: what the programs that made these requests on behalf of others answered to those, if they failed too.
fn consequence(failed: &[&TracedRequest], all: &[TracedRequest]) -> String {
    let parents: BTreeSet<i64> = failed.iter().filter_map(|request| request.parent).collect();
    let is_failed = |one: &&TracedRequest| parents.contains(&one.unit) && one.has_no_good_answer();
    let mut by_client: BTreeMap<String, Vec<&TracedRequest>> = BTreeMap::new();
    for parent in all.iter().filter(is_failed).filter(|_| !parents.is_empty()) {
        by_client
            .entry(client_in_words(parent))
            .or_default()
            .push(parent);
    }
    let Some((client, parents)) = by_client
        .into_iter()
        .max_by_key(|(_, parents)| parents.len())
    else {
        return String::new();
    };
    let statuses: Vec<String> = parents.iter().map(|one| status(one)).collect();
    let first = statuses.first().map_or("", String::as_str);
    let is_one = statuses.len() == failed.len() && statuses.iter().all(|one| one == first);
    match (first.is_empty(), is_one) {
        (true, _) => format!(", which did not answer {client}"),
        (false, true) => format!(", which answered {client} with {first}"),
        (false, false) => format!(
            ", which answered {client} with {}",
            count_words(statuses.iter().map(String::as_str))
        ),
    }
}

fn status(request: &TracedRequest) -> String {
    status_in_words(&request.protocol, &request.status)
}

/// The units of requests that failed because a request made on their behalf did, where that failure is reported by itself.
pub(super) fn consequences(all: &[TracedRequest]) -> BTreeSet<i64> {
    let failed = || all.iter().filter(|one| one.has_no_good_answer());
    // Of several ways of having no answer, only one is reported as a finding.
    let kind = |one: &TracedRequest| match one.unknown.as_deref() {
        Some(REFUSED) => 1,
        Some(SILENT) => 2,
        _ if one.is_cut_off() => 3,
        _ => 4,
    };
    let is_said_apart = |one: &TracedRequest| one.is_ended_by_server() || one.has_failed();
    let kinds: BTreeSet<u8> = failed()
        .filter(|one| !is_said_apart(one))
        .map(kind)
        .collect();
    failed()
        .filter(|one| is_said_apart(one) || kinds.len() == 1)
        .filter_map(|one| one.parent)
        .collect()
}

/// The most frequent of some words, each with its count.
pub(super) fn count_words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    words
        .filter(|word| !word.is_empty())
        .for_each(|word| *counts.entry(word).or_default() += 1);
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let more = counts.len().saturating_sub(NAMED);
    let mut words: Vec<String> = counts
        .iter()
        .take(NAMED)
        .map(|(word, count)| format!("{word} ({count})"))
        .collect();
    words.extend((more > 0).then(|| format!("{more} others")));
    words.join(", ")
}
