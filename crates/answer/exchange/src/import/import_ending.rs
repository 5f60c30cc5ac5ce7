//! Lets a signal end an import soon, whatever it waits for: either nothing of it is in the run, or everything.

use stackline_core::error::{Blame, Error, Result};
use stackline_runs::events::SortStopSignal;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often the flag of the signal is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long an import may take to end by itself, which cleans up, before it is abandoned.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether an import is kept or given up. The first decision, `keeps` or giving up, is final.
#[derive(Clone, Debug, Default)]
pub struct ImportEnding {
    /// Set when a signal came.
    signalled: Arc<AtomicBool>,
    /// The decision: true to keep the events, false to give up.
    kept: Arc<OnceLock<bool>>,
}

impl ImportEnding {
    /// Uses the flag that a signal handler sets.
    #[must_use]
    pub fn by(signalled: &Arc<AtomicBool>) -> Self {
        Self {
            signalled: Arc::clone(signalled),
            ..Self::default()
        }
    }

    /// The signal that stops the sorting of events.
    #[must_use]
    pub fn stop(&self) -> SortStopSignal {
        SortStopSignal::by(&self.signalled)
    }

    /// Called before the events go into the run: returns true if they may. Then a signal can no longer end the import.
    pub(crate) fn keeps(&self) -> bool {
        *self
            .kept
            .get_or_init(|| !self.signalled.load(Ordering::Relaxed))
    }

    /// Gives up, unless the events are kept already; returns whether it gave up.
    fn gives_up(&self) -> bool {
        !*self.kept.get_or_init(|| false)
    }

    /// Does the work on a thread of its own, which may be abandoned while it waits for a log that never comes.
    ///
    /// # Errors
    /// Those of the work, or that it was interrupted.
    pub fn carry_out<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (to, done) = sync_channel(1);
        let worker = thread::spawn(move || {
            // Sending fails if the work was given up and nobody waits for it.
            let _ = to.send(work());
        });
        let mut since = None;
        loop {
            match done.recv_timeout(LOOK) {
                Ok(Err(_)) if self.signalled.load(Ordering::Relaxed) && self.gives_up() => {
                    return Err(interrupted());
                }
                Ok(done) => return done,
                Err(RecvTimeoutError::Disconnected) => {
                    return worker
                        .join()
                        .map_or_else(|panic| resume_unwind(panic), |()| Err(interrupted()));
                }
                Err(RecvTimeoutError::Timeout) if !self.signalled.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let since = since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE && self.gives_up() {
                        return Err(interrupted());
                    }
                }
            }
        }
    }
}

fn interrupted() -> Error {
    Error::new(
        Blame::Interrupted,
        "the import was interrupted: nothing was kept",
    )
    .hint("import the logs again")
}
