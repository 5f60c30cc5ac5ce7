//! An import that a signal ends: soon, whatever it waits for, and before anything of it is in the run, or when all of it is.

use stackline_core::error::{Blame, Error, Result};
use stackline_runs::events::SortStopSignal;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(20);
/// How long an import may take to end by itself, which tidies up.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether an import ends early; whoever decides first decides.
#[derive(Clone, Debug, Default)]
pub struct ImportEnding {
    signalled: Arc<AtomicBool>,
    kept: Arc<OnceLock<bool>>,
}

impl ImportEnding {
    /// By the flag that a signal raises.
    #[must_use]
    pub fn by(signalled: &Arc<AtomicBool>) -> Self {
        Self {
            signalled: Arc::clone(signalled),
            ..Self::default()
        }
    }

    /// What ends the sorting of events.
    #[must_use]
    pub fn stop(&self) -> SortStopSignal {
        SortStopSignal::by(&self.signalled)
    }

    /// The events are about to go into the run: from now on nothing ends that, unless it has been given up.
    pub(crate) fn keeps(&self) -> bool {
        *self
            .kept
            .get_or_init(|| !self.signalled.load(Ordering::Relaxed))
    }

    /// Whether a signal came and nothing is to be kept.
    fn gives_up(&self) -> bool {
        !*self.kept.get_or_init(|| false)
    }

    /// Does the work on a thread of its own, which may wait for a log that never comes.
    ///
    /// # Errors
    /// Those of the work, or that it was interrupted.
    pub fn carry_out<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (to, done) = sync_channel(1);
        let worker = thread::spawn(move || {
            // Nobody waits for it where it was given up.
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
