//! Who waits before a link, and who is dropped: disciplines as pure decisions, and the containers some of them need.
//!
//! Nothing here knows a link, a packet or a limit: the caller tells sizes and instants, and does what it is told.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`fifo`] | first in, first out, with the instant of entry and a count of bytes |
//! | [`red`] | random early detection: decides at arrival by the average length |
//! | [`pie`] | proportional integral controller: decides at arrival by the delay |
//! | [`codel`] | controlled delay: decides at departure by how long the packet stood |
//! | [`fq_codel`] | a queue for each flow, served in turn, each with its own CoDel |

pub mod codel;
pub mod fifo;
pub mod fq_codel;
pub mod pie;
pub mod red;

use stackline_core::time::Duration;

/// What a discipline that decides at arrival says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may join the queue.
    Take,
    /// By chance or by the controller: mark it if it may be marked, else drop it.
    Early,
    /// Drop it even if it may be marked.
    Forced,
}

/// What is held against a packet that a discipline condemns at departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its bytes.
    pub bytes: u64,
    /// How long it stood in the queue.
    pub sojourn: Duration,
}
