//! Segments of a TCP connection at the doors (network interfaces) of its hosts: records when bytes left and arrived, what was sent
//! again or lost, and what held their sender up.

use super::stream_state::{LETS_GO_NS, PAUSE_NS, SEGMENT, SendGap};
use super::{Passing, RequestConnection, remember};
use stackline_dissect::segment::DissectedSegment;
use stackline_dissect::stream_holes::is_mended_loss;
use stackline_events::unit_ids::EventStreamDirection;

/// A receiver's window counts as full if there was no room for at least this long, ns.
const FULL_NS: u64 = 200_000;
/// An acknowledgement that takes longer than twice the round trip plus this waited in queues, ns.
const QUEUES_NS: u64 = 5_000_000;
/// The initial congestion window, bytes: what a sender may have in flight before anything is acknowledged (RFC 6928).
const FIRST_WINDOW: u64 = 10 * SEGMENT;
/// A segment that was held back for less than this is not counted as held, ns.
const HELD_NS: u64 = 5_000_000;
/// The most bytes of options that a segment carries instead of data (RFC 9293, 3.1).
const OPTIONS_BYTES: u64 = 40;

/// A segment of at least this many bytes counts as full-sized, whatever options its headers carry.
const WHOLE: u64 = SEGMENT / 10 * 9;

/// A range of bytes of one direction, by stream offsets; `end` is exclusive.
#[derive(Clone, Copy)]
struct ByteRange {
    from: u64,
    end: u64,
}

impl RequestConnection {
    /// A segment with SYN passes: notes the times of the set-up and the window scale.
    pub(super) fn syn(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        passing: Passing,
        segment: &DissectedSegment,
    ) {
        let own = &mut self.directions[direction as usize];
        own.scale = segment.window_scale;
        own.announced = segment.largest_segment.map(u64::from);
        match direction {
            EventStreamDirection::There if passing.leaves => {
                self.syn_again += u64::from(self.syn_ns.is_some());
                self.syn_ns.get_or_insert(at_ns);
            }
            EventStreamDirection::There if self.syn_ns.is_none() && self.ends[0].host.is_none() => {
                self.syn_ns = Some(at_ns)
            }
            EventStreamDirection::Back if passing.arrives && self.established_ns.is_none() => {
                self.established_ns = Some(at_ns);
                // If the SYN was sent again, it is not known which one was answered (Karn and Partridge 1987).
                self.round_trip_ns = self
                    .syn_ns
                    .filter(|_| self.syn_again == 0)
                    .map(|syn| at_ns.saturating_sub(syn));
            }
            EventStreamDirection::Back if passing.leaves => {
                self.syn_acks += 1;
                self.syn_ack_ns = (self.syn_acks == 1).then_some(at_ns);
            }
            _ => {}
        }
    }

    /// The client's first packet after the SYN-ACK arrives: from the SYN-ACK to it is the round trip as the server sees it.
    pub(super) fn hears_client(&mut self, at_ns: u64) {
        if let Some(syn_ack_ns) = self.syn_ack_ns.take() {
            let trip_ns = at_ns.saturating_sub(syn_ack_ns);
            self.round_trip_ns.get_or_insert(trip_ns);
        }
    }

    /// Data leaves its sender's host: notes it as new or sent again, and what held it up before.
    pub(super) fn leaves(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        from: u64,
        end: u64,
        segment: &DissectedSegment,
    ) {
        self.note_pause(at_ns, direction, from, end);
        let other_ack = self.directions[1 - direction as usize].acknowledged;
        let is_small = self.is_small(direction, segment.bytes);
        let own = &mut self.directions[direction as usize];
        if end <= own.left.end() {
            own.again_count += 1;
            let first = own
                .left
                .moment_of(from)
                .map_or(at_ns, |moment| moment.at_ns);
            remember(
                &mut own.again,
                (from, end, at_ns, at_ns.saturating_sub(first)),
                &mut self.left_out,
            );
            return;
        }
        own.largest = own.largest.max(segment.bytes);
        // A small end that leaves right after all data before it was acknowledged, and long after that data left, was held back for
        // the acknowledgement (Nagle 1984, Minshall).
        let before = own.left.whole(from).map(|moment| moment.at_ns);
        // In a long message, any segment waits for the acknowledgements of what is in flight, so only a short burst counts.
        let is_short = end.saturating_sub(own.burst_from) <= FIRST_WINDOW;
        if is_small && !segment.fin {
            own.sends_small(end, other_ack.map_or(0, |(acked, _)| acked));
        }
        if let (Some((acked, acked_ns)), Some(before)) = (other_ack, before)
            && is_short
            && acked >= from
            && is_small
            && at_ns.saturating_sub(acked_ns) <= LETS_GO_NS
            && acked_ns.saturating_sub(before) >= HELD_NS
        {
            remember(&mut own.held, (end, at_ns, before), &mut self.left_out);
        }
        self.note_stall(at_ns, direction, from);
        let own = &mut self.directions[direction as usize];
        // After all the above, which looks at what had left before this segment.
        own.left.pass(end, at_ns, 0);
        if own.is_out_of_room() {
            own.full_since.get_or_insert(at_ns);
        }
    }

    /// Data arrives at its receiver's host. If the sender is not observed and the data fills a hole late, the first copy was lost on
    /// the way and this one is a retransmission.
    pub(super) fn arrives(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        from: u64,
        end: u64,
    ) {
        let is_sender_seen = self.ends[direction as usize].host.is_some();
        // While a hole is open, the wait is for the missing data and not for what the sender writes.
        if !is_sender_seen && !self.directions[direction as usize].arrived.has_hole() {
            self.note_pause(at_ns, direction, from, end);
        }
        let own = &mut self.directions[direction as usize];
        let open_ns = own.holes.pass(from, end, at_ns, &mut self.left_out);
        if let Some(open_ns) = open_ns.filter(|_| !is_sender_seen)
            && is_mended_loss(open_ns, self.round_trip_ns)
        {
            own.late_count += 1;
            remember(
                &mut own.again,
                (from, end, at_ns, open_ns),
                &mut self.left_out,
            );
        }
        if !is_sender_seen && let Some(trip_ns) = self.round_trip_ns {
            self.note_far_sender(at_ns, direction, ByteRange { from, end }, trip_ns);
            self.note_stall(at_ns, direction, from);
        }
        let own = &mut self.directions[direction as usize];
        // After all the above, which looks at what had arrived before this segment.
        own.arrives(at_ns, from, end);
        if !is_sender_seen {
            own.farthest.pass(end, at_ns, 0);
        }
        own.largest = own.largest.max(end - from);
        if !is_sender_seen && own.is_out_of_room() {
            own.full_since.get_or_insert(at_ns);
        }
    }

    /// Whether a segment with that much data is smaller than a full one, so that Nagle's algorithm may hold it back (RFC 9293, 3.7.4).
    /// If the set-up was not seen, the largest segment so far is a full one, and at least one of Ethernet.
    fn is_small(&self, direction: EventStreamDirection, bytes: u64) -> bool {
        let [there, back] = self.directions.each_ref().map(|one| one.announced);
        let largest = self.directions[direction as usize].largest;
        let full = there.zip(back).map(|(there, back)| there.min(back));
        bytes + OPTIONS_BYTES < full.unwrap_or(largest.max(SEGMENT))
    }

    /// New data of a sender that is not observed, which an acknowledgement released one round trip before: the sender had no room in
    /// the window, or held a small end back until all before it was acknowledged.
    fn note_far_sender(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        range: ByteRange,
        trip_ns: u64,
    ) {
        let acknowledged = self.directions[1 - direction as usize].acknowledged;
        let is_small = self.is_small(direction, range.end - range.from);
        let own = &mut self.directions[direction as usize];
        let Some(before) = own
            .farthest
            .whole(range.from)
            .filter(|_| own.farthest.end() == range.from)
        else {
            return;
        };
        let waited_ns = at_ns.saturating_sub(before.at_ns);
        let heard_ns = at_ns.saturating_sub(trip_ns);
        // Before the receiver has announced a window, nothing is known of its room.
        let room_end = own.room.end_before(heard_ns.saturating_sub(LETS_GO_NS));
        let had_no_room =
            room_end.is_some_and(|room_end| !own.has_room_for_more(range.from, room_end));
        if had_no_room && own.full_since.is_none() && waited_ns >= FULL_NS {
            own.full_ns = own.full_ns.saturating_add(waited_ns);
            return remember(&mut own.full, (before.at_ns, at_ns), &mut self.left_out);
        }
        let is_short = range.end.saturating_sub(own.burst_from) <= FIRST_WINDOW;
        if let Some((acked, acked_ns)) = acknowledged
            && is_short
            && is_small
            && acked >= range.from
            && heard_ns.abs_diff(acked_ns) <= LETS_GO_NS
            && acked_ns.saturating_sub(before.at_ns) >= HELD_NS
        {
            remember(
                &mut own.held,
                (range.end, at_ns, before.at_ns),
                &mut self.left_out,
            );
        }
    }

    /// Notes a gap before new data that comes long after its sender could have sent it: the sender had nothing to send. There are
    /// two cases. Either all data before was acknowledged; seen from the receiver, the time that the acknowledgement and the data
    /// took on their way is subtracted. Or no more than the initial window was in flight, and no acknowledgement released the data;
    /// seen from the receiver, such data may just be spaced by a slow path.
    fn note_pause(&mut self, at_ns: u64, direction: EventStreamDirection, from: u64, end: u64) {
        let acknowledged = self.directions[1 - direction as usize].acknowledged;
        let is_sender_seen = self.ends[direction as usize].host.is_some();
        let trip = if is_sender_seen {
            Some(0)
        } else {
            self.round_trip_ns
        };
        let own = &mut self.directions[direction as usize];
        let passed = own.passed();
        let (Some(before), Some(trip)) = (passed.whole(from), trip) else {
            return;
        };
        if passed.end() != from || own.full_since.is_some() {
            return;
        }
        let let_go = |(_, acked_ns): (u64, u64)| acked_ns.saturating_add(trip);
        let idle_since = acknowledged
            .filter(|(up_to, _)| *up_to >= from)
            .map(|acked| let_go(acked).max(before.at_ns.saturating_add(trip)));
        let has_begun_from = match acknowledged {
            Some((up_to, _)) if is_sender_seen => up_to.max(own.burst_from),
            _ => own.burst_from,
        };
        let is_let_go =
            acknowledged.is_some_and(|acked| at_ns.abs_diff(let_go(acked)) <= LETS_GO_NS);
        let waited_ns = at_ns.saturating_sub(before.at_ns);
        let is_idle = idle_since.is_some_and(|since| at_ns.saturating_sub(since) >= PAUSE_NS);
        // A pacing sender spaces full-sized segments too, as BBR does on a path with little capacity.
        let is_whole = end.saturating_sub(from) >= own.largest.clamp(1, WHOLE);
        let may_be_spaced = !is_idle && (!is_sender_seen || is_whole);
        let is_spaced = may_be_spaced && own.spacing.is_regular(waited_ns);
        own.spacing.add(waited_ns);
        let is_beginning = end.saturating_sub(has_begun_from) <= FIRST_WINDOW && !is_spaced;
        let free_since =
            (is_beginning && !is_let_go && own.again.is_empty()).then_some(before.at_ns);
        let since = free_since.into_iter().chain(idle_since).min();
        let had_room = own.full.back().map_or(0, |(_, until)| *until);
        // Until the last release by an acknowledgement, the wait was the stack's and not the program's.
        let last_let_go = acknowledged.map_or(0, let_go).min(at_ns).max(before.at_ns);
        let gap = SendGap {
            end,
            since_ns: since.unwrap_or(last_let_go).max(had_room),
            until_ns: at_ns,
            is_pause: since.is_some(),
            awaited_ns: 0,
            travelled_ns: 0,
        };
        let gap = self.part_answered_gap(direction, gap);
        let own = &mut self.directions[direction as usize];
        if at_ns.saturating_sub(gap.since_ns) >= PAUSE_NS && (gap.is_pause || !is_let_go) {
            if gap.is_pause {
                own.burst_from = from;
            }
            remember(&mut own.gaps, gap, &mut self.left_out);
        }
    }

    /// Splits a gap within a request during which the other end said something: the sender waited for that message (`awaited_ns`),
    /// and one round trip of the gap is travel time (`travelled_ns`).
    fn part_answered_gap(&self, direction: EventStreamDirection, gap: SendGap) -> SendGap {
        let is_sender_seen = self.ends[direction as usize].host.is_some();
        let trip_ns = self.round_trip_ns.or(self.least_ack_ns).unwrap_or(0);
        // With several open exchanges it is not known to which of them the other end's message belongs.
        let is_alone =
            self.open.len() == 1 && self.open.values().all(|open| open.asks == direction);
        let said = self.directions[1 - direction as usize].passed();
        let said_ns = said
            .end()
            .checked_sub(1)
            .and_then(|last| said.moment_of(last))
            .map(|moment| moment.at_ns)
            .filter(|said_ns| is_alone && *said_ns > gap.since_ns && *said_ns <= gap.until_ns);
        let Some(said_ns) = said_ns else { return gap };
        let waited_ns = said_ns - gap.since_ns;
        let behind_ns = gap.until_ns - said_ns;
        // Seen at the sender, the round trip lies before the other end's message; seen at the receiver, behind it.
        let (awaited_ns, travelled_ns) = match is_sender_seen {
            true => (waited_ns.saturating_sub(trip_ns), waited_ns.min(trip_ns)),
            false => (waited_ns, behind_ns.min(trip_ns)),
        };
        SendGap {
            awaited_ns,
            travelled_ns,
            ..gap
        }
    }

    /// Whether no data of either direction waits for its acknowledgement.
    fn is_all_acknowledged(&self) -> bool {
        let mut sent = self.directions.iter().zip([1, 0]);
        sent.all(|(sent, other)| {
            let known = self.directions[other].acknowledged;
            let end = sent.left.end().max(sent.farthest.end());
            known.map_or(end == 0, |(up_to, _)| up_to >= end)
        })
    }

    /// A side acknowledges data of the other direction and announces its window, at the door where the data's sender hears it.
    pub(super) fn acknowledged(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        segment: &DissectedSegment,
    ) {
        let scaled = self.directions.iter().all(|one| one.scale.is_some());
        let behind = self.directions[1 - direction as usize].position;
        let Some(up_to) = segment
            .acknowledged
            .and_then(|number| behind?.offset(number))
        else {
            return;
        };
        let own = &mut self.directions[direction as usize];
        let is_news = own.acknowledged.is_none_or(|(known, _)| up_to > known);
        let is_old = own.acknowledged.is_some_and(|(known, _)| up_to < known);
        if is_news {
            own.acknowledged = Some((up_to, at_ns));
        }
        if self.is_all_acknowledged() {
            self.quiet.all_acknowledged(at_ns);
        }
        let sent = &self.directions[1 - direction as usize];
        // Of data that was sent again it is not known which copy was acknowledged (Karn and Partridge 1987).
        let is_new = is_news && sent.again.back().is_none_or(|(_, end, ..)| *end < up_to);
        if self.round_trip_ns.is_none()
            && is_new
            && let Some(left) = sent.left.whole(up_to)
        {
            let took = at_ns.saturating_sub(left.at_ns);
            self.least_ack_ns = Some(self.least_ack_ns.map_or(took, |least| least.min(took)));
        }
        let is_receiver_seen = self.ends[direction as usize].host.is_some();
        let is_sender_seen = self.ends[1 - direction as usize].host.is_some();
        if !is_receiver_seen && let Some(trip_ns) = self.round_trip_ns.or(self.least_ack_ns) {
            let ahead = segment.selectively_acknowledged;
            let ahead = ahead.and_then(|number| behind?.offset(number)).unwrap_or(0);
            let sent = &mut self.directions[1 - direction as usize];
            if is_news {
                sent.drop_needless(up_to, at_ns, trip_ns);
            }
            let farthest = &mut sent.farthest;
            farthest.pass(ahead.max(up_to), at_ns.saturating_sub(trip_ns), 0);
        }
        let own = &mut self.directions[direction as usize];
        let shift = if segment.syn || !scaled {
            0
        } else {
            own.scale.unwrap_or(0)
        };
        let window = u64::from(segment.window) << shift.min(14);
        let is_zero = window == 0 && !segment.syn && !segment.reset;
        let sent = &mut self.directions[1 - direction as usize];
        sent.zero_windows += u64::from(is_zero && !std::mem::replace(&mut sent.is_zero, is_zero));
        // An old acknowledgement that arrives out of order says nothing new. The SYN-ACK announces the first window.
        if !is_old {
            // The window scale is only in the SYNs: without them the window is unknown, except zero, which is zero at any scale.
            let is_known = !self.midway || window == 0;
            sent.room_end = is_known.then_some(up_to.saturating_add(window));
            if !is_sender_seen && let Some(room_end) = sent.room_end {
                sent.room.pass(room_end, at_ns, 0);
            }
        }
        match (sent.is_out_of_room(), sent.full_since) {
            (true, None) => sent.full_since = Some(at_ns),
            (false, Some(since)) => self.ends_full(at_ns, direction, since, up_to, is_news),
            _ => {}
        }
    }

    /// The receiver of the other direction has room again, which it had not since `since`, ns: counts that time as a full window.
    fn ends_full(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        since: u64,
        up_to: u64,
        is_news: bool,
    ) {
        let sent = &mut self.directions[1 - direction as usize];
        sent.full_since = None;
        // An acknowledgement that queues delay would be late with any window: then the path is the limit.
        let took = sent
            .passed()
            .whole(up_to)
            .map(|moment| at_ns.saturating_sub(moment.at_ns));
        let trip = self
            .round_trip_ns
            .map(|trip| trip.saturating_mul(2).saturating_add(QUEUES_NS));
        let in_time = took.zip(trip).is_some_and(|(took, trip)| took <= trip);
        let full_ns = at_ns.saturating_sub(since);
        // A mere update of the window shows that the window was the limit.
        if full_ns >= FULL_NS && (!is_news || in_time) {
            sent.full_ns = sent.full_ns.saturating_add(full_ns);
            self.quiet.restart(at_ns);
            remember(&mut sent.full, (since, at_ns), &mut self.left_out);
        }
    }
}
