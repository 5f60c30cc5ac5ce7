//! Undersized buffer: a queue holds less than its streams need, which is the number of streams times the least that is retransmitted
//! (Tierney et al. 1996, section 4.3.4): one segment in one packet.

use crate::findings::bulk::shared::queues;
use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use stackline_core::units;

/// The least MTU of a link (RFC 791), bytes: a smaller one is no advice.
const LEAST_MTU: u64 = 68;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "undersized_buffer",
    meaning: "a queue that drops packets has room for less than one packet per stream",
    find: &[Find::Measurement(find)],
};

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (place, share) = queues::find_worst_queue(context)?;
    let (holds, needs) = queues::too_small(context, place)?;
    let port = &context.measurement.ports[place.port];
    let packet = needs / u64::from(port.streams);
    let sentence = format!(
        "the buffer before {} is too small for its streams: it holds {}, but {} streams with packets of up to {} need {}; its drops cost {} of the time",
        port.name,
        units::format_size(holds),
        port.streams,
        units::format_size(packet),
        units::format_size(needs),
        percent(share)
    );
    let mut finding = KIND
        .finding(context, share, context.losses.confidence, sentence)
        .because(context.drops(place));
    finding
        .evidence
        .extend(queues::detect_synchronised_loss(context, place).map(|losses| losses.evidence));
    let fits = holds / packet.max(1);
    let small = holds / u64::from(port.streams.max(1));
    let larger = format!(
        "a buffer of at least {} (the current {} is enough for only {fits} of the streams)",
        units::format_size(needs),
        units::format_size(holds)
    );
    let smaller = format!(
        "packets of at most {} (`mtu {small}` on the links)",
        units::format_size(small)
    );
    let finding = context
        .with_stalls(finding)
        .attempt_by(larger, PlanChange::Queue(port.hop.ends.clone(), needs))
        .attempt_by_unless(small < LEAST_MTU, smaller, PlanChange::Packets(small));
    // With a varying rate no pace helps: below the rate it wastes capacity, above it nothing changes.
    Some(
        match port
            .hop
            .rate_bit_s
            .filter(|_| !port.varies)
            .map(|rate| rate / f64::from(port.streams))
        {
            Some(pace) => finding.attempt_by(
                format!(
                    "each sender paced to 1/{} of the link (`pace {}`)",
                    port.streams,
                    units::format_rate(pace)
                ),
                PlanChange::Pace(queues::senders(context), pace),
            ),
            None => finding,
        },
    )
}
