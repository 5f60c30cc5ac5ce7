//! Findings about failed requests: their answers say so, the connection was refused or never answered, or the server ended it instead of
//! answering. Shares are of the number of requests, not of time.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::ends_in_words::both_ends;
use crate::findings::requests::failed_status::{is_client_alert, status_in_words};
use crate::findings::requests::failure_groups::{FailedGroup, consequences, count_words};
use crate::findings::requests::general_names::generalise_request;
use crate::findings::requests::given_up::deadline_ends;
use crate::findings::requests::request::{REFUSED, SERVER_RESET, SILENT, TracedRequest};
use crate::statistics::to_f64;
use stackline_events::unit_ids;

/// The least share of failed requests for a finding.
const SHARE: f64 = 0.005;
/// With at least this many failures, there is a finding whatever their share.
const MANY: usize = 5;
/// A connection on which nothing was transferred for at least this long was idle, ns.
const IDLE_NS: u64 = 200_000_000;

/// The calls that failed in the given way, not as a consequence of another failure, and the number of all calls; `None` if too few failed.
fn find_failed<'l>(
    log: &'l FindingEventLog<'_>,
    has_failed: impl Fn(&TracedRequest) -> bool,
) -> Option<(Vec<&'l TracedRequest>, u64)> {
    let calls = || {
        let requests = requests_of(log).iter();
        requests.filter(|one| one.is_call || one.has_failed())
    };
    let consequences = consequences(requests_of(log));
    let failed: Vec<&TracedRequest> = calls()
        .filter(|request| has_failed(request) && !consequences.contains(&request.unit))
        .collect();
    let all = calls().count() as u64;
    is_much(failed.len(), all).then_some((failed, all))
}

/// Whether there are enough failures for a finding.
fn is_much(failed: usize, all: u64) -> bool {
    failed >= MANY || failed > 0 && to_f64(failed as u64) >= SHARE * to_f64(all)
}

/// The calls and attempts to connect that failed in the given way, and the number of all of them.
fn find_failed_attempts<'l>(
    log: &'l FindingEventLog<'_>,
    has_failed: impl Fn(&TracedRequest) -> bool,
) -> (Vec<&'l TracedRequest>, u64) {
    let attempts = || {
        let requests = requests_of(log).iter();
        requests.filter(|request| request.is_call || request.is_unopened)
    };
    let failed = attempts().filter(|request| has_failed(request)).collect();
    (failed, attempts().count() as u64)
}

fn requests_of<'l>(log: &'l FindingEventLog<'_>) -> &'l [TracedRequest] {
    log.costs().map_or(&[][..], |costs| &costs.requests)
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

/// The finding about requests whose answers say that they failed.
pub(crate) fn failed(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    // Exceeded deadlines are reported by `unanswered_requests`, together with those that the client noticed first.
    let deadlines = deadline_ends(log);
    let is_said = |request: &TracedRequest| {
        request.exceeds_deadline() && deadlines.as_deref() == Some(both_ends(request).as_str())
    };
    let (failed, all) = find_failed(log, |request| request.has_failed() && !is_said(request))?;
    let group = FailedGroup::largest(&failed, requests_of(log));
    let in_words: Vec<String> = group
        .failed
        .iter()
        .map(|request| status_in_words(&request.protocol, &request.status))
        .collect();
    let statuses = count_words(in_words.iter().map(String::as_str));
    if is_client_alert(&group.first().protocol, &group.first().status) {
        let sentence = group.ended_by_client_in_words(requests_of(log), &statuses);
        let found = report_failures(kind, log, &failed, all, sentence);
        return Some(found.attempt(
            "check the server's certificate (name, dates, issuer) and the versions that it offers, or what the client trusts: `openssl s_client -connect HOST:PORT` shows them",
        ));
    }
    let how = format!(" with {statuses}");
    let sentence = group.requests_in_words(requests_of(log), "answered", &how, "");
    let is_of_client = failed.iter().all(|request| request.status.starts_with('4'));
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(found.attempt(if is_of_client {
        "check what the client asks for: names, permissions, rate limits"
    } else {
        "check the server's log for these requests"
    }))
}

/// The finding about requests whose server ended the connection instead of answering.
pub(crate) fn ended(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (failed, all) = find_failed(log, TracedRequest::is_ended_by_server)?;
    let group = FailedGroup::largest(&failed, requests_of(log));
    let is_reset = |request: &&&TracedRequest| request.unknown.as_deref() == Some(SERVER_RESET);
    let resets = group.failed.iter().filter(is_reset).count();
    let how = match resets {
        0 => "closed the connection of",
        some if some == group.failed.len() => "reset",
        _ => "closed or reset the connection of",
    };
    let idle: Vec<u64> = failed
        .iter()
        .filter_map(|request| idle_before(log, request))
        .collect();
    let was_idle = 2 * idle.len() > failed.len();
    let why = match idle.iter().min() {
        Some(least) if was_idle => {
            format!(
                "; idle time before that: at least {}",
                format_ns(*least as f64)
            )
        }
        _ => String::new(),
    };
    let sentence = group.requests_in_words(requests_of(log), how, "", &why);
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(if was_idle {
        found
            .attempt("make the client close idle connections before the server does (keep-alive timeouts)")
            .attempt("use a new connection to retry what may safely be repeated")
    } else {
        found.attempt("find out why the server closes connections: check its logs, its limits, and whether it crashes or is restarted")
    })
}

/// The finding about refused connections, however little time that took.
pub(crate) fn refused(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let is_refused = |request: &TracedRequest| request.unknown.as_deref() == Some(REFUSED);
    let (refused, all) = find_failed_attempts(log, is_refused);
    if !is_much(refused.len(), all) {
        return None;
    }
    let group = FailedGroup::largest(&refused, requests_of(log));
    let detail = "; nothing is listening there";
    let sentence = group.connections_in_words(requests_of(log), "refused", detail);
    let found = report_failures(kind, log, &refused, all, sentence);
    Some(found.attempt("check whether the server is running and listening at that address and port (`ss -ltn`), and whether a firewall rejects the connection"))
}

/// The finding about requests with only a part of an answer, however little time that took.
pub(crate) fn cut_short(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (failed, all) = find_failed(log, TracedRequest::is_cut_off)?;
    let group = FailedGroup::largest(&failed, requests_of(log));
    let detail = ": the connection ended in the middle of the answer";
    let sentence = group.requests_in_words(requests_of(log), "answered", " only in part", detail);
    let found = report_failures(kind, log, &failed, all, sentence);
    Some(found.attempt("find out which side ends it: the server, by crashing or by announcing more bytes than it sends, or the client, by timing out"))
}

/// The finding about connections whose first packets nobody answered, although they were retransmitted.
pub(crate) fn silent(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let is_silent = |request: &TracedRequest| {
        request.is_unopened
            && request.unknown.as_deref() == Some(SILENT)
            && request.network.connect_again > 0
    };
    let (silent, all) = find_failed_attempts(log, is_silent);
    if silent.is_empty() {
        return None;
    }
    let group = FailedGroup::largest(&silent, requests_of(log));
    let again: i64 = group
        .failed
        .iter()
        .map(|request| request.network.connect_again)
        .sum();
    let detail = format!("; retransmissions of their first packets: {again}");
    let sentence = group.connections_in_words(requests_of(log), "did not answer", &detail);
    let found = report_failures(kind, log, &silent, all, sentence);
    Some(found.attempt(
        "check whether the address is right and the host is up, and whether a firewall drops packets to that port",
    ))
}

/// How long a request's connection had been idle when the request began, ns; `None` if that was short.
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
