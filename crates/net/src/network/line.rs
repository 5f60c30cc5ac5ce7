//! Waiting before a link: computed at arrival, or by slot where the discipline decides at departure.

use super::{Event, Network};
use crate::direction::{Offer, Span};
use crate::packet::{Ecn, Payload, Segments};
use crate::seen::{Happening, Port, Reason, Tap};
use stackline_core::time::Instant;

/// What becomes of neighbouring segments of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Leaves { mark: bool },
    Refused(Reason),
}

impl<P: Payload, T: Tap<P>> Network<P, T> {
    /// Offers a packet to a queue that decides at arrival: whole where nothing can happen to a part of it.
    #[inline]
    pub(super) fn queue(&mut self, now: Instant, port: Port, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else { return };
        let (segments, arrival) = (flight.packet.segments, flight.arrival);
        let arrival = Span { first: now, last: arrival.last.max(now) };
        match self.directions[port.0 as usize].send_whole(arrival, segments) {
            Some(departure) => self.depart(now, port, slot, departure, false),
            None => self.queue_by_segment(now, port, slot, segments, arrival),
        }
    }

    /// Each segment is offered when it arrives; neighbours of one fate stay together.
    fn queue_by_segment(&mut self, now: Instant, port: Port, mut slot: u32, segments: Segments, arrival: Span) {
        let mut run: Option<(Fate, Span, u32)> = None;
        for index in 0..segments.count {
            let at = arrival.at(index, segments.count).max(now);
            let (fate, leaves) = self.offer(at, port, slot, segments.bytes_of(index));
            run = match run {
                Some((same, span, count)) if same == fate => Some((same, Span { last: leaves, ..span }, count + 1)),
                Some((before, span, count)) => {
                    let Some(rest) = self.cut(slot, count) else { return };
                    self.settle_run(now, port, slot, before, span);
                    slot = rest;
                    Some((fate, Span { first: leaves, last: leaves }, 1))
                }
                None => Some((fate, Span { first: leaves, last: leaves }, 1)),
            };
        }
        if let Some((fate, span, _)) = run {
            self.settle_run(now, port, slot, fate, span);
        }
    }

    fn offer(&mut self, at: Instant, port: Port, slot: u32, bytes: u64) -> (Fate, Instant) {
        let can_mark = self.flights[slot as usize].as_ref().is_some_and(|f| f.packet.ecn != Ecn::NotCapable);
        let direction = &mut self.directions[port.0 as usize];
        let pool = direction.pool.and_then(|pool| self.pools.get_mut(pool));
        match direction.offer(at, bytes, can_mark, pool) {
            Offer::Leaves(departure, mark) => (Fate::Leaves { mark }, departure),
            Offer::Refused(reason) => (Fate::Refused(reason), at),
        }
    }

    fn settle_run(&mut self, now: Instant, port: Port, slot: u32, fate: Fate, span: Span) {
        match fate {
            Fate::Leaves { mark } => self.depart(now, port, slot, span, mark),
            Fate::Refused(reason) => self.drop_at(span.last, port, slot, reason),
        }
    }

    /// Lets a packet wait by its slot in a queue that decides at departure.
    pub(super) fn hold(&mut self, now: Instant, port: Port, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else { return };
        let (flow, bytes) = (flight.packet.flow, flight.packet.bytes());
        let direction = &mut self.directions[port.0 as usize];
        if let Some(pool) = direction.pool.and_then(|pool| self.pools.get_mut(pool)) {
            while !pool.take(now, bytes) {
                // Who drops at the head makes room by what it holds itself.
                let Some((oldest, freed)) = direction.displace() else {
                    self.displaced.push(slot);
                    break;
                };
                pool.release(now, freed);
                self.displaced.push(oldest);
            }
        }
        let mut refused = false;
        while let Some(gone) = self.displaced.pop() {
            refused |= gone == slot;
            let reason = if gone == slot { Reason::PoolFull } else { Reason::Displaced };
            self.drop_at(now, port, gone, reason);
        }
        if refused {
            return;
        }
        let direction = &mut self.directions[port.0 as usize];
        let condemned = &mut self.condemned;
        direction.hold(now, flow, bytes, slot, |slot, reason| condemned.push((slot, reason)));
        if T::ON {
            let backlog = direction.backlog(now);
            self.tell(now, port, Happening::Enqueue(backlog), slot);
        }
        self.drop_condemned(now, port);
        if !self.directions[port.0 as usize].attended {
            self.serve(now, port);
        }
    }

    fn drop_condemned(&mut self, now: Instant, port: Port) {
        while let Some((slot, reason)) = self.condemned.pop() {
            let bytes = self.flights[slot as usize].as_ref().map_or(0, |flight| flight.packet.bytes());
            self.unpool(now, port, bytes);
            self.drop_at(now, port, slot, reason);
        }
    }

    fn unpool(&mut self, at: Instant, port: Port, bytes: u64) {
        let pool = self.directions[port.0 as usize].pool;
        if let Some(pool) = pool.and_then(|pool| self.pools.get_mut(pool)) {
            pool.release(at, bytes);
        }
    }

    /// Sends the next of those that wait, and sees to it that somebody comes for the one after.
    pub(super) fn serve(&mut self, now: Instant, port: Port) {
        loop {
            let direction = &mut self.directions[port.0 as usize];
            direction.attended = direction.has_waiting() && direction.free_at > now;
            if direction.attended {
                let free = direction.free_at;
                return self.agenda.put(free, Event::Free { port });
            }
            let Some(slot) = self.pull(now, port) else { return };
            let Some(segments) = self.flights[slot as usize].as_ref().map(|flight| flight.packet.segments) else {
                return;
            };
            let departure = self.directions[port.0 as usize].send(now, segments);
            self.unpool(departure.last, port, segments.bytes());
            self.tell(departure.last, port, Happening::Dequeue, slot);
            self.lose_or_travel(port, slot, departure);
        }
    }

    /// The next that may leave; those that stood too long are marked or dropped on the way to it.
    fn pull(&mut self, now: Instant, port: Port) -> Option<u32> {
        let direction = &mut self.directions[port.0 as usize];
        let (marks, flights, condemned) = (direction.marks(), &mut self.flights, &mut self.condemned);
        let mut marked = 0;
        let slot = direction.release(now, |slot| {
            let may = marks && flights[slot as usize].as_mut().is_some_and(|flight| flight.packet.mark());
            if may {
                marked += 1;
            } else {
                condemned.push((slot, Reason::CoDel));
            }
            may
        });
        direction.mishaps.marked += marked;
        self.drop_condemned(now, port);
        if marked > 0
            && let Some(slot) = slot
        {
            self.tell(now, port, Happening::Mark, slot);
        }
        slot
    }
}
