//! Proportional integral controller enhanced (PIE, RFC 8033): drops or marks at arrival with a probability that is
//! adjusted at regular intervals so that the queueing delay keeps to a target.
//!
//! The controller needs no timer: the adjustments due since the last arrival are made at the next one, with the delays
//! that the queue must have had in between.

use super::Admission;
use crate::bernoulli;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::{Duration, Instant};

/// The gain of the deviation from the target delay, per second of delay, at an update interval of 15 ms.
const ALPHA: f64 = 0.125;
/// The gain of the change of the delay since the last adjustment, per second of delay, at an update interval of 15 ms.
const BETA: f64 = 1.25;
/// The update interval that RFC 8033 recommends, for which `ALPHA` and `BETA` hold.
const USUAL_UPDATE: Duration = Duration(15_000_000);
/// After the queue was uncongested, packets are not dropped for this long.
// MAX_BURST of RFC 8033.
const MAX_BURST: Duration = Duration(150_000_000);
/// Above this probability packets are dropped even if their sender supports ECN.
// mark_ecnth of RFC 8033, section 5.1.
const MOST_MARKED: f64 = 0.1;
/// A delay below the target divided by this is not congestion.
const HALF: u64 = 2;
/// The most adjustments that are made at one arrival; older ones are skipped. At 15 ms these are the last minute.
const MOST_UPDATES: u64 = 4096;

/// The PIE controller of one queue.
#[derive(Clone, Debug)]
pub struct Pie {
    /// The queueing delay to keep to.
    target: Duration,
    /// The interval between two adjustments.
    update: Duration,
    /// `ALPHA`, converted to this update interval.
    alpha: f64,
    /// `BETA`, converted to this update interval.
    beta: f64,
    /// The drop probability, 0 to 1.
    probability: f64,
    /// Sum of the probabilities since the last drop, which keeps drops neither too close nor too far apart.
    accumulated: f64,
    /// How much longer packets are not dropped, after the queue was uncongested.
    burst: Duration,
    /// The delay at the last adjustment.
    updated_delay: Duration,
    /// The instant of the last adjustment.
    updated: Instant,
    /// The delay at the last arrival.
    last_delay: Duration,
    /// The instant of the last arrival.
    seen: Instant,
    /// Running mean of the packets' bytes.
    typical_bytes: u64,
    generator: Generator,
}

impl Pie {
    /// `target`: the delay to keep to; `update`: the interval of adjustment.
    #[must_use]
    pub fn new(target: Duration, update: Duration, seed: Seed) -> Self {
        let update = Duration(update.0.max(1));
        // The same controller sampled at another interval: half the interval, half of alpha, a quarter of alpha to beta.
        let alpha = ALPHA * (update.seconds() / USUAL_UPDATE.seconds());
        Self {
            target,
            update,
            alpha,
            beta: (BETA + (ALPHA - alpha) / 2.0).max(0.0),
            probability: 0.0,
            accumulated: 0.0,
            burst: MAX_BURST,
            updated_delay: Duration::ZERO,
            updated: Instant(0),
            last_delay: Duration::ZERO,
            seen: Instant(0),
            typical_bytes: 0,
            generator: seed.generator(),
        }
    }

    /// Decides about a packet of `bytes` that would wait for `delay` behind `backlog_bytes`.
    pub fn admit(
        &mut self,
        now: Instant,
        delay: Duration,
        backlog_bytes: u64,
        bytes: u64,
    ) -> Admission {
        self.update_probability(now, delay);
        (self.seen, self.last_delay) = (now, delay);
        // A moving average with weight 1/8; it starts at the first size.
        let step = if self.typical_bytes == 0 {
            bytes
        } else {
            self.typical_bytes - self.typical_bytes / 8 + bytes / 8
        };
        self.typical_bytes = step.max(1);
        if self.is_uncongested(delay) {
            self.burst = MAX_BURST;
        }
        // Drawn last: only a packet that may be dropped adds to the accumulated probability.
        if self.burst > Duration::ZERO || self.is_small_queue(backlog_bytes) || !self.draws_drop() {
            return Admission::Take;
        }
        if self.probability > MOST_MARKED {
            Admission::Forced
        } else {
            Admission::Early
        }
    }

    /// The current drop probability, 0 to 1.
    #[must_use]
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    /// Whether there is no congestion at present and was none at the last adjustment: the burst allowance is then
    /// renewed.
    fn is_uncongested(&self, delay: Duration) -> bool {
        self.probability == 0.0 && self.low(delay) && self.low(self.updated_delay)
    }

    /// Whether a delay is below half of the target.
    const fn low(&self, delay: Duration) -> bool {
        delay.0 < self.target.0 / HALF
    }

    /// Whether the delay or the backlog is so small that dropping could leave the link idle. The thresholds are those
    /// of RFC 8033, section 4.1.
    const fn is_small_queue(&self, backlog_bytes: u64) -> bool {
        self.low(self.updated_delay) && self.probability < 0.2
            || backlog_bytes <= 2 * self.typical_bytes
    }

    /// Draws whether the packet is dropped: never while the accumulated probability since the last drop is below 0.85,
    /// always from 8.5 on (RFC 8033, section 5.4).
    fn draws_drop(&mut self) -> bool {
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let draws_drop = self.accumulated >= 8.5
            || bernoulli::draw_bernoulli(self.probability, &mut self.generator);
        if draws_drop {
            self.accumulated = 0.0;
        }
        draws_drop
    }

    /// Makes the adjustments due until now, each with the delay of its instant.
    fn update_probability(&mut self, now: Instant, delay: Duration) {
        let mut due = now.since(self.updated).0 / self.update.0;
        if due > MOST_UPDATES {
            let passed = Duration((due - MOST_UPDATES) * self.update.0);
            due = MOST_UPDATES;
            self.updated += passed;
            self.updated_delay = self.delay_at(self.updated, now, delay);
            self.burst = Duration(self.burst.0.saturating_sub(passed.0));
        }
        while due > 0 {
            let still = self.probability == 0.0
                && self.updated_delay == Duration::ZERO
                && delay == Duration::ZERO;
            // Where nothing changes any more, the rest is one step.
            let steps = if still { due } else { 1 };
            self.updated += Duration(steps * self.update.0);
            self.adjust(self.delay_at(self.updated, now, delay));
            due -= steps;
        }
    }

    /// The delay at an instant between the last arrival and `now`. It falls by a nanosecond each nanosecond, so it
    /// follows from the delay at `now` or, if that is zero, from the delay at the last arrival.
    fn delay_at(&self, at: Instant, now: Instant, delay: Duration) -> Duration {
        if delay > Duration::ZERO {
            return delay + now.since(at);
        }
        Duration(self.last_delay.0.saturating_sub(at.since(self.seen).0))
    }

    /// Makes one adjustment of the probability, given the delay at its instant (RFC 8033, section 4.2).
    fn adjust(&mut self, delay: Duration) {
        let error = delay.seconds() - self.target.seconds();
        let change = delay.seconds() - self.updated_delay.seconds();
        let mut step = (self.alpha * error + self.beta * change) / self.caution();
        if self.probability >= 0.1 {
            // Slow start would raise it too fast (cap drop adjustment, RFC 8033, section 5.5).
            step = step.min(0.02);
        }
        self.probability += step;
        if delay == Duration::ZERO && self.updated_delay == Duration::ZERO {
            // Without congestion the linear steps alone take too long (RFC 8033, section 4.2).
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = Duration(self.burst.0.saturating_sub(self.update.0));
        self.updated_delay = delay;
    }

    /// The divisor of a step: a small probability is adjusted in small steps.
    fn caution(&self) -> f64 {
        const STEPS: [(f64, f64); 6] = [
            (1e-6, 2048.0),
            (1e-5, 512.0),
            (1e-4, 128.0),
            (1e-3, 32.0),
            (1e-2, 8.0),
            (1e-1, 2.0),
        ];
        STEPS
            .iter()
            .find(|(below, _)| self.probability < *below)
            .map_or(1.0, |(_, divisor)| *divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const TARGET: Duration = Duration(15 * MS);

    fn pie(seed: u64) -> Pie {
        Pie::new(TARGET, TARGET, Seed::root(seed))
    }

    #[test]
    fn one_adjustment_by_hand() {
        let mut pie = pie(1);
        pie.probability = 0.05;
        pie.updated_delay = Duration(20 * MS);
        pie.adjust(Duration(25 * MS));
        // (0.125 x 10 ms + 1.25 x 5 ms) / 2
        assert!((pie.probability() - 0.053_75).abs() < 1e-12);
        pie.probability = 0.5;
        pie.adjust(Duration(1000 * MS));
        assert!(
            (pie.probability() - 0.52).abs() < 1e-12,
            "no more than 2 % at once"
        );
        pie.updated_delay = Duration::ZERO;
        pie.adjust(Duration::ZERO);
        assert!((pie.probability() - (0.52 - 0.001_875) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn gains_belong_to_an_interval() {
        let pie = Pie::new(TARGET, Duration(7_500_000), Seed::root(1));
        assert_eq!((pie.alpha, pie.beta), (0.0625, 1.281_25));
        assert_eq!(
            Pie::new(TARGET, Duration(u64::MAX), Seed::root(1)).beta,
            0.0
        );
    }

    #[test]
    fn late_adjustments_use_the_delay_of_their_instant() {
        let mut lazy = pie(1);
        lazy.admit(Instant(0), Duration(100 * MS), 50_000, 1000);
        lazy.admit(Instant(60 * MS), Duration(50 * MS), 50_000, 1000);
        let mut diligent = pie(1);
        for ms in [15, 30, 45, 60] {
            diligent.adjust(Duration((110 - ms) * MS));
        }
        assert_eq!(lazy.probability(), diligent.probability());
        lazy.admit(Instant(160 * MS), Duration::ZERO, 0, 1000);
        for ms in [75, 90, 105, 120, 135, 150] {
            diligent.adjust(Duration(110_u64.saturating_sub(ms) * MS));
        }
        assert_eq!(lazy.probability(), diligent.probability());
    }

    #[test]
    fn a_burst_passes_after_an_idle_time() {
        let mut pie = pie(1);
        let taken =
            |pie: &mut Pie, ms: u64| pie.admit(Instant(ms * MS), Duration(100 * MS), 100_000, 1000);
        assert!((0..150).all(|ms| taken(&mut pie, ms) == Admission::Take));
        assert!((150..5_000).any(|ms| taken(&mut pie, ms) != Admission::Take));
        // An hour without load brings the probability to zero and the burst allowance back.
        let hour = 3_600_000;
        assert_eq!(
            pie.admit(Instant(hour * MS), Duration::ZERO, 0, 1000),
            Admission::Take
        );
        assert_eq!(pie.probability(), 0.0);
        assert!((1..140).all(|ms| taken(&mut pie, hour + ms) == Admission::Take));
    }

    #[test]
    fn above_a_tenth_marking_becomes_dropping() {
        for (probability, expected) in [(0.09, Admission::Early), (0.11, Admission::Forced)] {
            let mut pie = pie(2);
            (pie.burst, pie.updated_delay, pie.probability) = (Duration::ZERO, TARGET, probability);
            let not_taken: Vec<Admission> = (0..1000)
                .map(|_| pie.admit(Instant(0), TARGET, 100_000, 1000))
                .filter(|admission| *admission != Admission::Take)
                .collect();
            assert!(
                not_taken.len() > 40 && not_taken.iter().all(|admission| *admission == expected)
            );
        }
    }

    #[test]
    fn gaps_are_neither_too_short_nor_too_long() {
        let mut pie = pie(3);
        (pie.burst, pie.updated_delay, pie.probability) = (Duration::ZERO, TARGET, 0.05);
        let fallen: Vec<usize> = (0..100_000)
            .filter(|_| pie.admit(Instant(0), TARGET, 100_000, 1000) != Admission::Take)
            .collect();
        let gaps: Vec<usize> = fallen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 0.85 / 0.05 and 8.5 / 0.05, give or take one for the rounding of the sums.
        assert!(
            gaps.iter().all(|gap| (17..=171).contains(gap)),
            "{:?} {:?}",
            gaps.iter().min(),
            gaps.iter().max()
        );
    }

    #[test]
    fn a_queue_of_two_packets_is_spared() {
        let mut pie = pie(4);
        (pie.burst, pie.updated_delay, pie.probability) = (Duration::ZERO, TARGET, 1.0);
        assert!((0..100).all(|_| pie.admit(Instant(0), TARGET, 2_000, 1000) == Admission::Take));
        assert_eq!(
            pie.admit(Instant(0), TARGET, 2_001, 1000),
            Admission::Forced
        );
    }

    #[test]
    fn the_delay_of_a_constant_overload_is_kept_near_the_target() {
        // Packets of 1 ms, a tenth more than the link can carry, for 200 s.
        let mut pie = pie(5);
        let (mut free, mut sum, mut count, mut dropped) = (0_u64, 0, 0, 0);
        for number in 0..220_000_u64 {
            let now = number * 10 * MS / 11;
            let delay = free.saturating_sub(now);
            if pie.admit(Instant(now), Duration(delay), delay / 1000, 1000) == Admission::Take {
                free = free.max(now) + MS;
            } else {
                dropped += u32::from(now > 100_000 * MS);
            }
            if now > 100_000 * MS {
                (sum, count) = (sum + delay, count + 1);
            }
        }
        let mean = sum / count;
        assert!((12 * MS..18 * MS).contains(&mean), "{mean}");
        assert!(
            (9_500..10_500).contains(&dropped),
            "{dropped} of 10 000 that are too many"
        );
    }

    proptest! {
        #[test]
        fn the_probability_stays_between_zero_and_one(
            steps in proptest::collection::vec((0_u64..1 << 50, 0_u64..1 << 50), 1..50), update in 0_u64..1 << 40,
        ) {
            let mut pie = Pie::new(TARGET, Duration(update), Seed::root(1));
            let mut now = Instant(0);
            for (pause, delay) in steps {
                now += Duration(pause);
                pie.admit(now, Duration(delay), delay, 1500);
                prop_assert!((0.0..=1.0).contains(&pie.probability()));
                prop_assert!(now.since(pie.updated) < pie.update);
            }
        }
    }
}
