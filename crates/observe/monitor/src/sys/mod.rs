//! The only unsafe code of this crate: the system calls that ptrace(2) needs, each with the reason why it is sound.
#![allow(unsafe_code)]

pub(crate) mod ptrace;
