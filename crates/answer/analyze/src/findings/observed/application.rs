//! Observed application limit: a sender whose program gave it nothing to send, while neither its congestion window nor the receiver held it
//! back. Of QUIC by its own log; of TCP by pauses of a transfer that neither a loss nor a full window explains.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, counted, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    ObservedSymptom, collect_captured, format_ns, is_observed, report_worst_connection, share,
};
use crate::findings::observed::quic::{LoggedQuic, collect_logged};
use crate::findings::observed::sender_limits::collect_sender_limits;
use crate::findings::observed::transfers::sender_of;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_application",
    meaning: "in connections that sent at least 64 KiB: the sender could have sent, but its program gave it nothing to send: most of the time by a QUIC log, or in pauses of a transfer over TCP",
    find: &[Find::Run(find)],
};

/// A host that sends fewer bytes only answers others and is not judged.
const SENDER_BYTES: i64 = 64 << 10;
/// From this share of pauses on, a stream is likely meant to be slow.
const BY_DESIGN: f64 = 0.95;
/// The least share of a connection's time without anything to send; less is usual.
const MOST: f64 = 0.5;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    of_quic(log).or_else(|| of_transfers(log))
}

/// The finding about TCP transfers whose sender pauses.
fn of_transfers(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let limits = collect_sender_limits(log);
    let paused = collect_captured(log).into_iter().filter_map(|(row, one)| {
        let sender = sender_of(&one)?;
        let paused_ns = one.program_paused_ns(sender, limits.get(&one.stream(sender)));
        Some(sender_pauses(row, &one, sender, paused_ns))
    });
    let mut found = report_worst_connection(&KIND, log, paused)?;
    // What pauses nearly all the time, such as a stream of events, may be meant so.
    found.confidence = match found.share < BY_DESIGN {
        true => 0.8,
        false => 0.5,
    };
    Some(found.attempt("check what the program does between its writes: it reads a disk, waits for another program, or sleeps"))
}

/// Whether the pauses of a transfer's sender explain its longest quiet period too.
pub(super) fn pauses_explain(one: &CapturedConnection) -> bool {
    let end = ["initiator", "responder"].map(|end| end == one.quiet_until);
    sender_of(one).is_some_and(|sender| end[sender] && one.paused_ns[sender] >= one.quiet_ns)
}

/// The pauses of a transfer's sender, in words.
fn sender_pauses(
    row: u32,
    one: &CapturedConnection,
    sender: usize,
    paused_ns: u64,
) -> ObservedSymptom {
    let share = share(paused_ns as f64, one.duration_ns);
    let (who, to) = (one.end_in_words(sender), one.end_in_words(1 - sender));
    let (paused, pauses) = (
        format_ns(paused_ns as f64),
        counted(one.pauses[sender], "pause"),
    );
    ObservedSymptom {
        share,
        sentence: format!(
            "{who} sends {} to {to} with {pauses} of {paused} in all, {} of their connection time: all before it was acknowledged, the receiver has room, and the program writes nothing",
            units::format_size(one.bytes[sender]),
            percent(share)
        ),
        figures: format!("{who} > {to}: {pauses}, {paused}"),
        rows: vec![row],
    }
}

/// The finding about QUIC senders by their logs.
fn of_quic(log: &FindingEventLog<'_>) -> Option<Finding> {
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
