//! A token bucket: it turns a rate into instants at which bytes may be sent. It never changes the rate.

use stackline_core::time::{Duration, Instant};

/// The time between two bursts, while they are smaller than [`LARGEST`], in s.
const BEAT: f64 = 0.000_5;
/// How much lost time is made up for when the driver wakes late, in s.
const LATE: f64 = 0.002;
/// The largest burst in bytes: what one system call sends.
const LARGEST: f64 = 65_536.0;

/// The tokens of a sender: the bytes that may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlastTokenBucket {
    packet: f64,
    /// Bytes that may be sent; negative after a larger burst.
    tokens: f64,
    /// When tokens were added last.
    filled: Option<Instant>,
}

impl BlastTokenBucket {
    /// A bucket for packets of `packet` bytes, with `first` bytes in it.
    pub(super) const fn new(packet: f64, first: f64) -> Self {
        Self {
            packet,
            tokens: first,
            filled: None,
        }
    }

    /// Adds what the time since the last call allows at `rate` bytes a second.
    pub(super) fn fill(&mut self, now: Instant, rate: f64) {
        let filled = self.filled.map_or(now, |filled| filled.min(now));
        self.filled = Some(self.filled.map_or(now, |filled| filled.max(now)));
        let most = self.burst(rate) + rate * LATE;
        self.tokens = (self.tokens + rate * now.since(filled).seconds()).min(most.max(self.tokens));
    }

    /// The bytes of a burst: for so many a sender waits when the bucket is empty.
    fn burst(&self, rate: f64) -> f64 {
        (rate * BEAT).clamp(self.packet, LARGEST.max(self.packet))
    }

    /// The bytes that may be sent now, at least a packet; else when the next burst may be. [`Self::fill`] has to be
    /// called before.
    pub(super) fn may_take(&self, now: Instant, rate: f64) -> Result<u64, Instant> {
        if self.tokens >= self.packet {
            return Ok(self.tokens as u64);
        }
        let wait = Duration::from_seconds((self.burst(rate) - self.tokens) / rate);
        Err(now + Duration(wait.0.max(1)))
    }

    /// Takes the bytes that were sent; more than there were is paid back by waiting.
    pub(super) fn take(&mut self, bytes: f64) {
        self.tokens -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 1.5e6;

    fn left(bucket: &mut BlastTokenBucket, now: u64) -> Result<u64, Instant> {
        bucket.fill(Instant(now), RATE);
        bucket.may_take(Instant(now), RATE)
    }

    #[test]
    fn bytes_leave_at_the_rate_whole_packets_at_a_time() {
        let (mut bucket, mut now, mut sent) = (BlastTokenBucket::new(1500.0, 1500.0), 7, 0);
        while now < 1_000_000_007 {
            match left(&mut bucket, now) {
                Ok(bytes) => {
                    assert!((1500..=4500).contains(&bytes));
                    bucket.take(1500.0);
                    sent += 1500;
                }
                Err(at) => {
                    assert!(at.0 > now);
                    now = at.0;
                }
            }
        }
        assert!((1_497_000..=1_503_000).contains(&sent), "{sent}");
    }

    #[test]
    fn idle_time_allows_at_most_two_milliseconds_and_a_burst() {
        let mut bucket = BlastTokenBucket::new(1500.0, 0.0);
        assert_eq!(left(&mut bucket, 0), Err(Instant(1_000_000)));
        assert_eq!(left(&mut bucket, 60_000_000_000), Ok(4500));
        bucket.take(6000.0);
        assert_eq!(
            left(&mut bucket, 60_000_000_000),
            Err(Instant(60_002_000_000))
        );
        // A clock that goes back adds nothing.
        assert_eq!(
            left(&mut bucket, 50_000_000_000),
            Err(Instant(50_002_000_000))
        );
        assert_eq!(left(&mut bucket, 60_002_000_000), Ok(1500));
    }
}
