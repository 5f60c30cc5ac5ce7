//! Sections 6, 7 and 9: what a TCP taught its makers, as experiments between two workstations, printed and simulated.
//!
//! | module | one idea |
//! | --- | --- |
//! | `session` | a specification across the machines of the profile, and what came of it |
//! | `rows` | what is printed, what is simulated, how far off that is, and whether it sets the profile |
//! | `throughput` | 7.2, 7.3 and 9.1: the best case, timers, blocks of the client |
//! | `memory` | 7.1: buffers of packets, and what allocating them costs |
//! | `windows` | 7.3: windows offered and used however small they are |
//! | `interfaces` | 9.3 and 9.4: packets that nobody wants, and an interface that holds 4 KB |
//! | `replies` | 6: an answer before a request is carried out |

mod interfaces;
mod memory;
mod replies;
mod rows;
mod session;
mod throughput;
mod windows;

pub(super) use interfaces::{polluted, small_interface};
pub(super) use memory::{allocation, buffers};
pub(super) use replies::replies;
pub(super) use throughput::{best, blocks, timers};
pub(super) use windows::silly;

/// The machines, as networks of the language, and what their programs do.
pub(super) const TEXT: &str = include_str!("../../data/vsystem_transport.stackline");
