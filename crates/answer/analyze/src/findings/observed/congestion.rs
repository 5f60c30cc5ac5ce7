//! Observed congestion: a QUIC sender whose congestion window was full according to its own log, while it had more to send and the receiver
//! had room.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{ObservedSymptom, format_ns, report_worst_connection};
use crate::findings::observed::quic::{LoggedQuic, collect_logged};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_congestion",
    meaning: "in logged QUIC connections: the sender's congestion window was full while it had more to send",
    find: &[Find::Run(find)],
};

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let logged = collect_logged(log);
    // If the sender lost many packets, its small window is due to them, and that is another finding.
    let full = logged
        .iter()
        .filter(|one| one.has_window && !one.loses_many())
        .map(window_full);
    let found = report_worst_connection(&KIND, log, full)?;
    Some(found.attempt(
        "shorten the round trip, or find what keeps the window small: losses, a congestion control algorithm that grows it slowly, a short transfer",
    ))
}

/// The share of a connection's time with a full congestion window, in words.
fn window_full(one: &LoggedQuic<'_>) -> ObservedSymptom {
    let (full_ns, share) = (one.full_ns(), one.share_full());
    let trip = match one.round_trip_ns {
        0 => String::new(),
        ns => format!("; a round trip takes up to {}", format_ns(ns as f64)),
    };
    let host = one.host;
    let sentence = format!(
        "the congestion window of {host} was full for {} of its connection time{trip}",
        percent(share)
    );
    let figures = format!("{host}: {} with a full window", format_ns(full_ns as f64));
    ObservedSymptom {
        share,
        sentence,
        figures,
        rows: one.info_rows.clone(),
    }
}
