//! `stackline net up`, `down`, `list`: emulated networks that stay up without programs.
//!
//! The emulator's own process keeps a network up; the commands here end at once.

use super::host_network::declared_in;
use crate::checked_plan::{Specification as _, source_of};
use crate::exit::{Error, Exit, Result};
use crate::flags::{NetDown, NetList, NetUp};
use crate::output;
use stackline_core::network::NetworkLink;
use stackline_core::random::Seed;
use stackline_core::units::counted;
use stackline_emu::Description;
use stackline_emu::client::{self, Emulation};
use stackline_report::topology::link_changes;
use stackline_runner::declared_networks::{
    choose_networks, describe_missing, emulated_only, quoted,
};
use stackline_runner::link_by_text::{link_name, shortened};
use stackline_runner::running_networks::{describe_network, find_named, note_second_network};

/// Creates a network, or joins it, and keeps it up.
pub(super) fn up(flags: &NetUp) -> Result {
    let (text, name) = flags.text()?;
    let source = source_of(&text)?;
    let plan = source.declarations(&text)?;
    let network = match choose_networks(&plan.networks, name.as_deref(), &source.name)?[..] {
        [network] => network,
        [] => {
            return Err(describe_missing(
                &plan.networks,
                name.as_deref(),
                &source.name,
            ));
        }
        ref several => {
            let names: Vec<String> = several
                .iter()
                .map(|network| quoted(&network.name))
                .collect();
            let message = format!("{} declares {} networks", source.name, several.len());
            return Err(Error::input(message).hint(format!(
                "add a name after the specification: {}",
                names.join(", ")
            )));
        }
    };
    stackline_emu::CAPABILITIES
        .accepts(network)
        .map_err(emulated_only)?;
    if note_second_network(network, &flags.options())?.is_some() {
        let message = format!(
            "a network named {} is already up, built from another specification",
            network.name
        );
        let hint = format!(
            "take it down with `stackline net down {}`",
            quoted(&network.name)
        );
        return Err(Error::input(message).hint(hint));
    }
    let seed = Seed::root(flags.seed.unwrap_or(plan.seed))
        .child("network")
        .child(&network.name);
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let mut emulation = Emulation::shared(&program, &network.name, network, seed, &flags.options())
        .map_err(emulated_only)?;
    emulation.keep(true)?;
    let hosts: Vec<String> = emulation
        .hosts()
        .iter()
        .map(|host| format!("{} {}", host.name, host.address))
        .collect();
    let name = quoted(&network.name);
    output::print(&format!(
        "network {} is up: {}\ntake it down with `stackline net down {name}`\n",
        network.name,
        shortened(&hosts)
    ))?;
    Ok(Exit::Done)
}

/// Stops keeping a network up; it ends when its last program does.
pub(super) fn down(flags: &NetDown) -> Result {
    let up = client::up_networks()?;
    let named = match &flags.network {
        None => up,
        Some(word) => find_named(&up, word, declared_in)?,
    };
    let mut kept = Vec::new();
    for network in &named {
        kept.extend(describe_network(network)?.filter(|(_, description)| description.kept));
    }
    if flags.network.is_none() && kept.len() > 1 {
        let names: Vec<String> = kept
            .iter()
            .map(|(_, description)| quoted(&description.network.name))
            .collect();
        let message = format!("{} networks are kept", kept.len());
        return Err(Error::input(message).hint(format!("choose one: {}", names.join(", "))));
    }
    if kept.is_empty() {
        let message = match &flags.network {
            Some(name) => format!("no network named {name} is kept by `net up`"),
            None => "no network is kept by `net up`".to_string(),
        };
        return Err(Error::input(message)
            .hint("`stackline net list` lists all networks; those not kept are taken down when their last program exits"));
    }
    for (mut emulation, description) in kept {
        emulation.keep(false)?;
        // Dropping waits until the network has ended, if nobody else uses it.
        drop(emulation);
        let name = &description.network.name;
        match description.leases {
            0 => output::print(&format!("network {name} is down\n"))?,
            1 => output::print(&format!(
                "network {name} will be taken down when the program running on it exits\n"
            ))?,
            many => output::print(&format!(
                "network {name} will be taken down when the last of its {many} programs exits\n"
            ))?,
        }
    }
    Ok(Exit::Done)
}

/// Prints the networks that are up.
pub(super) fn list(flags: &NetList) -> Result {
    let mut all = Vec::new();
    for network in client::up_networks()? {
        all.extend(describe_network(&network)?.map(|(_, description)| description));
    }
    if flags.json {
        let one = |up: &Description| {
            serde_json::json!({
                "network": up.network, "set": up.set, "kept": up.kept, "programs": up.leases, "up_s": up.up.seconds()
            })
        };
        output::json(
            &serde_json::json!({"networks": all.iter().map(one).collect::<Vec<_>>()}),
            true,
        )?;
        return Ok(Exit::Done);
    }
    let line = |up: &Description| {
        let kept = if up.kept {
            "kept by `net up`"
        } else {
            "taken down when its last program exits"
        };
        let network = &up.network;
        let (hosts, links) = (network.hosts.len(), network.links.len());
        format!(
            "{}: {}, {}; programs: {}; up for {}; {kept}\n{}",
            network.name,
            counted(hosts as u64, "host"),
            counted(links as u64, "link"),
            up.leases,
            up.up,
            links_set(up)
        )
    };
    let lines: String = all.iter().map(line).collect();
    output::print(if lines.is_empty() {
        "no network is up\n"
    } else {
        &lines
    })?;
    Ok(Exit::Done)
}

/// A line for each link that was changed.
fn links_set(up: &Description) -> String {
    let line = |(at, was): &(usize, NetworkLink)| {
        let link = up.network.links.get(*at)?;
        Some(format!(
            "  link {}: {} (set)\n",
            link_name(link),
            link_changes(link, was).join(", ")
        ))
    };
    up.set.iter().filter_map(line).collect()
}
