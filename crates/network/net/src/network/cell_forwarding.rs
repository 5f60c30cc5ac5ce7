//! Frames that travel in cells (ATM): a frame is cut at the first cell switch, forwarded cell by cell, and reassembled
//! behind the last one.
//!
//! A frame that loses one cell is lost; its other cells still use the link. One drop event is emitted for each frame,
//! with the reason of its first lost cell. Counters of directions that leave a cell switch count cells.

use super::{ForwardingEvent, PacketInTransit, PacketNetwork};
use crate::explicit_rate::Circuit;
use crate::link_direction::{QueueDecision, TrainSpan};
use crate::packet::{NodeIndex, PacketPayload};
use crate::tap::{DropReason, NetworkEvent, PortIndex, Tap};
use stackline_core::time::Instant;

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// Queues a whole frame before a link that carries cells: its cells leave one after the other.
    pub(super) fn enter_cells(&mut self, now: Instant, port: PortIndex, slot: u32) {
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        let bytes = flight.packet.bytes();
        let direction = &mut self.directions[port.0 as usize];
        let Some(cells) = direction.cells.map(|cells| cells.count(bytes)) else {
            return;
        };
        let start = direction.free_at.max(now);
        let shared_buffer = direction
            .shared_buffer
            .and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer));
        let last = match direction.offer(now, bytes, false, shared_buffer) {
            QueueDecision::Leaves(last, _) => last,
            QueueDecision::Refused(reason) => return self.drop_at(now, port, slot, reason),
        };
        // The first cell leaves when it would have left alone.
        let first = TrainSpan { first: start, last }.at(1, cells as u32 + 1);
        flight.arrival = direction.arrival(TrainSpan { first, last });
        flight.cells_left = cells as u32;
        let comes = flight.arrival.first;
        if T::ON {
            let backlog = direction.backlog(now);
            self.emit(now, port, NetworkEvent::Enqueue(backlog), slot);
            self.emit(last, port, NetworkEvent::Dequeue, slot);
        }
        self.events.put(
            comes,
            ForwardingEvent::Cell {
                port,
                slot,
                index: 0,
            },
        );
        if self.directions[port.0 as usize].duplicated()
            && let Some(duplicate) = self.duplicate(comes, port, slot)
        {
            self.events.put(
                comes,
                ForwardingEvent::Cell {
                    port,
                    slot: duplicate,
                    index: 0,
                },
            );
        }
    }

    /// Makes a copy of a frame that the link duplicates, and returns the copy's slot.
    fn duplicate(&mut self, at: Instant, port: PortIndex, slot: u32) -> Option<u32> {
        let flight = self.flights[slot as usize].as_ref()?;
        let (last_port, hops, cells_left) = (flight.last_port, flight.hops, flight.cells_left);
        let duplicate = PacketInTransit {
            last_port,
            hops,
            cells_left,
            ..PacketInTransit::new(flight.packet.again(), flight.arrival)
        };
        let duplicate = self.insert(duplicate);
        self.directions[port.0 as usize].counters.duplicated += 1;
        self.emit(at, port, NetworkEvent::Duplicate, duplicate);
        Some(duplicate)
    }

    /// Handles a cell that has crossed a link. Returns the frame's slot when this completes it at its host and it is in
    /// memory.
    pub(super) fn cell(
        &mut self,
        now: Instant,
        port: PortIndex,
        slot: u32,
        index: u32,
    ) -> Option<u32> {
        let edge = *self.topology.edge(port);
        if !self.cell_switch[edge.from.0 as usize] {
            self.next_cell(port, slot, index);
        }
        let direction = &mut self.directions[port.0 as usize];
        let bytes = direction.cells.map_or(0, |cells| cells.bytes);
        if let Some(reason) = direction.lost(now, bytes) {
            self.lose_cell(now, port, slot, reason);
            return None;
        }
        if self.cell_switch[edge.to.0 as usize] {
            self.cell_on(now, edge.to, slot, index);
            return None;
        }
        self.reassemble(now, port, edge.to, slot)
    }

    /// Schedules the cell behind one that has just crossed the first link.
    fn next_cell(&mut self, port: PortIndex, slot: u32, index: u32) {
        let Some(flight) = &self.flights[slot as usize] else {
            return;
        };
        let count = self.directions[port.0 as usize]
            .cells
            .map_or(1, |cells| cells.count(flight.packet.bytes()));
        let index = index + 1;
        if u64::from(index) < count {
            self.events.put(
                flight.arrival.at(index, count as u32),
                ForwardingEvent::Cell { port, slot, index },
            );
        }
    }

    /// Forwards a cell at a cell switch, or drops it: no path, too large, early packet discard, or a full buffer.
    fn cell_on(&mut self, now: Instant, node: NodeIndex, slot: u32, index: u32) {
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        let next = self
            .topology
            .next(node, flight.packet.to, flight.packet.flow);
        let Some(port) = next else {
            return self.lose_cell(now, PortIndex(0), slot, DropReason::NoPath);
        };
        let (from, to, flow) = (flight.packet.from, flight.packet.to, flight.packet.flow);
        if self.directions[port.0 as usize].shares.is_some() {
            self.signal_rates(now, port, from, to, flow);
        }
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        let direction = &mut self.directions[port.0 as usize];
        if index == 0 && flight.packet.bytes() > direction.mtu {
            flight.too_large = true;
        }
        if index == 0 && direction.early_discard {
            let shared = direction
                .shared_buffer
                .and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer));
            let full = direction.half_full(now)
                || shared.is_some_and(|shared_buffer| shared_buffer.half_full(now));
            flight.refused_at = full.then_some(port).or(flight.refused_at);
        }
        if flight.too_large {
            return self.lose_cell(now, port, slot, DropReason::TooLarge);
        }
        if flight.refused_at == Some(port) {
            return self.lose_cell(now, port, slot, DropReason::EarlyDiscard);
        }
        let shared_buffer = direction
            .shared_buffer
            .and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer));
        match direction.offer_cell(now, shared_buffer) {
            Ok(departure) => {
                let comes = direction
                    .arrival(TrainSpan {
                        first: departure,
                        last: departure,
                    })
                    .last;
                if T::ON && index == 0 {
                    let backlog = direction.backlog(now);
                    self.emit(now, port, NetworkEvent::Enqueue(backlog), slot);
                }
                self.events
                    .put(comes, ForwardingEvent::Cell { port, slot, index });
            }
            Err(reason) => {
                // The frame is spoilt already: its other cells would only take room from whole
                // frames.
                flight.refused_at = direction.early_discard.then_some(port);
                self.lose_cell(now, port, slot, reason);
            }
        }
    }

    /// Notes a cell of a circuit at a port that signals rates to hosts, and sends management cells back where the rates
    /// change.
    fn signal_rates(
        &mut self,
        now: Instant,
        port: PortIndex,
        from: NodeIndex,
        to: NodeIndex,
        flow: u32,
    ) {
        let Some(source) = self.topology.next(from, to, flow) else {
            return;
        };
        let direction = &mut self.directions[port.0 as usize];
        let Some(bit_s) = direction.transmitter_bit_s(now) else {
            return;
        };
        let signalled = direction
            .shares
            .as_mut()
            .and_then(|shares| shares.cell(now, Circuit { source, to }, bit_s));
        let Some((circuits, rate)) = signalled else {
            return;
        };
        for circuit in circuits {
            // A management cell takes the first link's propagation delay; the rest of its way and queueing there are
            // left out.
            let back = self.directions[circuit.source.0 as usize].least_delay();
            self.managed = self.managed.wrapping_add(1);
            self.management.insert(self.managed, (circuit, port, rate));
            self.events.put(
                now + back,
                ForwardingEvent::Rate {
                    number: self.managed,
                },
            );
        }
    }

    /// Stores the rate of a management cell that has reached its host.
    pub(super) fn receive_rate(&mut self, number: u32) {
        let Some((circuit, by, bit_s)) = self.management.remove(&number) else {
            return;
        };
        if let Some(granted) = self.directions[circuit.source.0 as usize].granted() {
            granted.note_rate(circuit.to, by, bit_s);
        }
    }

    /// Counts a lost cell. Its frame is lost too; the frame's slot is freed with its last cell.
    fn lose_cell(&mut self, now: Instant, port: PortIndex, slot: u32, reason: DropReason) {
        self.directions[port.0 as usize].count_drop(reason, 1);
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        flight.cells_left -= 1;
        let (first, gone) = (
            !core::mem::replace(&mut flight.incomplete, true),
            flight.cells_left == 0,
        );
        if first {
            self.directions[port.0 as usize].counters.spoilt += 1;
            self.emit(now, port, NetworkEvent::Drop(reason), slot);
        }
        if gone {
            self.incomplete_frames += 1;
            self.remove(slot);
        }
    }

    /// Handles a cell at the node where its frame is reassembled. Returns the frame's slot as [`Self::cell`] does.
    fn reassemble(
        &mut self,
        now: Instant,
        port: PortIndex,
        node: NodeIndex,
        slot: u32,
    ) -> Option<u32> {
        let flight = self.flights[slot as usize].as_mut()?;
        flight.cells_left -= 1;
        if flight.cells_left > 0 {
            return None;
        }
        if flight.incomplete {
            self.incomplete_frames += 1;
            self.remove(slot);
            return None;
        }
        (flight.arrival, flight.last_port, flight.refused_at) = (
            TrainSpan {
                first: now,
                last: now,
            },
            Some(port),
            None,
        );
        self.emit(now, port, NetworkEvent::Dequeue, slot);
        // A frame is duplicated as a whole, by the link on which it leaves the cell switches.
        if self.directions[port.0 as usize].duplicated()
            && let Some(duplicate) = self.duplicate(now, port, slot)
        {
            self.events.put(
                now,
                ForwardingEvent::At {
                    node,
                    slot: duplicate,
                },
            );
        }
        self.at(now, node, slot)
    }
}
