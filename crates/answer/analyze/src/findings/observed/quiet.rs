//! Observed quiet period: a captured connection on which nothing was sent for long. The side whose data ends the period is the one that was
//! waited for.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::application::pauses_explain;
use crate::findings::observed::connections::{
    ObservedSymptom, collect_captured, format_ns, is_observed, report_worst_connection, share,
};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_quiet",
    meaning: "in captured connections: a single period without data takes a large part of their time; the side that sends next kept the other waiting",
    find: &[Find::Run(find)],
};

/// The least share of a connection's time that one period without data must take; less is usual.
const LARGE: f64 = 0.2;
/// Shorter periods are not mentioned, ns.
const LEAST_NS: u64 = 10_000_000;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let captured = collect_captured(log);
    let of_all_ns = LEAST * observed_ns(log, &captured);
    let found = captured.into_iter().filter_map(|(row, one)| {
        let share = share(one.quiet_ns as f64, one.duration_ns);
        let who = match &one.quiet_until[..] {
            "initiator" => format!("waiting for {} to send", one.end_in_words(0)),
            "responder" => format!("waiting for {} to send", one.end_in_words(1)),
            "retransmission" => "waiting for a retransmission after a loss".to_owned(),
            _ => return None,
        };
        let quiet = format_ns(one.quiet_ns as f64);
        let (initiator, responder) = (one.end_in_words(0), one.end_in_words(1));
        let sentence = format!(
            "between {initiator} and {responder}, nothing was sent for {quiet}, {} of their connection time: {who}",
            percent(share)
        );
        let figures = format!(
            "{} > {}: {quiet} without data",
            one.initiator, one.responder
        );
        // A period of up to two round trips is not a pause.
        let is_pause = one
            .handshake_ns
            .is_none_or(|trip| one.quiet_ns > trip.saturating_mul(2))
            && one.quiet_ns >= LEAST_NS
            && one.quiet_ns as f64 >= of_all_ns
            && !pauses_explain(&one);
        (share >= LARGE && is_pause).then_some(ObservedSymptom {
            share,
            sentence,
            figures,
            rows: vec![row],
        })
    });
    report_worst_connection(&KIND, log, found)
}

/// The time from the first to the last of these connections and of all requests, ns.
fn observed_ns(log: &FindingEventLog<'_>, captured: &[(u32, CapturedConnection)]) -> f64 {
    let connections = captured.iter().map(|(_, one)| {
        let end_ns = one.began_ns.saturating_add(one.duration_ns);
        (one.began_ns, end_ns)
    });
    let requests = log.costs().map_or(&[][..], |costs| &costs.requests);
    let requests = requests.iter().map(|one| (one.begin_ns(), one.end_ns));
    let spans = connections.chain(requests);
    let whole = spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    whole.map_or(0.0, |(from_ns, to_ns)| to_ns.saturating_sub(from_ns) as f64)
}
