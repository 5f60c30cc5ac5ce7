//! Frames that travel in cells: cut where they meet the first cell switch, sent on cell by cell, put together again.
//!
//! One lost cell spoils its frame; the others still take the wire. A drop is told once a frame, with the reason of its
//! first lost cell; counters of directions that leave a cell switch count cells.

use super::{Event, Flight, Network};
use crate::direction::{Offer, Span};
use crate::packet::{Node, Payload};
use crate::seen::{Happening, Port, Reason, Tap};
use stackline_core::time::Instant;

impl<P: Payload, T: Tap<P>> Network<P, T> {
    /// A frame is cut to cells that leave one after the other, or goes on in those it came in.
    pub(super) fn enter_cells(&mut self, now: Instant, port: Port, slot: u32) {
        let Some(flight) = self.flights[slot as usize].as_mut() else { return };
        let bytes = flight.packet.bytes();
        let direction = &mut self.directions[port.0 as usize];
        let Some(cells) = direction.cells.map(|cells| cells.count(bytes)) else { return };
        let start = direction.free_at.max(now);
        let pool = direction.pool.and_then(|pool| self.pools.get_mut(pool));
        let last = match direction.offer(now, bytes, false, pool) {
            Offer::Leaves(last, _) => last,
            Offer::Refused(reason) => return self.drop_at(now, port, slot, reason),
        };
        // The first has left when it alone would have.
        let first = Span { first: start, last }.at(1, cells as u32 + 1);
        flight.arrival = direction.arrival(Span { first, last });
        flight.cells_left = cells as u32;
        let comes = flight.arrival.first;
        if T::ON {
            let backlog = direction.backlog(now);
            self.tell(now, port, Happening::Enqueue(backlog), slot);
            self.tell(last, port, Happening::Dequeue, slot);
        }
        self.agenda.put(comes, Event::Cell { port, slot, index: 0 });
        if self.directions[port.0 as usize].doubled()
            && let Some(twin) = self.twin(comes, port, slot)
        {
            self.agenda.put(comes, Event::Cell { port, slot: twin, index: 0 });
        }
    }

    /// The same frame once more.
    fn twin(&mut self, at: Instant, port: Port, slot: u32) -> Option<u32> {
        let flight = self.flights[slot as usize].as_ref()?;
        let (came_by, hops, cells_left) = (flight.came_by, flight.hops, flight.cells_left);
        let twin = Flight { came_by, hops, cells_left, ..Flight::new(flight.packet.again(), flight.arrival) };
        let twin = self.board(twin);
        self.directions[port.0 as usize].mishaps.duplicated += 1;
        self.tell(at, port, Happening::Duplicate, twin);
        Some(twin)
    }

    /// A cell has come over a link: the slot of its frame when that is complete at its host and in memory.
    pub(super) fn cell(&mut self, now: Instant, port: Port, slot: u32, index: u32) -> Option<u32> {
        let edge = *self.topology.edge(port);
        if !self.cell_switch[edge.from.0 as usize] {
            self.next_cell(port, slot, index);
        }
        let direction = &mut self.directions[port.0 as usize];
        let bytes = direction.cells.map_or(0, |cells| cells.bytes);
        if let Some(reason) = direction.lost(bytes) {
            self.spoil(now, port, slot, reason);
            return None;
        }
        if self.cell_switch[edge.to.0 as usize] {
            self.cell_on(now, edge.to, slot, index);
            return None;
        }
        self.gather(now, port, edge.to, slot)
    }

    /// The cell behind one that has just come over the first link.
    fn next_cell(&mut self, port: Port, slot: u32, index: u32) {
        let Some(flight) = &self.flights[slot as usize] else { return };
        let count = self.directions[port.0 as usize].cells.map_or(1, |cells| cells.count(flight.packet.bytes()));
        let index = index + 1;
        if u64::from(index) < count {
            self.agenda.put(flight.arrival.at(index, count as u32), Event::Cell { port, slot, index });
        }
    }

    /// A cell switch sends a cell on.
    fn cell_on(&mut self, now: Instant, node: Node, slot: u32, index: u32) {
        let Some(flight) = self.flights[slot as usize].as_mut() else { return };
        let next = self.topology.next(node, flight.packet.to, flight.packet.flow);
        let Some(port) = next else { return self.spoil(now, Port(0), slot, Reason::NoPath) };
        let direction = &mut self.directions[port.0 as usize];
        if index == 0 && flight.packet.bytes() > direction.mtu {
            flight.too_large = true;
        }
        if index == 0 && direction.early_discard {
            let shared = direction.pool.and_then(|pool| self.pools.get_mut(pool));
            let full = direction.half_full(now) || shared.is_some_and(|pool| pool.half_full(now));
            flight.refused_at = full.then_some(port).or(flight.refused_at);
        }
        if flight.too_large {
            return self.spoil(now, port, slot, Reason::TooLarge);
        }
        if flight.refused_at == Some(port) {
            return self.spoil(now, port, slot, Reason::EarlyDiscard);
        }
        let pool = direction.pool.and_then(|pool| self.pools.get_mut(pool));
        match direction.offer_cell(now, pool) {
            Ok(departure) => {
                let comes = direction.arrival(Span { first: departure, last: departure }).last;
                if T::ON && index == 0 {
                    let backlog = direction.backlog(now);
                    self.tell(now, port, Happening::Enqueue(backlog), slot);
                }
                self.agenda.put(comes, Event::Cell { port, slot, index });
            }
            Err(reason) => {
                flight.refused_at = direction.early_discard.then_some(port);
                self.spoil(now, port, slot, reason);
            }
        }
    }

    /// A cell is gone, and its frame with it.
    fn spoil(&mut self, now: Instant, port: Port, slot: u32, reason: Reason) {
        self.directions[port.0 as usize].count_drop(reason, 1);
        let Some(flight) = self.flights[slot as usize].as_mut() else { return };
        flight.cells_left -= 1;
        let (first, gone) = (!core::mem::replace(&mut flight.spoilt, true), flight.cells_left == 0);
        if first {
            self.tell(now, port, Happening::Drop(reason), slot);
        }
        if gone {
            self.spoilt_frames += 1;
            self.leave(slot);
        }
    }

    /// A cell is where its frame is put together.
    fn gather(&mut self, now: Instant, port: Port, node: Node, slot: u32) -> Option<u32> {
        let flight = self.flights[slot as usize].as_mut()?;
        flight.cells_left -= 1;
        if flight.cells_left > 0 {
            return None;
        }
        if flight.spoilt {
            self.spoilt_frames += 1;
            self.leave(slot);
            return None;
        }
        (flight.arrival, flight.came_by, flight.refused_at) = (Span { first: now, last: now }, Some(port), None);
        self.tell(now, port, Happening::Dequeue, slot);
        // A frame is doubled as a whole, by the link it leaves the cell switches on.
        if self.directions[port.0 as usize].doubled()
            && let Some(twin) = self.twin(now, port, slot)
        {
            self.agenda.put(now, Event::At { node, slot: twin });
        }
        self.at(now, node, slot)
    }
}
