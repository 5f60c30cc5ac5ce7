//! The only unsafe code of this crate: the system calls that ptrace(2) and capabilities(7) need, each with the reason why it is
//! sound.
#![allow(unsafe_code)]

pub(crate) mod capability;
pub(crate) mod ptrace;
