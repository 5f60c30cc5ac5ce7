//! What holds a direction back beside its transmitter: a host's own pace, rates that a switch grants, a shaper's tokens.

use crate::explicit_rate::Granted;
use crate::token_bucket::TokenClock;
use stackline_core::time::{Duration, Instant};

/// The limits of one direction of a link. Most directions have none.
#[derive(Debug, Default)]
pub(crate) struct SendLimits {
    /// Least time a byte takes, in ns; 0 without pacing.
    pub(crate) pace: f64,
    /// At a host's port on a switch that signals rates: the rates that were granted to it.
    pub(crate) granted: Option<Granted>,
    /// The token bucket before the link.
    pub(crate) shaper: Option<TokenClock>,
}

impl SendLimits {
    /// Whether they limit anything.
    pub(crate) fn are_any(&self) -> bool {
        self.pace > 0.0 || self.granted.is_some() || self.shaper.is_some()
    }

    /// When `charged` bytes may begin that could begin at `start` without a shaper.
    pub(crate) fn start(&self, start: Instant, charged: u64) -> Instant {
        let shaper = self.shaper.as_ref();
        shaper.map_or(start, |shaper| shaper.ready(start, charged))
    }

    /// The same, and takes the tokens.
    pub(crate) fn begin(&mut self, start: Instant, charged: u64) -> Instant {
        let start = self.start(start, charged);
        if let Some(shaper) = &mut self.shaper {
            shaper.take(start, charged);
        }
        start
    }

    /// When `charged` bytes that began at `start` have left at the earliest, on a link of that rate.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a pause of less than 2^52 ns"
    )]
    pub(crate) fn least_end(
        &mut self,
        start: Instant,
        charged: u64,
        bit_s: Option<f64>,
    ) -> Instant {
        let granted = match (&mut self.granted, bit_s) {
            (Some(granted), Some(bit_s)) => 8e9 / granted.rate(start, bit_s),
            _ => 0.0,
        };
        let pace = self.pace.max(granted);
        start + Duration((pace * charged as f64) as u64)
    }
}
