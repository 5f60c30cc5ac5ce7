//! A processor at its limit.

use super::context::Context;
use super::finding::Finding;
use super::kind::{Find, Kind};

pub(super) const KIND: Kind = Kind {
    name: "cpu_limit",
    meaning: "a core, all cores of the machine that both ends are on, or a CPU quota is at its limit",
    find: &[Find::Measurement(find)],
};

fn find(context: &Context<'_>) -> Option<Finding> {
    let worst = context.processors.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let mut finding = KIND.finding(context, worst.share, worst.confidence, worst.sentence.clone());
    finding.evidence.push(worst.evidence.clone());
    let others = context.processors.iter().filter(|other| other.host != worst.host);
    finding.evidence.extend(others.map(|other| other.evidence.clone()));
    finding.tries.clone_from(&worst.tries);
    Some(finding)
}
