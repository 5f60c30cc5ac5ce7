//! A rate that changes in steps, perhaps periodically. "Work" is rate times time. A departure is the point at which the
//! work possible since the beginning covers the bytes sent, so finishing a packet does not walk through the steps, and
//! only the result is rounded.

use alloc::vec::Vec;
use stackline_core::network::RateSchedule;
use stackline_core::time::Instant;

/// Nanoseconds that a byte takes at 1 bit/s.
pub(super) const BYTE_AT_ONE_BIT_S: u64 = 8_000_000_000;
/// Binary places of a rate in bit/s. Work is a rate times a time in ns; a byte needs the work of the time that it takes
/// at 1 bit/s.
const PLACES: i32 = 20;
/// The work that one byte needs.
const WORK_OF_A_BYTE: u128 = (BYTE_AT_ONE_BIT_S as u128) << PLACES;

/// The schedule, and how much of its work has been used.
#[derive(Clone, Debug, Default)]
pub(super) struct TransmitSchedule {
    /// The steps of one period, ascending; the first begins at 0.
    steps: Vec<TransmitStep>,
    /// The length of a period in ns; `None` when the last step lasts for ever.
    period: Option<u64>,
    /// The work of a whole period, or of all time when there is no period.
    whole: u128,
    /// The end of the last transmission: the number of the period in which it lies.
    cycle: u64,
    /// The work of that period that has been used.
    used: u128,
    /// The index of the step in which that end lies.
    step: usize,
    /// The instant of that end in ns, rounded up.
    last_end: u64,
}

#[derive(Clone, Copy, Debug)]
struct TransmitStep {
    /// When the step begins, in ns since the beginning of the period.
    from: u64,
    /// Work per nanosecond: the rate in bit/s with [`PLACES`] binary places.
    rate: u128,
    /// The work that could be done from the beginning of the period to the beginning of this step.
    before: u128,
    /// The rate in bit/s.
    bit_s: f64,
}

impl TransmitStep {
    /// Work that can be done up to that time of the period.
    const fn work(&self, until: u64) -> u128 {
        self.before
            .saturating_add(self.rate.saturating_mul((until - self.from) as u128))
    }
}

impl TransmitSchedule {
    pub(super) fn new(plan: &RateSchedule) -> Self {
        let period = plan
            .period
            .map(|period| period.0)
            .filter(|period| *period > 0);
        let mut steps: Vec<TransmitStep> = Vec::with_capacity(plan.steps.len() + 1);
        // Nothing leaves before the first step.
        let silence = plan
            .steps
            .first()
            .is_none_or(|(from, _)| from.0 > 0)
            .then_some((0, 0.0));
        let declared = plan.steps.iter().map(|(from, bit_s)| (from.0, *bit_s));
        for (from, bit_s) in silence.into_iter().chain(declared) {
            if period.is_some_and(|period| from >= period) {
                break;
            }
            let rate = libm::round(libm::ldexp(bit_s, PLACES)) as u128;
            let before = steps.last().map_or(0, |last| last.work(from));
            steps.push(TransmitStep {
                from,
                rate,
                before,
                bit_s,
            });
        }
        let end = steps
            .last()
            .map_or(0, |last| last.work(period.unwrap_or(u64::MAX)));
        Self {
            steps,
            period,
            whole: end,
            ..Self::default()
        }
    }

    pub(super) fn bit_s(&self, at: Instant) -> f64 {
        let (_, within) = self.place(at.0);
        self.steps[self.step_at(within)].bit_s
    }

    pub(super) fn finish(&mut self, start: Instant, bytes: u64) -> Instant {
        if start.0 > self.last_end {
            self.seek(start.0);
        }
        if bytes > 0 {
            self.spend(u128::from(bytes) * WORK_OF_A_BYTE);
        }
        Instant(self.last_end.max(start.0))
    }

    /// Moves the position to that instant, after a pause: work that was possible before it is lost.
    fn seek(&mut self, at: u64) {
        let (cycle, within) = self.place(at);
        self.cycle = cycle;
        self.step = self.step_at(within);
        self.used = self.steps[self.step].work(within);
        self.last_end = at;
    }

    /// Uses that much work from the current position.
    fn spend(&mut self, work: u128) {
        self.used = self.used.saturating_add(work);
        if self.used > self.whole {
            // Whole periods are skipped so that the last one is used at least in part.
            if self.period.is_none() || self.whole == 0 {
                self.last_end = u64::MAX;
                return;
            }
            let periods = (self.used - 1) / self.whole;
            self.used -= periods * self.whole;
            self.cycle = self
                .cycle
                .saturating_add(u64::try_from(periods).unwrap_or(u64::MAX));
        }
        self.step = self.step_of_work(self.used);
        let step = self.steps[self.step];
        // The work used lies in this step, so its rate is above 0. Rounded up: the last bit is out.
        let within = u128::from(step.from) + (self.used - step.before).div_ceil(step.rate);
        let since = u128::from(self.cycle) * u128::from(self.period.unwrap_or(0));
        self.last_end = u64::try_from(since + within).unwrap_or(u64::MAX);
    }

    /// The number of the period in which an instant lies, and the time since that began.
    fn place(&self, at: u64) -> (u64, u64) {
        self.period
            .map_or((0, at), |period| (at / period, at % period))
    }

    /// The step in force at that time of the period.
    fn step_at(&self, within: u64) -> usize {
        self.find(|step| step.from <= within)
    }

    /// The step in which that much work of the period, above 0, has been done.
    fn step_of_work(&self, work: u128) -> usize {
        self.find(|step| step.before < work)
    }

    /// The last step for which `holds`, which is true for a first part of them; usually the same as last time.
    fn find(&self, holds: impl Fn(&TransmitStep) -> bool) -> usize {
        let next_holds = self.steps.get(self.step + 1).is_some_and(&holds);
        if holds(&self.steps[self.step]) && !next_holds {
            return self.step;
        }
        // The first step begins at 0 with no work before it: it holds for every position.
        self.steps.partition_point(holds).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use stackline_core::time::Duration;

    const MS: u64 = 1_000_000;

    fn schedule(steps: &[(u64, f64)], period: Option<u64>) -> TransmitSchedule {
        let steps = steps
            .iter()
            .map(|(ms, bit_s)| (Duration(ms * MS), *bit_s))
            .collect();
        TransmitSchedule::new(&RateSchedule {
            steps,
            period: period.map(|ms| Duration(ms * MS)),
        })
    }

    #[test]
    fn a_packet_goes_partly_at_one_rate_and_partly_at_the_next() {
        // 1 byte a ms, then 10.
        let mut link = schedule(&[(0, 8e3), (100, 80e3)], None);
        assert_eq!(link.finish(Instant(90 * MS), 30), Instant(102 * MS));
        assert_eq!(
            link.finish(Instant(102 * MS), 5),
            Instant(102 * MS + MS / 2)
        );
        assert_eq!(
            (link.bit_s(Instant(99 * MS)), link.bit_s(Instant(100 * MS))),
            (8e3, 80e3)
        );
    }

    #[test]
    fn an_outage_holds_everything_back() {
        let mut link = schedule(&[(0, 8e3), (10, 0.0), (50, 8e3)], Some(100));
        assert_eq!(link.finish(Instant(5 * MS), 10), Instant(55 * MS));
        assert_eq!(
            link.finish(Instant(112 * MS), 1),
            Instant(151 * MS),
            "it lies in the outage of the second period"
        );
        assert_eq!(
            link.finish(Instant(151 * MS), 49 + 10),
            Instant(210 * MS),
            "up to the end, and of the third period"
        );
        assert_eq!(link.bit_s(Instant(1_030 * MS)), 0.0);
    }

    #[test]
    fn bytes_left_at_rate_zero_never_leave() {
        let mut link = schedule(&[(0, 8e3), (10, 0.0)], None);
        assert_eq!(link.finish(Instant(0), 10), Instant(10 * MS));
        assert_eq!(link.finish(Instant(10 * MS), 1), Instant(u64::MAX));
        assert_eq!(link.finish(Instant(u64::MAX), 1), Instant(u64::MAX));
        assert_eq!(
            schedule(&[(0, 0.0)], Some(5)).finish(Instant(0), 1),
            Instant(u64::MAX)
        );
        assert_eq!(schedule(&[], None).finish(Instant(0), 1), Instant(u64::MAX));
    }

    #[test]
    fn long_pauses_and_packets_take_constant_work() {
        // A byte a ns in every other ns: 2^62 ns of pause and 2^60 bytes would take for ever otherwise.
        let steps = vec![(Duration(0), 8e9), (Duration(1), 0.0)];
        let mut link = TransmitSchedule::new(&RateSchedule {
            steps,
            period: Some(Duration(2)),
        });
        assert_eq!(
            link.finish(Instant(1 << 62), 1 << 60),
            Instant((1 << 62) + (1 << 61) - 1)
        );
    }

    proptest! {
        /// Against walking through every nanosecond, with rates of whole bytes a ns.
        #[test]
        fn it_is_what_walking_through_it_gives(
            lengths in proptest::collection::vec((1_u64..20, 0_u64..4), 1..8),
            repeats: bool,
            packets in proptest::collection::vec((0_u64..60, any::<bool>(), 0_u64..80), 1..40),
        ) {
            let mut per_ns = vec![];
            let mut steps = vec![];
            for (length, rate) in &lengths {
                steps.push((Duration(per_ns.len() as u64), *rate as f64 * 8e9));
                per_ns.extend((0..*length).map(|_| *rate));
            }
            let period = repeats.then_some(Duration(per_ns.len() as u64));
            let last = lengths[lengths.len() - 1].1;
            let rate_at = |ns: u64| match per_ns.get(ns as usize) {
                Some(rate) => *rate,
                None if repeats => per_ns[ns as usize % per_ns.len()],
                None => last,
            };
            let dead = per_ns.iter().all(|rate| *rate == 0);
            let never = |ns: u64| if repeats { dead } else { last == 0 && ns >= per_ns.len() as u64 };
            let mut link = TransmitSchedule::new(&RateSchedule { steps, period });
            // The model: the ns it is in, and what is left of that.
            let (mut at, mut left) = (0, rate_at(0));
            let mut last_end = Instant(0);
            for (pause, at_once, bytes) in packets {
                let start = if at_once { last_end } else { last_end + Duration(pause) };
                if start.0 > last_end.0 {
                    (at, left) = (start.0, rate_at(start.0));
                }
                let mut need = bytes;
                while need > left && !never(at) {
                    need -= left;
                    at += 1;
                    left = rate_at(at);
                }
                let end = link.finish(start, bytes);
                if need > left {
                    prop_assert_eq!(end, Instant(u64::MAX));
                    break;
                }
                left -= need;
                // Sent within the ns that begins at `at`, so done when that ends.
                let expected = if bytes == 0 { start } else { Instant((at + 1).max(start.0)) };
                prop_assert_eq!(end, expected);
                last_end = end;
                if last_end.0 > at + 1 { (at, left) = (last_end.0, rate_at(last_end.0)); }
            }
        }
    }
}
