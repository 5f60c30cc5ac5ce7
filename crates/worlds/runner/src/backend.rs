//! The trait of a world that makes runs ([`Backend`]), and what all worlds are given ([`RunContext`]).

use crate::recording::Traces;
use crate::tracing::Tracing;
use serde_json::Value;
use stackline_core::error::Error;
use stackline_core::plan::{Measurement, Plan};
use stackline_core::run_record::{NetworkRecord, RunRecord, WakeUp};
use stackline_core::run_schedule::{RunOrder, ScheduledRun};
use stackline_core::time::Duration;
use stackline_live::launch::Launcher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The result of a run.
pub(crate) struct RunOutput {
    /// The records of the run, one for each part.
    pub(crate) records: Vec<RunRecord>,
    /// How long the run took, in the time of its world: virtual in the simulated world, real in the others.
    pub(crate) took: Duration,
}

impl RunOutput {
    /// Adds to each record what the network did.
    pub(crate) fn across(mut self, network: &NetworkRecord) -> Self {
        for record in &mut self.records {
            record.network = Some(network.clone());
        }
        self
    }
}

/// A world in which runs are made.
pub(crate) trait Backend {
    /// Makes one run, and traces it into `tracing` if that is given.
    fn make(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&mut Tracing>,
    ) -> Result<RunOutput, Error>;
    /// The host whose clock the times of traced runs refer to; `None` for the coordinator's.
    fn reference(&self) -> Option<String> {
        None
    }
    /// What is known of the world, for `environment.json`. Called once before the first run and once (`done`) after the
    /// last.
    fn environment(&mut self, done: bool) -> Value;
    /// Notes for people about the world, shown beside the results.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// What it costs to wake a processor core in this world, where it was measured.
    fn wake_up(&self) -> Option<WakeUp> {
        None
    }
}

/// What becomes of the other measurements when a run of one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailure {
    /// All runs end.
    #[default]
    Stop,
    /// The other rows of the same sweep go on: another value, stack or network may do what this one cannot. A failure of a
    /// specification that has one row alone ends all runs.
    GoOnInSweep,
    /// All others go on.
    GoOn,
}

impl AfterFailure {
    /// Whether others go on after a run of this measurement failed.
    pub(crate) fn goes_on(self, plan: &Plan, failed: &Measurement) -> bool {
        let same = |other: &&Measurement| other.specification == failed.specification;
        match self {
            Self::Stop => false,
            Self::GoOnInSweep => plan.measurements.iter().filter(same).nth(1).is_some(),
            Self::GoOn => true,
        }
    }
}

/// What is needed to make the runs of a plan.
#[derive(Debug)]
pub struct RunContext<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// How agents and emulators are started.
    pub launcher: Launcher,
    /// Set from outside to end the runs early.
    pub interrupted: &'p Arc<AtomicBool>,
    /// Set when a user wants the end: work that takes long after the runs is then left out.
    pub signalled: &'p Arc<AtomicBool>,
    /// What is recorded, and the run directory.
    pub traces: Traces,
    /// What becomes of the other measurements when a run fails.
    pub after_failure: AfterFailure,
    /// In which order the runs are made.
    pub order: RunOrder,
    /// Make every simulated run twice; an error if the two differ.
    pub twice: bool,
}
