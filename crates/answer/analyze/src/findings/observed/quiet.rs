//! Observed quiet period: a captured connection on which nothing was sent for long. The side whose data ends the period is the one that was
//! waited for.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
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
const LEAST_NS: u64 = 1_000_000;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let found = collect_captured(log).into_iter().filter_map(|(row, one)| {
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
