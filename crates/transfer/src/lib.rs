//! Reliable transfers and V's message passing over UDP and raw Ethernet frames, straight from and into memory.
//!
//! The protocol is the pure machine `proto::blast`; here are what carries its packets and who drives it on the calling
//! thread: no other thread, no queue, no copy of data that landed where it belongs.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`carrier`] | what carries packets between two ends: the contract |
//! | [`udp`] | the UDP carrier: offload both ways, fallbacks |
//! | `sys` | the only unsafe code |

pub mod carrier;
mod sys;
pub mod udp;
