//! Properties of paths that no formula covers: changes over time, jitter, queues that drop early, calls of other parts
//! on the same links.

use super::shared_words::{LEAST_TIMEOUT_S, LITTLE, name};
use crate::path::{HopModel, PathModel};
use crate::predict::flow_limits::ModelledFlow;
use crate::predict::situation::Situation;
use alloc::format;
use alloc::string::String;
use stackline_core::units;

/// Few packets are delayed by more than this many standard deviations above the mean.
const DEVIATIONS: f64 = 2.0;
/// Hardly any packet is delayed by more than this many standard deviations above the mean.
const ALL_DEVIATIONS: f64 = 5.0;
/// Jitter of at least this share of the round-trip time affects a stream.
const NOTICED: f64 = 0.01;

/// Properties that change during a run, or duplicated packets. The mean of a run is not the long-run mean: calls that
/// follow one another are more frequent while they are short.
pub(super) fn unsteady(s: &Situation<'_>) -> Result<(), String> {
    let reasons = s.there.unsteady.iter().chain(&s.back.unsteady);
    reasons.into_iter().next().map_or(Ok(()), |reason| {
        Err(format!("{reason}, which no closed-form formula covers"))
    })
}

/// Other parts with turns (not bulk transfers) on the same links. A turn is one call, exchange or connection.
pub(super) fn beside_turns(s: &Situation<'_>) -> Result<(), String> {
    let takes_time = |hop: &&HopModel| hop.rate_bit_s.is_some();
    let hops = s.there.hops.iter().chain(&s.back.hops);
    let place = s.place();
    hops.filter(takes_time)
        .find(|hop| s.load.carries_turns_beside(hop, place))
        .map_or(Ok(()), |hop| {
            Err(format!(
                "other calls also cross {}, and no closed-form formula says how often they do",
                name(hop)
            ))
        })
}

/// The delay by jitter that only few packets exceed, s; infinite where the distribution has no variance.
fn jitter_s(path: &PathModel, deviations: f64) -> f64 {
    let late = |hop: &HopModel| {
        let drawn = &hop.jitter.as_ref()?.distribution;
        let deviation = drawn.variance().map_or(f64::INFINITY, libm::sqrt);
        Some(drawn.mean().unwrap_or(f64::INFINITY) + deviations * deviation)
    };
    path.hops.iter().filter_map(late).sum()
}

/// Jitter in a transfer: packets that overtake or wait for each other look like losses and queues.
pub(super) fn jitter_of_transfer(
    flow: &ModelledFlow<'_>,
    elapsed_s: f64,
    rtt_s: f64,
) -> Result<(), String> {
    let late_s = jitter_s(flow.data, DEVIATIONS) + jitter_s(flow.acks, DEVIATIONS);
    let is_little = if flow.s.transport.stream {
        late_s <= NOTICED * rtt_s
    } else {
        late_s <= LITTLE * elapsed_s
    };
    if is_little {
        return Ok(());
    }
    Err(
        "to a stream, jitter looks like loss and queueing, and no closed-form formula describes the stream's reaction"
            .into(),
    )
}

/// Jitter in turns of `turn_s` seconds. `alone` says that each message is a single packet: such a message arrives
/// after the mean delay, a longer one only when the latest of its packets arrives. A stream also sends bare
/// acknowledgements before answers; where packets stay in order, answers wait for them.
pub(crate) fn jitter_of_turns(s: &Situation<'_>, turn_s: f64, alone: bool) -> Result<(), String> {
    let of = |deviations| jitter_s(&s.there, deviations) + jitter_s(&s.back, deviations);
    if of(DEVIATIONS) <= LITTLE * turn_s {
        return Ok(());
    }
    if !alone {
        return Err(
            "a message is complete when its slowest packet arrives, and no closed-form formula gives the delay due to jitter"
                .into(),
        );
    }
    if !s.transport.stream {
        return Ok(());
    }
    let hops = s.there.hops.iter().chain(&s.back.hops);
    if hops
        .filter_map(|hop| hop.jitter.as_ref())
        .any(|jitter| !jitter.reorder)
    {
        return Err(
            "with jitter, packets wait for earlier ones, and no closed-form formula gives the delay"
                .into(),
        );
    }
    if of(ALL_DEVIATIONS) > LEAST_TIMEOUT_S {
        return Err(format!(
            "jitter delays packets beyond the retransmission timeout of {}",
            units::format_time(LEAST_TIMEOUT_S)
        ));
    }
    Ok(())
}

/// A queue that can grow, with a discipline that drops packets before it is full.
pub(super) fn drops_early(path: &PathModel) -> Result<(), String> {
    let mut before = f64::INFINITY;
    for hop in &path.hops {
        let Some(rate) = hop.rate_bit_s else {
            continue;
        };
        if hop.drops_early && rate < before {
            return Err(format!(
                "the queue at {} is not drop-tail, and no closed-form formula says when it drops packets",
                name(hop)
            ));
        }
        before = before.min(rate);
    }
    Ok(())
}
