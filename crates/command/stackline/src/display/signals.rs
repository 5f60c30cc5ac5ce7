//! Restores the user's terminal when SIGQUIT ends the program that changed its mode, and while SIGTSTP stops the
//! program. Ctrl-C and SIGTERM are handled elsewhere.

use crate::exit::{Error, Result};
use nix::sys::signal::{SigSet, Signal, raise};
use stackline_displayserver::raw_terminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// From now on SIGQUIT raises the flag, and SIGTSTP stops the program with the terminal restored. Must be called
/// before other threads are started, because they inherit the blocked signals and leave both to this one.
pub(super) fn watch(stop: &Arc<AtomicBool>) -> Result<()> {
    let failed = |error: nix::Error| Error::environment(format!("cannot handle signals: {error}"));
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGQUIT);
    signals.add(Signal::SIGTSTP);
    signals.thread_block().map_err(failed)?;
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            match signal {
                Signal::SIGTSTP => drop(raw_terminal::restored(|| raise(Signal::SIGSTOP))),
                _ => stop.store(true, Ordering::Relaxed),
            }
        }
    });
    Ok(())
}
