//! Values that change in steps over time: a rate, a delay, a loss. They are plain data; nothing here waits for a step.

use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A value that changes in steps over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSchedule<T> {
    /// The steps: from this time since the beginning, this value holds. The first is at 0, and times ascend.
    pub steps: Vec<(Duration, T)>,
    /// Time after which the steps repeat; when absent, the last value holds for ever.
    pub period: Option<Duration>,
}

/// A rate in bit/s that changes in steps; at 0 nothing leaves.
pub type RateSchedule = StepSchedule<f64>;

/// Most intervals that [`StepSchedule::times_where`] returns: a short period would repeat without end.
const MOST_TIMES: usize = 10_000;

impl<T> StepSchedule<T> {
    /// The index of the step that holds at a time since the beginning.
    #[must_use]
    pub fn step_at(&self, now: Instant) -> usize {
        let within = self
            .period
            .filter(|period| period.0 > 0)
            .map_or(now.0, |period| now.0 % period.0);
        // The first step is at 0: it holds from the beginning.
        self.steps
            .partition_point(|(from, _)| from.0 <= within)
            .saturating_sub(1)
    }

    /// The value that holds at a time since the beginning; `None` when there are no steps.
    #[must_use]
    pub fn at(&self, now: Instant) -> Option<&T> {
        self.steps.get(self.step_at(now)).map(|(_, value)| value)
    }

    /// The intervals, from the beginning until `end`, in which the value passes the test; adjacent intervals are
    /// joined.
    pub fn times_where(
        &self,
        end: Duration,
        is_such: impl Fn(&T) -> bool,
    ) -> Vec<(Duration, Duration)> {
        let period = self.period.filter(|period| period.0 > 0);
        let length = period.unwrap_or(end);
        let ends = self.steps.iter().skip(1).map(|(at, _)| *at);
        let within: Vec<(u64, u64)> = self
            .steps
            .iter()
            .zip(ends.chain([length]))
            .filter(|((_, value), _)| is_such(value))
            .map(|((from, _), to)| (from.0, to.0.min(length.0)))
            .filter(|(from, to)| from < to)
            .collect();
        let mut times: Vec<(Duration, Duration)> = Vec::new();
        let mut begins = 0_u64;
        while begins < end.0 && !within.is_empty() && times.len() < MOST_TIMES {
            for (from, to) in &within {
                let from = Duration(begins.saturating_add(*from));
                let to = Duration(begins.saturating_add(*to).min(end.0));
                match times.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ if from < to => times.push((from, to)),
                    _ => {}
                }
            }
            begins = begins.saturating_add(length.0);
        }
        times
    }

    /// The mean of `value` from the beginning until `end`; for a repeating schedule, the long-run mean.
    pub fn mean_until(&self, end: Duration, value: impl Fn(&T) -> f64) -> f64 {
        if self.period.is_some() || end.0 == 0 {
            return self.mean(value);
        }
        let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let steps = self.steps.iter().zip(ends);
        steps
            .map(|((at, v), to)| value(v) * (to.min(end).seconds() - at.seconds()).max(0.0))
            .sum::<f64>()
            / end.seconds()
    }

    /// The long-run mean of `value`. Without a period it is that of the last step, which holds for ever.
    pub fn mean(&self, value: impl Fn(&T) -> f64) -> f64 {
        let Some(period) = self.period else {
            return self.steps.last().map_or(0.0, |(_, last)| value(last));
        };
        let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([period]);
        let steps = self.steps.iter().zip(ends);
        let sum: f64 = steps
            .map(|((at, v), end)| value(v) * (end.min(period).seconds() - at.seconds()).max(0.0))
            .sum();
        if period.0 == 0 {
            0.0
        } else {
            sum / period.seconds()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn each_step_holds_until_the_next_and_all_of_them_begin_again() {
        let steps = vec![(Duration(0), 1.0), (Duration(10), 4.0)];
        let once = StepSchedule {
            steps: steps.clone(),
            period: None,
        };
        let again = StepSchedule {
            steps,
            period: Some(Duration(30)),
        };
        let read = |schedule: &StepSchedule<f64>| {
            [0, 9, 10, 29, 30, 40].map(|at| schedule.at(Instant(at)).copied())
        };
        assert_eq!(read(&once), [1.0, 1.0, 4.0, 4.0, 4.0, 4.0].map(Some));
        assert_eq!(read(&again), [1.0, 1.0, 4.0, 4.0, 1.0, 4.0].map(Some));
        assert!(
            (once.mean(|v| *v) - 4.0).abs() < 1e-12 && (again.mean(|v| *v) - 3.0).abs() < 1e-12
        );
        let until = [0, 10, 20, 5].map(|end| once.mean_until(Duration(end), |v| *v));
        assert_eq!(until, [4.0, 1.0, 2.5, 1.0]);
        assert_eq!(StepSchedule::<f64>::default().at(Instant(5)), None);
        let low = |schedule: &StepSchedule<f64>, end| {
            let times = schedule.times_where(Duration(end), |v| *v < 2.0);
            times.iter().map(|(a, b)| (a.0, b.0)).collect::<Vec<_>>()
        };
        assert_eq!(
            (low(&once, 5), low(&once, 50)),
            (vec![(0, 5)], vec![(0, 10)])
        );
        assert_eq!(low(&again, 65), [(0, 10), (30, 40), (60, 65)]);
        let all = again.times_where(Duration(65), |_| true);
        assert_eq!(all, [(Duration(0), Duration(65))]);
    }
}
