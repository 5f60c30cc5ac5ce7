//! The runs that an earlier process made of a plan before it ended. Who goes on takes them over in place of making them, so the
//! records are those of an uninterrupted run.

use serde_json::{Value, json};
use stackline_core::plan::{Plan, Warmup};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::time::Duration;
use stackline_runs::{MachineFacts, StoredRun, machines_in};
use std::collections::BTreeMap;

/// Of how many earlier processes the machines are kept.
const MOST_EARLIER: usize = 16;

/// Which run of a plan: measurement, whether it is a warm-up run, number.
type RunPlace = (usize, bool, u32);

/// What an earlier process made.
#[derive(Clone, Debug, Default)]
pub struct RunsBefore {
    /// The records of whole runs, in the order they were made.
    kept: Vec<RunRecord>,
    /// The same that nobody has taken over yet. Empty where every run is made with many seeds.
    left: BTreeMap<RunPlace, Vec<RunRecord>>,
    /// How many seeds are done, where every run is made with many.
    seeds: u64,
    /// What was known of the machines.
    environment: Value,
}

impl RunsBefore {
    /// The whole runs among the records of a kept run.
    #[must_use]
    pub fn new(run: &StoredRun) -> Self {
        let mut left: BTreeMap<RunPlace, Vec<RunRecord>> = BTreeMap::new();
        for record in &run.records {
            left.entry(place(record)).or_default().push(record.clone());
        }
        left.retain(|(measurement, ..), records| {
            let plan = run.plan.measurements.get(*measurement);
            plan.is_some_and(|plan| records.len() == plan.parts.len())
        });
        let unfinished = unfinished_warm_ups(&run.plan, &left);
        left.retain(|(measurement, warmup, _), _| !(*warmup && unfinished.contains(measurement)));
        let whole = |record: &&RunRecord| left.contains_key(&place(record));
        Self {
            kept: run.records.iter().filter(whole).cloned().collect(),
            left,
            seeds: 0,
            environment: run.environment.clone(),
        }
    }

    /// The seeds that are done, where every run is made with many: all runs of one come before those of the next.
    #[must_use]
    pub fn of_seeds(run: &StoredRun) -> Self {
        let (mut seeds, mut kept) = (0, 0);
        if let Some(last) = run.plan.measurements.last() {
            let index = run.plan.measurements.len() - 1;
            for (at, record) in run.records.iter().enumerate() {
                let ends_seed = record
                    .run
                    .saturating_add(1)
                    .is_multiple_of(last.runs.max(1));
                let is_last = record.measurement == index && record.part + 1 == last.parts.len();
                if is_last && !record.warmup && ends_seed {
                    (seeds, kept) = (
                        u64::from(record.run.saturating_add(1) / last.runs.max(1)),
                        at + 1,
                    );
                }
            }
        }
        Self {
            kept: run.records[..kept].to_vec(),
            left: BTreeMap::new(),
            seeds,
            environment: run.environment.clone(),
        }
    }

    /// The records that stay, in the order they were made.
    #[must_use]
    pub fn kept(&self) -> &[RunRecord] {
        &self.kept
    }

    /// How many counted runs are done.
    #[must_use]
    pub fn counted_runs(&self) -> usize {
        let counted = |record: &&RunRecord| !record.warmup && record.part == 0;
        self.kept.iter().filter(counted).count()
    }

    /// How many seeds are done.
    pub(crate) const fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The records of a run, once, and a time that stands for what it took: the warm-up that lasts a given time has as many
    /// runs as it had.
    pub(crate) fn take(
        &mut self,
        scheduled: &ScheduledRun<'_>,
    ) -> Option<(Vec<RunRecord>, Duration)> {
        let (measurement, warmup) = (scheduled.index, !scheduled.counted);
        let records = self.left.remove(&(measurement, warmup, scheduled.run))?;
        let follows = self
            .left
            .contains_key(&(measurement, warmup, scheduled.run + 1));
        let took = if follows {
            Duration::ZERO
        } else {
            Duration(u64::MAX)
        };
        Some((records, took))
    }

    /// The records that nobody took over.
    pub(crate) fn rest(self) -> impl Iterator<Item = RunRecord> {
        self.left.into_values().flatten()
    }

    /// What was known of the machines of this and earlier processes, the first of them first.
    pub(crate) fn earlier(&self) -> Vec<Value> {
        let mut own = self.environment.clone();
        let earlier = own.as_object_mut().and_then(|own| own.remove("earlier"));
        let mut all = match earlier {
            Some(Value::Array(earlier)) => earlier,
            _ => Vec::new(),
        };
        if !own.is_null() && all.len() < MOST_EARLIER {
            all.push(own);
        }
        all
    }

    /// In what version and machines differ from those of an environment, a sentence each.
    pub(crate) fn differences(&self, environment: &Value) -> Vec<String> {
        let version = |of: &Value| of["stackline"].as_str().unwrap_or_default().to_owned();
        let (before, now) = (version(&self.environment), version(environment));
        let mut found = Vec::new();
        if !before.is_empty() && before != now {
            found.push(format!(
                "stackline {before} made the runs that were done before, {now} the others"
            ));
        }
        let machines = machines_in(environment);
        for (host, before) in machines_in(&self.environment) {
            let changed = machines.get(&host).map(|now| changed(&before, now));
            if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
                found.push(format!(
                    "the machine of {host} is not that of the runs before: {}",
                    changed.join(", ")
                ));
            }
        }
        found
    }
}

const fn place(record: &RunRecord) -> RunPlace {
    (record.measurement, record.warmup, record.run)
}

/// The measurements whose warm-up lasts a given time and did not end, as nothing says how long its runs took. They warm up again.
fn unfinished_warm_ups(plan: &Plan, runs: &BTreeMap<RunPlace, Vec<RunRecord>>) -> Vec<usize> {
    let measurements = plan.measurements.iter().enumerate();
    measurements
        .filter(|(index, plan)| {
            matches!(plan.warmup, Warmup::Time(_)) && !runs.contains_key(&(*index, false, 0))
        })
        .map(|(index, _)| index)
        .collect()
}

/// The facts that differ, each as `kernel was 6.1, is 6.5`.
fn changed(before: &MachineFacts, now: &MachineFacts) -> Vec<String> {
    let unlike = before.iter().filter_map(|(name, was)| {
        let is = now.get(name)?;
        (was != is).then(|| format!("{name} was {was}, is {is}"))
    });
    unlike.collect()
}

/// An environment with those of earlier processes.
pub(crate) fn with_earlier(mut environment: Value, before: Option<&RunsBefore>) -> Value {
    let earlier = before.map(RunsBefore::earlier).unwrap_or_default();
    if !earlier.is_empty() {
        environment["earlier"] = json!(earlier);
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said_and_what_is_equal_is_not() {
        let environment = |version: &str, kernel: &str| {
            let fixed = json!({"system": {"kernel": kernel, "architecture": "x86_64"}});
            json!({"stackline": version, "worlds": {"live": {"hosts": {"a": {"static": fixed}}}}})
        };
        let before = RunsBefore {
            environment: environment("0.1.0", "6.1"),
            ..RunsBefore::default()
        };
        assert!(before.differences(&environment("0.1.0", "6.1")).is_empty());
        let found = before.differences(&environment("0.2.0", "6.5"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("0.1.0") && found[0].contains("0.2.0"));
        assert!(found[1].contains("kernel was 6.1, is 6.5"), "{found:?}");
        assert!(!found[1].contains("architecture"), "{found:?}");
    }

    #[test]
    fn environments_of_earlier_processes_are_a_flat_list() {
        let mut environment = json!({"stackline": "1"});
        for process in 2..30 {
            let before = RunsBefore {
                environment,
                ..RunsBefore::default()
            };
            let own = json!({"stackline": process.to_string()});
            environment = with_earlier(own, Some(&before));
        }
        let earlier = environment["earlier"].as_array().unwrap();
        assert_eq!(earlier.len(), MOST_EARLIER);
        assert_eq!(earlier[0]["stackline"], "1");
        assert!(earlier.iter().all(|one| one["earlier"].is_null()));
        assert_eq!(environment["stackline"], "29");
    }
}
