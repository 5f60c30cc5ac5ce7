//! A person's terminal is as it was when SIGQUIT ends the program that changed it, and while SIGTSTP stops that. What Ctrl-C and SIGTERM do is
//! not looked at here.

use crate::exit::{Error, Result};
use nix::sys::signal::{SigSet, Signal, raise};
use stackline_displayserver::raw_terminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The flag is up from SIGQUIT on; SIGTSTP stops the program. To be called before another thread is there: those that come leave both
/// signals to this one.
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
