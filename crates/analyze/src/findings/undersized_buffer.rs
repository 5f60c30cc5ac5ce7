//! A buffer smaller than the streams through it need: streams times the least that is sent again (Tierney et al. 1996,
//! section 4.3.4), one segment in one packet.

use super::context::{Context, percent};
use super::losses::Place;
use super::{Finding, Kind, queue_drop, retransmission_stall, synchronised_loss};
use crate::statistics::real;
use stackline_core::units;

/// What a queue holds and what its streams need, bytes; `None` when it is enough.
pub(crate) fn needs(context: &Context<'_>, place: &Place) -> Option<(u64, u64)> {
    let port = &context.measurement.ports[place.port];
    let holds = port.hop.queue_bytes?;
    // The largest packet that the streams send, not the largest that fits.
    let paths = context.measurement.parts.iter().filter_map(super::measurement::Part::data_path);
    let packet = paths.map(stackline_model::Path::mtu_bytes).min().unwrap_or(port.hop.mtu_bytes);
    let needs = u64::from(port.streams) * packet;
    (port.streams > 1 && holds < real(needs)).then_some((holds as u64, needs))
}

pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
    let (place, share) = queue_drop::worst(context)?;
    let (holds, needs) = needs(context, place)?;
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
    let finding = context.finding(Kind::UndersizedBuffer, share, context.losses.confidence, sentence);
    let what = format!("{}: {}; {}", port.name, port.reasons(), context.losses.reckoned);
    let mut finding = finding.because(context.measurement.log.evidence(what, &place.rows));
    if let Some(together) = synchronised_loss::together(context, place) {
        finding = finding.because(together.evidence);
    }
    let fits = holds / packet.max(1);
    let small = holds / u64::from(port.streams.max(1));
    Some(
        retransmission_stall::consequences(context, finding)
            .attempt(format!(
                "a buffer of at least {} (now {} fits {fits} such streams)",
                units::size(needs),
                units::size(holds)
            ))
            .attempt(format!("packets of at most {} (`mtu {small}` on the links)", units::size(small)))
            .attempt(format!(
                "each sender paced to 1/{} of the link (`pace {}`)",
                port.streams,
                port.hop.rate_bit_s.map_or_else(|| "...".into(), |rate| units::rate(rate / f64::from(port.streams)))
            )),
    )
}
