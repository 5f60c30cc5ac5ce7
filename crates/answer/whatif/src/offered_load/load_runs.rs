//! The runs at one offered rate, kept in memory until all are made, and all of them as one kept run whose swept variable is the rate.

use super::LoadedSpec;
use crate::unattended_runs::{UnattendedOptions, make_runs_in_memory};
use stackline_core::error::Result;
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate;
use stackline_runs::{RunDirectory, RunFileAccess, runs_root};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// What was run at one rate.
#[derive(Debug)]
pub(super) struct LoadTrial {
    pub(super) rate: f64,
    /// Its plan: one measurement.
    pub(super) plan: Plan,
    pub(super) records: Vec<RunRecord>,
}

impl LoadTrial {
    /// Counted runs so far.
    pub(super) fn runs(&self) -> u32 {
        let counted = self.records.iter().filter(|record| !record.warmup);
        counted.map(|record| record.run + 1).max().unwrap_or(0)
    }

    /// Makes so many further runs, each with a seed of its own.
    pub(super) fn make(&mut self, runs: u32, options: &UnattendedOptions<'_>) -> Result<()> {
        let before = self.runs();
        let seed = self.plan.seed.saturating_add(u64::from(before));
        let mut made = make_load_runs(&self.plan, seed, runs, options)?;
        made.iter_mut().for_each(|record| record.run += before);
        self.records.append(&mut made);
        Ok(())
    }
}

/// Makes so many runs of the one measurement of a plan; simulated ones on all cores, each with its own seed from `seed` on.
pub(super) fn make_load_runs(
    plan: &Plan,
    seed: u64,
    runs: u32,
    options: &UnattendedOptions<'_>,
) -> Result<Vec<RunRecord>> {
    let mut plan = plan.clone();
    plan.seed = seed;
    let mut is_simulated = true;
    for measurement in &mut plan.measurements {
        is_simulated &= measurement.world == World::Simulated;
        (measurement.runs, measurement.until) = (runs, None);
    }
    // The emulated world sets it when its path has been taken down.
    options
        .ended
        .store(options.signalled.load(Ordering::Relaxed), Ordering::Relaxed);
    if !is_simulated {
        return make_runs_in_memory(&plan, options.clone());
    }
    for measurement in &mut plan.measurements {
        (measurement.runs, measurement.warmup) = (1, Warmup::Runs(0));
    }
    let last = seed.saturating_add(u64::from(runs.saturating_sub(1)));
    let mut records = Vec::new();
    simulate(&plan, seed..=last, options.ended, |made| {
        records.extend(made)
    })?;
    // Each seed makes one run.
    let parts = plan
        .measurements
        .first()
        .map_or(1, |one| one.parts.len())
        .max(1);
    for (at, record) in records.iter_mut().enumerate() {
        record.run = u32::try_from(at / parts).unwrap_or(u32::MAX);
    }
    Ok(records)
}

/// The runs of all rates as a kept run.
#[derive(Debug)]
pub struct KeptLoad {
    /// Its directory.
    pub directory: PathBuf,
    /// Its plan: a measurement for each rate, in ascending order.
    pub plan: Plan,
    /// Its records.
    pub records: Vec<RunRecord>,
}

impl LoadedSpec<'_> {
    /// Keeps all runs that were made as one run. `None` if there are none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, access: RunFileAccess, complete: bool) -> Result<Option<KeptLoad>> {
        let mut trials: Vec<&LoadTrial> = self
            .trials
            .iter()
            .filter(|trial| trial.runs() > 0)
            .collect();
        if trials.is_empty() {
            return Ok(None);
        }
        trials.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let rates: Vec<f64> = trials.iter().map(|trial| trial.rate).collect();
        let mut plan = self.plan_at(&rates)?;
        let mut records = Vec::new();
        for (at, (trial, measurement)) in trials.iter().zip(&mut plan.measurements).enumerate() {
            measurement.runs = trial.runs();
            records.extend(trial.records.iter().map(|record| RunRecord {
                measurement: at,
                ..record.clone()
            }));
        }
        let mut directory = RunDirectory::create(&runs_root(), "load", SystemTime::now(), access)?;
        directory.write_specification(&self.text_at(&rates)?)?;
        directory.write_plan(&plan)?;
        for record in &records {
            directory.append(record)?;
        }
        let path = directory.path().to_path_buf();
        let reason = (!complete).then_some("the load ended early");
        directory.finish(&records, complete, reason)?;
        Ok(Some(KeptLoad {
            directory: path,
            plan,
            records,
        }))
    }
}
