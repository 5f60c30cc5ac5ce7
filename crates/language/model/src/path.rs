//! The path from one host to another in numbers: its hops, and the interfaces at both ends.
//!
//! It is the shortest path, where a hop costs its propagation delay and the transmission time of a packet of 1500
//! bytes. Values that vary in time are represented by their long-run mean, and are listed in `unsteady` or `left_out`.

use crate::overhead::charged_bytes;
use crate::{count_to_f64, is_positive, mean_loss};
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{
    Charge, DEFAULT_MTU, Discipline, Jitter, LinkQueue, LossModel, Network, NetworkInterface,
    NetworkLink, NetworkSwitch,
};
use stackline_core::routes;

/// A hop: one direction of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct HopModel {
    /// The nodes at which it begins and ends.
    pub ends: (String, String),
    /// Mean rate in bit/s, counted in the bytes that `charge` counts; transmission takes no time when absent.
    pub rate_bit_s: Option<f64>,
    /// Propagation delay in seconds, with the mean of its jitter.
    pub delay_s: f64,
    /// Largest packet in bytes of the network layer.
    pub mtu_bytes: u64,
    /// The loss model of the link.
    pub losses: LossModel,
    /// Probability that a packet of full size is lost, in the long run, 0 to 1.
    pub loss: f64,
    /// The random time that is added to the delay of each packet.
    pub jitter: Option<Jitter>,
    /// Bytes that its queue can hold; unlimited when absent.
    pub queue_bytes: Option<f64>,
    /// Whether its queue drops packets other than those that arrive when it is full.
    pub drops_early: bool,
    /// Which bytes count against the rate.
    pub charge: Charge,
    /// Size of a cell in bytes, when frames are sent in cells.
    pub cell_bytes: Option<u64>,
    /// Whether it begins at a switch that forwards cells before their frame is complete.
    pub cut_through: bool,
    /// Whether it joins two IMPs.
    pub joins_imps: bool,
}

impl HopModel {
    /// Bytes that count against the rate for a packet.
    #[must_use]
    pub const fn charged_bytes(&self, packet_bytes: u64) -> u64 {
        charged_bytes(packet_bytes, self.charge, self.cell_bytes)
    }

    /// Transmission time of a packet, s; `None` at rate zero, when it is never transmitted.
    #[must_use]
    pub fn serialisation_s(&self, packet_bytes: u64) -> Option<f64> {
        match self.rate_bit_s {
            None => Some(0.0),
            Some(rate) => is_positive(rate)
                .then(|| 8.0 * count_to_f64(self.charged_bytes(packet_bytes)) / rate),
        }
    }

    /// Transmission time of the first cell of a packet, s; of the whole packet where there are no cells.
    #[must_use]
    pub fn cell_s(&self, packet_bytes: u64) -> Option<f64> {
        let share = self.cell_bytes.map_or(1.0, |cell| {
            count_to_f64(cell) / count_to_f64(self.charged_bytes(packet_bytes).max(cell))
        });
        Some(self.serialisation_s(packet_bytes)? * share)
    }

    /// Probability that a packet of this size is lost; lists are averaged over the first `packets` packets. Cells are
    /// lost independently, and the loss of one loses the packet.
    #[must_use]
    pub fn loss_of(&self, packet_bytes: u64, packets: Option<u64>) -> f64 {
        let charged = self.charged_bytes(packet_bytes);
        let Some(cell) = self.cell_bytes.filter(|cell| *cell > 0) else {
            return mean_loss::loss_probability(&self.losses, charged, packets);
        };
        let cells = (charged / cell).max(1);
        let p = mean_loss::loss_probability(
            &self.losses,
            cell,
            packets.map(|packets| packets.saturating_mul(cells)),
        );
        1.0 - libm::pow(1.0 - p, count_to_f64(cells))
    }
}

/// A path from one host to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathModel {
    /// The path's hops, in order.
    pub hops: Vec<HopModel>,
    /// The interface of the sending host.
    pub sender: NetworkInterface,
    /// The interface of the receiving host.
    pub receiver: NetworkInterface,
    /// Effects that the numbers do not include, as sentences for the user.
    pub left_out: Vec<&'static str>,
    /// Properties that change over time or from packet to packet, as sentences for the user.
    pub unsteady: Vec<&'static str>,
}

impl PathModel {
    /// The shortest path between two hosts; `None` when a host does not exist or no path leads from one to the other.
    /// Of paths of equal cost, the one over the link declared first.
    #[must_use]
    pub fn between(network: &Network, from: &str, to: &str) -> Option<Self> {
        let (sender, receiver) = (network.host(from)?, network.host(to)?);
        let mut path = Self {
            sender: sender.interface.clone(),
            receiver: receiver.interface.clone(),
            ..Self::default()
        };
        for (link, forward) in routes::find_shortest_route(network, from, to)? {
            path.hops.push(hop(network, link, forward));
            path.note(link);
        }
        let signals_rates = |name: &str| {
            network
                .switches
                .iter()
                .any(|switch| switch.abr && switch.name == name)
        };
        if routes::find_shortest_route(network, from, to)?
            .iter()
            .any(|(link, _)| signals_rates(&link.ends.0) || signals_rates(&link.ends.1))
        {
            path.unsteady.push("a switch assigns rates to hosts");
        }
        if let (Some(first), Some(pace)) = (path.hops.first_mut(), sender.interface.pace_bit_s) {
            first.rate_bit_s = Some(first.rate_bit_s.map_or(pace, |rate| rate.min(pace)));
        }
        Some(path)
    }

    /// Records what the numbers do not say about a link.
    fn note(&mut self, link: &NetworkLink) {
        let unsteady = [
            (link.rate.changes(), "a rate on the path changes over time"),
            (
                link.delays.is_some(),
                "a delay on the path changes over time",
            ),
            (
                matches!(link.loss, LossModel::Schedule(_)),
                "the loss rate on the path changes over time",
            ),
            (link.duplicate > 0.0, "packets are duplicated"),
            (
                link.policer.is_some(),
                "a policer on the path drops or remarks packets above its rate",
            ),
        ];
        let left_out = [
            (
                link.jitter.is_some(),
                "only the mean jitter is counted, not its effect on packet order and timers",
            ),
            (
                mean_loss::in_bursts(&link.loss),
                "loss bursts are counted at their mean rate",
            ),
            (
                link.shaper.is_some(),
                "a shaper on the path is counted at its rate, without its burst",
            ),
            (
                link.skipping.is_some(),
                "packets that skip a delay and overtake others are not counted",
            ),
        ];
        let add = |to: &mut Vec<&'static str>, (is, text): (bool, &'static str)| {
            if is && !to.contains(&text) {
                to.push(text);
            }
        };
        unsteady
            .into_iter()
            .for_each(|note| add(&mut self.unsteady, note));
        left_out
            .into_iter()
            .for_each(|note| add(&mut self.left_out, note));
    }

    /// Largest packet that fits all hops, in bytes of the network layer.
    #[must_use]
    pub fn mtu_bytes(&self) -> u64 {
        self.hops
            .iter()
            .map(|hop| hop.mtu_bytes)
            .min()
            .unwrap_or(DEFAULT_MTU)
    }

    /// The sum of the propagation delays in seconds.
    #[must_use]
    pub fn delay_s(&self) -> f64 {
        self.hops.iter().map(|hop| hop.delay_s).sum()
    }

    /// The hop on which packets of this size take longest, the first of equal ones; `None` when no hop takes time.
    #[must_use]
    pub fn bottleneck(&self, packet_bytes: u64) -> Option<&HopModel> {
        let time = |hop: &HopModel| hop.serialisation_s(packet_bytes).unwrap_or(f64::INFINITY);
        self.hops
            .iter()
            .filter(|hop| time(hop) > 0.0)
            .reduce(|slowest, hop| {
                if time(hop) > time(slowest) {
                    hop
                } else {
                    slowest
                }
            })
    }

    /// Probability that a packet of this size is lost on one of the hops; lists are averaged over the first `packets`
    /// packets.
    #[must_use]
    pub fn loss_of(&self, packet_bytes: u64, packets: Option<u64>) -> f64 {
        1.0 - self
            .hops
            .iter()
            .map(|hop| 1.0 - hop.loss_of(packet_bytes, packets))
            .product::<f64>()
    }
}

fn hop(network: &Network, link: &NetworkLink, forward: bool) -> HopModel {
    let (from, to) = if forward {
        (&link.ends.0, &link.ends.1)
    } else {
        (&link.ends.1, &link.ends.0)
    };
    let switch = |name: &str| network.switches.iter().find(|switch| switch.name == name);
    let jitter_s = link
        .jitter
        .as_ref()
        .and_then(|jitter| jitter.distribution.mean())
        .unwrap_or(0.0);
    let mut hop = HopModel {
        ends: (from.clone(), to.clone()),
        rate_bit_s: link.mean_bit_s(),
        delay_s: link.delay.seconds() + jitter_s,
        mtu_bytes: link.mtu(),
        losses: link.loss.clone(),
        loss: 0.0,
        jitter: link.jitter.clone(),
        queue_bytes: queue_bytes(link, switch(from)),
        drops_early: queue_of(link, switch(from))
            .is_some_and(|queue| queue.discipline != Discipline::DropTail),
        charge: link.charge,
        // On a link at either side of a cell switch, frames are sent in cells.
        cell_bytes: [from, to]
            .into_iter()
            .find_map(|name| switch(name)?.cell_bytes),
        cut_through: switch(from).is_some_and(|switch| switch.cell_bytes.is_some()),
        joins_imps: [from, to]
            .into_iter()
            .all(|name| switch(name).is_some_and(|switch| switch.imp.is_some())),
    };
    hop.loss = hop.loss_of(hop.mtu_bytes, None);
    hop
}

/// The queue of a link; otherwise that of the switch it begins at.
fn queue_of<'n>(link: &'n NetworkLink, switch: Option<&'n NetworkSwitch>) -> Option<&'n LinkQueue> {
    link.queue
        .as_ref()
        .or(switch.and_then(|switch| switch.queue.as_ref()))
}

/// The smallest of the limits of the queue (the link's, otherwise the switch's) and the switch's buffer, in bytes.
fn queue_bytes(link: &NetworkLink, switch: Option<&NetworkSwitch>) -> Option<f64> {
    let of_queue = |queue: &LinkQueue| {
        let packets = queue
            .limit_packets
            .map(|packets| packets.saturating_mul(link.charge.bytes(link.mtu())));
        queue.limit_bytes.into_iter().chain(packets).min()
    };
    let buffer = switch.and_then(|switch| switch.buffer_bytes);
    queue_of(link, switch)
        .and_then(of_queue)
        .into_iter()
        .chain(buffer)
        .min()
        .map(count_to_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use stackline_core::network::{LinkRate, NetworkHost};
    use stackline_core::time::Duration;

    fn link(a: &str, b: &str, mbit_s: f64, ms: u64) -> NetworkLink {
        NetworkLink {
            ends: (a.into(), b.into()),
            rate: LinkRate::Constant(mbit_s * 1e6),
            delay: Duration(ms * 1_000_000),
            ..NetworkLink::default()
        }
    }

    fn network(switches: &[&str], links: Vec<NetworkLink>) -> Network {
        let host = |name: &str| NetworkHost {
            name: name.into(),
            ..NetworkHost::default()
        };
        let switch = |name: &&str| NetworkSwitch {
            name: (*name).into(),
            ..NetworkSwitch::default()
        };
        Network {
            name: "wan".into(),
            hosts: vec![host("a"), host("b")],
            switches: switches.iter().map(switch).collect(),
            links,
        }
    }

    fn hop_names(network: &Network, from: &str, to: &str) -> Vec<String> {
        PathModel::between(network, from, to)
            .unwrap()
            .hops
            .into_iter()
            .map(|hop| hop.ends.1)
            .collect()
    }

    #[test]
    fn the_shortest_counts_delay_and_packet_time() {
        // Over s: 2 ms and 2 x 12 ms at 1 Mbit/s; over t: 20 ms and hardly any packet time.
        let slow = [link("a", "s", 1.0, 1), link("s", "b", 1.0, 1)];
        let far = [link("a", "t", 1000.0, 10), link("t", "b", 1000.0, 10)];
        let net = network(&["s", "t"], slow.into_iter().chain(far).collect());
        assert_eq!(hop_names(&net, "a", "b"), ["t", "b"]);
    }

    #[test]
    fn of_equal_ones_the_first_declared() {
        let links = ["t", "s"]
            .map(|s| [link("a", s, 10.0, 1), link(s, "b", 10.0, 1)])
            .concat();
        assert_eq!(
            hop_names(&network(&["t", "s"], links), "a", "b"),
            ["t", "b"]
        );
    }

    #[test]
    fn one_way_links_lead_one_way() {
        let there = NetworkLink {
            one_way: true,
            ..link("a", "b", 10.0, 1)
        };
        let mut net = network(&[], vec![there]);
        assert_eq!(hop_names(&net, "a", "b"), ["b"]);
        assert_eq!(PathModel::between(&net, "b", "a"), None);
        net.links.push(NetworkLink {
            one_way: true,
            ..link("b", "a", 1.0, 300)
        });
        let back = PathModel::between(&net, "b", "a").unwrap();
        assert!((back.delay_s() - 0.3).abs() < 1e-12);
        assert_eq!(PathModel::between(&net, "a", "nobody"), None);
        assert_eq!(hop_names(&net, "a", "a"), Vec::<String>::new());
    }

    #[test]
    fn hops_carry_their_numbers() {
        let mut first = link("a", "s", 8.0, 1);
        first.loss = LossModel::Independent(0.1);
        first.mtu_bytes = Some(9180);
        let mut second = link("s", "b", 1.0, 2);
        second.loss = LossModel::Every(2);
        second.queue = Some(LinkQueue {
            limit_packets: Some(10),
            ..LinkQueue::default()
        });
        let mut net = network(&["s"], vec![first, second]);
        net.switches[0].cell_bytes = Some(53);
        net.switches[0].buffer_bytes = Some(64_000);
        net.hosts[0].interface.pace_bit_s = Some(2e6);
        let path = PathModel::between(&net, "a", "b").unwrap();
        assert_eq!(
            path.hops[0].rate_bit_s,
            Some(2e6),
            "the interface sends no faster than its pace"
        );
        assert_eq!(path.hops[1].queue_bytes, Some(15_000.0));
        assert_eq!(
            PathModel::between(&net, "b", "a").unwrap().hops[1].queue_bytes,
            Some(64_000.0)
        );
        assert_eq!(
            (path.mtu_bytes(), path.hops[0].cell_bytes),
            (1500, Some(53))
        );
        // 1500 bytes and the trailer are 32 cells: 13568 bits at 1 Mbit/s.
        assert!((path.hops[1].serialisation_s(1500).unwrap() - 0.013_568).abs() < 1e-12);
        assert_eq!(path.bottleneck(1500).unwrap().ends.0, "s");
        // Each of the 32 cells is lost with probability 0.1, and one is enough; every second cell is always enough.
        assert!((path.hops[0].loss_of(1500, None) - (1.0 - libm::pow(0.9, 32.0))).abs() < 1e-12);
        assert!((path.loss_of(1500, None) - 1.0).abs() < 1e-9);
        assert!(!path.hops[0].cut_through && path.hops[1].cut_through);
    }

    #[test]
    fn a_rate_of_zero_is_never_over() {
        let hop = hop(&network(&[], vec![]), &link("a", "b", 0.0, 1), true);
        assert_eq!(hop.serialisation_s(1), None);
        let free = HopModel {
            rate_bit_s: None,
            ..hop
        };
        assert_eq!(free.serialisation_s(1500), Some(0.0));
    }
}
