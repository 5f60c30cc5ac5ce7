//! What is simulated, and what comes of it: hosts, disks, what processors take, what is asked for.

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

/// A disk server.
#[derive(Clone, Debug)]
pub struct SimulatedServer {
    /// Its host.
    pub host: String,
    /// Of each disk, what a read takes, s.
    pub disks: Vec<Distribution>,
    /// Bytes of blocks that are kept in memory.
    pub cache: u64,
}

/// What processors take. Of the paper's hosts: Tierney et al. 1996, sections 4.2.3 and 4.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockProcessingCosts {
    /// The master, to translate a list.
    pub translate: Duration,
    /// The master, to send it on.
    pub forward: Duration,
    /// A server, to understand a list and look in its memory.
    pub parse: Duration,
    /// A server's processor, to keep a block that was read and to enter it in the write queue.
    pub enter: Duration,
    /// A server's processor, to hand a block to the transport.
    pub hand: Duration,
    /// The application, to take a block, for each server's connection by itself.
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
    /// `tcp` and its options, of all connections.
    pub stack: &'n Stack,
    /// What processors take.
    pub costs: BlockProcessingCosts,
    /// The sets, each with what is asked of it.
    pub sets: Vec<(BlockSet, Demand)>,
    /// Where the blocks of sets are put whose placement is given: a disk for each in turn.
    pub given: Vec<u32>,
    /// When lists are sent.
    pub schedule: BlockListSchedule,
    /// Blocks that the application keeps, and most blocks of a list.
    pub keeps: usize,
    /// See `keeps`.
    pub most: usize,
    /// Whether a newer list discards the older one.
    pub supersedes: bool,
    /// Whether all histories are kept.
    pub histories: bool,
    /// The seed.
    pub seed: Seed,
}

/// What is known of a server at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Its host.
    pub host: String,
    /// The connection that its blocks went over; none where the client is on its host.
    pub connection: Option<u32>,
    /// Segments that it sent again.
    pub sent_again: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct BlockSceneOutcome {
    /// The session's record.
    pub record: BlockSessionRecord,
    /// When the last list was over.
    pub end: Instant,
    /// What connections did.
    pub traced: Vec<MessageTrace>,
    /// Of each server.
    pub servers: Vec<ServerOutcome>,
    /// What went through each direction of each link.
    pub counters: Vec<PortCounters>,
    /// Blocks that came and were not wanted any more, and their bytes.
    pub unwanted: (u64, u64),
    /// What ports and connections did, interval by interval, where histories are kept.
    pub watched: BlockSiteUsage,
}
