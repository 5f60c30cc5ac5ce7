//! What the answers of one round trip have shown.

use stackline_core::time::Instant;

/// A round trip: it ends with the answer to something that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlastRttRound {
    pub(super) begun: Instant,
    /// Its answers are about packets sent before the window was cut: they are not judged.
    pub(super) stale: bool,
    pub(super) samples: u32,
    /// The least round trip measured in it, in s.
    pub(super) least: f64,
    /// The number of packets reported as missing.
    pub(super) lost: u32,
    /// Bytes sent in it.
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

    /// The arrival rate in it, in bytes/s; a shorter round counts as `base` seconds.
    pub(super) fn speed(&self, now: Instant, delivered: u64, base: f64) -> f64 {
        (delivered - self.delivered) as f64 / now.since(self.begun).seconds().max(base)
    }
}
