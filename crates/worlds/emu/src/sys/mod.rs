//! System calls without a safe wrapper; the only unsafe code of this crate. It decides nothing.
#![allow(
    unsafe_code,
    reason = "what has no safe wrapper is called here and nowhere else"
)]

pub(crate) mod block_ring;

pub(crate) mod packet;
pub(crate) mod packet_wait;
pub(crate) mod raw;
pub(crate) mod ring;
pub(crate) mod spawn;
