//! Agents that are reached without ssh: one listens at a TCP port, and a process beside the coordinator connects to it and passes its bytes
//! on, as ssh would.

pub mod agent_connection;
pub mod agent_listener;
mod byte_relay;
mod secure_channel;
mod socket_keeping;

use std::time::Duration;

/// The variable of the environment that holds the secret.
pub const SECRET: &str = "STACKLINE_AGENT_SECRET";

/// How long connecting, or a handshake, may take.
const PATIENCE: Duration = Duration::from_secs(10);
