//! The answers of one round trip.

use stackline_core::time::Instant;

/// A round trip: it ends with the answer to something that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlastRttRound {
    pub(super) begun: Instant,
    /// Its answers are about what was sent before a cut: they are not judged.
    pub(super) stale: bool,
    pub(super) samples: u32,
    /// Least round trip measured in it, in seconds.
    pub(super) least: f64,
    /// Packets that were missing.
    pub(super) lost: u32,
    /// Bytes that left in it.
    pub(super) sent: f64,
    /// Bytes that had arrived when it began.
    delivered: u64,
}

impl BlastRttRound {
    pub(super) fn new(now: Instant, delivered: u64) -> Self {
        Self {
            begun: now,
            delivered,
            ..Self::default()
        }
    }

    pub(super) fn after_cut(now: Instant, delivered: u64) -> Self {
        Self {
            stale: true,
            ..Self::new(now, delivered)
        }
    }

    pub(super) const fn note(&mut self, trip: f64, lost: u32) {
        self.least = if self.samples == 0 {
            trip
        } else {
            self.least.min(trip)
        };
        self.samples += 1;
        self.lost = self.lost.saturating_add(lost);
    }

    /// Bytes a second that arrived in it, however short it was at least over `base` seconds.
    pub(super) fn speed(&self, now: Instant, delivered: u64, base: f64) -> f64 {
        (delivered - self.delivered) as f64 / now.since(self.begun).seconds().max(base)
    }
}
