//! A network as text and JSON: hosts, switches, links, and the path between each pair of hosts.
//!
//! It computes no routes: paths are given by the code that forwards the packets.

pub(crate) mod path_facts;
mod routers;

use crate::figure::ABSENT;
use crate::grid::{Align, line, widths, wrap};
use crate::phrases::Phrases;
use crate::table::WIDTH;
use path_facts::PathCapacity;
pub use path_facts::{HostPath, link_changes};
use serde_json::{Value, json as object};
use stackline_core::network::{
    Charge, ClockModel, ImpMachine, ImpSettings, Network, NetworkInterface, NetworkLink,
    NetworkSwitch, ProgramCosts,
};
use stackline_core::time::Duration;
use stackline_core::units;
use std::collections::BTreeSet;

/// If there are more pairs of hosts than this, they are summarised instead of listed.
const MOST_PAIRS: usize = 66;
/// With more hosts than this, pairs are left out: their number grows with the square.
pub const MOST_HOSTS_IN_PAIRS: usize = 1000;

/// The address of a host, by its index, in an emulated or simulated network; `None` if 10.71.0.0/16 has no more.
#[must_use]
pub fn address(host: usize) -> Option<String> {
    let third = u8::try_from(host / 250).ok()?;
    Some(format!("10.71.{third}.{}", host % 250 + 1))
}

/// The network as text. `host_paths` has both directions of each pair, in any order.
#[must_use]
pub fn topology(network: &Network, host_paths: &[HostPath]) -> String {
    let mut lines = vec![heading(network)];
    for block in [
        hosts(network),
        switches(network),
        links(network),
        paths(network, host_paths),
    ] {
        if !block.is_empty() {
            lines.push(String::new());
            lines.extend(block);
        }
    }
    lines
        .into_iter()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// One line with the numbers of hosts, switches and links.
pub(crate) fn heading(network: &Network) -> String {
    let (hosts, switches) = (network.hosts.len(), network.switches.len());
    let counts = [
        (hosts, "host", "hosts"),
        (switches, "switch", "switches"),
        (network.links.len(), "link", "links"),
    ];
    let counts = counts.iter().filter(|(n, ..)| *n > 0);
    let counts: Vec<String> = counts
        .map(|(n, one, many)| format!("{n} {}", if *n == 1 { one } else { many }))
        .collect();
    format!("network {}: {}", network.name, counts.join(", "))
}

fn grid(head: &[&str], align: &[Align], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut all = vec![head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
    all.extend(rows);
    let widths = widths(&all);
    all.iter().map(|row| line(row, &widths, align)).collect()
}

fn hosts(network: &Network) -> Vec<String> {
    let row = |(at, host): (usize, &stackline_core::network::NetworkHost)| {
        let said: Vec<String> = [
            interface(&host.interface),
            work(&host.work),
            clock(&host.clock),
        ]
        .into_iter()
        .flatten()
        .chain(routers::describe_routes(&host.routes))
        .collect();
        vec![
            host.name.clone(),
            address(at).unwrap_or_else(|| ABSENT.to_owned()),
            said.join("; "),
        ]
    };
    let rows = network.hosts.iter().enumerate().map(row).collect();
    grid(&["host", "address", ""], &[Align::Left; 3], rows)
}

/// The properties of a host's interface that are not the defaults; `None` if all are.
fn interface(interface: &NetworkInterface) -> Option<String> {
    let mut said = Vec::new();
    said.with(interface.buffer_frames, |frames| {
        format!("{frames}-frame buffer")
    });
    said.when(interface.single_buffered, "single-buffered");
    said.when(interface.busy_waiting, "busy-waiting");
    said.when(interface.interface_copies, "copies by itself");
    if interface.copy_per_packet.0 > 0 || interface.copy_ns_per_byte > 0.0 {
        let per_byte = units::format_time(interface.copy_ns_per_byte / 1e9);
        said.push(format!(
            "copying takes {} per packet and {per_byte} per byte",
            interface.copy_per_packet
        ));
    }
    said.with(interface.cpu_speed, |speed| {
        format!("processor x {}", units::three_digits(speed))
    });
    said.with(interface.pace_bit_s, |pace| {
        format!("sends at most {}", units::format_rate(pace))
    });
    (!said.is_empty()).then(|| said.join(", "))
}

/// The processor time that programs take on a host; `None` if none is specified.
fn work(work: &ProgramCosts) -> Option<String> {
    let mut said = Vec::new();
    let some = |time: Duration| (time.0 > 0).then_some(time);
    said.with(some(work.per_operation), |time| {
        format!("{time} per operation")
    });
    said.extend(
        (work.ns_per_byte > 0.0)
            .then(|| format!("{} per byte", units::format_time(work.ns_per_byte / 1e9))),
    );
    said.with(some(work.per_message), |time| format!("{time} per message"));
    said.with(some(work.per_switch), |time| format!("{time} per switch"));
    let mut all = Vec::new();
    all.extend((!said.is_empty()).then(|| format!("programs take {}", said.join(", "))));
    all.with(work.polls, |every| format!("programs poll every {every}"));
    (!all.is_empty()).then(|| all.join("; "))
}

fn clock(clock: &ClockModel) -> Option<String> {
    let mut said = Vec::new();
    #[expect(clippy::cast_precision_loss, reason = "only for reading")]
    if clock.offset_ns != 0 {
        said.push(format!(
            "off by {}",
            units::format_time(clock.offset_ns as f64 / 1e9)
        ));
    }
    if clock.drift_ppm != 0.0 {
        said.push(format!("drifts by {} ppm", clock.drift_ppm));
    }
    if !clock.steps.is_empty() {
        said.push(format!("steps: {}", clock.steps.len()));
    }
    (!said.is_empty()).then(|| format!("clock {}", said.join(", ")))
}

fn switches(network: &Network) -> Vec<String> {
    let name = |at: usize, switch: &NetworkSwitch| {
        let name = &switch.name;
        if switch.imp.is_some() {
            return format!("IMP {name}");
        }
        let router = switch.router.as_ref();
        match router.and_then(|_| routers::router_address(at)) {
            Some(address) => format!("router {name} ({address})"),
            None => format!("switch {name}"),
        }
    };
    let lines = network
        .switches
        .iter()
        .enumerate()
        .map(|(at, switch)| format!("{}: {}", name(at, switch), describe_switch(switch)));
    lines.flat_map(|line| wrap(&line, WIDTH)).collect()
}

/// A switch's buffer, cells and queues, and what a router does beside.
pub(crate) fn describe_switch(switch: &NetworkSwitch) -> String {
    if let Some(imp) = &switch.imp {
        return described_imp(imp);
    }
    let place = if switch.buffer_per_port {
        "for each port"
    } else {
        "for all ports"
    };
    let mut said = vec![switch.buffer_bytes.map_or_else(
        || "unlimited buffer".to_owned(),
        |bytes| format!("buffer {} {place}", units::format_size(bytes)),
    )];
    said.with(switch.cell_bytes, |bytes| format!("cells of {bytes} B"));
    said.when(switch.early_packet_discard, "early packet discard");
    said.when(switch.abr, "tells hosts their permitted rates");
    said.with(switch.queue.as_ref(), |queue| {
        format!("queues {}", path_facts::queue(queue))
    });
    said.extend(switch.router.iter().flat_map(routers::describe_router));
    said.extend(routers::describe_routes(&switch.routes));
    said.join(", ")
}

/// The properties of an IMP that are not the defaults, which are those of January 1973.
fn described_imp(imp: &ImpSettings) -> String {
    let machine = match imp.machine {
        ImpMachine::H516 => "Honeywell 516",
        ImpMachine::H316 => "Honeywell 316",
        ImpMachine::Tip => "TIP",
        ImpMachine::Free => "no processing time",
    };
    let mut said = vec![machine.to_owned()];
    said.with(imp.reassembly, |messages| {
        format!("messages in reassembly: {messages}")
    });
    said.with(imp.window, |messages| {
        format!("messages in flight to another IMP: {messages}")
    });
    said.with(imp.channels, |channels| {
        format!("channels per line: {channels}")
    });
    said.when(imp.september, "September 1973 routing");
    said.when(imp.unreserved, "no reservation");
    said.when(imp.splits, "splits its load");
    said.join(", ")
}

fn links(network: &Network) -> Vec<String> {
    let head = ["link", "rate", "delay", "loss", "MTU", "queue", ""];
    let align = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Left,
        Align::Left,
    ];
    let limited = find_limited_switches(network);
    // In networks of IMPs, packets have a fixed largest size, and the channels of lines are the queues.
    let imps = network.has_imps();
    let row = |link: &NetworkLink| {
        let loss = path_facts::loss(&link.loss);
        vec![
            format_link_ends(link),
            path_facts::rate(&link.rate),
            path_facts::delay(link),
            if loss.is_empty() {
                "none".to_owned()
            } else {
                loss
            },
            if imps {
                ABSENT.to_owned()
            } else {
                units::format_size(link.mtu())
            },
            if imps {
                ABSENT.to_owned()
            } else {
                queue(link, &limited)
            },
            describe_peculiarities(link).join(", "),
        ]
    };
    let mut lines = grid(&head, &align, network.links.iter().map(row).collect());
    for link in &network.links {
        let changes = path_facts::schedules(link).into_iter();
        lines.extend(
            changes.flat_map(|change| wrap(&format!("{} {change}", format_link_ends(link)), WIDTH)),
        );
    }
    lines
}

/// The ends of a link: `a - b`, or `a > b` if it is one-way.
pub(crate) fn format_link_ends(link: &NetworkLink) -> String {
    format!(
        "{} {} {}",
        link.ends.0,
        if link.one_way { ">" } else { "-" },
        link.ends.1
    )
}

/// The names of the switches that limit the queues at their ports.
pub(crate) fn find_limited_switches(network: &Network) -> BTreeSet<&str> {
    let limited = |switch: &&NetworkSwitch| switch.queue.is_some() || switch.buffer_bytes.is_some();
    network
        .switches
        .iter()
        .filter(limited)
        .map(|switch| switch.name.as_str())
        .collect()
}

/// The queue of a link: its own, else the switch's, else unlimited.
pub(crate) fn queue(link: &NetworkLink, limited: &BTreeSet<&str>) -> String {
    match &link.queue {
        Some(queue) => path_facts::queue(queue),
        None if [&link.ends.0, &link.ends.1]
            .into_iter()
            .any(|end| limited.contains(end.as_str())) =>
        {
            "the switch's".to_owned()
        }
        None => "unlimited".to_owned(),
    }
}

/// Unusual properties of a link: jitter, duplication, how its rate is charged.
pub(crate) fn describe_peculiarities(link: &NetworkLink) -> Vec<String> {
    let mut said = Vec::new();
    said.with(link.jitter.as_ref(), |jitter| {
        let order = if jitter.reorder { ", reorders" } else { "" };
        format!("{}{order}", path_facts::jitter(jitter))
    });
    said.extend(path_facts::traffic_control(link));
    said.extend(
        (link.duplicate > 0.0)
            .then(|| format!("duplicates {}", path_facts::percent(link.duplicate))),
    );
    match link.charge {
        Charge::Packet => {}
        Charge::Frame => said.push("counts frames against the rate".to_owned()),
        Charge::Wire => said.push("counts frames, preamble and gap against the rate".to_owned()),
    }
    said
}

/// A path and the path back.
struct PathPair<'a> {
    path: &'a HostPath,
    there: Option<PathCapacity>,
    back: Option<PathCapacity>,
    /// Whether the path back uses the same links.
    same: bool,
}

fn pairs<'a>(network: &Network, host_paths: &'a [HostPath]) -> Vec<PathPair<'a>> {
    let by_ends: std::collections::BTreeMap<_, _> = host_paths
        .iter()
        .map(|path| ((path.from, path.to), path))
        .collect();
    let pair = |path: &&'a HostPath| {
        let back = by_ends
            .get(&(path.to, path.from))
            .and_then(|back| back.ports.as_ref());
        let offer = |ports: &Vec<u32>| PathCapacity::from_network(network, ports);
        let mirrored = |(there, back): (&Vec<u32>, &Vec<u32>)| {
            there
                .iter()
                .eq(back.iter().rev().map(|p| p ^ 1).collect::<Vec<_>>().iter())
        };
        let same = path
            .ports
            .as_ref()
            .zip(back)
            .map_or(path.ports.is_none() && back.is_none(), mirrored);
        PathPair {
            path,
            there: path.ports.as_ref().map(offer),
            back: back.map(offer),
            same,
        }
    };
    by_ends.values().map(pair).collect()
}

fn paths(network: &Network, host_paths: &[HostPath]) -> Vec<String> {
    if network.hosts.len() > MOST_HOSTS_IN_PAIRS {
        return vec![format!(
            "paths between hosts are omitted for networks of more than {MOST_HOSTS_IN_PAIRS} hosts"
        )];
    }
    // If the path back uses the same links, the pair is one row.
    let pairs: Vec<PathPair<'_>> = pairs(network, host_paths)
        .into_iter()
        .filter(|pair| !pair.same || pair.path.from < pair.path.to)
        .collect();
    if pairs.len() > MOST_PAIRS {
        summary(&pairs)
    } else {
        listed(network, &pairs)
    }
}

fn listed(network: &Network, pairs: &[PathPair<'_>]) -> Vec<String> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let head = [
        "path",
        "hops",
        "delay",
        "lowest rate",
        "MTU",
        "rate x round trip",
    ];
    let mut align = [Align::Right; 6];
    align[0] = Align::Left;
    let name = |at: usize| network.hosts.get(at).map_or(ABSENT, |host| &host.name);
    let row = |pair: &PathPair<'_>| {
        let ends = [
            name(pair.path.from),
            if pair.same { "-" } else { ">" },
            name(pair.path.to),
        ]
        .join(" ");
        let Some(there) = &pair.there else {
            return vec![ends, "no path".to_owned()];
        };
        vec![
            ends,
            there.hops.to_string(),
            there.delay.to_string(),
            there
                .rate_bit_s
                .map_or_else(|| "unlimited".to_owned(), units::format_rate),
            units::format_size(there.mtu),
            product(pair).map_or_else(|| ABSENT.to_owned(), bytes),
        ]
    };
    grid(&head, &align, pairs.iter().map(row).collect())
}

fn product(pair: &PathPair<'_>) -> Option<f64> {
    pair.there
        .as_ref()
        .zip(pair.back.as_ref())
        .and_then(|(there, back)| there.bandwidth_delay_bytes(back))
}

/// A size in bytes, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and only for reading"
)]
fn bytes(value: f64) -> String {
    units::format_size(value.round() as u64)
}

/// The least and the greatest values over all pairs.
fn summary(pairs: &[PathPair<'_>]) -> Vec<String> {
    let offers = || pairs.iter().filter_map(|pair| pair.there.as_ref());
    let without = pairs.iter().filter(|pair| pair.there.is_none()).count();
    let range = |values: Vec<f64>, show: &dyn Fn(f64) -> String| {
        let least = values.iter().copied().min_by(f64::total_cmp);
        let most = values.iter().copied().max_by(f64::total_cmp);
        least.zip(most).map_or_else(
            || vec![ABSENT.to_owned(); 2],
            |(least, most)| vec![show(least), show(most)],
        )
    };
    #[expect(clippy::cast_precision_loss, reason = "only for reading")]
    let rows = [
        (
            "hops",
            range(offers().map(|o| o.hops as f64).collect(), &|hops| {
                format!("{hops}")
            }),
        ),
        (
            "delay",
            range(
                offers().map(|o| o.delay.seconds()).collect(),
                &units::format_time,
            ),
        ),
        (
            "lowest rate",
            range(
                offers().filter_map(|o| o.rate_bit_s).collect(),
                &units::format_rate,
            ),
        ),
        (
            "MTU",
            range(offers().map(|o| o.mtu as f64).collect(), &bytes),
        ),
        (
            "rate x round trip",
            range(pairs.iter().filter_map(product).collect(), &bytes),
        ),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, range)| std::iter::once(name.to_owned()).chain(range).collect());
    let said = format!("{} pairs of hosts", pairs.len());
    let mut lines = grid(
        &[&said, "least", "most"],
        &[Align::Left, Align::Right, Align::Right],
        rows.collect(),
    );
    lines.extend((without > 0).then(|| format!("pairs without a path: {without}")));
    lines
}

/// The network as JSON: its declaration, addresses, and both directions of each pair of hosts.
#[must_use]
pub fn topology_json(network: &Network, host_paths: &[HostPath]) -> Value {
    let name = |at: usize| network.hosts.get(at).map(|host| host.name.clone());
    let path = |pair: &PathPair<'_>| {
        let there = pair.there.as_ref();
        object!({
            "from": name(pair.path.from),
            "to": name(pair.path.to),
            "ports": pair.path.ports.as_ref().map(|ports| ports.iter().map(|port| network.port_name(*port)).collect::<Vec<_>>()),
            "hops": there.map(|offer| offer.hops),
            "delay_s": there.map(|offer| offer.delay.seconds()),
            "rate_bit_s": there.and_then(|offer| offer.rate_bit_s),
            "mtu_bytes": there.map(|offer| offer.mtu),
            "bandwidth_delay_bytes": product(pair),
        })
    };
    let routers = network.switches.iter().enumerate();
    let router_addresses = routers.filter(|(_, switch)| switch.router.is_some());
    let router_addresses = router_addresses
        .map(|(at, router)| (router.name.clone(), routers::router_address(at).into()));
    let addresses: serde_json::Map<String, Value> = network
        .hosts
        .iter()
        .enumerate()
        .map(|(at, host)| (host.name.clone(), address(at).into()))
        .chain(router_addresses)
        .collect();
    object!({
        "network": network,
        "addresses": addresses,
        "paths": (network.hosts.len() <= MOST_HOSTS_IN_PAIRS)
            .then(|| pairs(network, host_paths).iter().map(path).collect::<Vec<_>>()),
    })
}

#[cfg(test)]
mod tests;
