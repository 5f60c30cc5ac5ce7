//! What the worlds of a plan cannot obey: told before anything is made or kept, with the line it stands on.
//!
//! It looks at the plan alone. What only the machine can tell (rights, addresses, files) is told when a world opens.

use super::default_network;
use crate::exit::Error;
use stackline_core::network::{Clock, Network};
use stackline_core::plan::{Access, Composer, Measurement, Part, Plan, World};
use stackline_core::program::{Call, Side};
use stackline_live::stacks;

/// Asks every measurement's world, with the networks and hosts that a run would have.
///
/// # Errors
/// An [`Error`] of the input for the first measurement that cannot be obeyed.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let mut settled = plan.clone();
    default_network::settle(&mut settled);
    for measurement in &settled.measurements {
        let fault = match measurement.world {
            World::Live => None,
            World::Simulated => simulated(measurement),
            World::Emulated => emulated(measurement, &settled),
        };
        if let Some(fault) = fault {
            return Err(fault.within(&format!("line {}", measurement.line)));
        }
    }
    Ok(())
}

/// A simulated host is a clock, an interface and its stacks: no processor, no memory, no files.
fn simulated(measurement: &Measurement) -> Option<Error> {
    if measurement.composer == Composer::PriorityBackground {
        let fault = Error::input("a simulated host has no processor whose time priorities could share out");
        return Some(fault.hint("use `background`"));
    }
    measurement.parts.iter().find_map(|part| {
        if uses_files(part) {
            let fault = Error::input("files and virtual memory are not simulated");
            return Some(fault.hint("leave the ends out: data units come from MEMORY and go to MEMORY"));
        }
        if part.cpu != (None, None) {
            let fault = Error::input("a simulated host has no cores to be placed on");
            let hint = "leave `on cpu` out; what a processor costs is the host's interface (`copy` in its network)";
            return Some(fault.hint(hint));
        }
        let host = itself(part)?;
        let fault = Error::input(format!("the host {host} would send to itself, which is not simulated"));
        Some(fault.hint("FROM and TO name two hosts of the network"))
    })
}

fn uses_files(part: &Part) -> bool {
    let touches =
        |side| part.procedure.calls(side).iter().any(|call| matches!(call, Call::ReadFile(_) | Call::WriteFile(_)));
    [&part.source, &part.destination].into_iter().any(|access| *access != Access::Memory)
        || touches(Side::Initiator)
        || touches(Side::Responder)
}

/// An emulated host is this machine behind an interface of its own: its clock is right, and the network begins outside it.
fn emulated(measurement: &Measurement, plan: &Plan) -> Option<Error> {
    let name = measurement.across.as_deref().unwrap_or_default();
    let network = plan.networks.iter().find(|network| network.name == name);
    measurement.parts.iter().find_map(crossing).or_else(|| true_clocks(network?))
}

/// A part has to cross the network it was given.
fn crossing(part: &Part) -> Option<Error> {
    let stack = &part.stack.name;
    if stacks::find(stack).is_some_and(|found| found.table().one_host) {
        let fault =
            Error::input(format!("the stack `{stack}` works within one host, so nothing would cross the network"));
        return Some(fault.hint("tcp and udp cross a network"));
    }
    if part.stack.word("carrier") == Some("ethernet") {
        let fault = Error::input("an emulated network carries IP, so raw Ethernet frames would not cross it");
        return Some(fault.hint("leave `carrier` out, or run it in the live or the simulated world"));
    }
    let host = itself(part)?;
    let fault = Error::input(format!("the host {host} would send to itself, so nothing would cross the network"));
    Some(fault.hint("FROM and TO name two hosts of the network"))
}

/// The host of a part that has both of its ends.
fn itself(part: &Part) -> Option<&str> {
    part.from.as_deref().filter(|from| part.to.as_deref() == Some(from))
}

/// Hosts here read this machine's clock; what a wrong one shows is not ignored but refused.
pub(crate) fn true_clocks(network: &Network) -> Option<Error> {
    let host = network.hosts.iter().find(|host| host.clock != Clock::default())?;
    let message = format!(
        "host {} of network {} has a clock of its own, which an emulated host cannot have",
        host.name, network.name
    );
    Some(Error::input(message).hint("--in simulated gives hosts clocks that are wrong"))
}
