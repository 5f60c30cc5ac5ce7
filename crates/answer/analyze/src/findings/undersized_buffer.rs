//! A buffer smaller than the streams through it need: streams times the least that is sent again (Tierney et al. 1996,
//! section 4.3.4), one segment in one packet.

use super::change::Change;
use super::context::Context;
use super::finding::{Finding, percent};
use super::kind::{Find, Kind};
use super::queues;
use stackline_core::units;

pub(super) const KIND: Kind = Kind {
    name: "undersized_buffer",
    meaning: "a queue that drops is smaller than its streams times one packet",
    find: &[Find::Measurement(find)],
};

fn find(context: &Context<'_>) -> Option<Finding> {
    let (place, share) = queues::worst(context)?;
    let (holds, needs) = queues::too_small(context, place)?;
    let port = &context.measurement.ports[place.port];
    let packet = needs / u64::from(port.streams);
    let sentence = format!(
        "the buffer before {} is too small for its streams: {} for {} streams of packets up to {} need {}; its drops cost {} of the time",
        port.name,
        units::size(holds),
        port.streams,
        units::size(packet),
        units::size(needs),
        percent(share)
    );
    let mut finding = KIND
        .finding(context, share, context.losses.confidence, sentence)
        .because(context.drops(place));
    finding
        .evidence
        .extend(queues::synchronised(context, place).map(|losses| losses.evidence));
    let fits = holds / packet.max(1);
    let small = holds / u64::from(port.streams.max(1));
    let larger = format!(
        "a buffer of at least {} (now {} fits {fits} such streams)",
        units::size(needs),
        units::size(holds)
    );
    let smaller = format!(
        "packets of at most {} (`mtu {small}` on the links)",
        units::size(small)
    );
    let finding = context
        .with_stalls(finding)
        .attempt_by(larger, Change::Queue(port.hop.ends.clone(), needs))
        .attempt_by(smaller, Change::Packets(small));
    // A pace below a rate that changes wastes it, one above it does not help.
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
                    units::rate(pace)
                ),
                Change::Pace(queues::senders(context), pace),
            ),
            None => finding,
        },
    )
}
