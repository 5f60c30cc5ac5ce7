//! System calls that have no safe wrapper. The only place of this crate with unsafe code; it decides nothing.
#![allow(unsafe_code)]

pub(crate) mod frames;
pub(crate) mod frames_cores;
pub(crate) mod frames_out;
pub(crate) mod frames_ring;
pub(crate) mod option;
pub(crate) mod receive;
pub(crate) mod send;

use std::io;

/// A return value of -1 is an error in `errno`; anything else is a length.
fn length(value: isize) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::Error::last_os_error())
}
