//! A session in virtual time over a declared network: master, disk servers and client on its hosts.

use super::super::disk_time;
use super::shown::Session;
use super::{demand, keeps, schedule, show};
use crate::across;
use crate::exit::{Error, Exit, Result};
use crate::flags::Replay;
use crate::kept;
use stackline_blocks::limits::USUAL_BLOCK;
use stackline_blocks::placement::Placement;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::Set;
use stackline_blockserver::simulated::{Costs, Outcome, Scene, SimulatedServer, carry_out, tell};
use stackline_core::distribution::Distribution;
use stackline_core::network::Network;
use stackline_core::plan::{Stack, World};
use stackline_core::random::Seed;
use stackline_net::Counters;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Pixels of a tile's side, and bytes of a pixel: a tile is a block of 48 KiB.
const TILE: (u16, u8) = (128, 3);

/// Which host is what.
pub(super) struct Roles {
    pub(super) client: String,
    pub(super) master: String,
    pub(super) servers: Vec<String>,
}

impl Roles {
    /// As the flags say, else the last host is the client, `master` the master, and the others are servers.
    pub(super) fn of(flags: &Replay, network: &Network) -> Result<Self> {
        let names: Vec<&str> = network.hosts.iter().map(|host| host.name.as_str()).collect();
        let known = |name: &String| {
            let hint = format!("hosts are {}", names.join(", "));
            let found = names.contains(&name.as_str()).then(|| name.clone());
            found.ok_or_else(|| Error::input(format!("the network {} has no host {name}", network.name)).hint(hint))
        };
        let last = names.iter().rev().find(|name| **name != "master").unwrap_or(&"");
        let client = flags.client.as_ref().map_or(Ok((*last).to_owned()), known)?;
        let master = match &flags.master_host {
            Some(name) => known(name)?,
            None => names.iter().find(|name| **name == "master").map_or_else(|| client.clone(), |name| (*name).into()),
        };
        let servers: Vec<String> = if flags.server.is_empty() {
            let others = names.iter().filter(|name| **name != client && **name != master);
            others.map(|name| (*name).to_owned()).collect()
        } else {
            flags.server.iter().map(known).collect::<Result<_>>()?
        };
        if servers.is_empty() {
            let hint = "declare a host for each disk server, or name one with --server HOST";
            return Err(Error::input(format!("no host of the network {} is a server", network.name)).hint(hint));
        }
        Ok(Self { client, master, servers })
    }
}

/// The network that is meant.
pub(super) fn network(flags: &Replay) -> Result<Network> {
    across::network(flags.across.as_deref(), flags.network.as_deref())
}

/// The set that is loaded: a picture, or blocks of no picture where none is viewed.
pub(super) fn set(flags: &Replay) -> Set {
    let (width, height) = flags.picture;
    let (tile, pixel_bytes) = TILE;
    let picture = Pyramid { width, height, tile, pixel_bytes };
    Set {
        name: "picture".into(),
        block_size: USUAL_BLOCK,
        bytes: picture.tiles() * u64::from(USUAL_BLOCK),
        replicas: flags.replicas,
        placement: Placement::Tiles,
        picture: Some(picture),
    }
}

/// The stack of `--over` as that world takes it, with the receive buffer that another flag asks for.
pub(super) fn stack(flags: &Replay, world: World) -> Result<Stack> {
    let stack = judged(&flags.over, world)?;
    let Some(bytes) = flags.receive_buffer else { return Ok(stack) };
    if stack.options.contains_key("receive_buffer") {
        let error = Error::input("--receive-buffer and --over both say how large receive buffers are");
        return Err(error.hint("leave one of them out"));
    }
    let option = format!("receive_buffer = {bytes} bytes");
    let over = flags.over.trim();
    judged(
        &match over.strip_suffix(')') {
            Some(others) => format!("{others}, {option})"),
            None => format!("{over}({option})"),
        },
        world,
    )
}

/// `tcp` as its table has it: what is not possible there is refused.
fn judged(over: &str, world: World) -> Result<Stack> {
    let stack = across::stack(over, world)?;
    if stack.name != "tcp" {
        let error = Error::input(format!("--over {over}: lists and blocks go over tcp"));
        return Err(error.hint("its options are of use: --over 'tcp(receive_buffer = 128 KiB)'"));
    }
    Ok(stack)
}

/// Simulates a session.
pub(super) fn replay(flags: &Replay) -> Result {
    let network = network(flags)?;
    stackline_sim::CAPABILITIES.accepts(&network)?;
    if let Some(host) = network.hosts.iter().find(|host| !host.work.is_nothing()) {
        let message = format!(
            "host {} of {} says what programs take, and a block server's have costs of their own",
            host.name, network.name
        );
        return Err(Error::input(message).hint("leave `work`, `polls` and `priority` out; `copy` counts"));
    }
    let roles = Roles::of(flags, &network)?;
    let stack = stack(flags, World::Simulated)?;
    let disk = flags.disk.as_deref().map(disk_time::of).transpose()?.unwrap_or(Distribution::Constant(0.0));
    let server = |host: &String| SimulatedServer {
        host: host.clone(),
        disks: vec![disk.clone(); usize::from(flags.disks)],
        cache: flags.cache,
    };
    let scene = Scene {
        network: &network,
        master: roles.master.clone(),
        client: roles.client.clone(),
        servers: roles.servers.iter().map(server).collect(),
        stack: &stack,
        costs: Costs::default(),
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
    let run = if flags.no_history { None } else { Some(keep(flags, &scene, &outcome)?) };
    let Outcome { record, end, servers, counters, .. } = outcome;
    let again = servers.into_iter().map(|server| (server.host, server.sent_again)).collect();
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, count) in counters.iter().flat_map(Counters::drops_by_reason) {
        *drops.entry(reason.to_string()).or_default() += count;
    }
    let asked_for = schedule(flags).duration;
    show(flags, Session { record, end, asked_for, names, again, notes: Vec::new(), run, drops })?;
    Ok(Exit::Done)
}

/// Keeps the ways of blocks, what was sent again, and what ports and connections did.
fn keep(flags: &Replay, scene: &Scene<'_>, outcome: &Outcome) -> Result<String> {
    let zero = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    kept::keep((&flags.name, flags.sharing.access()), &scene.client, |emit| tell(scene, outcome, zero, emit))
}
