//! Closed-form models: what throughput and response time to expect from a path, a window, a loss rate and a procedure,
//! before anything is run.
//!
//! The crate has functions with units and sources, and [`predict()`], which combines them for a plan. It runs and
//! draws nothing and does not guess: where no formula applies, it gives the reason. Every function is total: valid
//! input gives a number or `None`, never NaN.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`path`] | the way between two hosts as hops with numbers |
//! | [`mean_loss`] | long-run means of distributions, rates and losses |
//! | [`overhead`] | what headers, frames and cells take |
//! | [`pipe`] | bandwidth-delay product, windows, buffers, queues |
//! | [`loss`] | throughput under loss: Mathis, CUBIC, PFTK |
//! | [`arpanet_messages`] | messages of several packets through stores and forwards: in flight, buffers, terminals (ARPANET, 1973) |
//! | [`slow_start`] | slow start, round by round |
//! | [`response`] | packets over hops, one after another |
//! | [`transport`] | what each stack adds: headers, control exchanges, windows |
//! | [`workload_pattern`] | what an application type does, read from its operations |
//! | [`prediction`] | what a prediction holds |
//! | [`predict`](mod@predict) | a plan to predictions |

#![no_std]

extern crate alloc;

pub mod arpanet_messages;
pub mod loss;
pub mod mean_loss;
pub mod overhead;
pub mod path;
pub mod pipe;
pub mod predict;
pub mod prediction;
pub mod response;
pub mod slow_start;
pub mod transport;
pub mod workload_pattern;

pub use path::{HopModel, PathModel};
pub use predict::predict;
pub use prediction::{
    FigureUnit, IntermediateValue, PartPrediction, PredictedFigure, PredictedQuantity,
    PredictionOutcome,
};

/// A count as a floating-point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "nobody sends as many as 2^53 bytes"
)]
pub(crate) const fn count_to_f64(count: u64) -> f64 {
    count as f64
}

/// A number above zero that is not infinite.
pub(crate) const fn is_positive(value: f64) -> bool {
    value > 0.0 && value < f64::INFINITY
}
