//! Runs work in a thread of its own, so that a user who stops the program does not wait for a peer, a disk or a log that hangs.

use stackline_core::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `work` in a thread and returns its result. If `stop` is set before the work is done, waits for it up to `grace` (so that its
/// values are dropped, which ends what it began elsewhere) and then fails; the thread goes on until this process ends.
///
/// # Errors
/// The error of the work; the error that `stopped` makes if `stop` was set, even if the work ended within `grace`.
pub fn unless_stopped<T: Send + 'static>(
    stop: &AtomicBool,
    grace: Duration,
    stopped: impl FnOnce() -> Error,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, ended) = mpsc::channel();
    thread::Builder::new()
        .name("work".into())
        .spawn(move || drop(done.send(work())))
        .map_err(|error| Error::environment(format!("cannot start a thread: {error}")))?;
    loop {
        match ended.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                drop(ended.recv_timeout(grace));
                return Err(stopped());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::measurement("its thread panicked"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_not_waited_for() {
        let stop = AtomicBool::new(false);
        let done = unless_stopped(&stop, Duration::ZERO, Error::interrupted, || Ok(7));
        assert_eq!(done.unwrap(), 7);
        stop.store(true, Ordering::Relaxed);
        let hangs = || {
            thread::sleep(Duration::from_secs(60));
            Ok(())
        };
        let stopped = unless_stopped(&stop, Duration::ZERO, || Error::input("no more"), hangs);
        assert_eq!(stopped.unwrap_err().message, "no more");
    }
}
