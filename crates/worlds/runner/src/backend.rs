//! What a world does for a run, and what it is given for it.

use crate::recording::Traces;
use crate::tracing::Tracing;
use serde_json::Value;
use stackline_core::error::Error;
use stackline_core::plan::Plan;
use stackline_core::run_record::{NetworkRecord, RunRecord, WakeUp};
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::time::Duration;
use stackline_live::launch::Launcher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a run yielded.
pub(crate) struct RunOutput {
    /// One a part.
    pub(crate) records: Vec<RunRecord>,
    /// How long it took, in the time of its world.
    pub(crate) took: Duration,
}

impl RunOutput {
    /// The same, each record with what the network did.
    pub(crate) fn across(mut self, network: &NetworkRecord) -> Self {
        for record in &mut self.records {
            record.network = Some(network.clone());
        }
        self
    }
}

/// A world in which runs are made.
pub(crate) trait Backend {
    /// Makes one run, and traces it into `tracing` if there is one.
    fn make(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&mut Tracing>,
    ) -> Result<RunOutput, Error>;
    /// The host in whose time traced runs are.
    fn reference(&self) -> Option<String> {
        None
    }
    /// What is known of it for `environment.json`: once before the first run, once after the last.
    fn environment(&mut self, done: bool) -> Value;
    /// What is to be known beside its results, for people.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// What waking a core costs there.
    fn wake_up(&self) -> Option<WakeUp> {
        None
    }
}

/// What the runs of a plan are made with.
#[derive(Debug)]
pub struct RunContext<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// How agents and emulators are started.
    pub launcher: Launcher,
    /// Set from outside to end the runs early.
    pub interrupted: &'p Arc<AtomicBool>,
    /// Up when a user wants the end: what takes long after the runs is left then.
    pub signalled: &'p Arc<AtomicBool>,
    /// What is recorded, and into which run directory.
    pub traces: Traces,
    /// Every simulated run is made twice and has to go the same way.
    pub twice: bool,
}
