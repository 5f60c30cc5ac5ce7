//! Agents that are reached without ssh: an agent listens at a TCP port, and a process on the coordinator's machine connects to it and
//! relays the bytes between that connection and the coordinator's pipes, as ssh would.

pub mod agent_connection;
pub mod agent_listener;
mod byte_relay;
mod secure_channel;
mod socket_keeping;

use std::time::Duration;

/// Environment variable that holds the secret that coordinator and agent share.
pub const SECRET: &str = "STACKLINE_AGENT_SECRET";

/// How long connecting, including the handshake, may take.
const PATIENCE: Duration = Duration::from_secs(10);
