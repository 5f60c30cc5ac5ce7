//! Requests that failed: their answers say so, or their server ended the connection instead of one. How many they are counts, not how
//! long they took.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, counted};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::failed_status::status_in_words;
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::request::{REFUSED, SERVER_RESET, SILENT, TracedRequest};
use crate::findings::requests::worst::{format_client_server, place_in_words};
use crate::statistics::to_f64;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// From this share of all requests on failures are worth a word, or from so many on.
const SHARE: f64 = 0.005;
const MANY: usize = 5;
/// A connection on which nothing passed for so long was idle, ns.
const IDLE_NS: u64 = 200_000_000;
/// Statuses that are named.
const NAMED: usize = 3;

/// Calls of a log that failed in some way, and how many calls there are.
fn find_failed<'l>(
    log: &'l FindingEventLog<'_>,
    has_failed: impl Fn(&TracedRequest) -> bool,
) -> Option<(Vec<&'l TracedRequest>, u64)> {
    let calls = || {
        log.costs()
            .into_iter()
            .flat_map(|costs| &costs.requests)
            .filter(|one| one.is_call || one.has_failed())
    };
    let failed: Vec<&TracedRequest> = calls().filter(|request| has_failed(request)).collect();
    let all = calls().count() as u64;
    let is_much = failed.len() >= MANY || to_f64(failed.len() as u64) >= SHARE * to_f64(all);
    (!failed.is_empty() && is_much).then_some((failed, all))
}

/// The most frequent of some words, with how often each stands there.
fn count_words<'w>(words: impl Iterator<Item = &'w str>) -> String {
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

fn report_failures(
    kind: &FindingKind,
    log: &FindingEventLog<'_>,
    failed: &[&TracedRequest],
    all: u64,
    sentence: String,
) -> Finding {
    let rows: Vec<u32> = failed.iter().map(|request| request.row).take(12).collect();
    let general: Vec<String> = failed
        .iter()
        .map(|request| generalise_request(request))
        .collect();
    let names = count_words(general.iter().map(String::as_str));
    let share = to_f64(failed.len() as u64) / to_f64(all.max(1));
    let mut what = format!("{} of {all} requests", failed.len());
    if !names.is_empty() {
        what = format!("{what}: {names}");
    }
    kind.of_run(share, 0.95, sentence)
        .because(log.evidence(what, &rows))
}

/// Where most of some requests were made.
fn worst_place(failed: &[&TracedRequest]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for request in failed {
        *counts.entry(format_client_server(request)).or_default() += 1;
    }
    let worst = counts.into_iter().max_by_key(|(_, count)| *count);
    worst.map_or_else(String::new, |(place, _)| place_in_words(&place))
}

/// Requests whose answers say that they failed.
pub(crate) fn failed(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (failed, all) = find_failed(log, TracedRequest::has_failed)?;
    let in_words: Vec<String> = failed
        .iter()
        .map(|request| status_in_words(&request.protocol, &request.status))
        .collect();
    let statuses = count_words(in_words.iter().map(String::as_str));
    let sentence = format!(
        "{} of {} {} failed: answered with {statuses}",
        failed.len(),
        counted(all, "request"),
        worst_place(&failed)
    );
    let is_of_client = failed.iter().all(|request| request.status.starts_with('4'));
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(found.attempt(if is_of_client {
        "check what the client asks for: names, permissions, rate limits"
    } else {
        "check what the server logs for them"
    }))
}

/// Requests whose server ended the connection instead of an answer.
pub(crate) fn ended(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (failed, all) = find_failed(log, TracedRequest::is_ended_by_server)?;
    let is_reset = |request: &&&TracedRequest| request.unknown.as_deref() == Some(SERVER_RESET);
    let resets = failed.iter().filter(is_reset).count();
    let how = match resets {
        0 => "closed",
        some if some == failed.len() => "reset",
        _ => "closed or reset",
    };
    let idle: Vec<u64> = failed
        .iter()
        .filter_map(|request| idle_before(log, request))
        .collect();
    let was_idle = 2 * idle.len() > failed.len();
    let why = match idle.iter().min() {
        Some(least) if was_idle => {
            format!("; it had been idle for {} before", format_ns(*least as f64))
        }
        _ => String::new(),
    };
    let sentence = format!(
        "{} of {} {} failed: the server {how} their connection instead of answering{why}",
        failed.len(),
        counted(all, "request"),
        worst_place(&failed)
    );
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(if was_idle {
        found
            .attempt("make the client close idle connections before the server does (keep-alive timeouts)")
            .attempt("retry on a new connection what may safely be repeated")
    } else {
        found.attempt("find out why the server closes connections: check its logs, its limits, and whether it crashes or is restarted")
    })
}

/// Calls, and connections that were to become some.
fn attempts<'l>(log: &'l FindingEventLog<'_>) -> impl Iterator<Item = &'l TracedRequest> {
    let requests = log.costs().into_iter().flat_map(|costs| &costs.requests);
    requests.filter(|request| request.is_call || request.is_unopened)
}

/// Connections that were refused, however little time that took.
pub(crate) fn refused(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let is_refused = |request: &&TracedRequest| request.unknown.as_deref() == Some(REFUSED);
    let refused: Vec<&TracedRequest> = attempts(log).filter(is_refused).collect();
    let all = attempts(log).count() as u64;
    let is_much = refused.len() >= MANY || to_f64(refused.len() as u64) >= SHARE * to_f64(all);
    if refused.is_empty() || !is_much {
        return None;
    }
    let sentence = format!(
        "{} of {} {} were refused: nothing listens there",
        refused.len(),
        counted(all, "attempt"),
        worst_place(&refused)
    );
    let found = report_failures(kind, log, &refused, all, sentence);
    Some(found.attempt("check whether the server is running and listening at that address and port (`ss -ltn`), and whether a firewall rejects the connection"))
}

/// Requests of whose answers only a part came, however little time that took.
pub(crate) fn cut_short(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (failed, all) = find_failed(log, TracedRequest::is_cut_off)?;
    let sentence = format!(
        "{} of {} {} failed: their connection ended in the middle of the answer",
        failed.len(),
        counted(all, "request"),
        worst_place(&failed)
    );
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(found.attempt("find out which side ends it: the server that crashes or announces more bytes than it sends, or the client's timeout"))
}

/// Connections whose first packets nobody answered, however often they were sent.
pub(crate) fn silent(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let is_silent = |request: &&TracedRequest| {
        request.is_unopened
            && request.unknown.as_deref() == Some(SILENT)
            && request.network.connect_again > 0
    };
    let silent: Vec<&TracedRequest> = attempts(log).filter(is_silent).collect();
    if silent.is_empty() {
        return None;
    }
    let all = attempts(log).count() as u64;
    let again: i64 = silent
        .iter()
        .map(|request| request.network.connect_again)
        .sum();
    let sentence = format!(
        "nothing answers {} {}: their first packets were retransmitted {again} times",
        counted(silent.len() as u64, "connection"),
        worst_place(&silent)
    );
    let found = report_failures(kind, log, &silent, all, sentence);
    Some(found.attempt(
        "check whether the address is right and the host is up, and whether a firewall drops what goes to that port",
    ))
}

/// How long nothing had passed on a request's connection when it began, where that was long.
fn idle_before(log: &FindingEventLog<'_>, request: &TracedRequest) -> Option<u64> {
    let flow = |unit: i64| unit_ids::parts(unit).0;
    let before = log
        .costs()?
        .requests
        .iter()
        .filter(|one| one.unit != request.unit && flow(one.unit) == flow(request.unit))
        .map(|one| one.end_ns)
        .filter(|end_ns| *end_ns <= request.begin_ns())
        .max()?;
    Some(request.begin_ns() - before).filter(|idle_ns| *idle_ns >= IDLE_NS)
}
