//! System calls without a safe wrapper; the only unsafe code of this crate. It decides nothing.
#![allow(unsafe_code, reason = "fork has no safe wrapper; it is called here and nowhere else")]

pub(crate) mod fork;
