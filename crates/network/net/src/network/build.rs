//! Builds a [`PacketNetwork`] from the plan of a network, which is plain data.

use super::PacketNetwork;
use crate::cell_sizes::Cells;
use crate::event_queue::EventQueue;
use crate::host_interface::Card;
use crate::link_direction::{LinkDirection, PortConfig};
use crate::packet::{NodeIndex, PacketPayload};
use crate::shared_buffer::SharedBuffer;
use crate::tap::Tap;
use crate::topology::{Topology, TopologyEdge};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::network as plan;
use stackline_core::random::Seed;

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// A network without packets at instant zero. The plan has been checked by `spec`; a link without both ends is left
    /// out.
    #[must_use]
    pub fn new(plan: &plan::Network, seed: Seed, tap: T) -> Self {
        let names = plan
            .hosts
            .iter()
            .map(|h| h.name.clone())
            .chain(plan.switches.iter().map(|s| s.name.clone()));
        let mut topology = Topology::new(plan);
        topology.spread_by(seed.child("routes").0 as u32);
        let (shared_buffers, shared_buffer_of) = shared_buffers(plan);
        let port_configs = PortConfigs {
            plan,
            shared_buffer_of: &shared_buffer_of,
            lengths_wanted: T::ON && T::LENGTHS,
        };
        let directions = topology
            .edges
            .iter()
            .zip(plan.links.iter().flat_map(|link| [link, link]))
            .zip(0..);
        let directions = directions
            .map(|((edge, link), index)| {
                LinkDirection::new(
                    link,
                    port_configs.port_of(edge),
                    seed.child("port").index(index),
                )
            })
            .collect();
        let cell_switch = plan.hosts.iter().map(|_| false);
        let cell_switch = cell_switch
            .chain(plan.switches.iter().map(|s| s.cell_bytes.is_some()))
            .collect();
        let least_mtu = plan.links.iter().map(plan::NetworkLink::mtu).min();
        Self {
            names: names.collect(),
            routers: super::router::routers(plan),
            least_mtu: least_mtu.unwrap_or(u64::MAX),
            topology,
            directions,
            cell_switch,
            cards: plan
                .hosts
                .iter()
                .map(|host| Card::new(&host.interface))
                .collect(),
            shared_buffers,
            events: EventQueue::default(),
            flights: Vec::new(),
            free: Vec::new(),
            accepted: 0,
            lost: 0,
            incomplete_frames: 0,
            management: BTreeMap::new(),
            managed: 0,
            to_drop: Vec::new(),
            displaced: Vec::new(),
            tap,
        }
    }
}

/// The shared buffers, and by switch the index of its own.
fn shared_buffers(plan: &plan::Network) -> (Vec<SharedBuffer>, Vec<Option<usize>>) {
    let mut shared_buffers = Vec::new();
    let of = plan.switches.iter().map(|switch| {
        let limit = switch.buffer_bytes.filter(|_| !switch.buffer_per_port)?;
        shared_buffers.push(SharedBuffer::new(limit));
        Some(shared_buffers.len() - 1)
    });
    let of = of.collect();
    (shared_buffers, of)
}

/// Computes the settings that a direction gets from the nodes at its ends.
struct PortConfigs<'p> {
    plan: &'p plan::Network,
    shared_buffer_of: &'p [Option<usize>],
    lengths_wanted: bool,
}

impl<'p> PortConfigs<'p> {
    fn port_of(&self, edge: &TopologyEdge) -> PortConfig<'p> {
        let cells = |node: NodeIndex| self.switch(node).and_then(|(switch, _)| switch.cell_bytes);
        let cells = cells(edge.from)
            .or(cells(edge.to))
            .map(|bytes| Cells { bytes });
        let signals_rates =
            |node: NodeIndex| self.switch(node).is_some_and(|(switch, _)| switch.abr);
        let abr = signals_rates(edge.from)
            || (self.switch(edge.from).is_none() && signals_rates(edge.to));
        let port_config = PortConfig {
            cells,
            abr,
            lengths_wanted: self.lengths_wanted,
            ..PortConfig::default()
        };
        match self.switch(edge.from) {
            Some((switch, index)) => PortConfig {
                queue: switch.queue.as_ref(),
                port_bytes: switch.buffer_bytes.filter(|_| switch.buffer_per_port),
                shared_buffer: self.shared_buffer_of[index],
                early_discard: switch.early_packet_discard,
                ..port_config
            },
            None => PortConfig {
                interface: self
                    .plan
                    .hosts
                    .get(edge.from.0 as usize)
                    .map(|host| &host.interface),
                ..port_config
            },
        }
    }

    /// The switch at that node and its index; `None` for a host.
    fn switch(&self, node: NodeIndex) -> Option<(&'p plan::NetworkSwitch, usize)> {
        let index = (node.0 as usize).checked_sub(self.plan.hosts.len())?;
        self.plan.switches.get(index).map(|switch| (switch, index))
    }
}
