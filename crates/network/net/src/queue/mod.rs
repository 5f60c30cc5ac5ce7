//! Queue disciplines: decisions about packets, and the containers that some of them need.
//!
//! A discipline knows neither links nor limits: the caller passes sizes and instants and carries out the decision.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`fifo`] | first in, first out, with the instant of entry and a count of bytes |
//! | [`red`] | random early detection: decides at arrival by the average length |
//! | [`pie`] | proportional integral controller: decides at arrival by the delay |
//! | [`codel`] | controlled delay: decides at departure by how long the packet stood |
//! | [`fq_codel`] | a queue for each flow, served in turn, each with its own CoDel |
//! | [`classes`] | a queue for each class of code points: strict priority, then deficit round robin |
//! | [`dual_pi2`] | two queues, for L4S and for all others, with coupled controllers |

pub mod classes;
pub mod codel;
pub mod dual_pi2;
pub mod fifo;
pub mod fq_codel;
pub mod pie;
pub mod red;

use stackline_core::time::Duration;

/// The decision of a discipline that decides at arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The packet joins the queue.
    Take,
    /// The discipline signals congestion: mark the packet if its sender supports ECN, else drop it.
    Early,
    /// Drop the packet even if its sender supports ECN.
    Forced,
}

/// The packet that a discipline drops or marks at departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisciplineVerdict {
    /// The packet's bytes.
    pub bytes: u64,
    /// How long the packet waited in the queue.
    pub sojourn: Duration,
}
