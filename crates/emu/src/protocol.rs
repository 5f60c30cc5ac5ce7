//! What the emulator's process and its clients say to each other: one JSON value a line, a question and its answer.

use crate::engine::{Options, Report};
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use stackline_core::network::Network;
use stackline_core::random::Seed;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A host that can be entered for as long as the emulator lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHandle {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The user namespace to enter first, where the hosts have one.
    pub user: Option<PathBuf>,
    /// Its network namespace.
    pub net: PathBuf,
}

/// A network and how it is emulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) network: Network,
    pub(crate) seed: Seed,
    pub(crate) options: Options,
}

/// What clients ask for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// First: the network.
    Open(Box<Opening>),
    /// Begin again with nothing in transit and that seed; what is to be recorded is the program's own matter.
    Restart(Seed, Option<serde_json::Value>),
    /// What has happened since the beginning.
    Report,
}

/// What they are answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The hosts are there.
    Open(Vec<HostHandle>),
    /// It has begun again.
    Restarted,
    /// What has happened.
    Report(Box<Report>),
    /// It cannot be done.
    Refused(Refusal),
}
