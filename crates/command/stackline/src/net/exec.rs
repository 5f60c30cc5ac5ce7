//! `stackline net exec`: runs any program on a host of an emulated network. `stackline emulate`: the process that
//! emulates the network.

use super::host_network::{NetworkSelection, declared, declared_in};
use crate::exit::{Error, Exit, Result, already_shown};
use crate::flags;
use crate::output;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use stackline_core::network::Network;
use stackline_emu::enter::{self, HostProgram};
use stackline_emu::server::{self, ClientChannel};
use stackline_runner::declared_networks::unknown_host;
use stackline_runner::running_networks::join_by_name;
use std::ffi::OsString;
use std::fs::File;

/// Runs a program on a host of a network, which exists as long as a program runs on it.
pub(super) fn exec(flags: &flags::NetExec) -> Result {
    let (text, host) = flags.text()?;
    if flags.of_trace {
        // If the trace is killed, this process is killed too, and the program's processes end with it: none is left on
        // a host.
        let _ = set_pdeathsig(Signal::SIGKILL);
    }
    if flags.trace {
        return crate::trace::trace_one_program(
            &text,
            flags.network.as_deref(),
            host,
            &flags.command,
        );
    }
    let (mut emulation, network) = match join_by_name(text.spec.as_deref(), declared_in)? {
        Some((emulation, up)) => (emulation, as_it_is(flags, up.network)?),
        None => {
            let (network, options) = (flags.network.as_deref(), flags.options());
            declared(
                &NetworkSelection {
                    network,
                    seed: flags.seed,
                    join: flags.join,
                    options,
                },
                &text,
                host,
            )?
        }
    };
    let network = &network;
    if let Some(host) = second_host(network, &flags.command) {
        output::say(&format_args!(
            "note: `{host} --` is passed to the program, because `net exec` runs only one; `stackline trace --on` runs several"
        ));
    }
    emulation.uses()?;
    let entered = emulation
        .host(host)
        .ok_or_else(|| unknown_host(host, &[network]))?;
    let end = flags.end_to.as_ref();
    let end = end.and_then(|path| File::options().write(true).open(path).ok());
    let guest = HostProgram {
        host: entered,
        hosts: emulation.hosts(),
        command: &flags.command,
        lease: emulation.lease(),
        end: end.as_ref(),
    };
    let code = enter::exec(&guest)?;
    if !flags.of_trace {
        emulation
            .report()?
            .notes(&network.name)
            .iter()
            .for_each(|note| output::say(&format_args!("note: {note}")));
    }
    Ok(Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// A host name in the program's arguments that is followed by `--`, as `trace --on` accepts it for a second program:
/// `iperf3 -s b -- iperf3 -c a`. It may be meant for the program itself: `ssh b -- ls`.
fn second_host<'c>(network: &Network, command: &'c [OsString]) -> Option<&'c str> {
    command
        .windows(2)
        .filter(|pair| pair[1] == "--")
        .filter_map(|pair| pair[0].to_str())
        .find(|word| network.host(word).is_some())
}

/// A network that is up is used in its current state: flags that choose or create one are an error.
fn as_it_is(flags: &flags::NetExec, network: Network) -> Result<Network> {
    let extra = match (flags.seed, &flags.network) {
        (Some(_), _) => "--seed",
        (None, Some(other)) if *other != network.name => "--network",
        _ => return Ok(network),
    };
    let message = format!(
        "{extra} has no effect: the network {} is already up",
        network.name
    );
    let hint = format!("omit {extra}, or give the specification instead of the network name");
    Err(Error::input(message).hint(hint))
}

/// Emulates a network until its last user has gone. The client prints errors.
pub(crate) fn emulate(flags: &flags::Emulate) -> Result {
    let door = if flags.shared {
        ClientChannel::Socket
    } else {
        ClientChannel::Pipe
    };
    server::serve(door, &stackline_runner::recorders)
        .map_err(|error| already_shown(error.blame))?;
    Ok(Exit::Done)
}
