//! DualPI2 (RFC 9332, appendix A): a queue for L4S packets, ECT(1) and CE, that is kept short by marks, and one for all
//! others with a PI2 controller, coupled so that flows of both kinds get about the same rate.
//!
//! The base probability p' comes from the delays of both queues. Classic packets are dropped or marked with p' squared,
//! L4S packets marked with `coupling` times p', or always while they wait longer than `step`. Draws are by accumulation
//! (`recur` of the RFC), so nothing is random. The controller needs no timer: between two calls the heads of the queues
//! stay, so the adjustments due since the last call are made at the next one, with the delays of their instants.
//!
//! While both queues hold something they share the link by bytes, `classic_share` for the classic one (the scheduler of
//! Linux's `sch_dualpi2`); in overload, where p' is so large that every L4S packet would be marked, L4S packets are dropped
//! too, with p' squared.

use super::fifo::Fifo;
use stackline_core::network::DualPi2Settings;
use stackline_core::time::{Duration, Instant};

/// The most adjustments that are made at one call; older ones are skipped. At 16 ms these are the last minute.
const MOST_UPDATES: u64 = 4096;

/// The two queues and their controller.
#[derive(Clone, Debug)]
pub struct DualPi2<T> {
    settings: DualPi2Settings,
    low_latency: Fifo<T>,
    classic: Fifo<T>,
    /// The base probability p'.
    base: f64,
    /// The delay at the last adjustment.
    delay: Duration,
    /// The instant of the last adjustment, a multiple of the interval.
    adjusted: Instant,
    /// The sums of the probabilities of L4S marks, L4S drops and classic drops since each of them last happened.
    sums: [f64; 3],
    /// Bytes by which the L4S queue is ahead of its share, while both hold something.
    ahead: f64,
}

/// What happens to a packet that leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualPi2Verdict {
    /// It passes as it is.
    Pass,
    /// It is marked; one that cannot be is dropped.
    Mark,
    /// It is dropped even if it can be marked.
    Drop,
}

impl<T> DualPi2<T> {
    /// Empty queues.
    #[must_use]
    pub fn new(settings: DualPi2Settings) -> Self {
        Self {
            settings: DualPi2Settings {
                update: Duration(settings.update.0.max(1)),
                ..settings
            },
            low_latency: Fifo::new(),
            classic: Fifo::new(),
            base: 0.0,
            delay: Duration::ZERO,
            adjusted: Instant(0),
            sums: [0.0; 3],
            ahead: 0.0,
        }
    }

    /// Bytes in both queues.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.low_latency.bytes() + self.classic.bytes()
    }

    /// Items in both queues.
    #[must_use]
    pub fn len(&self) -> usize {
        self.low_latency.len() + self.classic.len()
    }

    /// Whether both queues are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The base probability p', 0 to 1.
    #[must_use]
    pub const fn base_probability(&self) -> f64 {
        self.base
    }

    /// The probability with which classic packets are dropped or marked: the square of p'.
    #[must_use]
    pub fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// The probability with which the classic queue's congestion marks L4S packets: `coupling` times p', at most 1.
    #[must_use]
    pub fn coupled_probability(&self) -> f64 {
        (self.settings.coupling * self.base).min(1.0)
    }

    /// Puts an item of `bytes` bytes at the tail of the L4S queue or of the classic one.
    pub fn push(&mut self, now: Instant, is_l4s: bool, bytes: u64, item: T) {
        self.adjust_until(now);
        let queue = if is_l4s {
            &mut self.low_latency
        } else {
            &mut self.classic
        };
        queue.push(now, bytes, item);
    }

    /// Takes the next item. An item with a verdict goes to `marked_or_dropped`, which returns it marked, or keeps it: then
    /// the next item is tried.
    pub fn pop(
        &mut self,
        now: Instant,
        mut marked_or_dropped: impl FnMut(T, DualPi2Verdict) -> Option<T>,
    ) -> Option<T> {
        self.adjust_until(now);
        loop {
            let (item, verdict) = if self.is_l4s_next()? {
                let (since, bytes, item) = self.low_latency.pop()?;
                self.ahead += self.settings.classic_share * bytes as f64;
                (item, self.judge_l4s(now.since(since)))
            } else {
                let (_, bytes, item) = self.classic.pop()?;
                self.ahead -= (1.0 - self.settings.classic_share) * bytes as f64;
                (item, self.judge_classic())
            };
            if self.low_latency.is_empty() || self.classic.is_empty() {
                self.ahead = 0.0;
            }
            let item = match verdict {
                DualPi2Verdict::Pass => Some(item),
                verdict => marked_or_dropped(item, verdict),
            };
            if item.is_some() {
                return item;
            }
        }
    }

    /// Whether the L4S queue is served next; `None` when both are empty.
    fn is_l4s_next(&self) -> Option<bool> {
        match (self.low_latency.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (false, false) => Some(self.ahead <= 0.0),
            (_, classic_empty) => Some(classic_empty),
        }
    }

    /// The verdict on an L4S packet that waited for `sojourn` (RFC 9332, figures 5 and 8, with a step in the place of the
    /// ramp). A packet with nothing behind it is no queue, however slow the link.
    fn judge_l4s(&mut self, sojourn: Duration) -> DualPi2Verdict {
        let coupled = self.coupled_probability();
        if coupled >= 1.0 && self.recurs(1, self.classic_probability()) {
            return DualPi2Verdict::Drop;
        }
        let stands = sojourn >= self.settings.step && !self.low_latency.is_empty();
        let marks = if stands && coupled < 1.0 {
            1.0
        } else {
            coupled
        };
        if self.recurs(0, marks) {
            DualPi2Verdict::Mark
        } else {
            DualPi2Verdict::Pass
        }
    }

    /// The verdict on a classic packet. From the probability on at which every L4S packet is marked, it is dropped rather
    /// than marked.
    fn judge_classic(&mut self) -> DualPi2Verdict {
        if !self.recurs(2, self.classic_probability()) {
            DualPi2Verdict::Pass
        } else if self.coupled_probability() >= 1.0 {
            DualPi2Verdict::Drop
        } else {
            DualPi2Verdict::Mark
        }
    }

    /// Whether something of that probability happens now: as often as it should, evenly spread.
    fn recurs(&mut self, which: usize, probability: f64) -> bool {
        let sum = &mut self.sums[which];
        *sum += probability;
        let happens = *sum >= 1.0;
        if happens {
            *sum -= 1.0;
        }
        happens
    }

    /// Makes the adjustments that are due by `now`.
    fn adjust_until(&mut self, now: Instant) {
        let update = self.settings.update.0;
        let due = now.since(self.adjusted).0 / update;
        if due > MOST_UPDATES {
            self.adjusted += Duration((due - MOST_UPDATES) * update);
        }
        while now.since(self.adjusted).0 >= update {
            self.adjusted += self.settings.update;
            let delay = self.delay_at(self.adjusted);
            if delay == Duration::ZERO && self.delay == Duration::ZERO && self.base == 0.0 {
                // Nothing waits until `now`, so nothing changes.
                let rest = now.since(self.adjusted).0 / update;
                self.adjusted += Duration(rest * update);
                return;
            }
            self.adjust(delay);
        }
    }

    /// How long the packet at the head of either queue has waited then, the longer of the two.
    fn delay_at(&self, at: Instant) -> Duration {
        let waited = |queue: &Fifo<T>| {
            queue
                .head()
                .map_or(Duration::ZERO, |(since, ..)| at.since(since))
        };
        waited(&self.low_latency).max(waited(&self.classic))
    }

    /// Adjusts the base probability to a delay (RFC 9332, figure 6).
    fn adjust(&mut self, delay: Duration) {
        let error = delay.seconds() - self.settings.target.seconds();
        let change = delay.seconds() - self.delay.seconds();
        let step = self.settings.alpha * error + self.settings.beta * change;
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.delay = delay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn queues() -> DualPi2<u64> {
        DualPi2::new(DualPi2Settings::default())
    }

    /// The shares of what leaves each queue with a verdict, at a constant base probability: L4S marks, L4S drops, classic
    /// marks, classic drops.
    fn shares(base: f64) -> [f64; 4] {
        let mut queues = queues();
        let mut counts = [0.0; 4];
        for _ in 0..10_000 {
            queues.base = base;
            for (first, verdict) in [
                (0, queues.judge_l4s(Duration::ZERO)),
                (2, queues.judge_classic()),
            ] {
                match verdict {
                    DualPi2Verdict::Pass => {}
                    DualPi2Verdict::Mark => counts[first] += 1.0,
                    DualPi2Verdict::Drop => counts[first + 1] += 1.0,
                }
            }
        }
        counts.map(|count| count / 10_000.0)
    }

    #[test]
    fn the_coupling_law() {
        // RFC 9332, equation 1: p_C = (p_CL / k)^2, here with k = 2.
        for base in [0.01, 0.05, 0.1, 0.25, 0.4] {
            let [l4s_marks, l4s_drops, classic_marks, classic_drops] = shares(base);
            assert!(
                (l4s_marks - 2.0 * base).abs() <= 1.5e-4,
                "{base}: {l4s_marks}"
            );
            assert!(
                (classic_marks - base * base).abs() <= 1.5e-4,
                "{base}: {classic_marks}"
            );
            assert!((classic_marks - (l4s_marks / 2.0).powi(2)).abs() <= 3e-4);
            assert_eq!((l4s_drops, classic_drops), (0.0, 0.0));
        }
    }

    #[test]
    fn overload_drops_in_both_queues() {
        // p' above 1/k: p_Cmax = 1/k^2 is 25 % (RFC 9332, section 4.2).
        for base in [0.5, 0.7] {
            let [l4s_marks, l4s_drops, classic_marks, classic_drops] = shares(base);
            assert!((l4s_drops - base * base).abs() <= 1.5e-4, "{l4s_drops}");
            assert!(
                (classic_drops - base * base).abs() <= 1.5e-4,
                "{classic_drops}"
            );
            assert!(
                (l4s_marks - (1.0 - base * base)).abs() <= 2e-4,
                "{l4s_marks}"
            );
            assert_eq!(classic_marks, 0.0);
        }
    }

    #[test]
    fn one_adjustment_by_hand() {
        let mut queues = queues();
        queues.adjust(Duration(25 * MS));
        // 0.16 x 10 ms + 3.2 x 25 ms.
        assert!((queues.base_probability() - 0.0816).abs() < 1e-12);
        queues.adjust(Duration(20 * MS));
        // 0.16 x 5 ms - 3.2 x 5 ms.
        assert!((queues.base_probability() - 0.0664).abs() < 1e-12);
        assert!((queues.coupled_probability() - 0.1328).abs() < 1e-12);
        assert!((queues.classic_probability() - 0.0664 * 0.0664).abs() < 1e-12);
        queues.adjust(Duration::ZERO);
        // 0.16 x 15 ms and 3.2 x 20 ms less: all but nothing is left.
        assert!(queues.base_probability() < 1e-9);
    }

    #[test]
    fn late_adjustments_use_the_delays_of_their_instants() {
        let mut lazy = queues();
        lazy.push(Instant(MS), false, 1500, 1);
        lazy.push(Instant(100 * MS), false, 1500, 2);
        let mut diligent = queues();
        for ms in [16, 32, 48, 64, 80, 96] {
            diligent.adjust(Duration((ms - 1) * MS));
        }
        assert_eq!(lazy.base_probability(), diligent.base_probability());
        // The head leaves, then the other one; an hour without load brings the probability back to zero.
        lazy.pop(Instant(100 * MS), |_, _| None);
        lazy.pop(Instant(100 * MS), |_, _| None);
        lazy.push(Instant(3_600_000 * MS), false, 1500, 3);
        assert_eq!(lazy.base_probability(), 0.0);
        assert_eq!(lazy.adjusted, Instant(3_600_000 * MS));
    }

    #[test]
    fn the_step_marks_l4s_packets_from_a_millisecond_on() {
        let verdicts = |waited: u64, behind: bool| {
            let mut queues = queues();
            queues.push(Instant(0), true, 1500, 1);
            if behind {
                queues.push(Instant(0), true, 1500, 2);
            }
            let mut marked = false;
            queues.pop(Instant(waited), |item, verdict| {
                marked = verdict == DualPi2Verdict::Mark;
                Some(item)
            });
            marked
        };
        assert!(!verdicts(MS - 1, true));
        assert!(verdicts(MS, true));
        assert!(!verdicts(MS, false), "a packet alone is no queue");
    }

    #[test]
    fn both_queues_share_the_link_as_set() {
        let mut queues = queues();
        for number in 0..4000 {
            queues.push(Instant(0), true, 1000, 0);
            queues.push(Instant(0), false, 500, 1);
            assert_eq!(queues.len(), 2 * (number + 1));
        }
        let mut sent = [0_u64; 2];
        for item in core::iter::from_fn(|| queues.pop(Instant(0), |item, _| Some(item))).take(3000)
        {
            sent[item as usize] += [1000, 500][item as usize];
        }
        // A tenth for the classic queue.
        assert!(sent[0].abs_diff(9 * sent[1]) <= 9 * 1000, "{sent:?}");
        // Alone, either gets everything.
        let mut alone = DualPi2::new(DualPi2Settings::default());
        (0..100).for_each(|number| alone.push(Instant(0), false, 1500, number));
        let all: Vec<u64> =
            core::iter::from_fn(|| alone.pop(Instant(0), |item, _| Some(item))).collect();
        assert_eq!(all, (0..100).collect::<Vec<u64>>());
    }

    /// A link of 12 Mbit/s, 1 ms for a packet, with classic packets at 5 % above its rate and L4S packets at a fifth of it:
    /// the mean waits of both, and the shares of each with a verdict, in the second half of 200 s.
    #[test]
    fn an_overload_is_kept_at_the_target_and_l4s_packets_do_not_wait() {
        let mut queues: DualPi2<(bool, u64)> = DualPi2::new(DualPi2Settings::default());
        let (mut next_classic, mut dropped) = (0_u64, [0_u64; 2]);
        let (mut waits, mut counts) = ([0_u64; 2], [0_u64; 2]);
        for ms in 0..200_000_u64 {
            let now = Instant(ms * MS);
            while next_classic <= now.0 {
                queues.push(Instant(next_classic), false, 1500, (false, next_classic));
                next_classic += MS * 100 / 85;
            }
            if ms % 5 == 0 {
                queues.push(now, true, 1500, (true, now.0));
            }
            let measured = ms >= 100_000;
            let taken = queues.pop(now, |(is_l4s, since), verdict| {
                if is_l4s {
                    assert_ne!(verdict, DualPi2Verdict::Pass);
                    return Some((is_l4s, since));
                }
                dropped[1] += u64::from(measured);
                None
            });
            if let (Some((is_l4s, since)), true) = (taken, measured) {
                waits[usize::from(is_l4s)] += now.0 - since;
                counts[usize::from(is_l4s)] += 1;
            }
        }
        let [classic, l4s] = [0, 1].map(|kind| waits[kind] / counts[kind]);
        assert!((13 * MS..18 * MS).contains(&classic), "{classic}");
        assert!(l4s < 2 * MS, "{l4s}");
        // 85 % of the link's packets are offered for its 80 %.
        assert!((4_500..5_500).contains(&dropped[1]), "{dropped:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_probabilities_stay_between_zero_and_one(
            steps in proptest::collection::vec((0_u64..1 << 34, any::<bool>(), 1_u64..9000, any::<bool>()), 1..200),
            update in 1_u64..1 << 32,
        ) {
            let mut queues = DualPi2::new(DualPi2Settings { update: Duration(update), ..DualPi2Settings::default() });
            let (mut now, mut inside, mut gone) = (Instant(0), 0_usize, 0_usize);
            for (pause, is_l4s, bytes, takes) in steps {
                now += Duration(pause);
                if takes {
                    let mut fallen = 0;
                    gone += usize::from(queues.pop(now, |_, _| { fallen += 1; None::<u8> }).is_some());
                    gone += fallen;
                } else {
                    queues.push(now, is_l4s, bytes, 0);
                    inside += 1;
                }
                prop_assert_eq!(queues.len(), inside - gone);
                prop_assert!((0.0..=1.0).contains(&queues.base_probability()));
                prop_assert!((0.0..=1.0).contains(&queues.coupled_probability()));
                prop_assert!(now.since(queues.adjusted).0 < update);
            }
            while queues.pop(now, |item, _| Some(item)).is_some() { gone += 1; }
            prop_assert_eq!((gone, queues.bytes()), (inside, 0));
        }
    }
}
