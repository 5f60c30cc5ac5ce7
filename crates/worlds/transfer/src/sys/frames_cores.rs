//! Which processors a thread runs on.

use super::length;
use std::io;
use std::mem::{size_of, zeroed};

/// The processors that this thread may run on, in order.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    // SAFETY: cpu_set_t is plain data, for which all bytes zero is a value.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the pointer is to a live set of that size; 0 is this thread.
    length(
        unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) } as isize,
    )?;
    let cores = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the size of the set.
    Ok(cores
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect())
}

/// From now on this thread runs on that processor alone, one of those that [`allowed`] names.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    assert!(core < libc::CPU_SETSIZE as usize, "processor {core}");
    // SAFETY: cpu_set_t is plain data, for which all bytes zero is a value.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the pointer is to a live set of that size; 0 is this thread.
    length(
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) }
            as isize,
    )?;
    Ok(())
}
