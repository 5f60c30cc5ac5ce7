//! Queue disciplines: pure decisions, and the containers that some of them need.
//!
//! They hold neither links nor limits: the caller passes sizes and instants and carries out the decision.
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

/// The decision of a discipline that decides at arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may join the queue.
    Take,
    /// By probability or by the controller: mark it if allowed, else drop it.
    Early,
    /// Drop it even if it may be marked.
    Forced,
}

/// Why a discipline drops or marks a packet at departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisciplineVerdict {
    /// Its bytes.
    pub bytes: u64,
    /// How long it waited in the queue.
    pub sojourn: Duration,
}
