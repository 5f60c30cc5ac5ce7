//! Causes before a request is sent, and requests without an answer: waits between attempts, name lookups, connections, handshakes.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::attempts::failure;
use crate::findings::requests::causes::failures;
use crate::findings::requests::costs::RequestCause;
use crate::findings::requests::ends_in_words::{client_in_words, server_with_port};
use crate::findings::requests::failure_groups::FailedGroup;
use crate::findings::requests::given_up::{GivenUpRequests, HABIT, is_habit};
use crate::findings::requests::request::{REFUSED, TracedRequest, server_name};
use crate::findings::requests::worst::{
    LEAST_NETWORK_NS, Worst, find_worst_place, report_request_cause,
};
use crate::statistics::to_f64;
use stackline_core::units::counted;
use std::collections::{BTreeMap, BTreeSet};

/// The finding about requests that nothing answered: the first form that applies.
pub(crate) fn unanswered(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    failures::silent(kind, log)
        .or_else(|| given_up(kind, log))
        .or_else(|| failures::refused(kind, log))
        .or_else(|| failures::cut_short(kind, log))
        .or_else(|| cut_off(kind, log))
}

/// The finding about requests that the client gave up, by the time that it waited for them.
fn given_up(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let given_up = GivenUpRequests::from_log(log)?;
    let GivenUpRequests { worst, all, .. } = &given_up;
    let (none, again) = (worst.cost.requests, given_up.again_in_words());
    let first = given_up.failed.first()?;
    let (client, server) = (client_in_words(first), server_with_port(first));
    if given_up.exceeds_deadlines() {
        let deadline = given_up.deadline_ns().map_or_else(
            || "their deadlines".to_owned(),
            |ns| format!("their deadline of {}", format_ns(ns)),
        );
        let sentence = format!(
            "{none} of {all} calls from {client} to {server} exceeded {deadline}: {} of the time{again}",
            percent(worst.share)
        );
        let found = report_request_cause(kind, log, worst, 0.95, sentence);
        return Some(found.attempt("find out what takes the server so long").attempt(
            "give the calls a longer deadline, or make the server stop working once the deadline has passed",
        ));
    }
    if given_up.are_all(TracedRequest::is_cut_off) {
        let sentence = format!(
            "{server} sent only parts of {none} of {all} answers to {client}: the rest of each did not arrive within {}{again}",
            format_ns(worst.each())
        );
        return Some(
            report_request_cause(kind, log, worst, 0.95, sentence)
                .attempt("check whether full-size packets get through (`ping -M do -s 1472`), and whether the server stops partway through its answers"),
        );
    }
    if given_up.are_all(|request| request.unknown.as_deref() == Some(REFUSED)) {
        return failures::refused(kind, log);
    }
    let group = FailedGroup::largest(&given_up.failed, &worst.costs.requests);
    let is_unread = given_up.were_left_unread();
    let unread = match is_unread {
        true => "; no traced program has read them",
        false => "",
    };
    let sentence = format!(
        "{server} did not answer {none} of {all} requests from {client}{}; {client} gives up on each after {} ({} of the time in all){unread}{again}",
        group.consequence,
        format_ns(worst.each()),
        percent(worst.share)
    );
    let found = report_request_cause(kind, log, worst, 0.95, sentence);
    if is_unread {
        let port = first
            .port
            .map_or_else(|| "PORT".to_owned(), |port| port.to_string());
        return Some(found.attempt(format!("check what the program that listens there does (`ss -ltnp 'sport = :{port}'` names it): it accepts or reads nothing, as when it is stopped, blocked, or all its workers are busy")));
    }
    let found = found.attempt("check whether the server is up, and what takes it so long");
    Some(found.attempt(match given_up.were_read() {
        true => "make the client wait longer than the server takes: the server is still working on requests that the client has already given up on",
        false => "run `stackline trace` on the server's machine too: it shows whether the requests arrive, and whether they are read",
    }))
}

/// The finding about requests without an answer for which it is not known how long the client would have waited.
fn cut_off(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    let (none, all) = (
        costs.unanswered.len() as u64,
        costs.unanswered.len() as u64 + costs.roots,
    );
    let share = to_f64(none) / to_f64(all.max(1));
    (share >= LEAST && is_habit(none, all)).then(|| {
        let sentence = format!("{none} of {all} requests got no answer");
        let evidence = log.evidence(
            "the last of them went unanswered until the connection ended".into(),
            &costs.unanswered,
        );
        kind.of_run(share, 0.9, sentence)
            .because(evidence)
            .attempt("check whether the server is up, and what it logs")
    })
}

/// The finding about waits between failed attempts and the next ones.
pub(crate) fn backs_off(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::BackOff, LEAST_NETWORK_NS)?;
    let requests = &worst.costs.requests;
    let rows: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let failures: BTreeSet<&str> = requests
        .iter()
        .filter(|request| rows.contains(&request.row))
        .filter_map(failure)
        .collect();
    let longest = worst.cost.rows.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    let sentence = format!(
        "{} waits before it retries failed attempts ({}): {} of the time, {}, {} each, {} at most",
        worst.place,
        failures.into_iter().collect::<Vec<_>>().join(", "),
        percent(worst.share),
        counted(worst.cost.requests, "time"),
        format_ns(worst.each()),
        format_ns(longest as f64)
    );
    let found = report_request_cause(kind, log, &worst, 0.9, sentence);
    Some(
        found
            .attempt("find out why the attempts fail")
            .attempt("start with a shorter back-off, or limit it"),
    )
}

/// The finding about slow name lookups.
pub(crate) fn slow_lookup(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Lookup, LEAST_NETWORK_NS)?;
    let questions: Vec<&TracedRequest> = worst
        .costs
        .requests
        .iter()
        .filter(|request| request.protocol == "DNS")
        .collect();
    let asked_again = questions
        .iter()
        .find(|request| request.network.again_there > 0);
    let server = NameServer::from_questions(&questions, worst.place);
    let mostly_network = server.as_ref().and_then(NameServer::mostly_network_ns);
    let why = match (asked_again, mostly_network) {
        (Some(asked), _) => format!("; {} was queried again because no answer came", asked.name),
        (None, Some(network_ns)) => {
            format!(
                "; each lookup spends {} on the round trip",
                format_ns(network_ns)
            )
        }
        (None, None) => String::new(),
    };
    let search = NameSearch::from_questions(&questions, worst.place);
    let why = why + &search.as_ref().map_or_else(String::new, NameSearch::words);
    let at_whom = server.map_or_else(String::new, |server| format!(" at {}", server.name));
    let sentence = format!(
        "{} looks up the server's address{at_whom}: {}{why}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    let found = match search {
        Some(_) => found.attempt(
            "end the name with a dot, or shorten `search` or lower `ndots` in /etc/resolv.conf",
        ),
        None => found,
    };
    Some(found.attempt(match mostly_network {
        Some(_) => "ask a nearer name server, cache answers, or put the address in /etc/hosts",
        None => "ask a faster name server, cache answers, or put the address in /etc/hosts",
    }))
}

/// A client that asks for many names that do not exist, as a `search` list in /etc/resolv.conf makes it do.
#[derive(Debug, PartialEq)]
struct NameSearch {
    /// The number of its questions.
    asked: usize,
    /// The number of them whose name does not exist.
    absent: usize,
}

impl NameSearch {
    /// The least share of questions for a search list to be suspected, in percent.
    const LEAST_PERCENT: usize = 30;

    /// Of the questions of a client; `None` if nearly all names exist.
    fn from_questions(questions: &[&TracedRequest], client: &str) -> Option<Self> {
        let own = questions.iter().filter(|one| one.client == client);
        let (mut asked, mut absent) = (0, 0);
        for question in own {
            asked += 1;
            absent += usize::from(question.status == "NXDOMAIN");
        }
        let is_search = absent > 0 && absent * 100 >= asked * Self::LEAST_PERCENT;
        is_search.then_some(Self { asked, absent })
    }

    fn words(&self) -> String {
        format!(
            "; {} of {} questions are for names that do not exist (NXDOMAIN), as a `search` list causes them",
            self.absent, self.asked
        )
    }
}

/// The name server that a client asks, and how long its queries take.
struct NameServer {
    /// The name server's program and host.
    name: String,
    /// The time of all queries.
    total_ns: i64,
    /// The part of that on the network, where it is known.
    network_ns: i64,
    /// The median time of a query on the network, there and back.
    usual_network_ns: i64,
}

impl NameServer {
    /// The name server of most of a host's queries.
    fn from_questions(questions: &[&TracedRequest], client: &str) -> Option<Self> {
        let mut by_server: BTreeMap<&str, Vec<&TracedRequest>> = BTreeMap::new();
        for question in questions.iter().filter(|one| one.client == client) {
            by_server
                .entry(&question.server)
                .or_default()
                .push(question);
        }
        let questions = by_server.into_values().max_by_key(Vec::len)?;
        let (mut total_ns, mut transits) = (0, Vec::new());
        for times in questions.iter().filter_map(|one| one.times) {
            total_ns += times.total;
            transits.extend(times.is_transit_known.then_some(times.there + times.back));
        }
        transits.sort_unstable();
        Some(Self {
            name: server_name(questions.first()?),
            total_ns,
            network_ns: transits.iter().sum(),
            usual_network_ns: transits.get(transits.len() / 2).copied().unwrap_or(0),
        })
    }

    /// The median time on the network, ns, if the network takes most of the queries' time.
    fn mostly_network_ns(&self) -> Option<f64> {
        let is_most = self.network_ns * 2 > self.total_ns;
        is_most.then_some(self.usual_network_ns as f64)
    }
}

/// The finding about lost first packets of connections.
pub(crate) fn lost_connect(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::ConnectLost, LEAST_NETWORK_NS)?;
    let sentence = format!(
        "the first packets of connections {} are lost and retransmitted: {}",
        worst.between(),
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt("check whether the server's listen queue is full (`nstat -az TcpExtListenDrops`), or whether the network loses packets"))
}

/// Subtracts the longest set-up from what can be saved: one connection still has to be set up.
fn keep_one(worst: Worst<'_>) -> Worst<'_> {
    let one = worst.cost.rows.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    Worst {
        removable_ns: (worst.removable_ns - one).max(0),
        ..worst
    }
}

/// The finding about requests that each open a connection.
pub(crate) fn connection_each(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = keep_one(find_worst_place(
        log,
        RequestCause::Connect,
        LEAST_NETWORK_NS / 10.0,
    )?);
    let all = worst.calls_at_place().count() as u64;
    let own = worst
        .calls_at_place()
        .filter(|request| request.times.is_some_and(|times| times.has_connect))
        .count() as u64;
    if own < HABIT || own * 5 < all * 4 {
        return None;
    }
    let sentence = format!(
        "{own} of {all} requests {} open a connection of their own: setting it up takes {}",
        worst.between(),
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt("keep connections open (keep-alive, a pool)"))
}

/// The finding about requests that each have a handshake, or about slow handshakes.
pub(crate) fn handshake_each(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Handshake, LEAST_NETWORK_NS / 10.0)?;
    let (all, own) = (
        worst.calls_at_place().count() as u64,
        worst
            .calls_at_place()
            .filter(|request| request.times.is_some_and(|t| t.has_handshake))
            .count() as u64,
    );
    let trip = worst
        .calls_at_place()
        .filter_map(|request| request.times?.round_trip)
        .min()
        .unwrap_or(0);
    let is_slow = worst.each() > 3.0 * trip as f64 + 2e7;
    let worst = if is_slow { worst } else { keep_one(worst) };
    if (own < HABIT || own * 5 < all * 4) && !is_slow {
        return None;
    }
    let what = if is_slow {
        "is slow"
    } else {
        "is repeated for each request"
    };
    let sentence = format!(
        "the TLS or login handshake {} {what}: {}, with round trips of {}",
        worst.between(),
        worst.time_in_words(),
        format_ns(trip as f64)
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt(if is_slow {
        "check what the server has to compute for it: key length, password hashes"
    } else {
        "keep connections open, or resume sessions"
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_exist_show_a_search_list() {
        let ask = |client: &str, status: &str| TracedRequest {
            client: client.into(),
            status: status.into(),
            ..TracedRequest::default()
        };
        let all = [
            ask("app", "NXDOMAIN"),
            ask("app", "NXDOMAIN"),
            ask("app", "NOERROR"),
            ask("db", "NOERROR"),
        ];
        let search = |client: &str| {
            let questions: Vec<&TracedRequest> = all.iter().collect();
            NameSearch::from_questions(&questions, client)
        };
        let (asked, absent) = (3, 2);
        assert_eq!(search("app"), Some(NameSearch { asked, absent }));
        assert_eq!(search("db"), None);
    }
}
