//! How fast packets leave: at most the rate that was asked for, in bursts that a short queue holds.

use stackline_core::time::{Duration, Instant};

/// A burst is as much as the rate gives in so long.
const BURST: Duration = Duration(2_000_000);

/// What the answer to a round tells.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// When the round's question left.
    pub sent: Instant,
    /// Bytes known to have arrived by now.
    pub delivered: u64,
    /// Packets of the round.
    pub packets: u32,
    /// How many of them are missing.
    pub lost: u32,
}

/// A pace.
#[derive(Clone, Debug)]
pub struct Rate {
    packet: u32,
    rate: f64,
    tokens: f64,
    at: Instant,
}

impl Rate {
    /// Packets of `packet` bytes at `ceiling` bit/s at most.
    #[must_use]
    pub fn new(packet: u32, ceiling: Option<f64>) -> Self {
        Self { packet, rate: ceiling.unwrap_or(1e9), tokens: f64::from(packet), at: Instant(0) }
    }

    /// A round was answered.
    pub fn answered(&mut self, _: Instant, _: Answered) {}

    /// A round was not answered in time.
    pub fn silent(&mut self, _: Instant) {}

    /// How many bytes may leave now, or when the next packet may.
    ///
    /// # Errors
    /// The moment, when none may leave now.
    pub fn may_send(&mut self, now: Instant) -> Result<u64, Instant> {
        let burst = (self.rate / 8.0 * BURST.seconds()).max(f64::from(self.packet));
        self.tokens = (self.tokens + self.rate / 8.0 * (now - self.at).seconds()).min(burst);
        self.at = now;
        let missing = f64::from(self.packet) - self.tokens;
        if missing <= 0.0 {
            Ok(self.tokens as u64)
        } else {
            Err(now + Duration::from_seconds(missing * 8.0 / self.rate))
        }
    }

    /// So many bytes have left.
    pub fn sent(&mut self, _: Instant, bytes: u64) {
        self.tokens -= bytes as f64;
    }

    /// The rate in bit/s.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }
}
