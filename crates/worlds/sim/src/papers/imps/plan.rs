//! The plan of a network of IMPs (its IMPs, lines and hosts), and its translation from a network file whose switches are IMPs.

use stackline_core::network::{self, FakeHost, ImpMachine, LossModel};
use stackline_core::time::Duration;
use stackline_proto::papers::imp::{HostKind, ImpHardware, ImpHostAddress, ImpOptions, Rule};
use std::collections::BTreeMap;

/// Bits of overhead of each packet on a line: 72 added by hardware, 80 by software (BBN 2499, 2.1.2).
pub const OVERHEAD_BITS: u32 = 152;
/// Bits of overhead of each packet since IMPs add a checksum in software (RFC 528).
pub const OVERHEAD_WITH_CHECKSUM_BITS: u32 = 168;
/// A line between two IMPs; both directions have the same properties.
#[derive(Clone, Debug)]
pub struct ImpSubnetLine {
    /// The numbers of the two IMPs, from 0.
    pub ends: (u16, u16),
    /// Bit rate, bit/s.
    pub bit_s: f64,
    /// Propagation delay in one direction.
    pub delay: Duration,
    /// Whether it is a satellite line, which has more channels.
    pub satellite: bool,
    /// How frames get lost on it.
    pub loss: LossModel,
}

/// A host at an IMP.
#[derive(Clone, Copy, Debug)]
pub struct ImpSubnetHost {
    /// The number of its IMP.
    pub imp: u16,
    /// Bit rate of its interface, bit/s; `None` for a fake host, which is a program inside the IMP.
    pub bit_s: Option<f64>,
    /// The cycles that the IMP's processor spends on it.
    pub kind: HostKind,
}

/// An IMP of a plan.
#[derive(Clone, Copy, Debug)]
pub struct ImpSubnetNode {
    /// Its machine, buffers and channels.
    pub options: ImpOptions,
    /// Whether it splits traffic among lines with equally short routes.
    pub splits: bool,
}

/// The plan of a network of IMPs.
#[derive(Clone, Debug, Default)]
pub struct ImpSubnetPlan {
    /// Its IMPs.
    pub imps: Vec<ImpSubnetNode>,
    /// Its lines.
    pub lines: Vec<ImpSubnetLine>,
    /// Its hosts; the hosts of one IMP are numbered in this order.
    pub hosts: Vec<ImpSubnetHost>,
    /// Bits of overhead of each packet on a line.
    pub overhead_bits: u32,
    /// Whether frames without data take no time on lines, as the formula of section 2.1.3 has it.
    pub control_is_free: bool,
    /// Bits of a routing message without the overhead; `None`: as many as a full packet has.
    pub routing_bits: Option<u32>,
}

/// The IMP that a network file's settings describe, at the end of `satellites` satellite lines.
#[must_use]
pub fn imp_node(imp: &network::ImpSettings, satellites: u32) -> ImpSubnetNode {
    let known = ImpOptions::default();
    let machine = match imp.machine {
        ImpMachine::H516 => ImpHardware::H516,
        ImpMachine::H316 => ImpHardware::H316,
        ImpMachine::Tip => ImpHardware::TIP,
        ImpMachine::Free => ImpHardware::FREE,
    };
    // Each satellite line adds store-and-forward buffers for its additional channels.
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

/// The host called `name`; the network file may say that it is a fake host.
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

/// The plan of a network file's network, and the IMP address of each host by name. Every switch is an IMP.
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
    // A link between two IMPs is a line; a link with one IMP is a host's interface.
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
