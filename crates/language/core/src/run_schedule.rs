//! The schedule of a plan: which run comes next, whether it is counted, and its seed. It is the same in every world.
//!
//! It executes nothing and reads no clock: a world takes the next run, reports how long each run took in its own time
//! and whether a measurement that repeats `until` its interval is narrow enough has enough runs.

use crate::plan::{Measurement, Plan, Warmup, World};
use crate::random::{Generator, Seed};
use crate::time::Duration;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use rand_core::Rng as _;
use serde::{Deserialize, Serialize};

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

/// In which order the runs of a plan are made. Results of simulated runs do not depend on it, since each run has its own
/// seed; those of real ones do when the machine changes meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// Measurement by measurement, as the text has them.
    #[default]
    Declared,
    /// Specification by specification; the runs of all measurements that one of them gives come in random order.
    Sweeps,
    /// The runs of all measurements of the text come in random order.
    Random,
}

crate::named_values!(RunOrder,
    Declared = "declared", "One measurement after the other, as the text has them";
    Sweeps = "sweeps", "One specification after the other, the runs of each in random order";
    Random = "random", "The runs of the whole text in random order");

impl RunOrder {
    /// The order where the user wants none: chance keeps what changes on real machines apart from what is swept, and
    /// virtual time does not change.
    #[must_use]
    pub fn usual(plan: &Plan) -> Self {
        let is_real = |measurement: &Measurement| measurement.world != World::Simulated;
        if plan.measurements.iter().any(is_real) {
            Self::Sweeps
        } else {
            Self::Declared
        }
    }

    /// Whether the runs of a plan are in another order than the text's.
    #[must_use]
    pub fn mixes(self, plan: &Plan) -> bool {
        let measurements = plan.measurements.as_slice();
        match self {
            Self::Declared => false,
            Self::Sweeps => measurements
                .windows(2)
                .any(|pair| matches!(pair, [one, next] if one.specification == next.specification)),
            Self::Random => measurements.len() > 1,
        }
    }
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, Default)]
struct MeasurementProgress {
    /// Number of its warm-up runs so far.
    warm: u32,
    /// Time that its warm-up runs have taken.
    warm_for: Duration,
    /// Whether its warm-up is over.
    warmed: bool,
    /// Number of its counted runs so far.
    run: u32,
    /// Whether it has no further runs.
    over: bool,
}

/// The position in a plan.
#[derive(Clone, Debug)]
pub struct PlanSchedule<'p> {
    plan: &'p Plan,
    seed: Seed,
    order: RunOrder,
    progress: Vec<MeasurementProgress>,
    /// Index of the measurement of the latest run.
    index: usize,
    /// Index of the first measurement that is not over.
    first: usize,
    /// Draws which measurement is next.
    generator: Generator,
}

impl<'p> PlanSchedule<'p> {
    /// A schedule at the first run. The order is drawn from the seed.
    #[must_use]
    pub fn new(plan: &'p Plan, seed: u64, order: RunOrder) -> Self {
        let seed = Seed::root(seed);
        Self {
            plan,
            seed,
            order,
            progress: vec![MeasurementProgress::default(); plan.measurements.len()],
            index: 0,
            first: 0,
            generator: seed.child("order").generator(),
        }
    }

    /// Reports how long a run took, in the time of its world.
    pub fn record_time(&mut self, time: Duration) {
        if let Some(progress) = self.progress.get_mut(self.index)
            && !progress.warmed
        {
            progress.warm_for += time;
        }
    }

    /// Leaves out the further runs of the current measurement.
    pub fn give_up(&mut self) {
        if let Some(progress) = self.progress.get_mut(self.index) {
            progress.over = true;
        }
    }

    /// The next run; `None` when the plan is done. `enough` says whether the measurement with that index has enough
    /// runs for its interval.
    pub fn next(&mut self, enough: impl Fn(usize) -> bool) -> Option<ScheduledRun<'p>> {
        loop {
            self.index = self.choose()?;
            let measurement = self.plan.measurements.get(self.index)?;
            let progress = self.progress.get_mut(self.index)?;
            if !progress.warmed && warm_more(measurement, *progress) {
                progress.warm += 1;
                let run = progress.warm - 1;
                return Some(self.scheduled(measurement, run, false));
            }
            progress.warmed = true;
            let run = progress.run;
            if run < most_runs(measurement) && (run < measurement.runs || !enough(self.index)) {
                progress.run += 1;
                return Some(self.scheduled(measurement, run, true));
            }
            progress.over = true;
        }
    }

    /// The measurement of the next run, which may turn out to have no further one.
    fn choose(&mut self) -> Option<usize> {
        // Warm-up runs come right before the first counted run.
        let latest = self.progress.get(self.index)?;
        if latest.warm > 0 && latest.run == 0 && !latest.over {
            return Some(self.index);
        }
        while self.progress.get(self.first)?.over {
            self.first += 1;
        }
        let block = self.block();
        let weights = || block.clone().map(|index| (index, self.weight(index)));
        let sum: u64 = weights().map(|(_, weight)| weight).sum();
        if block.len() == 1 || sum == 0 {
            return Some(self.first);
        }
        // Each order of all the runs that are left is as likely as any other.
        let mut drawn = drawn_below(&mut self.generator, sum);
        let weights = block.map(|index| (index, self.weight(index)));
        for (index, weight) in weights {
            match drawn.checked_sub(weight) {
                Some(rest) => drawn = rest,
                None => return Some(index),
            }
        }
        None
    }

    /// The measurements among which chance decides.
    fn block(&self) -> Range<usize> {
        let all = self.plan.measurements.as_slice();
        let end = match self.order {
            RunOrder::Declared => self.first + 1,
            RunOrder::Random => all.len(),
            RunOrder::Sweeps => {
                let specification = |index: usize| all.get(index).map(|one| one.specification);
                let own = specification(self.first);
                (self.first..all.len())
                    .find(|index| specification(*index) != own)
                    .unwrap_or(all.len())
            }
        };
        self.first..end
    }

    /// How many of its runs are certain, or 1 where it may have more.
    fn weight(&self, index: usize) -> u64 {
        let of = self.plan.measurements.get(index);
        let (Some(measurement), Some(progress)) = (of, self.progress.get(index)) else {
            return 0;
        };
        let left = measurement.runs.saturating_sub(progress.run);
        match progress.over {
            true => 0,
            false => u64::from(left).max(u64::from(progress.run < most_runs(measurement))),
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

const fn warm_more(measurement: &Measurement, progress: MeasurementProgress) -> bool {
    match measurement.warmup {
        Warmup::Runs(runs) => progress.warm < runs,
        // The first warm-up run always begins, whatever the time is.
        Warmup::Time(time) => time.0 > 0 && (progress.warm == 0 || progress.warm_for.0 < time.0),
    }
}

/// Most counted runs of a measurement.
fn most_runs(measurement: &Measurement) -> u32 {
    measurement.until.map_or(measurement.runs, |until| {
        until.at_most.max(measurement.runs)
    })
}

/// A whole number below `end`, each as likely as the others but for a share of `end / 2^64`.
fn drawn_below(generator: &mut Generator, end: u64) -> u64 {
    let product = u128::from(generator.next_u64()) * u128::from(end);
    u64::try_from(product >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Composer, StoppingCriterion, World};
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::string::String;

    fn plan(measurements: &[(u32, Warmup, Option<StoppingCriterion>)]) -> Plan {
        let measurement =
            |(runs, warmup, until): &(u32, Warmup, Option<StoppingCriterion>)| Measurement {
                text: String::new(),
                line: 1,
                specification: 0,
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
        let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Declared);
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
        let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Declared);
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
        let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Declared);
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
            let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Declared);
            let mut done = 0;
            while schedule.next(|_| done >= enough_after).is_some() {
                done += 1;
            }
            done
        };
        assert_eq!([runs(0), runs(3), runs(9)], [2, 3, 5]);
    }

    /// Every run of a plan in an order: measurement, run, whether it is counted.
    fn all_runs(plan: &Plan, seed: u64, order: RunOrder) -> Vec<(usize, u32, bool)> {
        let mut schedule = PlanSchedule::new(plan, seed, order);
        core::iter::from_fn(|| schedule.next(|_| true))
            .map(|run| (run.index, run.run, run.counted))
            .collect()
    }

    #[test]
    fn chance_changes_the_order_and_nothing_else() {
        let none = Warmup::Runs(0);
        let plan = plan(&[(5, none, None), (3, Warmup::Runs(2), None), (7, none, None)]);
        let declared = all_runs(&plan, 1, RunOrder::Declared);
        let drawn = all_runs(&plan, 1, RunOrder::Random);
        assert_ne!(drawn, declared);
        assert_eq!(drawn, all_runs(&plan, 1, RunOrder::Random), "repeatable");
        assert_ne!(drawn, all_runs(&plan, 2, RunOrder::Random));
        let as_set = |runs: &[_]| {
            runs.iter()
                .copied()
                .collect::<BTreeSet<(usize, u32, bool)>>()
        };
        assert_eq!(as_set(&drawn), as_set(&declared));
        assert_eq!(drawn.len(), declared.len());
        for index in 0..3 {
            let own = drawn.iter().filter(|run| run.0 == index && run.2);
            assert!(own.is_sorted_by_key(|run| run.1), "{drawn:?}");
        }
        let warm = drawn.iter().position(|run| *run == (1, 0, false)).unwrap();
        assert_eq!(
            drawn[warm..warm + 3],
            [(1, 0, false), (1, 1, false), (1, 0, true)]
        );
    }

    #[test]
    fn a_run_has_the_same_seed_in_each_order() {
        let plan = plan(&[(4, Warmup::Runs(1), None), (4, Warmup::Runs(0), None)]);
        let seeds = |order| {
            let mut schedule = PlanSchedule::new(&plan, 3, order);
            core::iter::from_fn(|| schedule.next(|_| true))
                .map(|run| ((run.index, run.run, run.counted), run.seed.0))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(seeds(RunOrder::Declared), seeds(RunOrder::Random));
    }

    #[test]
    fn each_order_is_as_likely_as_any_other() {
        let none = Warmup::Runs(0);
        let plan = plan(&[(1, none, None), (1, none, None), (1, none, None)]);
        let mut counts: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for seed in 0..6000 {
            let runs = all_runs(&plan, seed, RunOrder::Random);
            *counts
                .entry(runs.iter().map(|run| run.0).collect())
                .or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        // Chi-squared with 5 degrees of freedom exceeds 20.5 once in a thousand times; the seeds are fixed.
        let squares: f64 = counts
            .values()
            .map(|n| f64::from(*n) - 1000.0)
            .map(|n| n * n)
            .sum();
        assert!(squares / 1000.0 < 20.5, "{counts:?}");
    }

    #[test]
    fn a_sweep_is_mixed_and_specifications_stay_in_their_order() {
        let none = Warmup::Runs(0);
        let mut plan = plan(&[(6, none, None), (6, none, None), (6, none, None)]);
        plan.measurements[2].specification = 1;
        let runs = all_runs(&plan, 1, RunOrder::Sweeps);
        assert!(runs[..12].iter().all(|run| run.0 < 2));
        assert!(!runs[..12].is_sorted_by_key(|run| run.0), "{runs:?}");
        assert!(RunOrder::Sweeps.mixes(&plan));
        plan.measurements[1].specification = 2;
        assert!(!RunOrder::Sweeps.mixes(&plan) && RunOrder::Random.mixes(&plan));
        let alone = all_runs(&plan, 1, RunOrder::Sweeps);
        assert_eq!(alone, all_runs(&plan, 1, RunOrder::Declared));
    }

    #[test]
    fn in_random_order_each_measurement_repeats_until_its_own_is_enough() {
        let until = Some(StoppingCriterion {
            share: 0.02,
            at_most: 9,
        });
        let none = Warmup::Runs(0);
        let plan = plan(&[(2, none, until), (4, none, None), (2, none, until)]);
        let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Random);
        let done = core::cell::RefCell::new([0_usize; 3]);
        // The first needs five runs; the last never has enough.
        while let Some(run) = schedule.next(|index| index == 0 && done.borrow()[index] >= 5) {
            done.borrow_mut()[run.index] += 1;
        }
        assert_eq!(done.take(), [5, 4, 9]);
    }

    #[test]
    fn what_is_given_up_in_random_order_does_not_come_back() {
        let none = Warmup::Runs(0);
        let plan = plan(&[(5, none, None), (5, none, None)]);
        let mut schedule = PlanSchedule::new(&plan, 1, RunOrder::Random);
        let first = schedule.next(|_| true).unwrap().index;
        schedule.give_up();
        let rest: Vec<usize> = core::iter::from_fn(|| schedule.next(|_| true))
            .map(|run| run.index)
            .collect();
        assert_eq!(rest, [1 - first; 5]);
    }
}
