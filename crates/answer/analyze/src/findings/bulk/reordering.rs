//! Reordering: packets overtake one another on a link; late ones are taken for lost, are retransmitted needlessly, and slow the sender
//! down.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::account::PartTimeShares;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::needless_resends::NeedlessResends;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "reordering",
    meaning: "packets overtake one another on a link, and data that was not lost is retransmitted",
    find: &[Find::Measurement(find)],
};

/// Confidence: needless retransmissions are counted, but their cost is estimated.
const SURE: f64 = 0.8;

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let resends = context.needless_resends.as_ref()?;
    let measurement = &context.measurement;
    let port = &measurement.ports[resends.port];
    let share = cost(context, resends);
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "packets overtake one another on the link {}: of {} retransmitted packets, {} had not been lost, which costs {} of the time",
        port.name,
        resends.again,
        resends.needless,
        percent(share)
    );
    let figure = format!(
        "packets retransmitted: {}, dropped: {}; {}",
        resends.again,
        resends.again - resends.needless,
        context.losses.basis
    );
    let sure = if resends.beside_losses() {
        NeedlessResends::BESIDE_LOSSES
    } else {
        SURE
    };
    Some(
        KIND.finding(context, share, sure, sentence)
            .because(measurement.figure(figure))
            .attempt_by(
                format!(
                    "keep packets in order on the link {}: one path, one queue",
                    port.name
                ),
                PlanChange::InOrder(port.hop.ends.clone()),
            ),
    )
}

/// The share of the time that needless retransmissions cost: their part of the time that losses take. That time is what senders report
/// if they do; else for calls the waits for lost bytes, and for bulk data the time in which neither path nor windows were the limit.
fn cost(context: &FindingContext<'_>, resends: &NeedlessResends) -> f64 {
    let measurement = &context.measurement;
    let accounts = measurement.parts.iter().map(|part| context.account(part));
    let reported: Option<Vec<&PartTimeShares>> = accounts.collect();
    let whole = if reported.is_some() {
        measurement.over_parts(|part| context.account(part).map_or(0.0, PartTimeShares::lost))
    } else if measurement.has_calls_or_connects() {
        context.losses.stalled
    } else {
        let kept = measurement.over_parts(|part| {
            let limits = part.limits().unwrap_or_default();
            limits.receive_window + limits.send_buffer
        });
        let full = measurement.over_parts(|part| measurement.fullness(part).unwrap_or(1.0));
        (1.0 - full - context.outages.share).max(0.0) * (1.0 - kept.min(1.0))
    };
    whole * resends.part()
}
