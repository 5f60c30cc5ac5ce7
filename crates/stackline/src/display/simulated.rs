//! `display bench --across`: the benchmark in virtual time, client and display on hosts of a network.

mod carrier;

use super::{levels, pictures, show};
use crate::across;
use crate::exit::{Error, Result};
use crate::flags::{ClassFlag, DisplayBench, ShownFlag};
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_displayserver::bench;
use stackline_displayserver::simulated::{Class, Scene, Shown, measure};

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
    let way = carrier::read(over, own.display_over.as_deref())?;
    let carrier = way.carrier();
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
        internet: own.internet.as_deref().map(|name| named(&network, Some(name), false)).transpose()?,
        class,
        carrier,
        drawing: own.draw,
        shown,
        gathers: own.gathers,
        rectangle_bytes: own.rectangle_bytes,
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
