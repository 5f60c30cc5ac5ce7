//! The only unsafe code of the monitors: thin calls into the kernel, each with its reason. It decides nothing.
#![allow(unsafe_code)]

pub(crate) mod adjtimex;
pub(crate) mod foreign_socket;
pub(crate) mod packet_ring;
pub(crate) mod ptrace;
pub(crate) mod tcp_info;
