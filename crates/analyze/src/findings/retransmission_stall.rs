//! Stalls that a retransmission of the very bytes that were waited for explains, where it is not known who dropped them.

use super::context::{Context, percent};
use super::{Finding, Kind, LEAST};
use stackline_core::units;

pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
    let (losses, stalls) = (&context.losses, &context.losses.stalls);
    let named = losses.places.iter().any(|place| place.part > 0.0);
    if named || losses.stalled < LEAST || stalls.waits == 0 {
        return None;
    }
    let each = stalls.seconds / stalls.waits as f64;
    let sentence = format!(
        "{} waits hold a retransmission of their own bytes and take {} longer than usual, {} of the time; the longest {}",
        stalls.waits,
        units::time(each),
        percent(losses.stalled),
        units::time(stalls.longest_s)
    );
    let finding = context.finding(Kind::RetransmissionStall, losses.stalled, stalls.confidence, sentence);
    let what = format!("{} retransmissions within waits for their bytes", stalls.rows.len());
    Some(
        finding
            .because(context.measurement.log.evidence(what, &stalls.rows))
            .attempt("find where packets are dropped: interfaces (`ip -s link`), switches (`stackline watch --snmp`), queues (`tc -s qdisc`)")
            .attempt("for short exchanges a lower least time-out: `ip route change ... rto_min 20ms`"),
    )
}

/// What retransmissions did, as further evidence of what caused them.
pub(crate) fn consequences(context: &Context<'_>, finding: Finding) -> Finding {
    let stalls = &context.losses.stalls;
    if stalls.waits == 0 || stalls.rows.is_empty() {
        return finding;
    }
    let what = format!(
        "{} waits for bytes that were sent again, {} in all, the longest {}",
        stalls.waits,
        units::time(stalls.seconds),
        units::time(stalls.longest_s)
    );
    finding.because(context.measurement.log.evidence(what, &stalls.rows))
}
