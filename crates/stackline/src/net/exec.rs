//! `stackline net exec`: any program on a host of an emulated network. `stackline emulate`: the process that emulates it.

use super::{none, up};
use crate::exit::{Error, Exit, Result, already_shown};
use crate::flags;
use crate::output;
use crate::source::Source;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_emu::engine::{Options, Report};
use stackline_emu::enter::{self, HostProgram};
use stackline_emu::server::{self, ClientChannel};

/// Runs a program on a host of a network that is there as long as somebody runs a program on it.
pub(super) fn exec(flags: &flags::NetExec) -> Result {
    let (text, host) = flags.text()?;
    if flags.of_trace {
        // With this process go all of the program's, so nothing of a trace that is killed stays on a host.
        let _ = set_pdeathsig(Signal::SIGKILL);
    }
    if flags.trace {
        return crate::trace::one(&text, host, &flags.command);
    }
    let (mut emulation, network) = match up::by_name(&text)? {
        Some((emulation, up)) => (emulation, as_it_is(flags, up.network)?),
        None => {
            let (network, options) = (flags.network.as_deref(), flags.options());
            declared(&Chosen { network, seed: flags.seed, join: flags.join, options }, &text, host)?
        }
    };
    let network = &network;
    emulation.uses()?;
    let entered = emulation.host(host).ok_or_else(|| unknown(host, &[network]))?;
    let guest =
        HostProgram { host: entered, hosts: emulation.hosts(), command: &flags.command, lease: emulation.lease() };
    let code = enter::exec(&guest)?;
    if !flags.of_trace {
        notes(&emulation.report()?, network).iter().for_each(|note| output::say(&format_args!("note: {note}")));
    }
    Ok(Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// What has to be said of a network in the end: that the machine was too slow for it, that packets were for nobody.
pub(crate) fn notes(report: &Report, network: &Network) -> Vec<String> {
    let overload = report.overload.as_ref().map(|overload| format!("network {}: {overload}", network.name));
    let for_no_host = (report.for_no_host() > 0).then(|| {
        let packets = match report.for_no_host() {
            1 => "1 packet was".to_owned(),
            many => format!("{many} packets were"),
        };
        format!(
            "network {}: {packets} for no host of it; multicast, broadcast and other networks are not carried",
            network.name
        )
    });
    overload.into_iter().chain(for_no_host).collect()
}

/// The network that a text declares, or that is up by its name, and that has such a host: made, or joined where it is up.
pub(crate) fn opened(text: &flags::Text, host: &str) -> Result<(Emulation, Network)> {
    match up::by_name(text)? {
        Some((emulation, up)) => Ok((emulation, up.network)),
        None => declared(&Chosen::default(), text, host),
    }
}

/// Whether a network has a host.
pub(crate) fn is_host(network: &Network, host: &str) -> Result<()> {
    if network.host(host).is_some() { Ok(()) } else { Err(unknown(host, &[network])) }
}

/// What chooses among networks, and how one is made.
#[derive(Default)]
struct Chosen<'f> {
    network: Option<&'f str>,
    seed: Option<u64>,
    join: bool,
    options: Options,
}

/// A network that is up is entered as it is: what chooses or makes one has no place.
fn as_it_is(flags: &flags::NetExec, network: Network) -> Result<Network> {
    let extra = match (flags.seed, &flags.network) {
        (Some(_), _) => "--seed",
        (None, Some(other)) if *other != network.name => "--network",
        _ => return Ok(network),
    };
    let message = format!("{extra} is of no use: the network {} is up already", network.name);
    let hint = format!("leave {extra} out, or name the specification instead of the network");
    Err(Error::input(message).hint(hint))
}

/// The network that a specification declares: made, or joined where it is up.
fn declared(chosen: &Chosen<'_>, text: &flags::Text, host: &str) -> Result<(Emulation, Network)> {
    let source = Source::of(text)?;
    let plan = source.declarations(text)?;
    let network = holding(&plan.networks, host, chosen.network, &source)?;
    stackline_emu::CAPABILITIES.accepts(network).map_err(emulated_only)?;
    if chosen.join {
        return Ok((up::joined(&network.name)?.0, network.clone()));
    }
    let seed = Seed::root(chosen.seed.unwrap_or(plan.seed)).child("network").child(&network.name);
    let program = std::env::current_exe()
        .map_err(|error| Error::environment(format!("this program's own file cannot be found: {error}")))?;
    let second = up::is_second(network, &chosen.options)?;
    let made = Emulation::shared(&program, &network.name, network, seed, &chosen.options).map_err(emulated_only)?;
    second.iter().for_each(output::say);
    Ok((made, network.clone()))
}

/// A program cannot run in the simulated world, so no hint may send it there.
pub(super) fn emulated_only(mut refusal: Error) -> Error {
    refusal.hint = refusal.hint.and_then(|hint| {
        let choices = hint.split(" or ").map(|choice| choice.trim_end_matches([' ', ',', ';']));
        let left: Vec<&str> = choices.filter(|choice| !choice.contains("--in simulated")).collect();
        (!left.is_empty()).then(|| left.join(", or "))
    });
    refusal
}

/// The network of that name, or the one that has that host.
fn holding<'n>(networks: &'n [Network], host: &str, name: Option<&str>, source: &Source) -> Result<&'n Network> {
    let named: Vec<&Network> = networks.iter().filter(|network| name.is_none_or(|name| network.name == name)).collect();
    if named.is_empty() {
        return Err(none(networks, name, source));
    }
    let holding: Vec<&Network> = named.iter().copied().filter(|network| network.host(host).is_some()).collect();
    match holding[..] {
        [] => Err(unknown(host, &named)),
        [network] => Ok(network),
        _ => {
            let names: Vec<String> =
                holding.iter().map(|network| format!("--network {}", quoted(&network.name))).collect();
            let message = format!("{} networks have a host {host}", holding.len());
            Err(Error::input(message).hint(format!("say which: {}", names.join(" or "))))
        }
    }
}

/// As a shell takes it.
pub(super) fn quoted(name: &str) -> String {
    if name.contains('(') { format!("'{name}'") } else { name.to_string() }
}

fn unknown(host: &str, networks: &[&Network]) -> Error {
    let names: Vec<&str> = networks.iter().flat_map(|network| &network.hosts).map(|host| host.name.as_str()).collect();
    let whose = match networks {
        [network] => format!("the network {} has", network.name),
        _ => "the networks have".to_string(),
    };
    let near = stackline_spec::nearest(host, names.iter().copied());
    let hint = near.map_or_else(|| format!("hosts are {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
    Error::input(format!("{whose} no host {host}")).hint(hint)
}

/// Emulates a network until its last user has gone. The client reports what is refused.
pub(crate) fn emulate(flags: &flags::Emulate) -> Result {
    let door = if flags.shared { ClientChannel::Socket } else { ClientChannel::Pipe };
    server::serve(door, &stackline_runner::recorders).map_err(|error| already_shown(error.blame))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_sent_to_the_simulated_world() {
        let hint = |text: &str| emulated_only(Error::input("no").hint(text)).hint;
        assert_eq!(hint("`--in simulated` needs nothing of the machine"), None);
        assert_eq!(
            hint("`--in simulated` needs nothing; or allow it: sysctl -w a=1").as_deref(),
            Some("allow it: sysctl -w a=1")
        );
        assert_eq!(hint("`ulimit -Hn 9`, or `--in simulated`").as_deref(), Some("`ulimit -Hn 9`"));
        assert_eq!(hint("another name").as_deref(), Some("another name"));
    }
}
