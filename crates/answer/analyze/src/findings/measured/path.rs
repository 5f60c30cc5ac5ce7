//! Ports: the directions of links in a modelled network that a measurement's data went over, with how busy each was, what it dropped, and
//! why.

use crate::statistics::to_f64;
use stackline_core::network::{LinkRate, LossModel, Network};
use stackline_core::run_record::PortRecord;
use stackline_core::time::Duration;
use stackline_model::arpanet_messages;
use stackline_model::overhead::charged_bytes;
use stackline_model::path::{HopModel, PathModel};
use std::collections::BTreeMap;

/// A link that is busy for at least this share of the time is full. It is less than 1 as the sawtooth of a congestion window leaves some
/// capacity unused: with a buffer of half the bandwidth-delay product a little (Villamizar and Song 1994: Reno uses 7/8 without a buffer,
/// more with one).
pub(crate) const FULL: f64 = 0.9;

/// The reasons of drops by the link itself, after a packet has left the queue.
const LINK: [&str; 2] = ["lost on the link", "bit error on the link"];
/// The reasons of drops that only follow from another one: cells of a frame that is already lost.
const FOLLOWS: [&str; 2] = ["one of its cells was lost", "early packet discard"];

/// Whether the reason of a drop is that the link itself lost the packet.
pub(crate) fn on_the_link(reason: &str) -> bool {
    LINK.contains(&reason)
}

/// Whether the reason of a drop is an earlier drop of another cell of the same frame.
pub(crate) fn is_secondary_drop(reason: &str) -> bool {
    FOLLOWS.contains(&reason)
}

/// One direction of a link, over all counted runs.
#[derive(Clone, Debug)]
pub(crate) struct PathPort {
    /// Its name, from node to node: `khons>edge`.
    pub(crate) name: String,
    /// The model of this hop: rate, delay, queue, losses.
    pub(crate) hop: HopModel,
    /// The network-layer bytes that left.
    pub(crate) bytes: u64,
    /// Packets (or cells) that left.
    pub(crate) packets: u64,
    /// The number of dropped packets (or cells), by reason, without those dropped in outages.
    pub(crate) drops: BTreeMap<String, u64>,
    /// The number of packets dropped in outages, for any reason.
    pub(crate) outage_drops: u64,
    /// The number of data streams that go over it at the same time.
    pub(crate) streams: u32,
    /// Whether its host paces below the rate of the link.
    pub(crate) paced: bool,
    /// Whether its rate changes over time; `hop.rate_bit_s` is then the mean over a run, without times of rate 0.
    pub(crate) varies: bool,
}

impl PathPort {
    /// The port of the hop at index `at` of a path, with all counts 0; `run` is the length of a run, for the mean of a varying rate.
    pub(crate) fn new(network: &Network, path: &PathModel, at: usize, run: Duration) -> Self {
        let mut hop = path.hops[at].clone();
        let (name, first) = (hop_name(&hop), at == 0);
        let pace = network
            .host(&hop.ends.0)
            .and_then(|host| host.interface.pace_bit_s);
        let link = network.links.iter().find(|link| {
            let (a, b) = (&link.ends.0, &link.ends.1);
            (a, b) == (&hop.ends.0, &hop.ends.1) || (b, a) == (&hop.ends.0, &hop.ends.1)
        });
        let slower = |pace: f64| match link.map(|link| &link.rate) {
            Some(LinkRate::Constant(rate)) => pace < *rate,
            _ => true,
        };
        let paced = first && pace.is_some_and(slower);
        let varying = link.filter(|link| !paced && link.rate.changes());
        if let Some(link) = varying {
            let shaped = link.shaper.map(|shaper| shaper.bit_s);
            let own = mean_while_up_bit_s(&link.rate, run);
            hop.rate_bit_s = own.into_iter().chain(shaped).reduce(f64::min);
        }
        let varies = varying.is_some();
        Self {
            name,
            hop,
            bytes: 0,
            packets: 0,
            drops: BTreeMap::new(),
            outage_drops: 0,
            streams: 0,
            paced,
            varies,
        }
    }

    /// Adds the counts that a run recorded for this port.
    pub(crate) fn add(&mut self, record: &PortRecord) {
        self.bytes = self.bytes.saturating_add(record.bytes);
        self.packets = self.packets.saturating_add(record.packets);
        for (reason, count) in &record.drops {
            *self.drops.entry(reason.clone()).or_default() += count;
        }
    }

    /// Moves drops that happened in outages from `drops` to `outage_drops`. With events (`unseen` is false) these are the given numbers by
    /// reason; without events all losses of the link, if it loses nothing outside outages.
    pub(crate) fn forget_drops(&mut self, drops: &BTreeMap<&str, u64>, unseen: bool) {
        let only_then = |losses: &LossModel| {
            match losses {
            LossModel::Schedule(steps) => steps.steps.iter().all(|(_, loss)| {
                matches!(loss, LossModel::None)
                    || matches!(loss, LossModel::Independent(share) if *share <= 0.0 || *share >= 1.0)
            }),
            _ => false,
        }
        };
        let all_of_link = unseen && only_then(&self.hop.losses);
        for (reason, count) in &mut self.drops {
            let seen = drops.get(reason.as_str()).copied().unwrap_or(0).min(*count);
            let then = if all_of_link && on_the_link(reason) {
                *count
            } else {
                seen
            };
            (*count, self.outage_drops) = (*count - then, self.outage_drops + then);
        }
        self.drops.retain(|_, count| *count > 0);
    }

    /// Seconds that the port spent transmitting the packets that left.
    pub(crate) fn busy_s(&self) -> f64 {
        let Some(rate) = self.hop.rate_bit_s.filter(|rate| *rate > 0.0) else {
            return 0.0;
        };
        if self.packets == 0 {
            return 0.0;
        }
        if self.hop.joins_imps {
            return arpanet_messages::line_s(to_f64(self.bytes), to_f64(self.packets), rate);
        }
        // Behind a cell switch `bytes` counts whole cells, so no overhead is added.
        let charged = if self.hop.cut_through {
            to_f64(self.bytes)
        } else {
            let mean = self.bytes / self.packets;
            to_f64(charged_bytes(mean, self.hop.charge, self.hop.cell_bytes)) * to_f64(self.packets)
        };
        8.0 * charged / rate
    }

    /// Packets its queue dropped.
    pub(crate) fn queue_drops(&self) -> u64 {
        let queue =
            |(reason, _): &(&String, &u64)| !on_the_link(reason) && !is_secondary_drop(reason);
        self.drops
            .iter()
            .filter(queue)
            .map(|(_, count)| count)
            .sum()
    }

    /// Packets the link itself lost.
    pub(crate) fn link_drops(&self) -> u64 {
        self.drops
            .iter()
            .filter(|(reason, _)| on_the_link(reason))
            .map(|(_, count)| count)
            .sum()
    }

    /// The number of drops for each reason, in words.
    pub(crate) fn reasons(&self) -> String {
        // A cell switch drops cells, not packets.
        let what = if self.hop.cut_through { "cells, " } else { "" };
        let words: Vec<String> = self
            .drops
            .iter()
            .map(|(reason, count)| format!("{count} {what}{reason}"))
            .collect();
        words.join(", ")
    }

    /// Its rate in words.
    pub(crate) fn rate(&self) -> String {
        let rate = self
            .hop
            .rate_bit_s
            .map_or_else(|| "unlimited".into(), stackline_core::units::format_rate);
        if self.varies {
            rate + " on average"
        } else {
            rate
        }
    }
}

/// The mean of a changing rate over a run, bit/s, without the times in which it is 0: those are outages.
fn mean_while_up_bit_s(rate: &LinkRate, run: Duration) -> Option<f64> {
    let mean = rate.mean_until_bit_s(run)?;
    let LinkRate::Schedule(rates) = rate else {
        return Some(mean);
    };
    let up = rates.mean_until(run, |rate| if *rate > 0.0 { 1.0 } else { 0.0 });
    Some(if up > 0.0 { mean / up } else { mean })
}

/// Whether a path leads over a port.
pub(crate) fn path_contains_port(path: &PathModel, port: &PathPort) -> bool {
    path.hops.iter().any(|hop| hop_name(hop) == port.name)
}

/// The name a record has for a hop.
pub(crate) fn hop_name(hop: &HopModel) -> String {
    format!("{}>{}", hop.ends.0, hop.ends.1)
}
