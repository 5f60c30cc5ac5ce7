//! Sections 6, 7 and 9: the authors' experience with their TCP, as experiments between two workstations, printed and simulated.
//!
//! | module | one idea |
//! | --- | --- |
//! | `session` | runs a specification across the machines of the profile |
//! | `rows` | rows with the printed and the simulated value, their difference, and whether the value calibrates the profile |
//! | `throughput` | 7.2, 7.3 and 9.1: the best case, timers, blocks of the client |
//! | `memory` | 7.1: packet buffers, and the cost of allocating them |
//! | `windows` | 7.3: silly windows, offered and used however small they are |
//! | `interfaces` | 9.3 and 9.4: packets that nobody wants, and an interface that holds 4 KB |
//! | `replies` | 6: a reply before the request is carried out |

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

/// The specification of the machines, as networks, and of their programs.
pub(super) const TEXT: &str = include_str!("../../data/vsystem_transport.stackline");
