//! Between a host's memory and its links.

use super::{ForwardingEvent, PacketNetwork};
use crate::host_interface::{InterfaceDirection, NextStep};
use crate::packet::{NodeIndex, PacketPayload};
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, Tap};
use stackline_core::time::Instant;

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// The host has handed the packet over.
    pub(super) fn host_sends(&mut self, now: Instant, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else {
            return;
        };
        let (from, to) = (flight.packet.from, flight.packet.to);
        if from == to {
            // A packet to the sender itself does not use the interface.
            return self.events.put(now, ForwardingEvent::Complete { slot });
        }
        if !matches!(self.cards.get(from.0 as usize), Some(Some(_))) {
            return self.forward(now, from, slot);
        }
        // Copies are charged and buffers held for each packet.
        let mut next = Some(slot);
        while let Some(slot) = next {
            next = self.cut(slot, 1);
            let bytes = self.flights[slot as usize]
                .as_ref()
                .map_or(0, |flight| flight.packet.bytes());
            if let Some(Some(card)) = self.cards.get_mut(from.0 as usize) {
                card.leaves(slot, bytes);
            }
        }
        self.start_copy(now, from);
    }

    /// All of a packet has reached its host: its slot once it is in memory.
    pub(super) fn host_receives(&mut self, now: Instant, slot: u32) -> Option<u32> {
        let packet = &self.flights[slot as usize].as_ref()?.packet;
        let (from, to, bytes) = (packet.from, packet.to, packet.bytes());
        let Some(Some(card)) = self.cards.get_mut(to.0 as usize).filter(|_| from != to) else {
            return Some(slot);
        };
        if card.arrives(slot, bytes) {
            self.start_copy(now, to);
        } else if let Some(flight) = self.remove(slot) {
            if let Some(port) = flight.last_port {
                self.directions[port.0 as usize].count_drop(
                    DropReason::InterfaceFull,
                    u64::from(flight.packet.segments.count),
                );
            }
            if T::ON {
                self.tap.record(
                    now,
                    NetworkLocation::Host(to),
                    NetworkEvent::Drop(DropReason::InterfaceFull),
                    &flight.packet,
                );
            }
        }
        None
    }

    /// Called when a copy may have ended or a buffer is free: the slot of a packet that is now in memory.
    pub(super) fn finish_copy(&mut self, now: Instant, node: NodeIndex) -> Option<u32> {
        let card = self.cards.get_mut(node.0 as usize)?.as_mut()?;
        let done = card.copied(now);
        if let Some((slot, InterfaceDirection::Out)) = done {
            let port = self.flights[slot as usize]
                .as_ref()
                .map(|f| (f.packet.to, f.packet.flow));
            let port = port.and_then(|(to, flow)| self.topology.next(node, to, flow));
            self.forward(now, node, slot);
            let departure = port.map_or(now, |port| self.directions[port.0 as usize].free_at);
            if let Some(Some(card)) = self.cards.get_mut(node.0 as usize) {
                card.occupied_until(departure);
            }
        }
        self.start_copy(now, node);
        done.filter(|(_, direction)| *direction == InterfaceDirection::In)
            .map(|(slot, _)| slot)
    }

    /// Begins the interface's next copy.
    fn start_copy(&mut self, now: Instant, node: NodeIndex) {
        let Some(Some(card)) = self.cards.get_mut(node.0 as usize) else {
            return;
        };
        match card.next_step(now) {
            NextStep::CopyUntil(at) | NextStep::WaitUntil(at) => {
                self.events.put(at, ForwardingEvent::CopyDone { node })
            }
            NextStep::Rest => {}
        }
    }
}
