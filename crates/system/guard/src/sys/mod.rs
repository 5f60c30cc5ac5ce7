//! System calls without a safe wrapper; the only unsafe code of this crate. It decides nothing.
#![allow(
    unsafe_code,
    reason = "fork and close_range have no safe wrapper; they are called here and nowhere else"
)]

pub(crate) mod descriptors;
pub(crate) mod fork;
