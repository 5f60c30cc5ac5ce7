//! Finds or creates the network that a program runs on, and checks that it has the program's host.

use crate::checked_plan::{Specification as _, source_of};
use crate::exit::{Error, Result};
use crate::flags::SpecTextFlags;
use crate::output;
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_emu::engine::EmulatorOptions;
use stackline_runner::declared_networks::{choose_host_network, emulated_only, unknown_host};
use stackline_runner::running_networks::{join_by_name, join_network, note_second_network};
use std::path::Path;

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
    match join_by_name(text.spec.as_deref(), declared_in)? {
        Some((emulation, up)) => Ok((emulation, up.network)),
        None => declared(&selection, text, host),
    }
}

/// The networks that the specification in a file declares.
pub(super) fn declared_in(path: &Path) -> Result<Vec<Network>> {
    let text = SpecTextFlags {
        spec: Some(path.into()),
        ..SpecTextFlags::default()
    };
    Ok(source_of(&text)?.declarations(&text)?.networks)
}

/// Checks that a network has a host.
pub(crate) fn is_host(network: &Network, host: &str) -> Result<()> {
    if network.host(host).is_some() {
        Ok(())
    } else {
        Err(unknown_host(host, &[network]))
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
    let network = choose_host_network(&plan.networks, host, chosen.network, &source.name)?;
    stackline_emu::CAPABILITIES
        .accepts(network)
        .map_err(emulated_only)?;
    if chosen.join {
        return Ok((join_network(&network.name, declared_in)?.0, network.clone()));
    }
    let seed = Seed::root(chosen.seed.unwrap_or(plan.seed))
        .child("network")
        .child(&network.name);
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let second = note_second_network(network, &chosen.options)?;
    let made = Emulation::shared(&program, &network.name, network, seed, &chosen.options)
        .map_err(emulated_only)?;
    second.iter().for_each(output::say);
    Ok((made, network.clone()))
}
