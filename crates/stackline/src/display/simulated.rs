//! `display bench --across`: the benchmark in virtual time, client and display on hosts of a network.

use super::{levels, pictures, show};
use crate::across;
use crate::exit::{Error, Result};
use crate::flags::{ClassFlag, DisplayBench, ShownFlag};
use stackline_core::network::Network;
use stackline_core::plan::{Stack, World};
use stackline_core::random::Seed;
use stackline_displayserver::bench;
use stackline_displayserver::simulated::{Carrier, Class, Scene, Shown, measure};

/// Simulates what the flags say.
pub(super) fn bench(flags: &DisplayBench) -> Result {
    let own = &flags.simulated;
    let network = across::network(own.across.as_deref(), own.network.as_deref())?;
    stackline_sim::CAPABILITIES.accepts(&network)?;
    if network.has_imps() {
        return Err(Error::input(format!(
            "the network {} is one of IMPs, over which no display is simulated",
            network.name
        ))
        .hint("two lines of 56 kbit/s stand for it: `link near - middle 56 kbit/s 10 ms;`"));
    }
    let class = Class::from(own.class);
    if own.class == ClassFlag::Local && (own.over.is_some() || own.display_over.is_some()) {
        let error = Error::input("a local application has no transport between its hosts");
        return Err(error.hint("leave --over and --display-over out"));
    }
    let over = own.over.as_deref().unwrap_or(if own.class == ClassFlag::Messages { "ikp" } else { "tcp" });
    let stacks = stacks(over, own.display_over.as_deref())?;
    let carrier = match &stacks {
        Some([client, display]) if client.name == "tcp" && display.name == "tcp" => Carrier::Tcp([client, display]),
        _ if own.display_over.is_some() => {
            let error = Error::input(format!("--over {over}: only tcp has options for each end"));
            return Err(error.hint("leave --display-over out, or name tcp for both"));
        }
        Some([client, _]) if client.name == "ikp" && client.options.is_empty() => Carrier::Ikp,
        Some([client, _]) if client.name == "ikp" => {
            let error = Error::input(format!("--over {over}: a display's messages are V's, of 1024 bytes"));
            return Err(error.hint("--over ikp, without options"));
        }
        Some(_) => {
            return Err(Error::input(format!("--over {over}: requests go over tcp, ikp or a serial line"))
                .hint("as in --over 'tcp(nodelay)', --over ikp, --over tty, --over 'tty(bits = 8)'"));
        }
        None => Carrier::Line(bits(over)?),
    };
    let to = named(&network, own.display.as_deref(), false)?;
    let from = match (&own.client, own.class) {
        (None, ClassFlag::Local) => to.clone(),
        (name, _) => named(&network, name.as_deref(), true)?,
    };
    let shown = if own.shown == ShownFlag::Growing { Shown::Growing } else { Shown::Complete };
    let scene = Scene {
        network: &network,
        from,
        to,
        class,
        carrier,
        drawing: own.draw,
        shown,
        gathers: own.gathers,
        seed: Seed::root(1),
    };
    let mut all = Vec::new();
    for picture in &pictures(flags) {
        all.extend(measure(&scene, picture, &bench::rates(picture, &levels(flags)), usize::from(flags.trials))?);
    }
    if all.is_empty() {
        return Err(Error::input("nothing of it takes any time, so there is no rate")
            .hint("say what hosts take, as in `host vax { work 2 ms per operation; }`, and the display: --draw 'pixel = 5 us'"));
    }
    let place = format!("{} from {} over {over}, simulated", scene.to, scene.from);
    show(if class == Class::Local { "the same host, simulated" } else { &place }, &all, flags.json)
}

/// The host of that name, or the first or the last.
fn named(network: &Network, name: Option<&str>, last: bool) -> Result<String> {
    let usual = if last { network.hosts.last() } else { network.hosts.first() };
    let host = name.map_or(usual, |name| network.host(name));
    host.map(|host| host.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = network.hosts.iter().map(|host| host.name.as_str()).collect();
        Error::input(format!("the network {} has no host {}", network.name, name.unwrap_or("at all")))
            .hint(format!("its hosts are {}", names.join(", ")))
    })
}

/// The stacks of the client's end and of the display's; nothing for a serial line.
fn stacks(over: &str, display_over: Option<&str>) -> Result<Option<[Stack; 2]>> {
    if over.trim_start().starts_with("tty") {
        return Ok(None);
    }
    let client = across::stack(over, World::Simulated)?;
    let display = display_over.map(|over| across::stack(over, World::Simulated)).transpose()?;
    Ok(Some([client.clone(), display.unwrap_or(client)]))
}

/// Bits of a character of a serial line: `tty` has start and stop bits, `tty(bits = 8)` has not.
fn bits(over: &str) -> Result<u32> {
    let own: String = over.chars().filter(|letter| !letter.is_whitespace()).collect();
    let bits = match own.as_str() {
        "tty" => Some(10),
        other => other.strip_prefix("tty(bits=").and_then(|rest| rest.strip_suffix(')')).and_then(|n| n.parse().ok()),
    };
    bits.filter(|bits| (5..=12).contains(bits)).ok_or_else(|| {
        Error::input(format!("--over {over} is no serial line")).hint("`tty`, or `tty(bits = 8)`: from 5 to 12")
    })
}
