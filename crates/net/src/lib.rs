//! The network model: hosts' interfaces, links, queues, losses, cells, switches, topology. Written once, driven by two
//! clocks: `sim` gives it virtual time and its own packets, `emu` gives it real time and the frames of real programs.
//!
//! It reads no clock, does no I/O, starts no thread, ticks never: a departure is computed when a packet arrives, and what
//! cannot be computed then (who leaves a queue whose discipline decides at departure) waits for a deadline it tells.
//! The same seed and the same packets at the same instants give the same events, to the byte.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`network`] | start here: the whole machine, with its four verbs |
//! | [`packet`] | what travels: a packet, or several of one flow that offload left together |
//! | [`seen`] | what happened to a packet at a port, and why: the taps that events and captures hang on |
//! | [`topology`] | nodes, ports, shortest paths |
//! | [`agenda`] | what happens next: a monotone radix heap |
//! | [`link`] | one direction of a link: transmitter, delay, jitter, loss, duplication |
//! | [`queue`] | who waits before a link, who is dropped |
//! | [`cells`] | frames in cells and back |
//! | [`interface`] | the host's interface and the copying behind it |

#![no_std]

extern crate alloc;

pub mod agenda;
pub mod cells;
mod chance;
mod direction;
mod interface;
pub mod link;
pub mod network;
pub mod packet;
mod pool;
pub mod queue;
pub mod seen;
mod topology;

pub use network::{Cause, Delivery, Network, Path};
pub use packet::{Ecn, Node, Packet, Payload, Segments};
pub use seen::{Counters, Happening, Place, Port, Reason, Tap};
