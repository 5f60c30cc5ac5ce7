//! A source of random numbers in ranges: the same for the same seed.

use rand_core::Rng;
use stackline_core::random::{Generator, Seed};

pub(crate) struct ScenarioDice(Generator);

impl ScenarioDice {
    pub(crate) fn of(seed: u64, what: &str) -> Self {
        Self(Seed::root(seed).child(what).generator())
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// Every factor is as likely as every other of the same size.
    pub(crate) fn log(&mut self, from: f64, to: f64) -> f64 {
        (from.ln() + (to / from).ln() * self.unit()).exp()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get((self.unit() * of.len() as f64) as usize).copied()
    }
}
