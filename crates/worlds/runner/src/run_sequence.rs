//! Makes all runs of a plan in order: opens the worlds, makes the runs, and writes down what is known of the worlds
//! before and after.

use crate::backend::RunContext;
use crate::run_writer::RunWriter;
use crate::worlds::Worlds;
use stackline_core::error::{Blame, Error};
use stackline_core::run_record::WakeUp;

/// How the runs ended, and what is known beside their records.
#[derive(Clone, Debug, Default)]
pub struct RunsOutcome {
    /// Why the runs ended early, if they did.
    pub failed: Option<Error>,
    /// The measurements that were given up, by index, and why.
    pub given_up: Vec<(usize, Error)>,
    /// What it costs to wake a processor core where programs really run.
    pub wake_up: Option<WakeUp>,
    /// What tracing cost, for people.
    pub tracing_cost: Option<String>,
    /// Notes about the worlds, for people.
    pub notes: Vec<String>,
    /// The number of simulated runs, and the digest of all their events.
    pub digest: Option<(u64, u64)>,
}

/// Makes all runs of a plan in their worlds. Runs made before a failure are kept.
pub fn make_runs(context: &RunContext<'_>, writer: &mut RunWriter<'_>) -> RunsOutcome {
    let mut worlds = match Worlds::open(context) {
        Ok(worlds) => worlds,
        Err(fault) => {
            return RunsOutcome {
                failed: Some(fault),
                ..RunsOutcome::default()
            };
        }
    };
    writer.environment(worlds.environment(false));
    let mut given_up = Vec::new();
    let failed = worlds.make_runs(context, writer, &mut given_up).err();
    let (failed, tracing_cost) = match worlds.finish() {
        Ok(cost) => (failed, cost),
        Err(fault) => (failed.or(Some(fault)), None),
    };
    if failed
        .as_ref()
        .is_none_or(|fault| fault.blame != Blame::Interrupted)
    {
        writer.environment(worlds.environment(true));
    }
    let mut notes = worlds.notes();
    notes.extend(writer.differences());
    RunsOutcome {
        failed,
        given_up,
        wake_up: worlds.wake_up(),
        tracing_cost,
        notes,
        digest: worlds.digest(),
    }
}
