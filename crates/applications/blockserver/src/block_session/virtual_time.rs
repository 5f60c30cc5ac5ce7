//! A session in virtual time over a declared network: master, disk servers and client on its hosts.

use super::{BlockSessionFigures, BlockSessionRequest};
use crate::network_session::Roles;
use crate::simulated::{
    BlockProcessingCosts, BlockScene, BlockSceneOutcome, SimulatedServer, carry_out,
    emit_scene_events,
};
use stackline_blocks::set::BlockSet;
use stackline_core::distribution::Distribution;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_net::PortCounters;
use stackline_runs::events::keep_run;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A session on a simulated network.
#[derive(Debug)]
pub struct SimulatedSession<'s> {
    /// The network.
    pub network: &'s Network,
    /// Which host runs the client, the master and the disk servers.
    pub roles: Roles,
    /// The transport of lists and blocks.
    pub stack: Stack,
    /// The number of disks of each server.
    pub disks: u16,
    /// How long one read takes, s.
    pub disk_time: Distribution,
    /// The memory of each server for blocks, bytes.
    pub cache: u64,
    /// The set of blocks that the servers hold.
    pub set: BlockSet,
    /// The request.
    pub request: BlockSessionRequest,
}

/// Simulates a session.
///
/// # Errors
/// When it cannot be simulated, or its run cannot be written.
pub fn replay_simulated(session: &SimulatedSession<'_>) -> Result<BlockSessionFigures> {
    let (network, request) = (session.network, &session.request);
    stackline_sim::CAPABILITIES.accepts(network)?;
    if let Some(host) = network.hosts.iter().find(|host| !host.work.is_nothing()) {
        let message = format!(
            "host {} of {} assigns costs to programs, but simulated block-server programs take no time",
            host.name, network.name
        );
        return Err(
            Error::input(message).hint("omit `work`, `polls` and `priority`; `copy` is simulated")
        );
    }
    let server = |host: &String| SimulatedServer {
        host: host.clone(),
        disks: vec![session.disk_time.clone(); usize::from(session.disks)],
        cache: session.cache,
    };
    let scene = BlockScene {
        network,
        master: session.roles.master.clone(),
        client: session.roles.client.clone(),
        servers: session.roles.servers.iter().map(server).collect(),
        stack: &session.stack,
        costs: BlockProcessingCosts::default(),
        sets: vec![(session.set.clone(), request.demand())],
        given: Vec::new(),
        schedule: request.schedule(),
        keeps: request.keeps(),
        most: request.most as usize,
        supersedes: !request.append,
        histories: request.run.is_some(),
        seed: Seed::root(request.seed),
    };
    let (outcome, ()) = carry_out(&scene, ())?;
    let run = keep(request, &scene, &outcome)?;
    let again = outcome
        .servers
        .into_iter()
        .map(|server| (server.host, server.sent_again))
        .collect();
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    let dropped = outcome.counters.iter();
    for (reason, count) in dropped.flat_map(PortCounters::drops_by_reason) {
        *drops.entry(reason.to_string()).or_default() += count;
    }
    Ok(BlockSessionFigures {
        record: outcome.record,
        end: outcome.end,
        asked_for: request.schedule().duration,
        names: (0..).zip(session.roles.servers.iter().cloned()).collect(),
        again,
        notes: Vec::new(),
        run,
        drops,
    })
}

/// Writes the events of blocks, retransmissions, ports and connections as a run.
fn keep(
    request: &BlockSessionRequest,
    scene: &BlockScene<'_>,
    outcome: &BlockSceneOutcome,
) -> Result<Option<String>> {
    let Some(run) = &request.run else {
        return Ok(None);
    };
    let zero = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    keep_run(&run.name, run.access(), &scene.client, |emit| {
        emit_scene_events(scene, outcome, zero, emit)
    })
    .map(Some)
}
