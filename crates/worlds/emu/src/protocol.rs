//! The protocol between the emulator's process and its clients: JSON, one value a line, one answer for each request.

use crate::engine::{EmulatorOptions, EmulatorReport};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use stackline_core::network::{Network, NetworkLink};
use stackline_core::plan::ProcessorShare;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A host that can be entered for as long as the emulator lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHandle {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The user namespace to enter first, if the hosts have one.
    pub user: Option<PathBuf>,
    /// Its network namespace.
    pub net: PathBuf,
    /// The share of a processor that its programs get, and the name of their control group.
    #[serde(default)]
    pub share: Option<(ProcessorShare, String)>,
}

/// A network and how it is emulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EmulationOpening {
    pub(crate) network: Network,
    pub(crate) seed: Seed,
    pub(crate) options: EmulatorOptions,
}

/// A network that is up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// As it is now.
    pub network: Network,
    /// The links of it that were changed since it was made, by number, each as it was before.
    pub set: Vec<(usize, NetworkLink)>,
    /// Whether it stays without programs.
    pub kept: bool,
    /// Others that hold a lease of it, but for those that only look at it.
    pub leases: usize,
    /// Since it was made.
    pub up: Duration,
    /// What its randomness comes from.
    pub seed: Seed,
}

/// Requests of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmulatorRequest {
    /// The first request: opens the network.
    Open(Box<EmulationOpening>),
    /// Restart with nothing in transit and that seed; the value says what to record, in a form that only the program
    /// reads.
    Restart(Seed, Option<serde_json::Value>),
    /// End the recording; the network goes on.
    EndRecording,
    /// Report everything since the last restart.
    Report,
    /// Join the network that is there, whatever it was opened with, to look at it.
    Join,
    /// Count as one that uses it, after `Join`.
    Use,
    /// Describe the network as it is now.
    Describe,
    /// Keep the network without clients, or no longer.
    Keep(bool),
    /// Change the link of that number.
    Change(usize, Box<NetworkLink>),
}

/// Answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmulatorReply {
    /// The hosts exist.
    Open(Vec<HostHandle>),
    /// It has restarted.
    Restarted,
    /// The report.
    Report(Box<EmulatorReport>),
    /// The network as it is now.
    Description(Box<Description>),
    /// It is done.
    Done,
    /// The request is refused.
    Refused(Error),
}
