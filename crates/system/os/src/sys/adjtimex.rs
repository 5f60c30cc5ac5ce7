//! How well the wall clock is synchronised: adjtimex(2), read only.

use stackline_core::trace_index::KernelClock;
use std::io;
use std::mem::zeroed;

/// Reads the kernel's state of the wall clock; it sets nothing.
pub fn read() -> io::Result<KernelClock> {
    // SAFETY: timex is plain data, for which all bytes zero is a value; `modes` zero asks and sets nothing.
    let mut state: libc::timex = unsafe { zeroed() };
    // SAFETY: the pointer is to a live timex.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(KernelClock {
        synchronised: state.status & libc::STA_UNSYNC == 0,
        estimated_error_us: state.esterror,
        largest_error_us: state.maxerror,
        // Parts of a million with a fraction of 16 bits.
        #[expect(clippy::cast_precision_loss, reason = "at most 500 ppm")]
        frequency_ppm: state.freq as f64 / 65_536.0,
    })
}
