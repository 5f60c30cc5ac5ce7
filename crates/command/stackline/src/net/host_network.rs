//! Finds or creates the network that a program runs on, and checks that it has the program's host.

use super::declared_networks::{describe_missing, emulated_only};
use super::network_names::quoted;
use super::running_networks::{by_name, is_second, join_network};
use crate::checked_plan::{SpecSource, Specification as _, source_of};
use crate::exit::{Error, Result};
use crate::flags::SpecTextFlags;
use crate::output;
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_emu::engine::EmulatorOptions;

/// The network that is up by its name, which is joined, or that a specification declares, which is created or joined.
pub(crate) fn open_host_network(
    text: &SpecTextFlags,
    network: Option<&str>,
    host: &str,
) -> Result<(Emulation, Network)> {
    let selection = NetworkSelection {
        network,
        ..NetworkSelection::default()
    };
    match by_name(text)? {
        Some((emulation, up)) => Ok((emulation, up.network)),
        None => declared(&selection, text, host),
    }
}

/// Checks that a network has a host.
pub(crate) fn is_host(network: &Network, host: &str) -> Result<()> {
    if network.host(host).is_some() {
        Ok(())
    } else {
        Err(unknown(host, &[network]))
    }
}

/// How a network is chosen, and how it is created.
#[derive(Default)]
pub(super) struct NetworkSelection<'f> {
    pub(super) network: Option<&'f str>,
    pub(super) seed: Option<u64>,
    pub(super) join: bool,
    pub(super) options: EmulatorOptions,
}

/// The network that a specification declares: created, or joined if it is up.
pub(super) fn declared(
    chosen: &NetworkSelection<'_>,
    text: &SpecTextFlags,
    host: &str,
) -> Result<(Emulation, Network)> {
    let source = source_of(text)?;
    let plan = source.declarations(text)?;
    let network = holding(&plan.networks, host, chosen.network, &source)?;
    stackline_emu::CAPABILITIES
        .accepts(network)
        .map_err(emulated_only)?;
    if chosen.join {
        return Ok((join_network(&network.name)?.0, network.clone()));
    }
    let seed = Seed::root(chosen.seed.unwrap_or(plan.seed))
        .child("network")
        .child(&network.name);
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let second = is_second(network, &chosen.options)?;
    let made = Emulation::shared(&program, &network.name, network, seed, &chosen.options)
        .map_err(emulated_only)?;
    second.iter().for_each(output::say);
    Ok((made, network.clone()))
}

/// The network of that name, or the one that has that host.
fn holding<'n>(
    networks: &'n [Network],
    host: &str,
    name: Option<&str>,
    source: &SpecSource,
) -> Result<&'n Network> {
    let named: Vec<&Network> = networks
        .iter()
        .filter(|network| name.is_none_or(|name| network.name == name))
        .collect();
    if named.is_empty() {
        return Err(describe_missing(networks, name, source));
    }
    let holding: Vec<&Network> = named
        .iter()
        .copied()
        .filter(|network| network.host(host).is_some())
        .collect();
    match holding[..] {
        [] => Err(unknown(host, &named)),
        [network] => Ok(network),
        _ => {
            let names: Vec<String> = holding
                .iter()
                .map(|network| format!("--network {}", quoted(&network.name)))
                .collect();
            let message = format!("{} networks have a host named {host}", holding.len());
            Err(Error::input(message).hint(format!("choose one with {}", names.join(" or "))))
        }
    }
}

pub(super) fn unknown(host: &str, networks: &[&Network]) -> Error {
    let names: Vec<&str> = networks
        .iter()
        .flat_map(|network| &network.hosts)
        .map(|host| host.name.as_str())
        .collect();
    let whose = match networks {
        [network] => format!("the network {} has no host", network.name),
        _ => "none of the networks has a host".to_string(),
    };
    let near = stackline_spec::nearest(host, names.iter().copied());
    let hint = near.map_or_else(
        || format!("the hosts are {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Error::input(format!("{whose} {host}")).hint(hint)
}
