//! An endpoint is one replica of one side (initiator or responder) of a part of a measurement. The crate holds the
//! endpoint that all worlds share: it walks the operations of a procedure over a connection, keeps the times, and makes
//! run records of what both sides observed.
//!
//! The endpoint never opens a socket, reads a clock or starts a thread: a world (live, emulated or simulated) does,
//! through [`EndpointWorld`] and [`EndpointService`].
//!
//! | module | one idea |
//! | --- | --- |
//! | [`endpoint`] | start here: one endpoint of one side, walking its program |
//! | [`service`] | what a stack gives it: the operations of one open connection |
//! | [`world`] | what a world gives it: a clock, connections, waiting |
//! | [`task`] | what one side of one part is to do |
//! | [`times`] | collects times in bounded memory |
//! | [`call_series`] | calls one by one, in bounded memory |
//! | `pacing` | the moments that paces intend, and how late operations began |
//! | [`interval_series`] | what ended in each interval, in bounded memory |
//! | `interval_sums` | the intervals of all endpoints of a side |
//! | `latency_counts` | times of an interval as counts by size |
//! | `transport_sum` | what the transports of all its connections reported, as one |
//! | [`observation`] | what endpoints observed, and their sum |
//! | [`records`] | the two sides of a part as a run record |

pub mod call_series;
pub mod endpoint;
pub mod interval_series;
mod interval_sums;
mod latency_counts;
mod marks;
pub mod observation;
mod pacing;
pub mod records;
pub mod service;
pub mod task;
pub mod times;
mod transport_sum;
pub mod world;

pub use endpoint::Endpoint;
pub use interval_series::SequenceProgress;
pub use observation::{EndpointObservation, SideObservation};
pub use service::{BulkDirection, ConnectionFacts, ConnectionOpening, EndpointService};
pub use task::EndpointTask;
pub use times::DurationSamples;
pub use world::{EndpointProcessor, EndpointStep, EndpointWorld};
