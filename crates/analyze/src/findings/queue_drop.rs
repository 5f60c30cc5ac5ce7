//! Packets that a named queue drops.

use super::losses::Place;
use super::view::{View, percent};
use super::{Finding, Kind, LEAST, retransmission, synchronised, undersized};
use stackline_core::units;

/// The queue with most drops, and the time that all queues' drops cost.
pub(crate) fn worst<'v>(view: &'v View<'_>) -> Option<(&'v Place, f64)> {
    let queues = || view.losses.places.iter().filter(|place| !place.on_the_link);
    let part: f64 = queues().map(|place| place.part).sum();
    let worst = queues().max_by(|a, b| a.part.total_cmp(&b.part))?;
    let share = view.losses.share * part;
    (share >= LEAST).then_some((worst, share))
}

/// Unless its buffer is too small for its streams or the streams lose together: those say more.
pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let (place, share) = worst(view)?;
    if undersized::needs(view, place).is_some() || synchronised::together(view, place).is_some() {
        return None;
    }
    let port = &view.scene.ports[place.port];
    let holds =
        port.hop.queue_bytes.map_or_else(String::new, |bytes| format!(" (it holds {})", units::size(bytes as u64)));
    let sentence = format!(
        "the queue before {}{holds} drops packets ({}), which costs {} of the time",
        port.name,
        port.reasons(),
        percent(share)
    );
    let finding = view.finding(Kind::QueueDrop, share, view.losses.confidence, sentence);
    let what = format!("{}: {}; {}", port.name, port.reasons(), view.losses.reckoned);
    let finding = finding.because(view.scene.log.evidence(what, &place.rows));
    Some(tries(view, retransmission::consequences(view, finding), place))
}

/// What can be done about a queue.
pub(crate) fn tries(view: &View<'_>, finding: Finding, place: &Place) -> Finding {
    let port = &view.scene.ports[place.port];
    let needed = view.scene.parts.iter().filter_map(super::scene::Part::bandwidth_delay_bytes).fold(0.0, f64::max);
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
