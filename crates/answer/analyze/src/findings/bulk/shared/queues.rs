//! Queues that drop packets: which one is the worst, whether it is too small for its streams, whether these lose packets together, and the
//! advice against it.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Evidence, Finding, LEAST};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::loss_cost::LossLocation;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::plan::Size;
use stackline_core::units;
use statrs::distribution::{DiscreteCDF, Poisson};
use std::collections::{BTreeMap, BTreeSet};

/// Significance level: coincident losses whose probability by chance is at most this are no accident.
const SIGNIFICANT: f64 = 0.01;
/// The least share of loss events in which several streams must lose packets.
const MOST: f64 = 0.5;

/// The queue with most loss events, and the share of the time that the drops of all queues cost; `None` if that is less than [`LEAST`].
pub(crate) fn find_worst_queue<'v>(
    context: &'v FindingContext<'_>,
) -> Option<(&'v LossLocation, f64)> {
    let queues = || {
        context
            .losses
            .places
            .iter()
            .filter(|place| !place.on_the_link)
    };
    let part: f64 = queues().map(|place| place.part).sum();
    let worst = queues().max_by(|a, b| a.part.total_cmp(&b.part))?;
    let share = context.losses.share * part;
    (share >= LEAST).then_some((worst, share))
}

/// How many queues drop packets at a cost.
pub(crate) fn count_dropping(context: &FindingContext<'_>) -> usize {
    let places = context.losses.places.iter();
    places
        .filter(|place| !place.on_the_link && place.part > 0.0)
        .count()
}

/// The capacity of a queue and what its streams need, bytes; `None` if it has enough, or only one stream.
pub(crate) fn too_small(context: &FindingContext<'_>, place: &LossLocation) -> Option<(u64, u64)> {
    let port = &context.measurement.ports[place.port];
    let holds = port.hop.queue_bytes?;
    // The size of the packets that the streams really send, which may be less than the link's MTU.
    let paths = context
        .measurement
        .parts
        .iter()
        .filter_map(MeasuredPart::data_path);
    let packet = paths
        .map(stackline_model::PathModel::mtu_bytes)
        .min()
        .unwrap_or(port.hop.mtu_bytes);
    let needs = u64::from(port.streams) * packet;
    (port.streams > 1 && holds < to_f64(needs)).then_some((holds as u64, needs))
}

/// The result of [`detect_synchronised_loss`]: streams lose packets at the same moments.
#[derive(Clone, Debug)]
pub(crate) struct Synchronised {
    /// Share of the moments of loss at which at least two streams lost.
    pub(crate) share: f64,
    /// The number of streams that lost packets.
    pub(crate) streams: usize,
    /// The number of moments of loss (time steps of one round trip).
    pub(crate) moments: u64,
    /// The drops, with the figures of the test.
    pub(crate) evidence: Evidence,
}

/// Tests whether the streams at a queue lose packets together: in time steps of one round trip, more of them lose in the same step than if
/// they lost independently (Poisson test at [`SIGNIFICANT`]).
pub(crate) fn detect_synchronised_loss(
    context: &FindingContext<'_>,
    place: &LossLocation,
) -> Option<Synchronised> {
    let log = context.measurement.log;
    let step = ((1e9 * context.measurement.longest_trip_s()) as u64).max(1);
    let first = log.at(*place.rows.first()?);
    let mut steps: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for row in &place.rows {
        if let Some(stream) = log.number(*row, "stream") {
            steps
                .entry((log.at(*row) - first) / step)
                .or_default()
                .insert(stream);
        }
    }
    let all = (1e9 * context.measurement.span_s / to_f64(step)).max(to_f64(steps.len() as u64));
    let (coincidences, expected) = coincidences(steps.values());
    let expected = expected / all;
    let common = steps.values().filter(|streams| streams.len() > 1).count() as u64;
    let streams: BTreeSet<i64> = steps.values().flatten().copied().collect();
    if coincidences == 0 {
        return None;
    }
    let by_chance = Poisson::new(expected.max(1e-12)).ok()?.sf(coincidences - 1);
    let (moments, share) = (
        steps.len() as u64,
        to_f64(common) / to_f64(steps.len() as u64),
    );
    if by_chance > SIGNIFICANT || share < MOST {
        return None;
    }
    let what = format!(
        "in {common} of {moments} loss events, several of the {} streams lost packets: {coincidences} coincidences, where {expected:.1} would be expected by chance",
        streams.len()
    );
    Some(Synchronised {
        share,
        streams: streams.len(),
        moments,
        evidence: log.evidence(what, &place.rows),
    })
}

/// How often a stream lost in a step in which another one did too, and the expected number by chance times the number of all steps.
fn coincidences<'s>(steps: impl Iterator<Item = &'s BTreeSet<i64>>) -> (u64, f64) {
    let mut losing: BTreeMap<i64, u64> = BTreeMap::new();
    let mut observed = 0;
    for streams in steps {
        observed += streams.len() as u64 - 1;
        streams
            .iter()
            .for_each(|stream| *losing.entry(*stream).or_default() += 1);
    }
    let all: f64 = losing.values().map(|n| to_f64(*n)).sum();
    let squares: f64 = losing.values().map(|n| to_f64(*n).powi(2)).sum();
    (observed, (all * all - squares) / 2.0)
}

/// The factor by which to lengthen a queue that already holds the bandwidth-delay product.
const MUCH_MORE: f64 = 4.0;

/// Adds the advice against drops of a queue: a longer queue, one that drops only when full, or paced senders.
pub(crate) fn add_queue_advice(
    context: &FindingContext<'_>,
    finding: Finding,
    place: &LossLocation,
) -> Finding {
    let port = &context.measurement.ports[place.port];
    // With a varying rate, a size or a pace computed from the mean rate is wrong most of the time.
    if port.varies {
        return finding.attempt(format!(
            "a longer queue before {}, whose rate varies",
            port.name
        ));
    }
    let needed = context
        .measurement
        .parts
        .iter()
        .filter_map(MeasuredPart::bandwidth_delay_bytes)
        .fold(0.0, f64::max);
    // A queue that already holds the bandwidth-delay product drops because many streams send at the same time.
    let (needed, why) = match port.hop.queue_bytes {
        Some(holds) if holds >= needed => (MUCH_MORE * holds, "four times its present capacity"),
        _ => (needed, "the bandwidth-delay product of the path"),
    };
    let finding = if port.hop.drops_early {
        let bytes = port.hop.queue_bytes.unwrap_or(0.0).max(needed) as u64;
        let full = format!(
            "a queue of {} before {} that drops nothing until it is full (`drop_tail`)",
            units::format_size(bytes),
            port.name
        );
        finding.attempt_by(full, PlanChange::DropTail(port.hop.ends.clone(), bytes))
    } else if needed > 0.0 {
        let more = format!(
            "a queue of {} before {}: {why}",
            units::format_size(needed as u64),
            port.name
        );
        finding.attempt_by(
            more,
            PlanChange::Queue(port.hop.ends.clone(), needed as u64),
        )
    } else {
        finding
    };
    let Some(each) = port
        .hop
        .rate_bit_s
        .map(|rate| rate / f64::from(port.streams.max(1)))
    else {
        return finding.attempt("paced senders (`pace` of the host)");
    };
    let advice = format!(
        "senders paced at {} (`pace` of the host)",
        units::format_rate(each)
    );
    finding.attempt_by(advice, PlanChange::Pace(senders(context), each))
}

/// The hosts that send bulk data, or for calls the longer messages.
pub(crate) fn senders(context: &FindingContext<'_>) -> Vec<String> {
    let mean = |size: &Size| match size {
        Size::Bytes(bytes) => to_f64(*bytes),
        Size::Drawn(drawn) => drawn.mean().unwrap_or(f64::INFINITY),
    };
    let sender = |part: &MeasuredPart<'_>| match part.ends() {
        Some((sender, _)) => sender.to_owned(),
        None if mean(&part.plan.data.reply) > mean(&part.plan.data.unit) => part.hosts.1.clone(),
        None => part.hosts.0.clone(),
    };
    context.measurement.parts.iter().map(sender).collect()
}
