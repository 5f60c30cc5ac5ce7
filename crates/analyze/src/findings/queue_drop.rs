//! Packets that a named queue drops.

use super::context::{Context, percent};
use super::losses::Place;
use super::{Finding, Kind, LEAST, retransmission_stall, synchronised_loss, undersized_buffer};
use stackline_core::units;

/// The queue with most drops, and the time that all queues' drops cost.
pub(crate) fn worst<'v>(context: &'v Context<'_>) -> Option<(&'v Place, f64)> {
    let queues = || context.losses.places.iter().filter(|place| !place.on_the_link);
    let part: f64 = queues().map(|place| place.part).sum();
    let worst = queues().max_by(|a, b| a.part.total_cmp(&b.part))?;
    let share = context.losses.share * part;
    (share >= LEAST).then_some((worst, share))
}

/// Unless its buffer is too small for its streams or the streams lose together: those say more.
pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
    let (place, share) = worst(context)?;
    if undersized_buffer::needs(context, place).is_some() || synchronised_loss::together(context, place).is_some() {
        return None;
    }
    let port = &context.measurement.ports[place.port];
    let holds =
        port.hop.queue_bytes.map_or_else(String::new, |bytes| format!(" (it holds {})", units::size(bytes as u64)));
    let sentence = format!(
        "the queue before {}{holds} drops packets ({}), which costs {} of the time",
        port.name,
        port.reasons(),
        percent(share)
    );
    let finding = context.finding(Kind::QueueDrop, share, context.losses.confidence, sentence);
    let what = format!("{}: {}; {}", port.name, port.reasons(), context.losses.reckoned);
    let finding = finding.because(context.measurement.log.evidence(what, &place.rows));
    Some(tries(context, retransmission_stall::consequences(context, finding), place))
}

/// What can be done about a queue.
pub(crate) fn tries(context: &Context<'_>, finding: Finding, place: &Place) -> Finding {
    let port = &context.measurement.ports[place.port];
    let needed = context
        .measurement
        .parts
        .iter()
        .filter_map(super::measurement::Part::bandwidth_delay_bytes)
        .fold(0.0, f64::max);
    let finding = if needed > 0.0 {
        let more = format!(
            "a queue of {} before {}: what the path holds in a round trip",
            units::size(needed as u64),
            port.name
        );
        finding.attempt(more)
    } else {
        finding
    };
    let share = port
        .hop
        .rate_bit_s
        .map_or_else(String::new, |rate| format!(" at {}", units::rate(rate / f64::from(port.streams.max(1)))));
    finding.attempt(format!("senders that pace what they send{share} (`pace` of the host)"))
}
