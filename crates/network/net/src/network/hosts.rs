//! Packets between a host's memory and its links: the copies of the host's interface ([`crate::host_interface`]).

use super::{ForwardingEvent, PacketNetwork};
use crate::host_interface::{InterfaceDirection, NextStep};
use crate::packet::{NodeIndex, PacketPayload};
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, Tap};
use stackline_core::time::Instant;

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// Takes a packet that a host has handed over: to its interface if copying costs something, else to its first link.
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

    /// Handles a packet that has wholly reached its host. Returns its slot if it is in memory at once; else it is
    /// copied first, or dropped when the interface has no free buffer.
    pub(super) fn host_receives(&mut self, now: Instant, slot: u32) -> Option<u32> {
        let packet = &self.flights[slot as usize].as_ref()?.packet;
        let (from, to, bytes) = (packet.from, packet.to, packet.bytes());
        if self.router(to).is_some() {
            self.router_receives(now, to, slot);
            return None;
        }
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

    /// Called when a copy may have ended or a buffer may be free. Returns the slot of a packet that is in memory by
    /// this.
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

    /// Begins the interface's next copy, or schedules the instant at which it can begin.
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
