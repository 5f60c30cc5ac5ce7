//! Ctrl-C and SIGTERM: they raise flags that a command checks, instead of ending the program.

use crate::exit::Error;
use stackline_guard::stop::StopSwitch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From the first Ctrl-C or SIGTERM on, the flags are raised.
pub(crate) fn listen_for_ctrl_c<const N: usize>(flags: [&Arc<AtomicBool>; N]) -> Result<(), Error> {
    let flags = flags.map(Arc::clone);
    ctrlc::set_handler(move || {
        flags
            .iter()
            .for_each(|flag| flag.store(true, Ordering::Relaxed))
    })
    .map_err(|e| Error::environment(format!("cannot handle Ctrl-C: {e}")))
}

/// At each Ctrl-C or SIGTERM `act` is called, on a thread of its own.
pub(crate) fn act_on_ctrl_c(act: impl FnMut() + Send + 'static) -> Result<(), Error> {
    ctrlc::set_handler(act).map_err(|e| Error::environment(format!("cannot handle Ctrl-C: {e}")))
}

/// The first Ctrl-C or SIGTERM triggers the switch.
pub(crate) fn throw_on_ctrl_c(stop: &StopSwitch) -> Result<(), Error> {
    let stop = stop.clone();
    ctrlc::set_handler(move || stop.stop())
        .map_err(|e| Error::environment(format!("cannot handle Ctrl-C: {e}")))
}
