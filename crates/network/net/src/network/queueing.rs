//! Queues before links. A discipline that decides at arrival (drop-tail, RED, PIE) gets a departure computed at once;
//! one that decides at departure (all others) holds packets by their slot. Before either, a link's entry rules act.

use super::{ForwardingEvent, PacketNetwork};
use crate::entry_rules::EntryVerdict;
use crate::link_direction::{QueueDecision, TrainSpan};
use crate::packet::{EcnMarking, PacketPayload, SegmentSizes};
use crate::queue_kind::WaitingPacket;
use crate::tap::{DropReason, NetworkEvent, PortIndex, Tap};
use stackline_core::time::Instant;

/// The decision for a run of neighbouring segments of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrainDecision {
    Leaves { mark: bool },
    Refused(DropReason),
}

impl<P: PacketPayload, T: Tap<P>> PacketNetwork<P, T> {
    /// Applies the rules before a link's queue to a packet; false if they drop it.
    pub(super) fn admit(&mut self, now: Instant, port: PortIndex, slot: u32) -> bool {
        let Some(flight) = self.flights[slot as usize].as_mut() else {
            return false;
        };
        match self.directions[port.0 as usize].admit(now, flight.packet.segments) {
            EntryVerdict::Enters => {}
            EntryVerdict::Remarked(dscp) => flight.packet.remark(dscp),
            EntryVerdict::Dropped => {
                self.drop_at(now, port, slot, DropReason::Policed);
                return false;
            }
        }
        true
    }

    /// Offers a packet to a queue that decides at arrival: as a whole if none of its segments can be treated
    /// differently.
    #[inline]
    pub(super) fn queue(&mut self, now: Instant, port: PortIndex, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else {
            return;
        };
        let (segments, arrival) = (flight.packet.segments, flight.arrival);
        let arrival = TrainSpan {
            first: now,
            last: arrival.last.max(now),
        };
        match self.directions[port.0 as usize].send_whole(arrival, segments) {
            Some(departure) => self.depart(now, port, slot, departure, false),
            None => self.queue_by_segment(now, port, slot, segments, arrival),
        }
    }

    /// Offers each segment at its arrival; neighbouring segments with the same outcome stay together.
    fn queue_by_segment(
        &mut self,
        now: Instant,
        port: PortIndex,
        mut slot: u32,
        segments: SegmentSizes,
        arrival: TrainSpan,
    ) {
        let mut run: Option<(TrainDecision, TrainSpan, u32)> = None;
        for index in 0..segments.count {
            let at = arrival.at(index, segments.count).max(now);
            let (outcome, leaves) = self.offer(at, port, slot, segments.bytes_of(index));
            run = match run {
                Some((same, span, count)) if same == outcome => Some((
                    same,
                    TrainSpan {
                        last: leaves,
                        ..span
                    },
                    count + 1,
                )),
                Some((before, span, count)) => {
                    let Some(rest) = self.cut(slot, count) else {
                        return;
                    };
                    self.settle_run(now, port, slot, before, span);
                    slot = rest;
                    Some((
                        outcome,
                        TrainSpan {
                            first: leaves,
                            last: leaves,
                        },
                        1,
                    ))
                }
                None => Some((
                    outcome,
                    TrainSpan {
                        first: leaves,
                        last: leaves,
                    },
                    1,
                )),
            };
        }
        if let Some((outcome, span, _)) = run {
            self.settle_run(now, port, slot, outcome, span);
        }
    }

    /// Offers one segment; returns the decision, and the departure or the instant of the drop.
    fn offer(
        &mut self,
        at: Instant,
        port: PortIndex,
        slot: u32,
        bytes: u64,
    ) -> (TrainDecision, Instant) {
        let can_mark = self.flights[slot as usize]
            .as_ref()
            .is_some_and(|f| f.packet.ecn != EcnMarking::NotCapable);
        let direction = &mut self.directions[port.0 as usize];
        let shared_buffer = direction
            .shared_buffer
            .and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer));
        match direction.offer(at, bytes, can_mark, shared_buffer) {
            QueueDecision::Leaves(departure, mark) => (TrainDecision::Leaves { mark }, departure),
            QueueDecision::Refused(reason) => (TrainDecision::Refused(reason), at),
        }
    }

    /// Carries out the decision for a run of segments.
    fn settle_run(
        &mut self,
        now: Instant,
        port: PortIndex,
        slot: u32,
        outcome: TrainDecision,
        span: TrainSpan,
    ) {
        match outcome {
            TrainDecision::Leaves { mark } => self.depart(now, port, slot, span, mark),
            TrainDecision::Refused(reason) => self.drop_at(span.last, port, slot, reason),
        }
    }

    /// Queues a packet by its slot, where the discipline decides at departure. Makes room in the switch's shared buffer
    /// first.
    pub(super) fn hold(&mut self, now: Instant, port: PortIndex, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else {
            return;
        };
        let bytes = flight.packet.bytes();
        let packet = WaitingPacket {
            slot,
            flow: flight.packet.flow,
            dscp: flight.packet.dscp,
            ecn: flight.packet.ecn,
            bytes,
        };
        let direction = &mut self.directions[port.0 as usize];
        if let Some(shared_buffer) = direction
            .shared_buffer
            .and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer))
        {
            while !shared_buffer.take(now, bytes) {
                // A queue that drops at its head makes room from its own packets.
                let Some((oldest, freed)) = direction.displace() else {
                    self.displaced.push(slot);
                    break;
                };
                shared_buffer.release(now, freed);
                self.displaced.push(oldest);
            }
        }
        let mut refused = false;
        while let Some(gone) = self.displaced.pop() {
            refused |= gone == slot;
            let reason = if gone == slot {
                DropReason::SharedBufferFull
            } else {
                DropReason::Displaced
            };
            self.drop_at(now, port, gone, reason);
        }
        if refused {
            return;
        }
        let direction = &mut self.directions[port.0 as usize];
        let to_drop = &mut self.to_drop;
        direction.hold(now, packet, |slot, reason| to_drop.push((slot, reason)));
        if T::ON {
            let backlog = direction.backlog(now);
            self.emit(now, port, NetworkEvent::Enqueue(backlog), slot);
        }
        // Behind the event: the new packet may be among the dropped, and the event reads it.
        self.drop_marked_slots(now, port);
        if !self.directions[port.0 as usize].send_scheduled {
            self.serve(now, port);
        }
    }

    /// Drops the packets that the queue has put on the list `to_drop`, and frees their bytes in the shared buffer.
    fn drop_marked_slots(&mut self, now: Instant, port: PortIndex) {
        while let Some((slot, reason)) = self.to_drop.pop() {
            let bytes = self.flights[slot as usize]
                .as_ref()
                .map_or(0, |flight| flight.packet.bytes());
            self.release_shared_buffer(now, port, bytes);
            self.drop_at(now, port, slot, reason);
        }
    }

    /// Frees bytes of the shared buffer that this port uses, if there is one.
    fn release_shared_buffer(&mut self, at: Instant, port: PortIndex, bytes: u64) {
        let shared_buffer = self.directions[port.0 as usize].shared_buffer;
        if let Some(shared_buffer) =
            shared_buffer.and_then(|shared_buffer| self.shared_buffers.get_mut(shared_buffer))
        {
            shared_buffer.release(at, bytes);
        }
    }

    /// Sends waiting packets while the link is free, and schedules the call for the next one.
    pub(super) fn serve(&mut self, now: Instant, port: PortIndex) {
        loop {
            let direction = &mut self.directions[port.0 as usize];
            direction.send_scheduled = direction.has_waiting() && direction.free_at > now;
            if direction.send_scheduled {
                let free = direction.free_at;
                return self.events.put(free, ForwardingEvent::Free { port });
            }
            let Some(slot) = self.pull(now, port) else {
                return;
            };
            let Some(segments) = self.flights[slot as usize]
                .as_ref()
                .map(|flight| flight.packet.segments)
            else {
                return;
            };
            let departure = self.directions[port.0 as usize].send(now, segments);
            self.release_shared_buffer(departure.last, port, segments.bytes());
            self.emit(departure.last, port, NetworkEvent::Dequeue, slot);
            self.lose_or_travel(port, slot, departure);
        }
    }

    /// Takes the next packet that may leave. Packets before it that waited too long are marked or dropped.
    fn pull(&mut self, now: Instant, port: PortIndex) -> Option<u32> {
        let direction = &mut self.directions[port.0 as usize];
        let (marks, flights, to_drop) = (direction.marks(), &mut self.flights, &mut self.to_drop);
        let (mut marked, lateness) = (0, direction.lateness());
        let slot = direction.release(now, |slot, may_mark| {
            let may = marks
                && may_mark.0
                && flights[slot as usize]
                    .as_mut()
                    .is_some_and(|flight| flight.packet.mark());
            if may {
                marked += 1;
            } else {
                to_drop.push((slot, lateness));
            }
            may
        });
        direction.counters.marked += marked;
        self.drop_marked_slots(now, port);
        // A packet that was marked is the one returned, so there is at most one.
        if marked > 0
            && let Some(slot) = slot
        {
            self.emit(now, port, NetworkEvent::Mark, slot);
        }
        slot
    }
}
