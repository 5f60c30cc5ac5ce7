//! Observed application limit: a QUIC sender whose program gave it nothing to send according to its own log, while neither its congestion
//! window nor the receiver held it back.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedSymptom, format_ns, report_worst_connection, share,
};
use crate::findings::observed::quic::{LoggedQuic, collect_logged};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_application",
    meaning: "in logged QUIC connections that sent at least 64 KiB: the sender could have sent most of the time, but its program gave it nothing to send",
    find: &[Find::Run(find)],
};

/// A host that sends fewer bytes only answers others and is not judged.
const SENDER_BYTES: i64 = 64 << 10;
/// The least share of a connection's time without anything to send; less is usual.
const MOST: f64 = 0.5;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let logged = collect_logged(log);
    let idle = logged
        .iter()
        .filter(|one| one.has_window && one.sent_bytes >= SENDER_BYTES)
        // A sender that retransmits lost packets has something to send.
        .filter(|one| !one.loses_many())
        .map(had_nothing)
        .filter(|one| one.share >= MOST);
    let mut found = report_worst_connection(&KIND, log, idle)?;
    // The program may simply have had nothing to do, so the confidence is low.
    found.confidence = 0.5;
    Some(found.attempt("check what the program does between its writes"))
}

/// The share of a connection's time without anything to send, in words.
fn had_nothing(one: &LoggedQuic<'_>) -> ObservedSymptom {
    let idle_ns = one.covered_ns.saturating_sub(one.busy_ns).max(0);
    let (share, host) = (
        share(idle_ns as f64, one.covered_ns.unsigned_abs()),
        one.host,
    );
    let sentence = format!(
        "{host} could have sent data for {} of its connection time, but its program gave it nothing to send",
        percent(share)
    );
    let figures = format!(
        "{host}: {} with an open window and nothing to send",
        format_ns(idle_ns as f64)
    );
    ObservedSymptom {
        share,
        sentence,
        figures,
        rows: one.info_rows.clone(),
    }
}
