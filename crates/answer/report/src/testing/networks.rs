//! Networks for the tests of this crate, and the ways in them by fewest links.
#![cfg(test)]

use crate::topology::HostPath;
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Charge, ClockModel, Discipline, Jitter, LinkQueue, LinkRate, LossModel, Network, NetworkHost,
    NetworkInterface, NetworkLink, NetworkSwitch,
};
use stackline_core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

pub(crate) fn network(
    name: &str,
    hosts: &[&str],
    switches: &[&str],
    links: Vec<NetworkLink>,
) -> Network {
    let host = |name: &&str| NetworkHost {
        name: (*name).into(),
        ..NetworkHost::default()
    };
    let switch = |name: &&str| NetworkSwitch {
        name: (*name).into(),
        ..NetworkSwitch::default()
    };
    Network {
        name: name.into(),
        hosts: hosts.iter().map(host).collect(),
        switches: switches.iter().map(switch).collect(),
        links,
    }
}

pub(crate) fn link(from: &str, to: &str, bit_s: f64, delay_s: f64) -> NetworkLink {
    let delay = Duration::from_seconds(delay_s);
    NetworkLink {
        ends: (from.into(), to.into()),
        rate: LinkRate::Constant(bit_s),
        delay,
        ..NetworkLink::default()
    }
}

/// Two and two hosts at the ends of one narrow link.
pub(crate) fn dumbbell() -> Network {
    let edge = |from: &str, to: &str| link(from, to, 1e9, 50e-6);
    let queue = Some(LinkQueue {
        limit_bytes: Some(64 << 10),
        ..LinkQueue::default()
    });
    let narrow = NetworkLink {
        queue,
        loss: LossModel::Independent(1e-4),
        ..link("left", "right", 10e6, 20e-3)
    };
    let links = vec![
        edge("a", "left"),
        edge("b", "left"),
        narrow,
        edge("right", "c"),
        edge("right", "d"),
    ];
    network("dumbbell", &["a", "b", "c", "d"], &["left", "right"], links)
}

/// Each property at least once.
pub(crate) fn everything() -> Network {
    let mut network = network("odd", &["khons", "udjat"], &["edge", "core"], vec![]);
    network.hosts[0].interface = NetworkInterface {
        buffer_frames: Some(32),
        single_buffered: true,
        busy_waiting: true,
        interface_copies: false,
        copy_per_packet: Duration(120_000),
        copy_ns_per_byte: 80.0,
        cpu_speed: Some(2.0),
        pace_bit_s: Some(8e6),
    };
    network.hosts[1].clock = ClockModel {
        offset_ns: -250_000,
        drift_ppm: 12.5,
        steps: vec![(Duration(5), 3)],
    };
    network.switches[0] = NetworkSwitch {
        buffer_bytes: Some(1500),
        buffer_per_port: true,
        cell_bytes: Some(53),
        early_packet_discard: true,
        ..network.switches[0].clone()
    };
    let jitter = Jitter {
        distribution: Distribution::Normal(0.002, 0.0005),
        reorder: true,
        correlation: 0.0,
    };
    let red = Discipline::Red {
        min_bytes: 15_000,
        max_bytes: 45_000,
        most: 0.1,
        weight: 0.002,
    };
    let queue = LinkQueue {
        limit_packets: Some(100),
        discipline: red,
        ecn: true,
        ..LinkQueue::default()
    };
    network.links = vec![
        NetworkLink {
            mtu_bytes: Some(9180),
            charge: Charge::Wire,
            ..link("khons", "edge", 100e6, 1e-3)
        },
        NetworkLink {
            jitter: Some(jitter),
            queue: Some(queue),
            duplicate: 0.001,
            ..link("edge", "core", 45e6, 6e-3)
        },
        NetworkLink {
            one_way: true,
            loss: LossModel::Every(100),
            ..link("core", "udjat", 8e6, 250e-3)
        },
        NetworkLink {
            one_way: true,
            ..link("udjat", "core", 1e6, 300e-3)
        },
    ];
    network
}

/// So many hosts at so many switches, which stand around the first of them.
pub(crate) fn crowd(hosts: usize, switches: usize) -> Network {
    let host = |at: usize| format!("host{at:02}");
    let switch = |at: usize| format!("sw{}", at % switches);
    let between = (1..switches).map(|at| link("sw0", &switch(at), 10e9, 200e-6));
    let access = (0..hosts).map(|at| link(&host(at), &switch(at), 1e9, 25e-6));
    let links = between.chain(access).collect();
    let names: (Vec<String>, Vec<String>) = (
        (0..hosts).map(host).collect(),
        (0..switches).map(switch).collect(),
    );
    let hosts: Vec<&str> = names.0.iter().map(String::as_str).collect();
    let switches: Vec<&str> = names.1.iter().map(String::as_str).collect();
    network("crowd", &hosts, &switches, links)
}

/// All paths by fewest links, first found.
pub(crate) fn host_paths(network: &Network) -> Vec<HostPath> {
    let pairs = (0..network.hosts.len())
        .flat_map(|from| (0..network.hosts.len()).map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| HostPath {
            from,
            to,
            ports: find_ports(network, from, to),
        })
        .collect()
}

fn find_ports(network: &Network, from: usize, to: usize) -> Option<Vec<u32>> {
    let (from, to) = (&network.hosts[from].name, &network.hosts[to].name);
    let mut found: BTreeMap<&String, Vec<u32>> = BTreeMap::from([(from, Vec::new())]);
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        for (link, number) in network.links.iter().zip(0_u32..) {
            let next = match &link.ends {
                (first, second) if first == at => Some((second, 2 * number)),
                (first, second) if second == at && !link.one_way => Some((first, 2 * number + 1)),
                _ => None,
            };
            if let Some((node, port)) = next.filter(|(node, _)| !found.contains_key(node)) {
                let ports = found[at].iter().copied().chain([port]).collect();
                found.insert(node, ports);
                open.push_back(node);
            }
        }
    }
    found.remove(to)
}
