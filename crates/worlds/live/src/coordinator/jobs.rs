//! Jobs of the present run, and what agents report of them.

use crate::control::FromAgent;
use crate::error::Result;
use stackline_core::procedure::PairSide;
use stackline_endpoint::observation::SideObservation;
use std::collections::BTreeMap;

/// A job of the present run.
pub(super) struct RunningJob {
    pub(super) host: String,
    pub(super) part: usize,
    pub(super) side: PairSide,
    pub(super) background: bool,
    pub(super) observed: Option<SideObservation>,
    pub(super) ending: bool,
}

pub(super) type Jobs = BTreeMap<u64, RunningJob>;

/// Keeps what an agent reports of a job; a failure of one that still matters is the error.
pub(super) fn note_job_message(jobs: &mut Jobs, message: FromAgent) -> Result<()> {
    match message {
        FromAgent::Done { job, observed } => {
            if let Some(running) = jobs.get_mut(&job) {
                running.observed = Some(*observed);
            }
            Ok(())
        }
        // An event of a job of an earlier run says nothing about this one.
        FromAgent::Failed { job, error } => match jobs.get_mut(&job) {
            // Its peer may have ended a moment earlier.
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
