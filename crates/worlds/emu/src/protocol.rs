//! The protocol between the emulator's process and its clients: one JSON value per line, one answer for each request.

use crate::engine::{EmulatorOptions, EmulatorReport};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use stackline_core::network::{Network, NetworkLink};
use stackline_core::plan::ProcessorShare;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// A host that can be entered for as long as the emulator lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHandle {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its IPv6 address, if it has one.
    #[serde(default)]
    pub address_v6: Option<Ipv6Addr>,
    /// The addresses of its interfaces behind the first.
    #[serde(default)]
    pub further: Vec<IpAddr>,
    /// The user namespace to enter first, if the hosts have one.
    pub user: Option<PathBuf>,
    /// Its network namespace.
    pub net: PathBuf,
    /// If its programs are limited: their share of a processor, and the name of their control group.
    #[serde(default)]
    pub share: Option<(ProcessorShare, String)>,
}

/// What a client opens: a network, the seed of its randomness, and the options of the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EmulationOpening {
    pub(crate) network: Network,
    pub(crate) seed: Seed,
    pub(crate) options: EmulatorOptions,
}

/// The present state of an emulated network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The network with all changes.
    pub network: Network,
    /// The links that were changed since the network was opened: the number of each, and the link as it was before.
    pub set: Vec<(usize, NetworkLink)>,
    /// Whether the network stays when no client uses it.
    pub kept: bool,
    /// How many other clients use it; those that only look at it are not counted.
    pub leases: usize,
    /// Time since it was opened.
    pub up: Duration,
    /// The seed of its randomness.
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
    /// Instead of `Open`: join the existing network, whatever it was opened with, to look at it.
    Join,
    /// After `Join`: count this client as one that uses the network.
    Use,
    /// Describe the network as it is now.
    Describe,
    /// Keep the network without clients, or no longer.
    Keep(bool),
    /// Change the link of that number.
    Change(usize, Box<NetworkLink>),
}

/// Answers of the emulator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmulatorReply {
    /// The network is open; these are its hosts.
    Open(Vec<HostHandle>),
    /// The network has restarted.
    Restarted,
    /// The report.
    Report(Box<EmulatorReport>),
    /// The network as it is now.
    Description(Box<Description>),
    /// A request without a result was carried out.
    Done,
    /// The request is refused.
    Refused(Error),
}
