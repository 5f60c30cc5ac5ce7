//! From the plain data of a network to the machine.

use super::Network;
use crate::agenda::Agenda;
use crate::cells::Cells;
use crate::direction::{Direction, Exit};
use crate::interface::Card;
use crate::packet::{Node, Payload};
use crate::pool::Pool;
use crate::seen::Tap;
use crate::topology::{Edge, Topology};
use alloc::vec::Vec;
use stackline_core::network as plan;
use stackline_core::random::Seed;

impl<P: Payload, T: Tap<P>> Network<P, T> {
    /// At rest at instant zero. The plan is one that `spec` has checked; a link whose ends it lacks is left out.
    #[must_use]
    pub fn new(plan: &plan::Network, seed: Seed, tap: T) -> Self {
        let names = plan.hosts.iter().map(|h| h.name.clone()).chain(plan.switches.iter().map(|s| s.name.clone()));
        let topology = Topology::new(plan);
        let (pools, pool_of) = pools(plan);
        let exits = Exits { plan, pool_of: &pool_of, watched: T::ON && T::LENGTHS };
        let directions = topology.edges.iter().zip(plan.links.iter().flat_map(|link| [link, link])).zip(0..);
        let directions = directions
            .map(|((edge, link), index)| Direction::new(link, exits.of(edge), seed.child("port").index(index)))
            .collect();
        let cell_switch = plan.hosts.iter().map(|_| false);
        let cell_switch = cell_switch.chain(plan.switches.iter().map(|s| s.cell_bytes.is_some())).collect();
        Self {
            names: names.collect(),
            topology,
            directions,
            cell_switch,
            cards: plan.hosts.iter().map(|host| Card::new(&host.interface)).collect(),
            pools,
            agenda: Agenda::default(),
            flights: Vec::new(),
            free: Vec::new(),
            numbered: 0,
            lost: 0,
            spoilt_frames: 0,
            condemned: Vec::new(),
            displaced: Vec::new(),
            tap,
        }
    }
}

/// The shared buffers, and which switch has which.
fn pools(plan: &plan::Network) -> (Vec<Pool>, Vec<Option<usize>>) {
    let mut pools = Vec::new();
    let of = plan.switches.iter().map(|switch| {
        let limit = switch.buffer_bytes.filter(|_| !switch.buffer_per_port)?;
        pools.push(Pool::new(limit));
        Some(pools.len() - 1)
    });
    let of = of.collect();
    (pools, of)
}

/// What a direction gets from the nodes at its ends.
struct Exits<'p> {
    plan: &'p plan::Network,
    pool_of: &'p [Option<usize>],
    watched: bool,
}

impl<'p> Exits<'p> {
    fn of(&self, edge: &Edge) -> Exit<'p> {
        let cells = |node: Node| self.switch(node).and_then(|(switch, _)| switch.cell_bytes);
        let cells = cells(edge.from).or(cells(edge.to)).map(|bytes| Cells { bytes });
        let exit = Exit { cells, watched: self.watched, ..Exit::default() };
        match self.switch(edge.from) {
            Some((switch, index)) => Exit {
                queue: switch.queue.as_ref(),
                port_bytes: switch.buffer_bytes.filter(|_| switch.buffer_per_port),
                pool: self.pool_of[index],
                early_discard: switch.early_packet_discard,
                ..exit
            },
            None => Exit { interface: self.plan.hosts.get(edge.from.0 as usize).map(|host| &host.interface), ..exit },
        }
    }

    fn switch(&self, node: Node) -> Option<(&'p plan::Switch, usize)> {
        let index = (node.0 as usize).checked_sub(self.plan.hosts.len())?;
        self.plan.switches.get(index).map(|switch| (switch, index))
    }
}
