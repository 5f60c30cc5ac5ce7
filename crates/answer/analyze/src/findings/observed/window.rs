//! Observed window: a sender of any program that waits for the receiver's window, according to a monitor, a capture or a QUIC log.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedSymptom, collect_captured, collect_monitored, format_ns, is_observed,
    report_worst_connection, share,
};
use crate::findings::observed::quic::collect_logged;
use crate::findings::observed::transfers::sender_of;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_window",
    meaning: "in watched, captured or logged connections: the receiver's window was full, and the sender waited",
    find: &[Find::Run(find)],
};

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let of_monitors = collect_monitored(log).into_iter().map(|one| {
        let share = one.window_limited_ns / one.time_ns.max(1.0);
        let sentence = format!(
            "{} was held back by the window of {} for {} of the watched time",
            one.local,
            one.remote,
            percent(share)
        );
        let figures = format!(
            "{} > {}: {} limited by the window",
            one.local,
            one.remote,
            format_ns(one.window_limited_ns)
        );
        ObservedSymptom {
            share,
            sentence,
            figures,
            rows: one.rows,
        }
    });
    let of_captures = collect_captured(log)
        .into_iter()
        .map(|(row, one)| full_window(row, &one));
    let of_logs = collect_logged(log).into_iter().map(|one| {
        let (blocked_ns, host) = (one.blocked_ns as f64, one.host);
        let share = share(blocked_ns, one.covered_ns.unsigned_abs());
        let sentence = format!(
            "the receiver's flow control held {host} back for {} of its connection time",
            percent(share)
        );
        let figures = format!("{host}: {} blocked by flow control", format_ns(blocked_ns));
        ObservedSymptom {
            share,
            sentence,
            figures,
            rows: one.info_rows,
        }
    });
    let all = of_monitors.chain(of_captures).chain(of_logs);
    let found = report_worst_connection(&KIND, log, all)?;
    Some(found.attempt("make the receiver read faster, or give it a larger receive buffer"))
}

/// How long the receiver's window of a captured connection was full, in words.
fn full_window(row: u32, one: &CapturedConnection) -> ObservedSymptom {
    let share = share(one.window_full_ns as f64, one.duration_ns);
    let share_in_words = percent(share);
    let [initiator, responder] = [0, 1].map(|end| one.end_in_words(end));
    let sentence = match sender_of(one) {
        Some(sender) => format!(
            "the window of {} was full for {share_in_words} of its connection time: {} waits until it reads",
            one.end_in_words(1 - sender),
            one.end_in_words(sender)
        ),
        None => format!(
            "the receiver's window between {initiator} and {responder} was full for {share_in_words} of their connection time"
        ),
    };
    let figures = format!(
        "{} > {}: {} with a full window, zero windows: {}",
        one.initiator,
        one.responder,
        format_ns(one.window_full_ns as f64),
        one.zero_windows
    );
    ObservedSymptom {
        share,
        sentence,
        figures,
        rows: vec![row],
    }
}
