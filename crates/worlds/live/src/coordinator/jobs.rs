//! The jobs of the present run, as the coordinator sees them, and what agents report of them. A job is one side of one part of a run,
//! carried out by one agent.

use crate::control::FromAgent;
use crate::error::Result;
use stackline_core::procedure::PairSide;
use stackline_endpoint::observation::SideObservation;
use std::collections::BTreeMap;

/// A job of the present run.
pub(super) struct RunningJob {
    /// The host whose agent carries it out.
    pub(super) host: String,
    /// Index of the part in the measurement.
    pub(super) part: usize,
    pub(super) side: PairSide,
    /// Whether its part is a background load.
    pub(super) background: bool,
    /// Its outcome; `None` while it runs.
    pub(super) observed: Option<SideObservation>,
    /// Whether its agent was asked to end it.
    pub(super) ending: bool,
}

/// Jobs by number, as messages name them.
pub(super) type Jobs = BTreeMap<u64, RunningJob>;

/// Stores the outcome that an agent reports for a job; other messages are ignored. A failed job counts as ended, without observations.
///
/// # Errors
/// The failure of the job, unless it is a background load that is being ended.
pub(super) fn note_job_message(jobs: &mut Jobs, message: FromAgent) -> Result<()> {
    match message {
        FromAgent::Done { job, observed } => {
            if let Some(running) = jobs.get_mut(&job) {
                running.observed = Some(*observed);
            }
            Ok(())
        }
        // A job that is not in `jobs` belongs to an earlier run and is ignored.
        FromAgent::Failed { job, error } => match jobs.get_mut(&job) {
            // A load that is being ended may fail because its peer ended a moment earlier.
            Some(running) if running.ending && running.background => {
                running.observed = Some(SideObservation::default());
                Ok(())
            }
            Some(running) => {
                running.observed = Some(SideObservation::default());
                Err(error.within(&side_name(running)))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The job's name in error messages; the built-in local hosts, whose names begin with a parenthesis, are left out.
fn side_name(running: &RunningJob) -> String {
    let side = if running.side == PairSide::Initiator {
        "initiator"
    } else {
        "responder"
    };
    if running.host.starts_with('(') {
        side.to_string()
    } else {
        format!("{side} on {}", running.host)
    }
}
