//! The environment that is stored with a result: what the host is (static) and what it does (dynamic).
//!
//! SPIMS section 5 asks for it, so that a result can be understood and repeated elsewhere. Everything comes from text files
//! below `/proc`, `/sys` and `/etc`. It starts no process, opens no socket, writes nothing, and records no addresses.
//! What cannot be read is listed under `absent` with its reason, never as zero.
//!
//! - [`static_environment`]: processor, memory, system, network parameters, interfaces, limits. Once a run.
//! - [`EnvironmentSampler`] takes a [`DynamicSample`]: load, CPU, paging, pressure, throttling, traffic, TCP counters. Before and after.
//! - [`difference`]: what changed between two samples, with the flags of a result.

mod difference;
mod dynamic;
mod facts;
mod fixed;
#[cfg(test)]
mod tests;

pub use difference::difference;
pub use dynamic::{DynamicSample, EnvironmentSampler};
use serde_json::Value;
use stackline_os::root_directory::Root;

/// The part of the environment that does not change while a measurement runs.
#[must_use]
pub fn static_environment() -> Value {
    fixed::describe(&Root::system())
}
