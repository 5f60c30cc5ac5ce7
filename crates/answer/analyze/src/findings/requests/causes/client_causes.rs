//! Causes at the client: it pauses in the middle of its request, or reads the answer late.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::requests::causes::TIME_OUT_NS;
use crate::findings::requests::costs::RequestCause;
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::worst::{LEAST_SERVER_NS, find_worst_place, report_request_cause};

/// The finding about a client that pauses in the middle of its requests.
pub(crate) fn client_pauses(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::ClientPause, LEAST_SERVER_NS)?;
    // Seen at the server alone, the loss of a message's end looks like silence: a pause of at least a timeout may be one.
    let silent = |request: &TracedRequest| {
        let paused = request.network.paused_there_ns;
        let is_of_server = request.times.is_some_and(|times| times.is_of_server);
        if is_of_server && paused >= TIME_OUT_NS {
            paused
        } else {
            0
        }
    };
    let silent: i64 = worst.costs.requests.iter().map(silent).sum();
    let (why, confidence) = match silent * 2 > worst.cost.ns {
        true => (
            ", or the end of what it sent was lost on the way (the server's side alone does not show which)",
            0.6,
        ),
        false => (", although nothing holds it back", 0.9),
    };
    let sentence = format!(
        "{} pauses in the middle of its requests{why}: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, confidence, sentence);
    Some(found.attempt("check what the client does between its writes: it may be computing, sleeping, reading a file, or waiting for `100-continue`, which no server has to send (RFC 9110, 10.1.1)"))
}

/// The least mean time per request that answers wait unread for a finding, ns: a program that gets several at once reads one after the other,
/// and a trace makes it slower.
const LEAST_LATE_NS: f64 = 2e6;

/// The finding about a client that reads answers late.
pub(crate) fn client_late(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::SlowReader, LEAST_LATE_NS)?;
    let sentence = format!(
        "answers wait unread at {}: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.9, sentence);
    Some(
        found.attempt(
            "check what the client does in the meantime, or let it read in a separate thread",
        ),
    )
}
