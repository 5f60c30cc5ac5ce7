//! CPU limit: a core, all cores of a machine, or a CPU quota is at its limit.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::followed_units::left_over;
use crate::findings::followed_units::limits::LimitingStretch;
use crate::findings::followed_units::session::ALWAYS;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "cpu_limit",
    meaning: "a core, all cores of the machine that both ends are on, or a CPU quota is at its limit; for units tracked across hosts: the processor of one host is busy nearly all the time",
    find: &[Find::Run(in_session), Find::Measurement(find)],
};

/// Finding of a session (a run without measurements, whose units are followed through events): a processor is busy nearly all the time.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    at_limit(log).or_else(|| left_over::cpu_limit(&KIND, log))
}

/// The busiest processor of a session, unless a stretch of the units' path on the same host is a limit already.
fn at_limit(log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let processor = session.at_limit()?;
    let is_known = |limit: &LimitingStretch| {
        limit.share >= ALWAYS && limit.hosts.iter().any(|(host, _)| *host == processor.host)
    };
    if session.inside.iter().any(is_known) {
        return None;
    }
    let sentence = format!(
        "the limit is {}, busy {} of the time",
        processor.name(),
        percent(processor.busy)
    );
    let finding = KIND.of_run(processor.busy, 0.9, sentence);
    Some(session.processor_limits(log, processor, finding))
}

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let worst = context
        .processors
        .iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    let mut finding = KIND.finding(
        context,
        worst.share,
        worst.confidence,
        worst.sentence.clone(),
    );
    finding.evidence.push(worst.evidence.clone());
    let others = context
        .processors
        .iter()
        .filter(|other| other.host != worst.host);
    finding
        .evidence
        .extend(others.map(|other| other.evidence.clone()));
    finding.tries.clone_from(&worst.tries);
    Some(finding)
}
