//! The schedule of a plan: which run comes next, whether it is counted, and its seed. It is the same in every world.
//!
//! It executes nothing and reads no clock: a world takes the next run, reports how long each run took in its own time
//! and whether a measurement that repeats `until` its interval is narrow enough has enough runs.

use crate::plan::{Measurement, Plan, Warmup};
use crate::random::Seed;
use crate::time::Duration;

/// One run to execute.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledRun<'p> {
    /// Index of the measurement in the plan.
    pub index: usize,
    /// The measurement.
    pub measurement: &'p Measurement,
    /// Index of the run, from 0; warm-up runs are counted separately.
    pub run: u32,
    /// Whether it is counted; false for a warm-up run.
    pub counted: bool,
    /// Root of the run's random seeds.
    pub seed: Seed,
}

/// The position in a plan.
#[derive(Clone, Debug)]
pub struct PlanSchedule<'p> {
    plan: &'p Plan,
    seed: Seed,
    /// Index of the current measurement.
    index: usize,
    /// Number of its warm-up runs so far.
    warm: u32,
    /// Time that its warm-up runs have taken.
    warm_for: Duration,
    /// Whether its warm-up is over.
    warmed: bool,
    /// Number of its counted runs so far.
    run: u32,
}

impl<'p> PlanSchedule<'p> {
    /// A schedule at the first run of the first measurement.
    #[must_use]
    pub const fn new(plan: &'p Plan, seed: u64) -> Self {
        Self {
            plan,
            seed: Seed::root(seed),
            index: 0,
            warm: 0,
            warm_for: Duration::ZERO,
            warmed: false,
            run: 0,
        }
    }

    /// Reports how long a run took, in the time of its world.
    pub fn record_time(&mut self, time: Duration) {
        if !self.warmed {
            self.warm_for += time;
        }
    }

    /// Leaves out the further runs of the current measurement.
    pub const fn give_up(&mut self) {
        (self.warm, self.warm_for, self.warmed, self.run) = (0, Duration::ZERO, false, 0);
        self.index += 1;
    }

    /// The next run; `None` when the plan is done. `enough` says whether the measurement with that index has enough
    /// runs for its interval.
    pub fn next(&mut self, enough: impl Fn(usize) -> bool) -> Option<ScheduledRun<'p>> {
        loop {
            let measurement = self.plan.measurements.get(self.index)?;
            if !self.warmed && self.warm_more(measurement) {
                self.warm += 1;
                return Some(self.scheduled(measurement, self.warm - 1, false));
            }
            self.warmed = true;
            let most = measurement.until.map_or(measurement.runs, |until| {
                until.at_most.max(measurement.runs)
            });
            if self.run < most && (self.run < measurement.runs || !enough(self.index)) {
                self.run += 1;
                return Some(self.scheduled(measurement, self.run - 1, true));
            }
            self.give_up();
        }
    }

    const fn warm_more(&self, measurement: &Measurement) -> bool {
        match measurement.warmup {
            Warmup::Runs(runs) => self.warm < runs,
            // The first warm-up run always begins, whatever the time is.
            Warmup::Time(time) => time.0 > 0 && (self.warm == 0 || self.warm_for.0 < time.0),
        }
    }

    fn scheduled(&self, measurement: &'p Measurement, run: u32, counted: bool) -> ScheduledRun<'p> {
        let seed = self.seed.child("measurement").index(self.index as u64);
        let seed = seed
            .child(if counted { "run" } else { "warmup" })
            .index(u64::from(run));
        ScheduledRun {
            index: self.index,
            measurement,
            run,
            counted,
            seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Composer, StoppingCriterion, World};
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn plan(measurements: &[(u32, Warmup, Option<StoppingCriterion>)]) -> Plan {
        let measurement =
            |(runs, warmup, until): &(u32, Warmup, Option<StoppingCriterion>)| Measurement {
                text: String::new(),
                line: 1,
                variables: Vec::new(),
                variable_units: Vec::new(),
                runs: *runs,
                time_limit: None,
                until: *until,
                warmup: *warmup,
                composer: Composer::Basic,
                world: World::Live,
                across: None,
                keeps_calls: false,
                interval: None,
                expectations: alloc::vec![],
                parts: Vec::new(),
            };
        let measurements = measurements.iter().map(measurement).collect();
        Plan {
            seed: 1,
            hosts: BTreeMap::new(),
            networks: Vec::new(),
            measurements,
        }
    }

    #[test]
    fn warm_up_runs_come_first_and_count_apart() {
        let plan = plan(&[(2, Warmup::Runs(1), None), (1, Warmup::Runs(0), None)]);
        let mut schedule = PlanSchedule::new(&plan, 1);
        let runs: Vec<_> = core::iter::from_fn(|| schedule.next(|_| false)).collect();
        let scheduled: Vec<_> = runs
            .iter()
            .map(|run| (run.index, run.run, run.counted))
            .collect();
        assert_eq!(
            scheduled,
            [(0, 0, false), (0, 0, true), (0, 1, true), (1, 0, true)]
        );
        assert_ne!(runs[0].seed, runs[1].seed);
    }

    #[test]
    fn a_measurement_that_is_given_up_has_no_further_runs() {
        let plan = plan(&[(3, Warmup::Runs(0), None), (1, Warmup::Runs(1), None)]);
        let mut schedule = PlanSchedule::new(&plan, 1);
        assert_eq!(schedule.next(|_| false).map(|run| run.index), Some(0));
        schedule.give_up();
        let rest: Vec<_> = core::iter::from_fn(|| schedule.next(|_| false))
            .map(|run| (run.index, run.counted))
            .collect();
        assert_eq!(rest, [(1, false), (1, true)]);
    }

    #[test]
    fn a_warm_up_of_some_time_ends_with_it() {
        let plan = plan(&[(1, Warmup::Time(Duration(100)), None)]);
        let mut schedule = PlanSchedule::new(&plan, 1);
        let counted: Vec<bool> = core::iter::from_fn(|| {
            let run = schedule.next(|_| false);
            schedule.record_time(Duration(60));
            run
        })
        .map(|run| run.counted)
        .collect();
        assert_eq!(counted, [false, false, true]);
    }

    #[test]
    fn until_goes_on_until_there_is_enough_or_too_much() {
        let until = Some(StoppingCriterion {
            share: 0.02,
            at_most: 5,
        });
        let plan = plan(&[(2, Warmup::Runs(0), until)]);
        let runs = |enough_after: u32| {
            let mut schedule = PlanSchedule::new(&plan, 1);
            let mut done = 0;
            while schedule.next(|_| done >= enough_after).is_some() {
                done += 1;
            }
            done
        };
        assert_eq!([runs(0), runs(3), runs(9)], [2, 3, 5]);
    }
}
