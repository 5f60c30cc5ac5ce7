//! Work in a thread of its own: servers and disks that hang are not waited for by whoever wants to end it.

use crate::exit::{Blame, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often it is looked whether Ctrl-C came.
const LOOK: Duration = Duration::from_millis(50);

/// Does that, or is interrupted, which is said in these words; then what it does ends with this process.
pub(super) fn run_interruptible<T: Send + 'static>(
    interrupted: &Arc<AtomicBool>,
    words: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, ended) = mpsc::channel();
    thread::Builder::new()
        .name("work".into())
        .spawn(move || drop(done.send(work())))
        .map_err(|error| Error::environment(format!("no thread can be started: {error}")))?;
    loop {
        match ended.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => {
                return Err(Error::new(Blame::Interrupted, words));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::measurement("its thread broke off"));
            }
        }
    }
}
