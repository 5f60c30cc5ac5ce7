//! The kind of finding that says that nothing limits the run but the work itself.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, HEALTHY};
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::requests::causes;
use crate::findings::unaccounted::is_plain;

pub(super) const KIND: FindingKind = FindingKind {
    name: HEALTHY,
    meaning: "nothing that can be changed takes 5 % of the time or more, and the time is accounted for; reported only if nothing else is found",
    find: &[Find::Run(in_session)],
};

/// The finding of a run without measurements: of traced requests, or of a session, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    causes::healthy(&KIND, log).or_else(|| network::healthy(&KIND, log))
}

/// The finding of a measurement in which no other kind was found.
pub(super) fn nothing_found(context: &FindingContext<'_>) -> Finding {
    let measurement = &context.measurement;
    let sentence = "nothing that can be changed takes a noticeable share of the time".to_owned();
    // The time of calls over IMPs or hosts' processors is not accounted for part by part.
    let is_divided = measurement.network.is_none() || is_plain(measurement);
    if measurement.has_calls_or_connects() && !is_divided {
        let sentence = format!(
            "{sentence}; the time of IMPs and of hosts' processors was not divided further"
        );
        return KIND.finding(context, 0.0, 0.5, sentence);
    }
    // Without events there are only the records of the run, which do not show everything.
    let confidence = if measurement.log.is_empty() {
        0.7
    } else {
        0.95
    };
    KIND.finding(context, 0.0, confidence, sentence)
}
