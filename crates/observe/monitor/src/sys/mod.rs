//! The only unsafe code of the monitors: what ptrace(2) needs, each call with its reason. It decides nothing.
#![allow(unsafe_code)]

pub(crate) mod ptrace;
