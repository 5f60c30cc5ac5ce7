//! Which packets are lost, if each is lost with the same probability: the gaps between losses, which have a geometric distribution.

use rand_core::Rng;
use stackline_core::random::{Generator, Seed};

/// The losses in a long sequence of packets.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// ln(1 - p), where p is the loss probability.
    arrives: f64,
    random: Generator,
    /// Packets that arrive before the next lost one.
    left: u64,
}

impl Gaps {
    /// Each packet is lost with probability `loss`, from 0 to below 1.
    pub(super) fn new(loss: f64, seed: Seed) -> Self {
        let mut gaps = Self {
            arrives: (-loss).ln_1p(),
            random: seed.generator(),
            left: 0,
        };
        gaps.draw();
        gaps
    }

    /// Draws the next gap by inversion, from one of 2^53 numbers in (0, 1].
    fn draw(&mut self) {
        let unit = ((self.random.next_u64() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0);
        self.left = if self.arrives < 0.0 {
            (unit.ln() / self.arrives) as u64
        } else {
            u64::MAX
        };
    }

    /// Packets that arrive before the next lost one.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Records that this many packets, at most `left`, have arrived.
    pub(super) const fn pass(&mut self, packets: u64) {
        self.left = self.left.saturating_sub(packets);
    }

    /// Takes the next packet: whether it is lost.
    pub(super) fn lost(&mut self) -> bool {
        let lost = self.left == 0;
        if lost {
            self.draw();
        } else {
            self.left -= 1;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_loses_as_often_as_it_should() {
        for loss in [0.3, 1e-3] {
            let mut gaps = Gaps::new(loss, Seed::root(3));
            let packets = 200_000.0;
            let lost = (0..200_000).filter(|_| gaps.lost()).count() as f64;
            // Four standard deviations of a binomial distribution.
            let spread = (packets * loss * (1.0 - loss)).sqrt();
            assert!(
                (lost - packets * loss).abs() < 4.0 * spread,
                "{loss}: {lost}"
            );
        }
        assert_eq!(Gaps::new(0.0, Seed::root(3)).left(), u64::MAX);
    }

    #[test]
    fn what_is_passed_over_arrives() {
        let mut gaps = Gaps::new(0.01, Seed::root(4));
        let left = gaps.left();
        gaps.pass(left);
        assert!(gaps.lost());
    }
}
