//! A bottleneck: a rate, a drop-tail queue, a delay, losses by chance and answers that are late by chance.

use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// Its properties.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// bit/s.
    pub(super) rate: f64,
    /// One way.
    pub(super) delay: Duration,
    /// Bytes that may wait.
    pub(super) queue: f64,
    /// Probability that a packet is lost.
    pub(super) loss: f64,
    /// What goes back is late by up to so much, most by little.
    pub(super) noise: Duration,
    free_at: Instant,
    draws: u64,
}

impl Link {
    /// Of so many Mbit/s and ms of round trip, with a queue of so many bandwidth-delay products.
    pub(super) fn new(mbit: f64, trip_ms: f64, products: f64) -> Self {
        let rate = mbit * 1e6;
        Self {
            rate,
            delay: Duration::from_seconds(trip_ms / 2e3),
            queue: rate / 8.0 * trip_ms / 1e3 * products,
            loss: 0.0,
            noise: Duration::ZERO,
            free_at: Instant(0),
            draws: 0,
        }
    }

    /// With that probability of a loss.
    pub(super) fn losing(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// How long what arrives now has to wait, in seconds.
    pub(super) fn waiting(&self, now: Instant) -> f64 {
        self.free_at.since(now).seconds()
    }

    fn draw(&mut self) -> f64 {
        self.draws += 1;
        (Seed::root(4).index(self.draws).0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// When a packet of so many bytes that an end sends arrives, if it does. What the second end sends finds no queue.
    pub(super) fn carry(&mut self, now: Instant, end: usize, bytes: u64) -> Option<Instant> {
        if end > 0 && self.noise == Duration::ZERO {
            self.draws += 1;
            return Some(now + self.delay);
        }
        if end > 0 {
            let late = self.noise.seconds() * libm::pow(self.draw(), 3.0);
            return Some(now + self.delay + Duration::from_seconds(late));
        }
        let waiting = self.waiting(now) * self.rate / 8.0;
        if waiting + bytes as f64 > self.queue {
            return None;
        }
        self.free_at =
            self.free_at.max(now) + Duration::from_seconds(bytes as f64 * 8.0 / self.rate);
        let lost = self.draw() < self.loss;
        (!lost).then(|| self.free_at + self.delay)
    }
}
