//! Simulates a scenario and diagnoses it, as the command does.

use stackline_analyze::findings::Finding;
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate;
use stackline_runner::spec_source::SpecSource;
use stackline_runs::{RunDirectory, RunFileAccess};
use stackline_spec::Overrides;
use stackline_truth::Scenario;
use stackline_whatif::advice;
use stackline_whatif::simulated_runs::SimulationBudget;
use stackline_whatif::unattended_runs::{UnattendedOptions, make_unattended_runs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// Where runs are kept while they are diagnosed.
pub(crate) struct RunPlace(tempfile::TempDir);

/// A run that was diagnosed.
pub(crate) struct DiagnosedRun {
    pub(crate) record: RunRecord,
    pub(crate) findings: Vec<Finding>,
}

impl RunPlace {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for temporary files"))
    }

    /// A run of a plan with its events, and what limits it.
    pub(crate) fn diagnosed(&self, plan: &Plan) -> Result<DiagnosedRun, String> {
        let directory = RunDirectory::create(
            self.0.path(),
            "drawn",
            SystemTime::now(),
            RunFileAccess::Private,
        )
        .map_err(|error| error.to_string())?;
        let path = directory.path().to_path_buf();
        let nobody = Arc::new(AtomicBool::new(false));
        let options = UnattendedOptions {
            trace: true,
            capture: Vec::new(),
            ended: &nobody,
            signalled: &nobody,
            warn: |_| {},
        };
        let records =
            make_unattended_runs(plan, directory, options).map_err(|error| error.message)?;
        let loaded = LoadedRun::whatever(&path, MOST_EVENTS).map_err(|error| error.message)?;
        let findings = advice::findings(&loaded, SimulationBudget::moment());
        std::fs::remove_dir_all(path).map_err(|error| error.to_string())?;
        Ok(DiagnosedRun {
            record: measured_part(records)?,
            findings,
        })
    }
}

/// The plan of a scenario.
pub(crate) fn plan(scenario: &Scenario) -> Result<Plan, String> {
    plan_of(&scenario.to_string())
}

/// The plan of a text.
pub(crate) fn plan_of(text: &str) -> Result<Plan, String> {
    SpecSource::made("drawn", text.to_owned())
        .plan_in(World::Simulated, Overrides::default())
        .map_err(|error| error.message)
}

/// What a run of a plan comes to.
pub(crate) fn measured(plan: &Plan, seed: u64) -> Result<RunRecord, String> {
    let (nobody, mut records) = (AtomicBool::new(false), Vec::new());
    simulate(plan, seed..=seed, &nobody, |some| records.extend(some))
        .map_err(|error| error.message)?;
    measured_part(records)
}

fn measured_part(records: Vec<RunRecord>) -> Result<RunRecord, String> {
    let of_it = records.into_iter().find(|record| record.part == 0);
    of_it.ok_or_else(|| "nothing was measured".to_owned())
}
