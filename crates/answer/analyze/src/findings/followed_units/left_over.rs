//! The likely limit of a display whose requests are in flight all the time although nothing is at its limit: the busiest processor or link,
//! or else round trips. Ports must have been monitored; such findings are less certain than those of a limit, and less certain still
//! without the processors.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::followed_units::between::{Between, is_display};
use crate::findings::followed_units::monitored::{PortSeen, ProcessorSeen};
use crate::findings::followed_units::session::SessionAnalysis;
use crate::findings::followed_units::turns::SerialTurns;
use crate::findings::kind::FindingKind;

/// A resource that is busy for at least this share of the time takes the largest part of it.
const MOST: f64 = 0.5;
/// Confidence of these findings.
const SURE: f64 = 0.7;
/// The same where processors were not monitored: one of them may be the limit.
const UNSEEN_PROCESSORS: f64 = 0.5;

/// The likely limit when nothing is at its limit.
pub(crate) enum Left<'s> {
    /// The busiest processor.
    Processor(&'s ProcessorSeen),
    /// The busiest link.
    Link(&'s PortSeen),
    /// Neither is busy: the round trips.
    RoundTrips,
}

/// Whether something is at its limit.
fn is_limited(log: &FindingEventLog<'_>, session: &SessionAnalysis) -> bool {
    session.is_pressed()
        || session.always_busy().is_some()
        || session.at_limit().is_some()
        || session.full(log).is_some()
        || Between::find(log, session).is_some()
}

/// Whether it is known what takes the time: something is at its limit, units are sent one after another, or there is a likely limit.
pub(crate) fn is_known(log: &FindingEventLog<'_>, session: &SessionAnalysis) -> bool {
    is_limited(log, session)
        || SerialTurns::from_log(log, session).is_some()
        || Left::find(log, session).is_some()
}

impl<'s> Left<'s> {
    /// The likely limit of a display whose ports were monitored; `None` for other sessions, or if something is at its limit.
    pub(crate) fn find(log: &FindingEventLog<'_>, session: &'s SessionAnalysis) -> Option<Self> {
        let is_seen = is_display(log) && !session.ports.is_empty();
        if !is_seen || !session.is_waited_for(log) || is_limited(log, session) {
            return None;
        }
        let processor = session.busiest().filter(|one| one.busy >= MOST);
        let link = session.fullest().filter(|port| port.busy >= MOST);
        match (processor, link) {
            (Some(processor), Some(link)) if processor.busy < link.busy => Some(Self::Link(link)),
            (Some(processor), _) => Some(Self::Processor(processor)),
            (None, Some(link)) => Some(Self::Link(link)),
            (None, None) => SerialTurns::from_log(log, session)
                .is_none()
                .then_some(Self::RoundTrips),
        }
    }
}

/// The finding about the busiest processor, which is not at its limit.
pub(crate) fn cpu_limit(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::Processor(processor) = Left::find(log, session)? else {
        return None;
    };
    let name = processor.name();
    let sentence = format!(
        "the busiest resource is {name}, in use {} of the time; nothing is at its limit",
        percent(processor.busy)
    );
    let finding = kind.of_run(processor.busy, SURE, sentence);
    Some(session.processor_limits(log, processor, finding))
}

/// The finding about the busiest link, which is not full.
pub(crate) fn network_limited(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::Link(port) = Left::find(log, session)? else {
        return None;
    };
    let sentence = format!(
        "the busiest resource is the link {}, in use {} of the time; nothing is at its limit",
        port.name,
        percent(port.busy)
    );
    let mut finding = kind.of_run(port.busy, SURE, sentence);
    finding.evidence.extend(session.evidence(log));
    Some(finding.attempt(format!(
        "a faster link {}, or fewer bytes per request or answer",
        port.name
    )))
}

/// The finding that no resource is busy for long, so units wait for round trips or timers.
pub(crate) fn serial_round_trips(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::RoundTrips = Left::find(log, session)? else {
        return None;
    };
    let (works, links) = (
        session.busiest().map(|one| one.busy),
        percent(session.used()),
    );
    let (others, confidence) = match works {
        Some(works) => {
            let works = percent(works);
            (
                format!(
                    "no processor is busy more than {works} of the time and no link more than {links}"
                ),
                SURE,
            )
        }
        None => (
            format!("no link is busy more than {links} of the time; processors were not monitored"),
            UNSEEN_PROCESSORS,
        ),
    };
    let sentence = format!(
        "units wait for round trips or a timer: some are in flight all the time, while {others}"
    );
    let gain = 1.0 - works.unwrap_or(0.0).max(session.used());
    let mut finding = kind.of_run(gain, confidence, sentence);
    finding.evidence.extend(session.evidence(log));
    let finding = finding.attempt(
        "more in flight at once: a larger transport window or buffer (`receive_buffer` at the display's end, `send_buffer`), or calls that do not wait for one another (`agent` instead of `messages`)",
    );
    let finding = finding
        .attempt("sending immediately: `nodelay` of tcp, no `polls`, more requests per message");
    Some(finding.attempt("a shorter path: a nearer host"))
}
