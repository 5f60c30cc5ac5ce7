//! A network of the language whose switches are IMPs, as a network of machines.

use super::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_BITS,
    OVERHEAD_WITH_CHECKSUM_BITS,
};
use stackline_core::network::{self, FakeHost, ImpMachine};
use stackline_proto::imp::{HostKind, ImpHardware, ImpHostAddress, ImpOptions, Rule};
use std::collections::BTreeMap;

/// What is chosen of an IMP of the language that has so many lines by satellite.
#[must_use]
pub fn imp_node(imp: &network::ImpSettings, satellites: u32) -> ImpSubnetNode {
    let known = ImpOptions::default();
    let machine = match imp.machine {
        ImpMachine::H516 => ImpHardware::H516,
        ImpMachine::H316 => ImpHardware::H316,
        ImpMachine::Tip => ImpHardware::TIP,
        ImpMachine::Free => ImpHardware::FREE,
    };
    // Who has a satellite's line has buffers for its channels too.
    let more = u32::from(known.satellite_channels - known.channels);
    let options = ImpOptions {
        machine,
        store_and_forward: imp
            .buffers
            .unwrap_or(known.store_and_forward + satellites * more),
        reassembly: imp.reassembly.unwrap_or(known.reassembly),
        window: imp.window.unwrap_or(known.window),
        channels: imp.channels.unwrap_or(known.channels),
        satellite_channels: imp.channels.unwrap_or(known.satellite_channels),
        rule: if imp.september {
            Rule::September
        } else {
            Rule::January
        },
        reservation: !imp.unreserved,
        answers_first: imp.september,
        ..known
    };
    ImpSubnetNode {
        options,
        splits: imp.splits,
    }
}

fn host_of_plan(
    network: &network::Network,
    name: &str,
    imp: u16,
    bit_s: Option<f64>,
) -> ImpSubnetHost {
    let fake = network
        .hosts
        .iter()
        .find(|host| host.name == name)
        .and_then(|host| host.fake);
    ImpSubnetHost {
        imp,
        bit_s,
        kind: HostKind {
            fake_cycles: fake.map_or((0, 0), FakeHost::cycles),
        },
    }
}

/// The machines of a network, and where each of its hosts is.
#[must_use]
pub fn plan_of_network(
    network: &network::Network,
) -> (ImpSubnetPlan, BTreeMap<String, ImpHostAddress>) {
    let numbers: BTreeMap<&str, u16> = (0..)
        .zip(&network.switches)
        .map(|(at, imp)| (imp.name.as_str(), at))
        .collect();
    let mut plan = ImpSubnetPlan {
        overhead_bits: OVERHEAD_BITS,
        ..ImpSubnetPlan::default()
    };
    let is_line = |link: &network::NetworkLink| {
        numbers.contains_key(link.ends.0.as_str()) && numbers.contains_key(link.ends.1.as_str())
    };
    let satellites: Vec<&network::NetworkLink> = network
        .links
        .iter()
        .filter(|link| link.delay >= network::ImpSettings::SATELLITE_DELAY && is_line(link))
        .collect();
    let of = |switch: &network::NetworkSwitch| {
        let ends = satellites
            .iter()
            .filter(|link| link.ends.0 == switch.name || link.ends.1 == switch.name);
        imp_node(&switch.imp.clone().unwrap_or_default(), ends.count() as u32)
    };
    plan.imps = network.switches.iter().map(of).collect();
    if plan
        .imps
        .iter()
        .any(|node| node.options.rule == Rule::September)
    {
        plan.overhead_bits = OVERHEAD_WITH_CHECKSUM_BITS;
    }
    // A line is distinguished from a host's interface by its ends.
    let mut hosts = BTreeMap::new();
    let mut count = BTreeMap::<u16, u16>::new();
    for link in &network.links {
        let bit_s = link.rate.mean_bit_s();
        let ends = [&link.ends.0, &link.ends.1].map(|end| numbers.get(end.as_str()).copied());
        match ends {
            [Some(a), Some(b)] => plan.lines.push(ImpSubnetLine {
                ends: (a, b),
                bit_s: bit_s.unwrap_or(f64::MAX),
                delay: link.delay,
                satellite: link.delay >= network::ImpSettings::SATELLITE_DELAY,
                loss: link.loss.clone(),
            }),
            [Some(imp), None] | [None, Some(imp)] => {
                let name = if ends[0].is_none() {
                    &link.ends.0
                } else {
                    &link.ends.1
                };
                let host = count.entry(imp).or_default();
                hosts.insert(name.clone(), ImpHostAddress { imp, host: *host });
                *host += 1;
                plan.hosts.push(host_of_plan(network, name, imp, bit_s));
            }
            [None, None] => {}
        }
    }
    (plan, hosts)
}
