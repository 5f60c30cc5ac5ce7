//! Summarises the packets, drops and marks of a modelled network over the counted runs, and how late an emulated one sent its
//! packets.
//!
//! All parts of a run cross one network, so a run counts once, however many parts it has.

use crate::flags::once_each;
use crate::groups::GroupRun;
use crate::statistics::{SampleStatistics, to_f64};
use crate::summary::{EmulationSummary, NetworkSummary, PortSummary};
use stackline_core::network::Network;
use stackline_core::plan::Plan;
use stackline_core::run_record::{EmulationRecord, NetworkRecord, PortRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons of drops that happen after a packet has left the queue: such a packet is counted in `packets` too. What a router drops
/// counts where it came in.
const AFTER_LEAVING: [&str; 8] = [
    "lost on the link",
    "bit error on the link",
    "no free buffer in the host's interface",
    "time to live ran out",
    "no address translation",
    "table of address translations full",
    "refused by the firewall",
    "table of the firewall full",
];

impl PortSummary {
    /// Whether packets were dropped, marked or duplicated at this port.
    #[must_use]
    pub const fn is_notable(&self) -> bool {
        self.dropped > 0 || self.marked > 0 || self.duplicated > 0
    }
}

/// The network of a group's runs; `None` if none was modelled.
pub(crate) fn summarise_network(plan: &Plan, runs: &[GroupRun<'_>]) -> Option<NetworkSummary> {
    let records: Vec<&NetworkRecord> = runs
        .iter()
        .filter_map(|run| {
            run.records
                .iter()
                .find_map(|record| record.network.as_ref())
        })
        .collect();
    let name = records.last()?.name.clone();
    let declared = plan.networks.iter().find(|network| network.name == name);
    let emulations: Vec<&EmulationRecord> = records
        .iter()
        .filter_map(|record| record.emulation.as_ref())
        .collect();
    Some(NetworkSummary {
        name,
        ports: ports(declared, &records),
        emulation: emulation(&emulations),
    })
}

/// Sums of each port, the most drops first. A run counts once for a port, even if several links have the same name.
fn ports(declared: Option<&Network>, records: &[&NetworkRecord]) -> Vec<PortSummary> {
    let mut sums: BTreeMap<&str, PortSummary> = BTreeMap::new();
    for record in records {
        record
            .ports
            .iter()
            .for_each(|port| add(sums.entry(&port.name).or_default(), port));
        let names: BTreeSet<&str> = record.ports.iter().map(|port| port.name.as_str()).collect();
        names
            .into_iter()
            .for_each(|name| sums.entry(name).or_default().runs += 1);
    }
    let mut ports: Vec<PortSummary> = sums
        .into_iter()
        .map(|(name, sum)| finished(declared, name, sum))
        .collect();
    ports.sort_by_key(|p| std::cmp::Reverse((p.dropped, p.marked, p.duplicated, p.bytes)));
    ports
}

fn add(sum: &mut PortSummary, port: &PortRecord) {
    let grow = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    grow(&mut sum.packets, port.packets);
    grow(&mut sum.bytes, port.bytes);
    grow(&mut sum.marked, port.marked);
    grow(&mut sum.duplicated, port.duplicated);
    for (reason, n) in &port.drops {
        grow(sum.drops.entry(reason.clone()).or_default(), *n);
    }
}

/// Computes the derived figures of a port from its sums. A port of a cell switch counts cells instead of packets, and drops on a link
/// to one are cells too; shares are given only if both counts have the same unit.
fn finished(declared: Option<&Network>, name: &str, sum: PortSummary) -> PortSummary {
    let cut = |node: &str| {
        let switches = declared.iter().flat_map(|network| &network.switches);
        switches
            .into_iter()
            .any(|switch| switch.name == node && switch.cell_bytes.is_some())
    };
    let (from, to) = name.split_once('>').unwrap_or((name, ""));
    let (cells, cells_dropped) = (cut(from), cut(from) || cut(to));
    let of = |chosen: fn(&str) -> bool| {
        let drops = sum.drops.iter().filter(move |(reason, _)| chosen(reason));
        drops.fold(0, |all: u64, (_, n)| all.saturating_add(*n))
    };
    let dropped = of(|_| true);
    let before = if cells == cells_dropped {
        of(|reason| !AFTER_LEAVING.contains(&reason))
    } else {
        0
    };
    let offered = sum.packets.saturating_add(before);
    let comparable = cells == cells_dropped && offered > 0 && dropped <= offered;
    let drop_share = comparable.then(|| to_f64(dropped) / to_f64(offered));
    PortSummary {
        name: name.to_owned(),
        offered,
        dropped,
        drop_share,
        cells,
        cells_dropped,
        ..sum
    }
}

fn emulation(runs: &[&EmulationRecord]) -> Option<EmulationSummary> {
    if runs.is_empty() {
        return None;
    }
    let late = |get: fn(&EmulationRecord) -> u64| {
        let values = runs
            .iter()
            .filter(|run| run.departures > 0)
            .map(|run| to_f64(get(run)) / 1e9);
        SampleStatistics::from_values(&values.collect::<Vec<_>>())
    };
    let trips: Vec<f64> = runs
        .iter()
        .filter_map(|run| run.round_trip_ns)
        .map(|ns| to_f64(ns) / 1e9)
        .collect();
    let sum = |get: fn(&EmulationRecord) -> u64| {
        runs.iter().map(|run| get(run)).fold(0, u64::saturating_add)
    };
    let overloads = || runs.iter().rev().filter_map(|run| run.overload.clone());
    Some(EmulationSummary {
        departures: sum(|run| run.departures),
        lateness_p50_s: late(|run| run.lateness_p50_ns).map(|s| s.median),
        lateness_p99_s: late(|run| run.lateness_p99_ns).map(|s| s.max),
        lateness_max_s: late(|run| run.lateness_max_ns).map(|s| s.max),
        lost: sum(|run| run.lost),
        cpu_share: runs.iter().map(|run| run.cpu_share).fold(0.0, f64::max),
        round_trip_s: SampleStatistics::from_values(&trips).map(|s| s.median),
        overloaded: u32::try_from(overloads().count()).unwrap_or(u32::MAX),
        overload: once_each(overloads().collect()),
    })
}

#[cfg(test)]
mod tests;
