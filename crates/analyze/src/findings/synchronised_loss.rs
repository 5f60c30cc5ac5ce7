//! Several streams that lose at the same moments, at one queue: they fall and rise together, and the link idles meanwhile.

use super::context::{Context, percent};
use super::losses::Place;
use super::measurement::Part;
use super::{Evidence, Finding, Kind, queue_drop, retransmission_stall, undersized_buffer};
use crate::statistics::real;
use statrs::distribution::{DiscreteCDF, Poisson};
use std::collections::{BTreeMap, BTreeSet};

/// Chance below which losses at the same moments are no accident.
const SIGNIFICANT: f64 = 0.01;
/// Most of the moments have to be common ones.
const MOST: f64 = 0.5;

/// That streams lose together.
#[derive(Clone, Debug)]
pub(crate) struct Together {
    /// Share of the moments of loss at which at least two streams lost.
    share: f64,
    streams: usize,
    moments: u64,
    pub(crate) evidence: Evidence,
}

/// Whether the streams at a queue lose together: in time steps of a round trip, whether more of them lose in the same step
/// than if each lost by itself.
pub(crate) fn together(context: &Context<'_>, place: &Place) -> Option<Together> {
    let log = context.measurement.log;
    let trip = context.measurement.parts.iter().filter_map(Part::round_trip_s).fold(0.0, f64::max);
    let step = ((1e9 * trip) as u64).max(1);
    let first = log.at(*place.rows.first()?);
    let mut steps: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for row in &place.rows {
        if let Some(stream) = log.number(*row, "stream") {
            steps.entry((log.at(*row) - first) / step).or_default().insert(stream);
        }
    }
    let all = (1e9 * context.measurement.span_s / real(step)).max(real(steps.len() as u64));
    let (coincidences, expected) = coincidences(steps.values());
    let expected = expected / all;
    let common = steps.values().filter(|streams| streams.len() > 1).count() as u64;
    let streams: BTreeSet<i64> = steps.values().flatten().copied().collect();
    if coincidences == 0 {
        return None;
    }
    let by_chance = Poisson::new(expected.max(1e-12)).ok()?.sf(coincidences - 1);
    let (moments, share) = (steps.len() as u64, real(common) / real(steps.len() as u64));
    if by_chance > SIGNIFICANT || share < MOST {
        return None;
    }
    let what = format!(
        "at {common} of {moments} moments of loss several of {} streams lost: {coincidences} times one with another, where chance would give {expected:.1}",
        streams.len()
    );
    Some(Together { share, streams: streams.len(), moments, evidence: log.evidence(what, &place.rows) })
}

/// How often a stream lost in a step in which another had, and how often that would be by chance, times the steps.
fn coincidences<'s>(steps: impl Iterator<Item = &'s BTreeSet<i64>>) -> (u64, f64) {
    let mut losing: BTreeMap<i64, u64> = BTreeMap::new();
    let mut seen = 0;
    for streams in steps {
        seen += streams.len() as u64 - 1;
        streams.iter().for_each(|stream| *losing.entry(*stream).or_default() += 1);
    }
    let all: f64 = losing.values().map(|n| real(*n)).sum();
    let squares: f64 = losing.values().map(|n| real(*n).powi(2)).sum();
    (seen, (all * all - squares) / 2.0)
}

/// Unless the buffer is too small for the streams: that says more.
pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
    let (place, share) = queue_drop::worst(context)?;
    if undersized_buffer::needs(context, place).is_some() {
        return None;
    }
    let together = together(context, place)?;
    let port = &context.measurement.ports[place.port];
    let sentence = format!(
        "the {} streams at {} lose together ({} of {} moments of loss) and fall together: it costs {} of the time",
        together.streams,
        port.name,
        percent(together.share),
        together.moments,
        percent(share)
    );
    let finding =
        context.finding(Kind::SynchronisedLoss, share, context.losses.confidence, sentence).because(together.evidence);
    let what = format!("{}: {}; {}", port.name, port.reasons(), context.losses.reckoned);
    let finding = finding.because(context.measurement.log.evidence(what, &place.rows));
    let finding = retransmission_stall::consequences(context, finding);
    let finding = finding
        .attempt(format!("an active queue before {}: `queue fq_codel` or `red` drops one stream at a time", port.name));
    Some(queue_drop::tries(context, finding, place))
}
