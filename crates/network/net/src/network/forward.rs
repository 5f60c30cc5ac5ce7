//! One hop of a packet: from a node to the queue before its next link. A packet of several segments (a train) is cut
//! only where its segments would be treated differently.

use super::{ForwardingEvent, GRANULE, PacketInTransit, PacketNetwork};
use crate::link_direction::TrainSpan;
use crate::packet::{NodeIndex, PacketPayload};
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, PortIndex, Tap};
use stackline_core::network::MOST_HOPS;
use stackline_core::time::{Duration, Instant};

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// Handles a packet whose first segment has reached a node. Returns its slot when the node is its host and it is in
    /// memory.
    #[inline]
    pub(super) fn at(&mut self, now: Instant, node: NodeIndex, slot: u32) -> Option<u32> {
        let flight = self.flights[slot as usize].as_ref()?;
        let to = flight.packet.to;
        if self.topology.interfaces().owner(to) != node {
            if self.topology.is_astray(node, to) {
                self.no_path(now, node, slot);
            } else {
                self.forward(now, node, slot);
            }
            return None;
        }
        self.host_receives(now, slot)
    }

    /// Forwards a packet from a node to its next link, or drops it: no path, too many hops, or larger than the MTU.
    #[inline]
    pub(super) fn forward(&mut self, now: Instant, node: NodeIndex, slot: u32) {
        if !self.routers.is_empty() && self.route(now, node, slot).is_none() {
            return;
        }
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        let next = self
            .topology
            .next(node, flight.packet.to, flight.packet.flow)
            .filter(|_| flight.hops < MOST_HOPS);
        let Some(port) = next else {
            return self.no_path(now, node, slot);
        };
        let direction = &self.directions[port.0 as usize];
        let segments = flight.packet.segments;
        if segments.bytes_of(0) > direction.mtu
            || segments.bytes_of(segments.count - 1) > direction.mtu
        {
            return self.drop_at(now, port, slot, DropReason::TooLarge);
        }
        if segments.count > 1 {
            return self.forward_train(now, node, port, slot);
        }
        flight.hops += 1;
        self.enqueue(now, port, slot);
    }

    /// Gives a packet to the queue before the link, as the kind of link and of queue demands.
    fn enqueue(&mut self, now: Instant, port: PortIndex, slot: u32) {
        if self.directions[port.0 as usize].is_plain {
            return self.queue(now, port, slot);
        }
        if !self.admit(now, port, slot) {
            return;
        }
        let direction = &self.directions[port.0 as usize];
        if direction.cells.is_some() {
            self.enter_cells(now, port, slot);
        } else if direction.holds() {
            self.hold(now, port, slot);
        } else {
            self.queue(now, port, slot);
        }
    }

    /// Drops a packet for which the node has no next link.
    fn no_path(&mut self, now: Instant, node: NodeIndex, slot: u32) {
        let Some(flight) = self.remove(slot) else {
            return;
        };
        self.lost += u64::from(flight.packet.segments.count);
        if T::ON {
            self.tap.record(
                now,
                NetworkLocation::Host(node),
                NetworkEvent::Drop(DropReason::NoPath),
                &flight.packet,
            );
        }
    }

    /// Forwards a train in pieces that the link takes whole. A piece starts so late that the link does not have to wait
    /// for its last segment.
    fn forward_train(&mut self, now: Instant, node: NodeIndex, port: PortIndex, mut slot: u32) {
        loop {
            let Some((whole, each)) = self.largest_piece(now, port, slot) else {
                return;
            };
            let rest = self.cut(slot, whole);
            let Some(flight) = self.flights[slot as usize].as_mut() else {
                return;
            };
            let span = u64::from(flight.packet.segments.count - 1) * each.0;
            let ready = Instant(flight.arrival.last.0.saturating_sub(span));
            if ready > now {
                flight.arrival.first = ready;
                self.events.put(ready, ForwardingEvent::At { node, slot });
            } else {
                flight.hops += 1;
                self.enqueue(now, port, slot);
            }
            let Some(rest) = rest else { return };
            let comes = self.flights[rest as usize]
                .as_ref()
                .map_or(now, |flight| flight.arrival.first);
            if comes > now {
                return self
                    .events
                    .put(comes, ForwardingEvent::At { node, slot: rest });
            }
            slot = rest;
        }
    }

    /// How many of a train's segments may stay together (at most [`GRANULE`] on the link), and the time that each
    /// takes.
    fn largest_piece(&self, now: Instant, port: PortIndex, slot: u32) -> Option<(u32, Duration)> {
        let segments = self.flights[slot as usize].as_ref()?.packet.segments;
        let direction = &self.directions[port.0 as usize];
        let time = direction
            .airtime(now, direction.charged(segments))
            .unwrap_or(Duration::ZERO);
        let each = time.0 / u64::from(segments.count);
        // Where the next node takes packets one by one, they arrive one by one.
        let to = self.topology.edge(port).to;
        let copied = matches!(self.cards.get(to.0 as usize), Some(Some(_)));
        if direction.takes_single_packets() || copied {
            return Some((1, Duration(each)));
        }
        let most = GRANULE
            .0
            .checked_div(each)
            .unwrap_or(u64::MAX)
            .clamp(1, u64::from(segments.count));
        Some((most as u32, Duration(each)))
    }

    /// Cuts a train: the first `at` segments keep the slot; returns the slot of the rest, if there is one.
    pub(super) fn cut(&mut self, slot: u32, at: u32) -> Option<u32> {
        let flight = self.flights[slot as usize].as_mut()?;
        let count = flight.packet.segments.count;
        if at >= count {
            return None;
        }
        let (span, last_port, hops) = (flight.arrival, flight.last_port, flight.hops);
        let admitted = flight.admitted;
        let packet = flight.packet.split(at);
        flight.arrival = TrainSpan {
            first: span.first,
            last: span.at(at - 1, count),
        };
        let arrival = TrainSpan {
            first: span.at(at, count),
            last: span.last,
        };
        Some(self.insert(PacketInTransit {
            last_port,
            hops,
            admitted,
            ..PacketInTransit::new(packet, arrival)
        }))
    }

    /// Sends a packet that leaves the queue during `departure`: segments that the link loses end here, the rest
    /// travels.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        port: PortIndex,
        slot: u32,
        departure: TrainSpan,
        mark: bool,
    ) {
        if T::ON {
            // The packet has been sent already: the length includes it.
            let backlog = if T::LENGTHS {
                self.directions[port.0 as usize].backlog(now)
            } else {
                0
            };
            self.emit(now, port, NetworkEvent::Enqueue(backlog), slot);
        }
        if mark {
            self.mark(now, port, slot);
        }
        self.emit(departure.last, port, NetworkEvent::Dequeue, slot);
        self.lose_or_travel(port, slot, departure);
    }

    /// Drops the segments that the link loses, and lets the pieces between them travel.
    pub(super) fn lose_or_travel(
        &mut self,
        port: PortIndex,
        mut slot: u32,
        mut departure: TrainSpan,
    ) {
        while let Some((index, reason)) = self.first_lost(port, slot, departure) {
            let count = self.flights[slot as usize]
                .as_ref()
                .map_or(1, |flight| flight.packet.segments.count);
            let at = departure.at(index, count);
            let mut victim = slot;
            if index > 0 {
                let Some(rest) = self.cut(slot, index) else {
                    return;
                };
                self.travel(
                    port,
                    slot,
                    TrainSpan {
                        first: departure.first,
                        last: departure.at(index - 1, count),
                    },
                );
                victim = rest;
            }
            let rest = self.cut(victim, 1);
            self.drop_at(at, port, victim, reason);
            let Some(rest) = rest else { return };
            (slot, departure) = (
                rest,
                TrainSpan {
                    first: departure.at(index + 1, count),
                    last: departure.last,
                },
            );
        }
        self.travel(port, slot, departure);
    }

    /// Marks a packet if its sender supports ECN, and counts the mark.
    fn mark(&mut self, now: Instant, port: PortIndex, slot: u32) {
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        if flight.packet.mark() {
            self.directions[port.0 as usize].counters.marked +=
                u64::from(flight.packet.segments.count);
            self.emit(now, port, NetworkEvent::Mark, slot);
        }
    }

    /// The index of the first segment that the link loses, and the reason.
    fn first_lost(
        &mut self,
        port: PortIndex,
        slot: u32,
        departure: TrainSpan,
    ) -> Option<(u32, DropReason)> {
        let direction = &mut self.directions[port.0 as usize];
        if direction.loses_nothing() {
            return None;
        }
        let segments = self.flights[slot as usize].as_ref()?.packet.segments;
        // Drawing ends at the first loss. The rest is drawn in the caller's next round, so each
        // segment is drawn once and in order.
        (0..segments.count).find_map(|index| {
            let at = departure.at(index, segments.count);
            direction
                .lost(at, segments.bytes_of(index))
                .map(|reason| (index, reason))
        })
    }

    /// Lets a packet cross the link: schedules its arrival at the other end, twice if the link duplicates it.
    pub(super) fn travel(&mut self, port: PortIndex, slot: u32, departure: TrainSpan) {
        let direction = &mut self.directions[port.0 as usize];
        let arrival = direction.arrival(departure);
        let duplicated = direction.duplicated();
        let node = self.topology.edge(port).to;
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        (flight.arrival, flight.last_port) = (arrival, Some(port));
        (flight.admitted, flight.translated) = (false, false);
        // A host needs the whole packet; a switch or router begins to forward with the first segment.
        let host = self.topology.interfaces().owner(flight.packet.to);
        let at_host = host == node && (node.0 as usize) < self.cards.len();
        let (at, event): (_, fn(NodeIndex, u32) -> ForwardingEvent) = if at_host {
            (arrival.last, |_, slot| ForwardingEvent::Complete { slot })
        } else {
            (arrival.first, |node, slot| ForwardingEvent::At {
                node,
                slot,
            })
        };
        self.events.put(at, event(node, slot));
        if duplicated {
            let duplicate = PacketInTransit {
                last_port: Some(port),
                hops: flight.hops,
                ..PacketInTransit::new(flight.packet.again(), arrival)
            };
            let duplicate = self.insert(duplicate);
            self.directions[port.0 as usize].counters.duplicated += 1;
            self.emit(arrival.last, port, NetworkEvent::Duplicate, duplicate);
            self.events.put(at, event(node, duplicate));
        }
    }
}
