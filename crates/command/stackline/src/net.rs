//! `stackline net`: shows the networks of a specification, runs programs on them, and keeps them up.

mod exec;
mod from;
mod host_network;
mod set;
mod up;

pub(crate) use exec::emulate;
pub(crate) use host_network::{is_host, open_host_network};
pub(crate) use set::link_of_text;

use crate::checked_plan::{Specification as _, source_of};
use crate::exit::{Error, Exit, Result};
use crate::flags::{self, NetCommand};
use crate::output;
use host_network::declared_in;
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_net::{self as machine, NodeIndex, PacketPayload};
use stackline_report::drawing::MOST_NODES;
use stackline_report::topology::{HostPath, MOST_HOSTS_IN_PAIRS};
use stackline_runner::declared_networks::choose_networks;
use stackline_runner::running_networks::join_by_name;
use std::path::Path;

/// Carries out the subcommand of `net`.
pub(crate) fn net(flags: &flags::Net) -> Result {
    match &flags.command {
        NetCommand::Show(flags) => show(flags),
        NetCommand::Exec(flags) => exec::exec(flags),
        NetCommand::Up(flags) => up::up(flags),
        NetCommand::Down(flags) => up::down(flags),
        NetCommand::List(flags) => up::list(flags),
        NetCommand::From(flags) => from::from(flags),
        NetCommand::Set(flags) => set::set(flags),
    }
}

/// Prints networks.
fn show(flags: &flags::NetShow) -> Result {
    let networks = shown(flags)?;
    let chosen: Vec<&Network> = networks.iter().collect();
    if let Some(path) = &flags.svg {
        draw(&chosen, path)?;
    }
    if flags.json {
        let shown = chosen
            .iter()
            .map(|network| stackline_report::topology_json(network, &host_paths(network)));
        output::json(
            &serde_json::json!({"networks": shown.collect::<Vec<_>>()}),
            true,
        )?;
    } else {
        let shown: Vec<String> = chosen
            .iter()
            .map(|network| stackline_report::topology(network, &host_paths(network)))
            .collect();
        output::print(&shown.join("\n"))?;
    }
    Ok(Exit::Done)
}

/// The networks to show: those of a specification, or a network that is up, in its current state.
fn shown(flags: &flags::NetShow) -> Result<Vec<Network>> {
    let text = flags.text();
    let up = join_by_name(text.spec.as_deref(), declared_in)?
        .map(|(_, description)| description.network);
    if let (Some(network), Some(name)) = (&up, &flags.network) {
        let message = format!(
            "--network {name} has no effect: the network {} is already up",
            network.name
        );
        return Err(Error::input(message).hint("omit --network, or give the specification instead"));
    }
    if let Some(network) = up {
        return Ok(vec![network]);
    }
    let source = source_of(&text)?;
    let networks = source.declarations(&text)?.networks;
    Ok(
        choose_networks(&networks, flags.network.as_deref(), &source.name)?
            .into_iter()
            .cloned()
            .collect(),
    )
}

/// Draws the network; an error when there are several.
fn draw(networks: &[&Network], path: &Path) -> Result<()> {
    let [network] = networks else {
        let names: Vec<&str> = networks
            .iter()
            .map(|network| network.name.as_str())
            .collect();
        let hint = format!("choose one with --network: {}", names.join(", "));
        return Err(Error::input(format!(
            "cannot draw {} networks in one picture",
            networks.len()
        ))
        .hint(hint));
    };
    let picture = stackline_report::drawing(network).ok_or_else(|| {
        let message = format!(
            "network {} has more than {MOST_NODES} nodes, too many for a picture",
            network.name
        );
        Error::input(message).hint("omit --svg; the text and --json have no such limit")
    })?;
    output::file(path, picture)
}

/// The paths between all pairs of hosts, in both directions, as the simulated and emulated worlds route packets; empty
/// when there are too many pairs.
fn host_paths(network: &Network) -> Vec<HostPath> {
    if network.hosts.len() > MOST_HOSTS_IN_PAIRS {
        return Vec::new();
    }
    let machine = machine::PacketNetwork::<NullPayload>::new(network, Seed::root(0), ());
    let nodes: Vec<(usize, NodeIndex)> = (0..)
        .zip((0..).map(NodeIndex))
        .take(network.hosts.len())
        .collect();
    let pairs = nodes
        .iter()
        .flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
    let between = |((from, first), (to, last)): ((usize, NodeIndex), (usize, NodeIndex))| {
        let ports = machine
            .path(first, last, 0)
            .map(|path| path.ports.iter().map(|port| port.0).collect());
        HostPath { from, to, ports }
    };
    pairs.filter(|(from, to)| from != to).map(between).collect()
}

/// The content of packets that are never sent: routing needs a packet type.
struct NullPayload;

impl PacketPayload for NullPayload {
    fn split(&mut self, _: u32) -> Self {
        Self
    }

    fn mark(&mut self) {}

    fn set_dscp(&mut self, _: u8) {}

    fn again(&self) -> Self {
        Self
    }
}
