//! Checks after a long silence during a run whether its agents still answer: each agent with an unfinished job is sent a clock query
//! and has the same time again to answer. Other messages that come meanwhile are processed as usual.

use super::jobs::{Jobs, note_job_message};
use super::mailbox::Coordinator;
use crate::control::{FromAgent, ToAgent};
use crate::error::{Error, Result};
use crate::silence_limits::{VARIABLE, silence_limit};
use std::collections::BTreeSet;
use std::time::Instant;

impl Coordinator<'_> {
    /// Sends a clock query to every agent with an unfinished job and waits until each has sent a clock answer or a job's outcome.
    ///
    /// # Errors
    /// An [`Error`] naming the hosts that stayed silent for [`silence_limit`]; the coordinator then asks no agent again.
    pub(super) fn are_alive(&mut self, jobs: &mut Jobs) -> Result<()> {
        let mut missing: BTreeSet<String> = jobs
            .values()
            .filter(|job| job.observed.is_none())
            .map(|job| job.host.clone())
            .collect();
        for host in &missing {
            self.send(host, &ToAgent::Clock)?;
        }
        let (silence, begun) = (silence_limit(), Instant::now());
        while !missing.is_empty() {
            let Some((host, message)) = self.receive(begun + silence)? else {
                let hosts: Vec<&str> = missing.iter().map(String::as_str).collect();
                let what = format!(
                    "{} stopped answering: silent for {} s",
                    hosts.join(", "),
                    silence.as_secs()
                );
                let hint = format!(
                    "check for suspended, overloaded or unreachable hosts; to wait longer, set {VARIABLE}=SECONDS"
                );
                return Err(self.mute(Error::measurement(what).hint(hint)));
            };
            if matches!(
                message,
                FromAgent::Clock { .. } | FromAgent::Done { .. } | FromAgent::Failed { .. }
            ) {
                missing.remove(&host);
            }
            note_job_message(jobs, message)?;
        }
        Ok(())
    }
}
