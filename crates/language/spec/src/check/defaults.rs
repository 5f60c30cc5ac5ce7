//! The defaults for what a text does not say: the world of a measurement, its network, and the hosts of its parts.
//!
//! A measurement in a world that needs a network gets the only one declared, otherwise a plain one.

use crate::context::Available;
use alloc::format;
use alloc::string::{String, ToString};
use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkLink, NetworkSwitch};
use stackline_core::plan::{Measurement, Plan, World};
use stackline_core::time::Duration;
use stackline_core::units;

/// Name of the default network; no specification can write this name.
const NAME: &str = "(plain)";
const RATE_BIT_S: f64 = 1e9;
const DELAY: Duration = Duration(50_000);

/// The world of a measurement that names none: simulated if it crosses a network, otherwise live.
pub(crate) const fn world(crosses: bool) -> World {
    if crosses {
        World::Simulated
    } else {
        World::Live
    }
}

/// Gives every measurement that needs one a network, and its sides their hosts. Returns a note of what was assumed.
pub(crate) fn networks_and_hosts(plan: &mut Plan, worlds: &[Available<'_>]) -> Option<String> {
    let modelled = |world| {
        worlds
            .iter()
            .any(|available| available.can.world == world && available.can.networks)
    };
    let only = if let [only] = plan.networks.as_slice() {
        Some(only.clone())
    } else {
        None
    };
    let mut plain = Network {
        name: NAME.into(),
        ..Network::default()
    };
    for measurement in plan
        .measurements
        .iter_mut()
        .filter(|measurement| modelled(measurement.world))
    {
        if measurement.across.is_none() {
            let fits = only
                .as_ref()
                .filter(|network| knows_all(network, measurement));
            measurement.across =
                Some(fits.map_or_else(|| NAME.into(), |network| network.name.clone()));
            if fits.is_none() {
                extend(&mut plain, measurement);
            }
        }
    }
    let made_up = !plain.hosts.is_empty();
    if made_up {
        join(&mut plain);
        plan.networks.push(plain);
    }
    place(plan, modelled);
    made_up.then(|| {
        format!(
            "no network was named: each host is connected to the same switch by a {} link with a delay of {}",
            units::format_rate(RATE_BIT_S),
            units::format_time(DELAY.seconds())
        )
    })
}

fn knows_all(network: &Network, measurement: &Measurement) -> bool {
    let named = measurement
        .parts
        .iter()
        .flat_map(|part| part.from.iter().chain(&part.to));
    network.hosts.len() > 1 && named.into_iter().all(|name| network.host(name).is_some())
}

fn extend(plain: &mut Network, measurement: &Measurement) {
    let named = |name: &Option<String>, or: &str| name.clone().unwrap_or_else(|| or.into());
    for part in &measurement.parts {
        for name in [named(&part.from, "initiator"), named(&part.to, "responder")] {
            if plain.host(&name).is_none() {
                plain.hosts.push(NetworkHost {
                    name,
                    ..NetworkHost::default()
                });
            }
        }
    }
}

fn join(plain: &mut Network) {
    plain.switches.push(NetworkSwitch {
        name: "(switch)".into(),
        ..NetworkSwitch::default()
    });
    let link = |host: &NetworkHost| NetworkLink {
        ends: (host.name.clone(), "(switch)".into()),
        rate: LinkRate::Constant(RATE_BIT_S),
        delay: DELAY,
        ..NetworkLink::default()
    };
    plain.links = plain.hosts.iter().map(link).collect();
}

/// Parts without FROM or TO run between the first and the last host.
fn place(plan: &mut Plan, modelled: impl Fn(World) -> bool) {
    for measurement in plan
        .measurements
        .iter_mut()
        .filter(|measurement| modelled(measurement.world))
    {
        let name = measurement.across.as_deref().unwrap_or_default();
        let Some(network) = plan.networks.iter().find(|network| network.name == name) else {
            continue;
        };
        let (first, last) = if name == NAME {
            (Some("initiator".to_string()), Some("responder".to_string()))
        } else {
            (
                network.hosts.first().map(|h| h.name.clone()),
                network.hosts.last().map(|h| h.name.clone()),
            )
        };
        for part in &mut measurement.parts {
            part.from = part.from.take().or_else(|| first.clone());
            part.to = part.to.take().or_else(|| last.clone());
        }
    }
}
