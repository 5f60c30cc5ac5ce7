//! The only unsafe code of the live world: thin calls into the kernel, each with its reason.
//!
//! What is here decides nothing; it turns return values into `io::Result` and keeps pointers inside.
#![allow(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod coroutine;
pub(crate) mod memory;
pub(crate) mod socket;
pub(crate) mod thread;

use std::io;

/// A return value of -1 is an error in `errno`; anything else is a length.
fn length(value: isize) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}
