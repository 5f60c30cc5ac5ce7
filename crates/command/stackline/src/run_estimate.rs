//! How long the runs of a plan still take, from those that were made: the runs that are left of each measurement take what its own
//! took on average, and where none was made yet, what one of the others did.

use stackline_core::plan::{Measurement, Plan, Warmup, World};
use std::time::Duration;

/// How far a measurement is.
#[derive(Clone, Copy, Debug, Default)]
struct MeasurementPace {
    /// How many counted runs it has at least and at most, with all seeds.
    least: u64,
    most: u64,
    /// Counted runs that are done, also by an earlier process.
    done: u64,
    /// Counted runs that were timed, and their time with the warm-up before them.
    timed: u64,
    took: Duration,
    /// The longest time that a run may take, where it is known.
    longest: Option<Duration>,
}

/// The runs of a plan, and how long they took.
#[derive(Clone, Debug)]
pub(crate) struct RunEstimate {
    measurements: Vec<MeasurementPace>,
    /// The measurement at work, where one is.
    at_work: Option<usize>,
    /// Time in runs that nobody ascribed to a measurement, and their number: those of many seeds end in any order.
    others: (Duration, u64),
}

impl RunEstimate {
    /// Of a plan whose runs are all made with so many seeds.
    pub(crate) fn new(plan: &Plan, seeds: u64) -> Self {
        let pace = |one: &Measurement| {
            let most = one
                .until
                .map_or(one.runs, |until| until.at_most.max(one.runs));
            let is_known = one.world != World::Simulated && matches!(one.warmup, Warmup::Runs(0));
            MeasurementPace {
                least: u64::from(one.runs).saturating_mul(seeds),
                most: u64::from(most).saturating_mul(seeds),
                longest: one
                    .time_limit
                    .filter(|_| is_known && seeds == 1)
                    .map(|limit| Duration::from_nanos(limit.0)),
                ..MeasurementPace::default()
            }
        };
        Self {
            measurements: plan.measurements.iter().map(pace).collect(),
            at_work: None,
            others: (Duration::ZERO, 0),
        }
    }

    /// The least and the greatest number of counted runs.
    pub(crate) fn planned(&self) -> [u64; 2] {
        let sum = |of: fn(&MeasurementPace) -> u64| {
            let all = self.measurements.iter().map(of);
            all.fold(0, u64::saturating_add)
        };
        [sum(|one| one.least), sum(|one| one.most)]
    }

    /// A run of that measurement begins.
    pub(crate) const fn begin(&mut self, measurement: usize) {
        self.at_work = Some(measurement);
    }

    /// A counted run is done; `took` is the time since the one before.
    pub(crate) fn advance(&mut self, took: Duration) {
        match self.at_work.and_then(|at| self.measurements.get_mut(at)) {
            Some(pace) => {
                pace.done += 1;
                pace.timed += 1;
                pace.took += took;
            }
            None => {
                self.others.0 += took;
                self.others.1 += 1;
            }
        }
    }

    /// A counted run of that measurement was made by an earlier process.
    pub(crate) fn taken_over(&mut self, measurement: usize) {
        if let Some(pace) = self.measurements.get_mut(measurement) {
            pace.done += 1;
        }
    }

    /// The time that the least number of runs still takes. `None` until a run was timed, and when none is left.
    pub(crate) fn left(&self) -> Option<Duration> {
        let all = self.measurements.iter();
        let timed: u64 = all.clone().map(|one| one.timed).sum::<u64>() + self.others.1;
        let took: Duration = all.clone().map(|one| one.took).sum::<Duration>() + self.others.0;
        let usual = took.checked_div(u32::try_from(timed).ok()?)?;
        let mut left = Duration::ZERO;
        let mut runs = 0_u64;
        for one in all {
            let own = u32::try_from(one.timed).ok();
            let mean = own.and_then(|timed| one.took.checked_div(timed));
            let mean = mean.unwrap_or(usual);
            // Opening and closing connections is not part of a time limit.
            let longest = one.longest.map(|most| most + Duration::from_secs(1));
            let mean = longest.map_or(mean, |longest| mean.min(longest));
            let missing = one.least.saturating_sub(one.done);
            runs = runs.saturating_add(missing);
            left = left.saturating_add(times(mean, missing));
        }
        // Those that nobody ascribed are done, too.
        left = left.saturating_sub(times(usual, self.others.1));
        (runs > self.others.1).then_some(left)
    }
}

/// A time so many times.
fn times(time: Duration, count: u64) -> Duration {
    time.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::plan::StoppingCriterion;
    use stackline_runner::spec_source::SpecSource;
    use stackline_spec::Overrides;

    const SECOND: Duration = Duration::from_secs(1);

    fn plan(text: &str) -> Plan {
        let source = SpecSource::made("test", text.to_owned());
        source.plan(&Overrides::default()).unwrap()
    }

    #[test]
    fn each_measurement_has_its_own_pace() {
        let mut estimate = RunEstimate::new(&plan("10 rr 32*N; N = 1, 100"), 1);
        assert_eq!(estimate.planned(), [20, 20]);
        assert_eq!(estimate.left(), None, "nothing was timed");
        estimate.begin(0);
        estimate.advance(SECOND);
        assert_eq!(estimate.left(), Some(SECOND * 19), "the other may be alike");
        estimate.begin(1);
        estimate.advance(SECOND * 5);
        assert_eq!(estimate.left(), Some(SECOND * (9 + 45)));
        (0..9).for_each(|_| estimate.taken_over(1));
        assert_eq!(
            estimate.left(),
            Some(SECOND * 9),
            "no time was spent on those"
        );
        estimate.begin(0);
        (0..9).for_each(|_| estimate.advance(SECOND));
        assert_eq!(estimate.left(), None, "nothing is left");
    }

    #[test]
    fn a_run_takes_at_most_its_limit_and_what_opening_takes() {
        let mut estimate =
            RunEstimate::new(&plan("9 timelimit 10 s bulk_put 1 kB 1 MB; 1 rr 32*9"), 1);
        estimate.begin(0);
        estimate.advance(SECOND * 50);
        assert_eq!(estimate.left(), Some(SECOND * (8 * 11 + 50)));
    }

    #[test]
    fn seeds_end_in_any_order_and_the_least_runs_are_what_is_certain() {
        let mut estimate = RunEstimate::new(&plan("2 rr 32*9"), 10);
        assert_eq!(estimate.planned(), [20, 20]);
        (0..5).for_each(|_| estimate.advance(SECOND));
        assert_eq!(estimate.left(), Some(SECOND * 15));
        let mut plan = plan("2 rr 32*9");
        plan.measurements[0].until = Some(StoppingCriterion {
            share: 0.1,
            at_most: 30,
        });
        assert_eq!(RunEstimate::new(&plan, 1).planned(), [2, 30]);
    }
}
