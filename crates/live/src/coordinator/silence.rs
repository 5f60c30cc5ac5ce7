//! Whether the agents of a run that has no time limit are still there: each is sent a clock query after a while of silence and has as
//! long to answer. It decides nothing about a run that is under way, and hears everything else meanwhile.

use super::Coordinator;
use super::run::{Jobs, note};
use crate::control::{FromAgent, ToAgent};
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long agents may be silent, in seconds, where a test or a slow host needs another number.
const VARIABLE: &str = "STACKLINE_SILENCE_S";
const USUAL: Duration = Duration::from_secs(60);

/// How long agents may be silent before they are asked, and then take to answer.
pub(super) fn silence() -> Duration {
    let given = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    given.map_or(USUAL, |seconds: u64| Duration::from_secs(seconds.max(1)))
}

/// What an agent may take to answer between runs.
pub(super) fn answer() -> Duration {
    silence() / 2
}

impl Coordinator<'_> {
    /// Asks every agent that has a job under way for a sign of life.
    pub(super) fn are_alive(&mut self, jobs: &mut Jobs) -> Result<()> {
        let mut missing: BTreeSet<String> =
            jobs.values().filter(|job| job.observed.is_none()).map(|job| job.host.clone()).collect();
        for host in &missing {
            self.send(host, &ToAgent::Clock)?;
        }
        let (silence, begun) = (silence(), Instant::now());
        while !missing.is_empty() {
            let Some((host, message)) = self.receive(begun + silence)? else {
                let hosts: Vec<&str> = missing.iter().map(String::as_str).collect();
                let what = format!("{} does not answer any more, for {} s", hosts.join(", "), silence.as_secs());
                let hint = format!(
                    "its host is suspended, overloaded or gone; {VARIABLE}=SECONDS before the command waits longer"
                );
                return Err(self.mute(Error::measurement(what).hint(hint)));
            };
            if matches!(message, FromAgent::Clock { .. } | FromAgent::Done { .. } | FromAgent::Failed { .. }) {
                missing.remove(&host);
            }
            note(jobs, message)?;
        }
        Ok(())
    }
}
