//! What a router does to a packet before its next link: it counts the hop, asks its tables, translates addresses, cuts
//! what is too large or reports it. An error that it reports is a packet of its own, which queues like any other.

use super::router::{AtRouter, NetworkRouter, RouterRefusal, simulated_flow};
use super::{ForwardingEvent, PacketInTransit, PacketNetwork};
use crate::link_direction::TrainSpan;
use crate::packet::{
    EcnMarking, NetworkPacket, NodeIndex, PacketPayload, SegmentSizes, host_address,
};
use crate::routed_packet::{FlowSide, RouterIcmpError};
use crate::tap::{DropReason, NetworkEvent, NetworkLocation, PortIndex, Tap};
use stackline_core::network::MOST_HOPS;
use stackline_core::time::Instant;

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// The router at that node.
    #[inline]
    pub(super) fn router(&self, node: NodeIndex) -> Option<&NetworkRouter> {
        self.routers.get(node.0 as usize)?.as_deref()
    }

    /// Does a router's work on a packet that is to be forwarded; at any other node nothing. `None` when the packet goes
    /// no further in this form: it was refused, or cut into fragments, which are on their way.
    pub(super) fn route(&mut self, now: Instant, node: NodeIndex, slot: u32) -> Option<()> {
        if self.router(node).is_none() {
            return Some(());
        }
        let flight = self.flights[slot as usize].as_ref()?;
        let (admitted, packet) = (flight.admitted, &flight.packet);
        let bytes = packet.segments.bytes_of(0);
        let mtu = match bytes > self.least_mtu {
            true => self.mtu_from(node, packet.to, packet.flow),
            false => u64::MAX,
        };
        if !admitted {
            // The error quotes the packet as its sender knows it: before its addresses are translated.
            let header = packet.payload.routed_header();
            if bytes > mtu && header.is_some_and(|header| header.ttl > 1 && !header.may_fragment) {
                self.too_large(now, node, slot, mtu);
                return None;
            }
            if let Err(refusal) = self.admit_at_router(now, node, slot) {
                self.refuse(now, node, slot, refusal);
                return None;
            }
        }
        if bytes > mtu {
            self.too_large(now, node, slot, mtu);
            return None;
        }
        Some(())
    }

    /// Counts the hop of a packet and passes it through the router's tables.
    fn admit_at_router(
        &mut self,
        now: Instant,
        node: NodeIndex,
        slot: u32,
    ) -> Result<(), RouterRefusal> {
        let gone = RouterRefusal {
            reason: DropReason::NoPath,
            error: None,
        };
        let edges = &self.topology;
        let flight = self.flights[slot as usize].as_mut().ok_or(gone)?;
        let header = flight.packet.payload.routed_header();
        let expired = match header {
            Some(header) => header.ttl <= 1,
            None => flight.hops >= MOST_HOPS,
        };
        if expired {
            return Err(RouterRefusal {
                reason: DropReason::TtlExpired,
                error: Some(RouterIcmpError::TimeExceeded),
            });
        }
        let NetworkPacket { from, to, flow, .. } = flight.packet;
        let Some(port) = edges.next(node, to, flow) else {
            return Err(RouterRefusal {
                reason: DropReason::NoPath,
                error: Some(RouterIcmpError::NetUnreachable),
            });
        };
        let at_router = AtRouter {
            header,
            flow: match header {
                Some(header) => header.flow,
                None => Some(simulated_flow(host_address(from), host_address(to), flow)),
            },
            came_from: flight.last_port.map(|port| edges.edge(port).from),
            goes_to: edges.edge(port).to,
            translated: flight.translated,
        };
        let router = self
            .routers
            .get_mut(node.0 as usize)
            .and_then(Option::as_mut);
        let translation = router.ok_or(gone)?.admit(now, &at_router)?;
        let packet = &mut flight.packet;
        packet.payload.count_down();
        if let Some((side, end)) = translation {
            packet.payload.translate(side, end);
        }
        flight.admitted = true;
        Ok(())
    }

    /// The largest packet that gets from a router to the next router or to the host: switches between cannot report.
    fn mtu_from(&self, node: NodeIndex, to: NodeIndex, flow: u32) -> u64 {
        let mut mtu = u64::MAX;
        let mut at = node;
        let host = self.topology.interfaces().owner(to);
        for _ in 0..MOST_HOPS {
            let Some(port) = self.topology.next(at, to, flow) else {
                break;
            };
            mtu = mtu.min(self.directions[port.0 as usize].mtu);
            at = self.topology.edge(port).to;
            if at == host || self.router(at).is_some() {
                break;
            }
        }
        mtu
    }

    /// Cuts a packet that is too large for the way on and forwards its fragments, or drops it and reports that.
    fn too_large(&mut self, now: Instant, node: NodeIndex, mut slot: u32, mtu: u64) {
        loop {
            // Each segment of a train is a packet of its own here.
            let rest = self.cut(slot, 1);
            if !self.forward_fragments(now, node, slot, mtu) {
                if let Some(rest) = rest {
                    self.drop_at_router(now, node, rest, DropReason::TooLarge);
                }
                let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
                let refusal = RouterRefusal {
                    reason: DropReason::TooLarge,
                    error: Some(RouterIcmpError::FragmentationNeeded { mtu }),
                };
                return self.refuse(now, node, slot, refusal);
            }
            let Some(next) = rest else { return };
            let comes = self.flights[next as usize].as_ref();
            let comes = comes.map_or(now, |flight| flight.arrival.first);
            if comes > now {
                let event = ForwardingEvent::At { node, slot: next };
                return self.events.put(comes, event);
            }
            slot = next;
        }
    }

    /// Forwards a packet of one segment in fragments of at most `mtu` bytes. Returns false if it may not be cut.
    fn forward_fragments(&mut self, now: Instant, node: NodeIndex, slot: u32, mtu: u64) -> bool {
        let mut slot = slot;
        let mut cut = false;
        loop {
            let Some(flight) = self.flights[slot as usize].as_mut() else {
                return true;
            };
            if flight.packet.bytes() <= mtu {
                self.forward(now, node, slot);
                return true;
            }
            let Some(parts) = flight.packet.payload.fragment(mtu) else {
                // What cannot be cut further was never to be cut.
                if cut {
                    self.drop_at_router(now, node, slot, DropReason::TooLarge);
                }
                return cut;
            };
            cut = true;
            flight.packet.segments = SegmentSizes::one(parts.first_bytes);
            let rest = PacketInTransit {
                last_port: flight.last_port,
                hops: flight.hops,
                admitted: true,
                ..PacketInTransit::new(
                    NetworkPacket {
                        segments: SegmentSizes::one(parts.rest_bytes),
                        payload: parts.rest,
                        ..flight.packet
                    },
                    flight.arrival,
                )
            };
            let rest = self.insert(rest);
            self.forward(now, node, slot);
            slot = rest;
        }
    }

    /// Drops a packet at a router, and sends the error about it to its source.
    fn refuse(&mut self, now: Instant, node: NodeIndex, slot: u32, refusal: RouterRefusal) {
        // The error quotes one packet, not a train of them.
        if let Some(rest) = self.cut(slot, 1) {
            self.drop_at_router(now, node, rest, refusal.reason);
        }
        let report = refusal
            .error
            .and_then(|error| self.report_of(now, node, slot, error));
        self.drop_at_router(now, node, slot, refusal.reason);
        if let Some(report) = report {
            self.send_own(now, node, report);
        }
    }

    /// The error about a packet, addressed to its source; `None` when none may be sent.
    fn report_of(
        &mut self,
        now: Instant,
        node: NodeIndex,
        slot: u32,
        error: RouterIcmpError,
    ) -> Option<NetworkPacket<P>> {
        let packet = &self.flights[slot as usize].as_ref()?.packet;
        let header = packet.payload.routed_header()?;
        let router = self.routers.get_mut(node.0 as usize)?.as_mut()?;
        let to = self.topology.interfaces().node_at(header.source);
        let to = to.filter(|to| *to != node)?;
        if router.silent || !header.may_report || !router.limit.allows(now, to, error) {
            return None;
        }
        let (payload, bytes) = packet.payload.icmp_error(error, router.address)?;
        Some(own_packet(node, to, packet.flow, bytes, payload))
    }

    /// Handles a packet for a router's own address: a translated one goes on, any other is answered or ends here.
    pub(super) fn router_receives(&mut self, now: Instant, node: NodeIndex, slot: u32) {
        let nodes = self.topology.interfaces();
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return;
        };
        let came_from = flight.last_port.map(|port| self.topology.edge(port).from);
        let router = self
            .routers
            .get_mut(node.0 as usize)
            .and_then(Option::as_mut);
        if let (Some(router), Some(header)) = (router, flight.packet.payload.routed_header())
            && let Some((side, end)) = router.translate_inward(now, came_from, &header)
            && let Some(to) = nodes.node_at(end.address)
        {
            debug_assert_eq!(side, FlowSide::Destination);
            flight.packet.payload.translate(side, end);
            flight.packet.to = to;
            flight.translated = true;
            return self.forward(now, node, slot);
        }
        let Some(flight) = self.remove(slot) else {
            return;
        };
        if T::ON {
            let place = NetworkLocation::Host(node);
            self.tap
                .record(now, place, NetworkEvent::Deliver, &flight.packet);
        }
        let answer = self.router(node).filter(|router| !router.silent);
        let answer = answer.and_then(|router| flight.packet.payload.router_answer(router.address));
        if let Some((payload, bytes)) = answer {
            let NetworkPacket { from, flow, .. } = flight.packet;
            let to = flight.packet.payload.routed_header();
            let to = to
                .and_then(|header| self.topology.interfaces().node_at(header.source))
                .unwrap_or(from);
            self.send_own(now, node, own_packet(node, to, flow, bytes, payload));
        }
    }

    /// Sends a packet of a router's own on its way.
    fn send_own(&mut self, now: Instant, node: NodeIndex, mut packet: NetworkPacket<P>) {
        self.accepted += 1;
        packet.number = self.accepted;
        let arrival = TrainSpan {
            first: now,
            last: now,
        };
        let slot = self.insert(PacketInTransit {
            admitted: true,
            ..PacketInTransit::new(packet, arrival)
        });
        self.forward(now, node, slot);
    }

    /// Drops a packet at a router. It counts at the direction that it came over, or at the one that it is too large for.
    fn drop_at_router(&mut self, now: Instant, node: NodeIndex, slot: u32, reason: DropReason) {
        let Some(flight) = self.remove(slot) else {
            return;
        };
        let NetworkPacket { to, flow, .. } = flight.packet;
        let count = u64::from(flight.packet.segments.count);
        let port = match reason {
            DropReason::NoPath => None,
            DropReason::TooLarge => self.topology.next(node, to, flow),
            _ => flight.last_port,
        };
        match port {
            Some(PortIndex(port)) => self.directions[port as usize].count_drop(reason, count),
            None => self.lost += count,
        }
        if T::ON {
            let place = NetworkLocation::Host(node);
            self.tap
                .record(now, place, NetworkEvent::Drop(reason), &flight.packet);
        }
    }
}

/// A packet that a router sends of its own.
const fn own_packet<P>(
    from: NodeIndex,
    to: NodeIndex,
    flow: u32,
    bytes: u32,
    payload: P,
) -> NetworkPacket<P> {
    NetworkPacket {
        number: 0,
        from,
        to,
        flow,
        ecn: EcnMarking::NotCapable,
        dscp: 0,
        segments: SegmentSizes::one(bytes),
        payload,
    }
}
