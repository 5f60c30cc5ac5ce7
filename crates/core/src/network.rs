//! A declared network as plain data: hosts, switches, links and their properties.
//!
//! Checked here and in `spec` now; carried out by the simulated and the emulated world.

use crate::time::Duration;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One `network NAME { ... }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Its name, used by `across`.
    pub name: String,
    /// Its hosts.
    pub hosts: Vec<String>,
    /// Its switches.
    pub switches: Vec<Switch>,
    /// Its links, each both ways.
    pub links: Vec<Link>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Bytes of buffer; unlimited when absent.
    pub buffer_bytes: Option<u64>,
    /// Whether that is per output port (else one pool for all).
    pub buffer_per_port: bool,
    /// Bytes of a cell when frames are cut into cells (53 for ATM).
    pub cell_bytes: Option<u64>,
    /// Whether the rest of a frame is dropped once one of its cells is.
    pub early_packet_discard: bool,
}

/// A link, the same both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The nodes it joins.
    pub ends: (String, String),
    /// bit/s.
    pub rate_bit_s: f64,
    /// Propagation delay one way.
    pub delay: Duration,
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u64>,
    /// Bytes of queue at each end; unlimited when absent.
    pub queue_bytes: Option<u64>,
}
