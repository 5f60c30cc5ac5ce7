//! What limits a display whose requests are on their way all the time, and nothing is seen to be at its limit: by what is left over, where
//! ports and processors were seen. It is less sure than what names a limit.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::followed_units::between::{Between, is_display};
use crate::findings::followed_units::monitored::{PortSeen, ProcessorSeen};
use crate::findings::followed_units::session::SessionAnalysis;
use crate::findings::followed_units::turns::SerialTurns;
use crate::findings::kind::FindingKind;

/// What is busy for so much of the time takes the largest part of it, whatever the rest is.
const MOST: f64 = 0.5;
const SURE: f64 = 0.7;

/// What is left over.
pub(crate) enum Left<'s> {
    /// The processor that works most.
    Processor(&'s ProcessorSeen),
    /// The link that is used most.
    Link(&'s PortSeen),
    /// Neither: the network there and back.
    RoundTrips,
}

/// Whether something is seen to be at its limit.
fn is_limited(log: &FindingEventLog<'_>, session: &SessionAnalysis) -> bool {
    session.is_pressed()
        || session.always_busy().is_some()
        || session.at_limit().is_some()
        || session.full(log).is_some()
        || Between::of(log, session).is_some()
}

/// Whether it is known what takes the time: something is at its limit, units go one after the other, or something is left over.
pub(crate) fn is_known(log: &FindingEventLog<'_>, session: &SessionAnalysis) -> bool {
    is_limited(log, session)
        || SerialTurns::of(log, session).is_some()
        || Left::of(log, session).is_some()
}

impl<'s> Left<'s> {
    /// Of a display whose ports were seen.
    pub(crate) fn of(log: &FindingEventLog<'_>, session: &'s SessionAnalysis) -> Option<Self> {
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
            (None, None) => SerialTurns::of(log, session)
                .is_none()
                .then_some(Self::RoundTrips),
        }
    }
}

/// The processor that works most, though not all the time.
pub(crate) fn cpu_limit(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::Processor(processor) = Left::of(log, session)? else {
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

/// The link that is used most, though not all the time.
pub(crate) fn network_limited(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::Link(port) = Left::of(log, session)? else {
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

/// Nothing works for long: what units wait for is the way.
pub(crate) fn serial_round_trips(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let Left::RoundTrips = Left::of(log, session)? else {
        return None;
    };
    let works = session.busiest().map_or(0.0, |one| one.busy);
    let sentence = format!(
        "units wait for round trips or a timer: some are in flight all the time, while no processor is busy more than {} of the time and no link more than {}",
        percent(works),
        percent(session.used())
    );
    let mut finding = kind.of_run(1.0 - works.max(session.used()), SURE, sentence);
    finding.evidence.extend(session.evidence(log));
    let finding = finding.attempt(
        "more in flight at once: a larger transport window or buffer (`receive_buffer` at the display's end, `send_buffer`), or calls that do not wait for one another (`agent` instead of `messages`)",
    );
    let finding = finding
        .attempt("sending immediately: `nodelay` of tcp, no `polls`, more requests per message");
    Some(finding.attempt("a shorter path: a nearer host"))
}
