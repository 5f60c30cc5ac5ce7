//! Synchronised loss: several streams lose packets at one queue at the same moments, so they slow down together and the link is idle then.

use crate::findings::bulk::shared::queues;
use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "synchronised_loss",
    meaning: "several streams lose packets in the same round trips, more often than expected by chance",
    find: &[Find::Measurement(find)],
};

/// The finding, unless the buffer is too small for its streams: that is a kind of its own, and explains more.
fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (place, share) = queues::find_worst_queue(context)?;
    if queues::too_small(context, place).is_some() {
        return None;
    }
    let losses = queues::detect_synchronised_loss(context, place)?;
    let port = &context.measurement.ports[place.port];
    let sentence = format!(
        "the {} streams at {} lose packets together (in {} of {} loss events) and slow down together, which costs {} of the time",
        losses.streams,
        port.name,
        percent(losses.share),
        losses.moments,
        percent(share)
    );
    let finding = KIND.finding(context, share, context.losses.confidence, sentence);
    let finding = context.with_stalls(
        finding
            .because(losses.evidence)
            .because(context.drops(place)),
    );
    let advice = format!(
        "an actively managed queue before {}: `queue fq_codel` or `red` slows down one stream at a time",
        port.name
    );
    let finding = finding.attempt_by(advice, PlanChange::FairQueue(port.hop.ends.clone()));
    Some(queues::add_queue_advice(context, finding, place))
}
