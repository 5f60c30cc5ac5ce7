//! Causes before a request is on its way: no answer at all, waits between attempts, names, connections, handshakes.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::attempts::{Retry, failure};
use crate::findings::requests::causes::failures;
use crate::findings::requests::costs::RequestCause;
use crate::findings::requests::request::{REFUSED, TracedRequest};
use crate::findings::requests::worst::{
    WAY_LEAST, Worst, find_worst_place, format_client_server, report_request_cause,
};
use crate::statistics::to_f64;
use std::collections::BTreeSet;

/// From so many requests on a habit is one.
const HABIT: u64 = 3;

pub(crate) fn unanswered(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    failures::silent(kind, log)
        .or_else(|| given_up(kind, log))
        .or_else(|| failures::refused(kind, log))
        .or_else(|| failures::cut_short(kind, log))
        .or_else(|| cut_off(kind, log))
}

/// Those that the client gave up, by the time that it waited for them.
fn given_up(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::GivenUp, WAY_LEAST)?;
    let of_place = |request: &&TracedRequest| {
        (request.is_call || request.is_unopened) && format_client_server(request) == worst.place
    };
    let all = worst.costs.requests.iter().filter(of_place).count() as u64;
    let requests = &worst.costs.requests;
    let is_again = |retry: &&Retry| {
        requests[retry.failed].unknown.is_some()
            && format_client_server(&requests[retry.failed]) == worst.place
    };
    let again = worst.costs.retries.iter().filter(is_again).count() as u64;
    let none = worst.cost.requests;
    if !is_habit(none, all) && again == 0 {
        return None;
    }
    let then = if again > 0 {
        format!(", and retries {again} times")
    } else {
        String::new()
    };
    let of_cost: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let failed = || {
        requests
            .iter()
            .filter(|request| of_cost.contains(&request.row))
    };
    if failed().all(TracedRequest::is_cut_off) {
        let sentence = format!(
            "{none} of {all} answers to requests {} were cut off: the rest did not arrive for {} each{then}",
            worst.between(),
            format_ns(worst.each())
        );
        return Some(
            report_request_cause(kind, log, &worst, 0.95, sentence)
                .attempt("check whether packets of full size come through (`ping -M do -s 1472`), and whether the server stops in the middle of answers"),
        );
    }
    if failed().all(|request| request.unknown.as_deref() == Some(REFUSED)) {
        return failures::refused(kind, log);
    }
    let sentence = format!(
        "{none} of {all} attempts {} get no answer; the client gives up after {} each{then}: {} of the time",
        worst.between(),
        format_ns(worst.each()),
        percent(worst.share)
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(
        found.attempt("check whether the server is up, and what takes it so long").attempt(
            "make the client wait longer than the server takes: the server works on requests that the client has already given up",
        ),
    )
}

/// Those of which it is not known how long the client would have waited.
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
            "the last of them went unanswered until their connection ended".into(),
            &costs.unanswered,
        );
        kind.of_run(share, 0.9, sentence)
            .because(evidence)
            .attempt("check whether the server is up, and what it logs")
    })
}

/// So many of so many are worth a word.
const fn is_habit(some: u64, all: u64) -> bool {
    some >= HABIT || some * 2 >= all
}

pub(crate) fn backs_off(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::BackOff, WAY_LEAST)?;
    let requests = &worst.costs.requests;
    let rows: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let failures: BTreeSet<&str> = requests
        .iter()
        .filter(|request| rows.contains(&request.row))
        .filter_map(failure)
        .collect();
    let longest = worst.cost.rows.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    let sentence = format!(
        "{} waits before it retries failed attempts ({}): {} of the time, {} times, {} each, {} at most",
        worst.place,
        failures.into_iter().collect::<Vec<_>>().join(", "),
        percent(worst.share),
        worst.cost.requests,
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

pub(crate) fn slow_lookup(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Lookup, WAY_LEAST)?;
    let again: Vec<&TracedRequest> = worst
        .costs
        .requests
        .iter()
        .filter(|request| request.protocol == "DNS" && request.network.again_there > 0)
        .collect();
    let why = match again.first() {
        Some(asked) => format!(
            "; {} was asked for again, because no answer came",
            asked.name
        ),
        None => String::new(),
    };
    let sentence = format!(
        "{} looks up the server's address: {}{why}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt(
        "ask a name server that answers sooner, cache answers, or put the address into /etc/hosts",
    ))
}

pub(crate) fn lost_connect(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::ConnectLost, WAY_LEAST)?;
    let sentence = format!(
        "the first packets of connections {} are lost and retransmitted: {}",
        worst.between(),
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt("check whether the server's listen queue is full (`nstat -az TcpExtListenDrops`), or the network loses packets"))
}

/// Of what connections that are kept open save, the set-up of one remains.
fn keep_one(worst: Worst<'_>) -> Worst<'_> {
    let one = worst.cost.rows.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    Worst {
        removable_ns: (worst.removable_ns - one).max(0),
        ..worst
    }
}

pub(crate) fn connection_each(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = keep_one(find_worst_place(
        log,
        RequestCause::Connect,
        WAY_LEAST / 10.0,
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

pub(crate) fn handshake_each(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Handshake, WAY_LEAST / 10.0)?;
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
        "the TLS or login handshake {} {what}: {}, round trips of {}",
        worst.between(),
        worst.time_in_words(),
        format_ns(trip as f64)
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt(if is_slow {
        "check what the server computes for it: the length of its key, password hashes"
    } else {
        "keep connections open, or resume sessions"
    }))
}
