//! The input and the output of a simulation: hosts, disks, processing costs and requests; and what came of them.

use super::usage::BlockSiteUsage;
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_blocks::set::BlockSet;
use stackline_core::distribution::Distribution;
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::PortCounters;
use stackline_sim::messages::MessageTrace;

/// A simulated disk server.
#[derive(Clone, Debug)]
pub struct SimulatedServer {
    /// Its host.
    pub host: String,
    /// How long a read takes on each disk, s.
    pub disks: Vec<Distribution>,
    /// Bytes of the memory cache.
    pub cache: u64,
}

/// How long processors take for each step. For the paper's hosts: Tierney et al. 1996, sections 4.2.3 and 4.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockProcessingCosts {
    /// At the master: translating a list.
    pub translate: Duration,
    /// At the master: sending a list on to a server.
    pub forward: Duration,
    /// At a server: parsing a list and looking in the cache.
    pub parse: Duration,
    /// At a server: storing a block that was read, and adding it to the write queue.
    pub enter: Duration,
    /// At a server: handing a block to the transport.
    pub hand: Duration,
    /// At the application: taking a block; the connections of different servers do not delay each other.
    pub receive: Duration,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct BlockScene<'n> {
    /// The network.
    pub network: &'n Network,
    /// The master's host.
    pub master: String,
    /// The client's host.
    pub client: String,
    /// The servers.
    pub servers: Vec<SimulatedServer>,
    /// The `tcp` stack of all connections, with its options.
    pub stack: &'n Stack,
    /// How long processors take.
    pub costs: BlockProcessingCosts,
    /// The sets, each with the rule by which its lists are made.
    pub sets: Vec<(BlockSet, Demand)>,
    /// The disks of blocks for sets whose placement is given, used in turn.
    pub given: Vec<u32>,
    /// When lists are sent.
    pub schedule: BlockListSchedule,
    /// The number of blocks that the application keeps and does not ask for again.
    pub keeps: usize,
    /// The largest number of blocks in a list.
    pub most: usize,
    /// Whether a newer list discards the older one.
    pub supersedes: bool,
    /// Whether the histories of all blocks are recorded.
    pub histories: bool,
    /// The root seed.
    pub seed: Seed,
}

/// What is known of a server at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Its host.
    pub host: String,
    /// The connection that its blocks went over; `None` if the client is on its host.
    pub connection: Option<u32>,
    /// Segments that it retransmitted.
    pub sent_again: u64,
}

/// The outcome of a simulation.
#[derive(Debug)]
pub struct BlockSceneOutcome {
    /// The session's record.
    pub record: BlockSessionRecord,
    /// When the last list was over.
    pub end: Instant,
    /// The traces of the connections.
    pub traced: Vec<MessageTrace>,
    /// The outcome of each server.
    pub servers: Vec<ServerOutcome>,
    /// The counters of each direction of each link.
    pub counters: Vec<PortCounters>,
    /// The number and the bytes of blocks that came and were no longer wanted.
    pub unwanted: (u64, u64),
    /// The use of ports and connections, interval by interval; only if histories are recorded.
    pub watched: BlockSiteUsage,
}
