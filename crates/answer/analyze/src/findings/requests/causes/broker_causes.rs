//! The cause behind a broker: the program that answers the requests that the broker hands on takes the time.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::requests::causes::server_causes::slowest_name;
use crate::findings::requests::costs::RequestCause;
use crate::findings::requests::worst::{LEAST_SERVER_NS, find_worst_place, report_request_cause};

/// The finding about a program that answers slowly behind a broker.
pub(crate) fn responder_takes(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Responder, LEAST_SERVER_NS)?;
    let is_seen = worst.costs.requests.iter().any(|request| {
        let responder = request.responder.as_ref();
        responder.is_some_and(|who| who.name == worst.place && who.is_seen)
    });
    let which = slowest_name(&worst).map_or_else(String::new, |name| format!(" {name}"));
    let sentence = format!(
        "{} is slow to answer{which}: {}",
        worst.place,
        worst.time_in_words()
    );
    let (confidence, attempt) = match is_seen {
        true => (
            0.9,
            "check what it does for each message; several workers can share the work",
        ),
        false => (
            0.75,
            "trace the program that works on it as well, to see what its threads wait for",
        ),
    };
    Some(report_request_cause(kind, log, &worst, confidence, sentence).attempt(attempt))
}
