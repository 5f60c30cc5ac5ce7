//! The only unsafe code of the monitors: what ptrace(2) and capabilities(7) need, each call with its reason. It decides nothing.
#![allow(unsafe_code)]

pub(crate) mod capability;
pub(crate) mod ptrace;
