//! The only unsafe code of the monitors: thin calls into the kernel, each with its reason. It decides nothing.
#![allow(unsafe_code)]

pub(crate) mod adjtimex;
pub(crate) mod tcp_info;
