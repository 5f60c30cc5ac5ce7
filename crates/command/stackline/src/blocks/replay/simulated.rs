//! A session in virtual time over a declared network: master, disk servers and client on its hosts.

use super::super::disk_time;
use super::network_session::{Roles, network, set, stack};
use super::session_demand::{demand, keeps, schedule};
use super::session_results::{BlocksReplaySession, show};
use crate::exit::{Error, Exit, Result};
use crate::flags::Replay;
use stackline_blockserver::simulated::{
    BlockProcessingCosts, BlockScene, BlockSceneOutcome, SimulatedServer, carry_out,
    emit_scene_events,
};
use stackline_core::distribution::Distribution;
use stackline_core::plan::World;
use stackline_core::random::Seed;
use stackline_net::PortCounters;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Simulates a session.
pub(super) fn replay(flags: &Replay) -> Result {
    let network = network(flags)?;
    stackline_sim::CAPABILITIES.accepts(&network)?;
    if let Some(host) = network.hosts.iter().find(|host| !host.work.is_nothing()) {
        let message = format!(
            "host {} of {} says what programs take, and a block server's have costs of their own",
            host.name, network.name
        );
        return Err(
            Error::input(message).hint("leave `work`, `polls` and `priority` out; `copy` counts")
        );
    }
    let roles = Roles::of(flags, &network)?;
    let stack = stack(flags, World::Simulated)?;
    let disk = flags
        .disk
        .as_deref()
        .map(disk_time::parse_disk_time)
        .transpose()?
        .unwrap_or(Distribution::Constant(0.0));
    let server = |host: &String| SimulatedServer {
        host: host.clone(),
        disks: vec![disk.clone(); usize::from(flags.disks)],
        cache: flags.cache,
    };
    let scene = BlockScene {
        network: &network,
        master: roles.master.clone(),
        client: roles.client.clone(),
        servers: roles.servers.iter().map(server).collect(),
        stack: &stack,
        costs: BlockProcessingCosts::default(),
        sets: vec![(set(flags), demand(flags))],
        given: Vec::new(),
        schedule: schedule(flags),
        keeps: keeps(flags),
        most: flags.most as usize,
        supersedes: !flags.append,
        histories: !flags.no_history,
        seed: Seed::root(flags.seed),
    };
    let (outcome, ()) = carry_out(&scene, ())?;
    let names: BTreeMap<u16, String> = (0..).zip(roles.servers.iter().cloned()).collect();
    let run = if flags.no_history {
        None
    } else {
        Some(keep(flags, &scene, &outcome)?)
    };
    let BlockSceneOutcome {
        record,
        end,
        servers,
        counters,
        ..
    } = outcome;
    let again = servers
        .into_iter()
        .map(|server| (server.host, server.sent_again))
        .collect();
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in counters.iter().flat_map(PortCounters::drops_by_reason) {
        *drops.entry(reason.to_string()).or_default() += count;
    }
    let asked_for = schedule(flags).duration;
    show(
        flags,
        BlocksReplaySession {
            record,
            end,
            asked_for,
            names,
            again,
            notes: Vec::new(),
            run,
            drops,
        },
    )?;
    Ok(Exit::Done)
}

/// Keeps the ways of blocks, what was sent again, and what ports and connections did.
fn keep(flags: &Replay, scene: &BlockScene<'_>, outcome: &BlockSceneOutcome) -> Result<String> {
    let zero = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    stackline_runs::events::keep_run(&flags.name, flags.sharing.access(), &scene.client, |emit| {
        emit_scene_events(scene, outcome, zero, emit)
    })
}
