//! The interval of a prediction: the error of its formula, measured on randomly drawn specifications, and the chance
//! variation of a run.

use super::flow_limits::ModelledFlow;
use crate::count_to_f64;

/// Longest delay of an acknowledgement in Linux, s.
const DELAYED_ACK_S: f64 = 0.04;

/// Relative error of the formula for turns.
const TURNS: f64 = 0.01;

/// Standard deviations on both sides that contain nine of ten draws.
const NINE_OF_TEN: f64 = 1.645;

/// The interval that contains nine of ten runs, around a throughput with this limit.
pub(super) fn of_transfer(
    flow: &ModelledFlow<'_>,
    limit: &str,
    value: f64,
    elapsed_s: Option<f64>,
) -> [f64; 2] {
    let (below, above) = match limit {
        "loss" => (0.15, 0.15),
        "host" => (0.1, 0.05),
        "window" => (0.05, 0.02),
        "slow start" | "round trips" => (0.015, 0.015),
        _ => (0.025, 0.015),
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
    // The last bytes may wait for a delayed acknowledgement.
    let nagle = flow.s.transport.stream && !flow.s.part.stack.flag("nodelay");
    let held = elapsed_s
        .filter(|_| nagle)
        .map_or(1.0, |seconds| seconds / (seconds + DELAYED_ACK_S));
    [
        value * held * (1.0 - below - chance).max(0.0),
        value * (1.0 + above + chance),
    ]
}

/// The interval of a figure for turns, of which `waiting_s` is the wait for turns that arrive at random. `chance` is
/// the relative error of a run's mean wait, `spread` the absolute error from drawn values.
pub(super) fn of_turns(value: f64, waiting_s: f64, chance: f64, spread: f64) -> [f64; 2] {
    let form = TURNS * value;
    let off = form + libm::hypot(chance * waiting_s, spread);
    [
        (value - off).max(value - form - waiting_s - spread),
        value + off,
    ]
}

/// The largest error of the mean of `draws` draws in nine of ten runs, in the unit of the draws.
pub(super) fn of_draws(variance: f64, draws: f64) -> f64 {
    if variance <= 0.0 {
        return 0.0;
    }
    NINE_OF_TEN * libm::sqrt(variance / draws.max(1.0))
}

/// The largest relative error of the mean wait of `calls` calls in nine of ten runs; `variation` is that of the
/// service times. It is the variance of one wait (Takacs 1962, with the third moment of a gamma distribution), times
/// the number of waits that depend on each other: one without load, `4 / (1 - load)^2` for exponential services under
/// high load (Whitt 1989).
pub(super) fn of_waits(calls: f64, load: f64, variation: f64) -> f64 {
    if load <= 0.0 {
        return 0.0;
    }
    let (c2, idle) = (variation * variation, (1.0 - load).max(1e-9));
    let one = 1.0 + 4.0 * idle * (1.0 + 2.0 * c2) / (3.0 * load * (1.0 + c2));
    let together = (1.0 + 1.5 * load * (1.0 + c2)) / (idle * idle);
    NINE_OF_TEN * libm::sqrt(one * together / calls.max(1.0))
}
