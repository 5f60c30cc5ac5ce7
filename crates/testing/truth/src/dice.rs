//! A source of random numbers in ranges: the same for the same seed.

use rand_core::Rng;
use stackline_core::random::{Generator, Seed};

/// The source.
#[derive(Debug)]
pub struct ScenarioDice(Generator);

impl ScenarioDice {
    /// The numbers of a seed, for one purpose.
    pub fn new(seed: u64, what: &str) -> Self {
        Self(Seed::root(seed).child(what).generator())
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Evenly from a range.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// Every factor is as likely as every other of the same size.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        (from.ln() + (to / from).ln() * self.unit()).exp()
    }

    /// Whether it happens, of so many times.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of them; `None` of none.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get((self.unit() * of.len() as f64) as usize).copied()
    }
}
