//! How far a figure may be off: what its form leaves out, measured on specifications drawn at random, and what chance makes of a
//! run.

use super::flow_limits::ModelledFlow;
use crate::count_to_f64;

/// How long an acknowledgement is delayed at most, as Linux does it.
const DELAYED_ACK_S: f64 = 0.04;

/// What disciplines of queues, jitter and changing delays take of a stream, more than nothing.
const LEFT_OUT: f64 = 0.1;

/// Where nine of ten runs lie around a throughput that has that limit.
pub(super) fn of_transfer(
    flow: &ModelledFlow<'_>,
    limit: &str,
    value: f64,
    elapsed_s: Option<f64>,
) -> [f64; 2] {
    let (below, above) = match limit {
        "loss" => (0.15, 0.15),
        "host" => (0.2, 0.1),
        "window" => (0.15, 0.05),
        "slow start" | "round trips" => (0.08, 0.08),
        _ => (0.06, 0.04),
    };
    let below = if flow.data.left_out.is_empty() {
        below
    } else {
        below + LEFT_OUT
    };
    let p = flow.loss();
    let losses = flow
        .packets()
        .map_or(f64::INFINITY, |packets| p * count_to_f64(packets))
        * f64::from(flow.s.part.replicas);
    let chance = if limit == "loss" && losses > 0.0 {
        1.6 / libm::sqrt(losses)
    } else {
        0.0
    };
    // Its last bytes may wait for an acknowledgement that is delayed.
    let nagle = flow.s.transport.stream && !flow.s.part.stack.flag("nodelay");
    let held = elapsed_s
        .filter(|_| nagle)
        .map_or(1.0, |seconds| seconds / (seconds + DELAYED_ACK_S));
    [
        value * held * (1.0 - below - chance).max(0.0),
        value * (1.0 + above + chance),
    ]
}

/// The same of what goes in turns, of which so much is a wait for others that come at random: `chance` is how far the mean of a run's
/// waits may be off, over itself.
pub(super) fn of_turns(value: f64, waiting_s: f64, chance: f64) -> [f64; 2] {
    let off = 0.05 * value + chance * waiting_s;
    [
        (value - off).max(value - 0.05 * value - waiting_s),
        value + off,
    ]
}

/// How far the mean wait of so many calls is off in nine of ten runs, over the wait: those that meet a queue do so together, and a
/// queue lasts about `1 / (1 - load)^2` calls: a rule of thumb, wide enough for the specifications drawn.
pub(super) fn of_waits(calls: f64, load: f64) -> f64 {
    1.65 * libm::sqrt(
        (1.0 + load) / (1.0 - load).max(1e-9) / (1.0 - load).max(1e-9) / calls.max(1.0),
    )
}
