//! Causes at the client: it pauses within its request, or reads the answer late.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::requests::costs::RequestCause;
use crate::findings::requests::worst::{SERVER_LEAST, find_worst_place, report_request_cause};

pub(crate) fn client_pauses(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::ClientPause, SERVER_LEAST)?;
    let sentence = format!(
        "{} sends nothing in the midst of its requests, though nothing hinders it: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.9, sentence);
    Some(found.attempt("see what the client does between its writes: it computes, sleeps, reads a file, or waits for `100-continue`, which no server has to send (RFC 9110, 10.1.1)"))
}

pub(crate) fn client_late(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::SlowReader, SERVER_LEAST)?;
    let sentence = format!(
        "answers wait unread at {}: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.9, sentence);
    Some(found.attempt("see what the client does meanwhile; read in a thread of its own"))
}
