//! One connection: its packets at the doors of its hosts and its bytes at their sockets, to exchanges and their times.
//!
//! It sees a packet perhaps twice, where it leaves and where it arrives. What is said is reported at one of the two doors only, in the
//! order in which it passed there.

mod finished_exchange;
mod stream_state;
mod transfer_account;

use crate::exchange::{Exchange, ExchangeEnd, ExchangeMessage};
use crate::stream_progress::{StreamPointProgress, late_ns};
use stackline_dissect::conversation::connection::Conversation;
use stackline_dissect::conversation::tls::session_secrets::Secrets;
use stackline_dissect::conversation::{
    DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_NAME, RESET_BEFORE, UNANSWERED,
    is_unanswered,
};
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::segment::DissectedSegment;
use stackline_dissect::sequence_position::Position;
use stackline_dissect::stream_holes::is_mended_loss;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::RedactedName;
use std::collections::{BTreeMap, VecDeque};
use stream_state::RequestStreamState;
use transfer_account::QuietTime;
pub use transfer_account::TransferAccount;

/// Repetitions and waits of one direction that are remembered.
const MOST_REMEMBERED: usize = Bound::Repeated.most();
/// Exchanges that go on. When there are so many, those that are whole are reported without waiting for what sockets and far doors report.
const MOST_OPEN: usize = Bound::Open.most();
/// Of those that are whole, as many of the latest go on waiting.
const GO_ON: usize = MOST_OPEN / 2;
/// Why nothing more is known of one that was reported before it was whole.
const TOO_MANY_OPEN: &str = "more than 8,192 requests were open on its connection";
/// A name that has at most so many bytes less than there is room for may have been cut: letters have up to four.
const LETTER: usize = 3;
/// An exchange is over so long after its last byte: what sockets did comes later than packets.
const SETTLES_NS: u64 = 500_000_000;
/// An answer that its reader leaves for this long is not waited for.
const LIES_UNREAD_NS: u64 = 30_000_000_000;
/// Nor is it where so many wait: then it is not seen how they are read.
const MOST_UNREAD: usize = Bound::Unread.most();
/// The window of a receiver is full for so long, at least.
const FULL_NS: u64 = 200_000;
/// An acknowledgement that is later than twice the round trip and this waited in queues.
const QUEUES_NS: u64 = 5_000_000;
/// Bytes of a whole segment where larger ones are split on their way.
const SEGMENT: u64 = 1460;
/// Data smaller than this share of the largest segment is an end that may be held back for its acknowledgement.
const SMALL: u64 = 2;
/// A pause shorter than this is none.
const PAUSE_NS: u64 = 1_000_000;
/// A hold shorter than this is none.
const HELD_NS: u64 = 5_000_000;
/// An acknowledgement lets data go that leaves within this.
const LETS_GO_NS: u64 = 2_000_000;

/// How a packet passes a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passing {
    /// It leaves the host of its sender.
    pub(crate) leaves: bool,
    /// It arrives at the host of its receiver; both, where they are one.
    pub(crate) arrives: bool,
    /// What is said is reported here.
    pub(crate) is_dissected: bool,
}

/// An exchange that goes on.
#[derive(Debug)]
struct OpenRequestExchange {
    kind: ExchangeKind,
    asks: EventStreamDirection,
    begins: [Option<u64>; 2],
    ends: [Option<u64>; 2],
    name: RedactedName,
    status: RedactedName,
    parts: u64,
    void: Option<&'static str>,
    over_ns: u64,
}

impl OpenRequestExchange {
    /// Whether all was said that will be, as far as it is known.
    fn is_whole(&self) -> bool {
        self.ends[1].is_some()
            || self.void.is_some()
            || (self.kind == ExchangeKind::OneWay && self.ends[0].is_some())
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct RequestConnection {
    pub(crate) flow: u32,
    /// Who opened it, and who was connected to.
    pub(crate) ends: [ExchangeEnd; 2],
    /// The host between them that sees it, where it is seen at neither.
    pub(crate) seen_at: Option<usize>,
    /// Where what is said is reported.
    dissected_at: Option<usize>,
    conversation: Conversation,
    ways: [RequestStreamState; 2],
    open: BTreeMap<u64, OpenRequestExchange>,
    /// Behind the highest number of an exchange.
    next: u64,
    pub(crate) left_out: LeftOut,
    /// The first packet at its sender's door, and when it was sent again.
    pub(crate) syn_ns: Option<u64>,
    syn_again: u64,
    established_ns: Option<u64>,
    round_trip_ns: Option<u64>,
    /// The quickest acknowledgement of data that was sent once: where the set-up was not seen, a round trip is no longer.
    least_ack_ns: Option<u64>,
    pub(crate) lookup: Option<(u64, u64)>,
    handshake: Option<(u64, u64)>,
    /// No exchange but set-ups has ended.
    is_first: bool,
    /// Something that was asked on it was answered.
    has_answers: bool,
    first_ns: u64,
    quiet: QuietTime,
    /// It was there before anybody looked.
    pub(crate) midway: bool,
    pub(crate) last_ns: u64,
    pub(crate) reset: bool,
    /// Sockets of both ends are watched.
    pub(crate) sockets: [bool; 2],
}

impl RequestConnection {
    pub(crate) fn new(
        flow: u32,
        ends: [ExchangeEnd; 2],
        midway: bool,
        secrets: Option<Secrets>,
    ) -> Self {
        let port = ends[1].address.port();
        Self {
            flow,
            ends,
            seen_at: None,
            dissected_at: None,
            conversation: Conversation::new(port)
                .begun_before(midway)
                .with_secrets(secrets),
            ways: Default::default(),
            open: BTreeMap::new(),
            next: 0,
            left_out: LeftOut::default(),
            syn_ns: None,
            syn_again: 0,
            established_ns: None,
            round_trip_ns: None,
            least_ack_ns: None,
            lookup: None,
            handshake: None,
            is_first: true,
            has_answers: false,
            first_ns: 0,
            quiet: QuietTime::default(),
            midway,
            last_ns: 0,
            reset: false,
            sockets: [false; 2],
        }
    }

    // --- packets ---

    /// Whether what passes at a host is reported there: at the server's where that sees it from the beginning, else where it is first
    /// seen. `None`: it is of no use.
    pub(crate) fn is_dissected_at(&mut self, host: usize, between: bool) -> Option<bool> {
        if between && self.seen_at != Some(host) {
            return None;
        }
        let nothing_yet = || self.ways.iter().all(|way| way.dissected_end == 0);
        if self.dissected_at.is_none() || (self.ends[1].host == Some(host) && nothing_yet()) {
            self.dissected_at = Some(host);
        }
        Some(self.dissected_at == Some(host))
    }

    /// A segment of one direction passes a door. Exchanges are `done` where too many go on.
    pub(crate) fn segment(
        &mut self,
        at_ns: u64,
        way: EventStreamDirection,
        passing: Passing,
        segment: &DissectedSegment,
        bytes: &[u8],
        done: &mut Vec<Exchange>,
    ) {
        self.last_ns = self.last_ns.max(at_ns);
        if self.first_ns == 0 {
            self.first_ns = at_ns;
        }
        self.reset |= segment.reset;
        if segment.fin || segment.reset {
            let own = &mut self.ways[way as usize];
            own.closed_ns.get_or_insert(at_ns);
            own.reset_ns = own.reset_ns.or(segment.reset.then_some(at_ns));
        }
        if segment.syn {
            self.syn(at_ns, way, passing, segment);
        }
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let own = &mut self.ways[way as usize];
        let position = own.position.get_or_insert_with(|| Position::new(first));
        let from = position.offset(first).unwrap_or(0);
        let end = from.saturating_add(segment.bytes);
        position.advance(end);
        let acknowledged = self.ways[1 - way as usize]
            .acknowledged
            .map(|(up_to, _)| up_to);
        let is_data =
            segment.bytes > 0 && !self.ways[way as usize].is_probe(from, end, acknowledged);
        if passing.is_dissected && is_data {
            let own = &self.ways[way as usize];
            let is_new = end > own.left.end().max(own.arrived.progress().end());
            self.quiet.end(at_ns, way, is_new);
        }
        if passing.leaves && is_data {
            self.leaves(at_ns, way, from, end, segment);
        }
        if passing.arrives && is_data {
            self.arrives(at_ns, way, from, end);
        }
        // Where the other host is not watched, its door is here.
        if passing.arrives || (passing.is_dissected && self.ends[1 - way as usize].host.is_none()) {
            self.acknowledged(at_ns, way, segment);
        }
        if passing.is_dissected {
            let found = self.dissect_segment(way, from, end, segment, bytes);
            self.take(found, done);
        }
    }

    fn syn(
        &mut self,
        at_ns: u64,
        way: EventStreamDirection,
        passing: Passing,
        segment: &DissectedSegment,
    ) {
        self.ways[way as usize].scale = segment.window_scale;
        match way {
            EventStreamDirection::There if passing.leaves => {
                self.syn_again += u64::from(self.syn_ns.is_some());
                self.syn_ns.get_or_insert(at_ns);
            }
            EventStreamDirection::There if self.syn_ns.is_none() && self.ends[0].host.is_none() => {
                self.syn_ns = Some(at_ns)
            }
            EventStreamDirection::Back if passing.arrives && self.established_ns.is_none() => {
                self.established_ns = Some(at_ns);
                // Of one that was sent again it is not known which was answered (Karn and Partridge 1987).
                self.round_trip_ns = self
                    .syn_ns
                    .filter(|_| self.syn_again == 0)
                    .map(|syn| at_ns.saturating_sub(syn));
            }
            _ => {}
        }
    }

    fn leaves(
        &mut self,
        at_ns: u64,
        way: EventStreamDirection,
        from: u64,
        end: u64,
        segment: &DissectedSegment,
    ) {
        self.note_pause(at_ns, way, from, end);
        let other_ack = self.ways[1 - way as usize].acknowledged;
        let own = &mut self.ways[way as usize];
        if end <= own.left.end() {
            own.again_count += 1;
            let first = own.left.of(from).map_or(at_ns, |moment| moment.at_ns);
            remember(
                &mut own.again,
                (from, end, at_ns, at_ns.saturating_sub(first)),
                &mut self.left_out,
            );
            return;
        }
        own.largest = own.largest.max(segment.bytes);
        // A small end that leaves right behind the acknowledgement of all before it was held back for it, if what was before
        // left long ago (Nagle 1984, Minshall).
        let before = own.left.whole(from).map(|moment| moment.at_ns);
        if let (Some((acked, acked_ns)), Some(before)) = (other_ack, before)
            && acked >= from
            && segment.bytes * SMALL < own.largest.max(1460)
            && at_ns.saturating_sub(acked_ns) <= LETS_GO_NS
            && acked_ns.saturating_sub(before) >= HELD_NS
        {
            remember(&mut own.held, (end, at_ns, before), &mut self.left_out);
        }
        own.left.pass(end, at_ns, 0);
        if own.is_out_of_room() {
            own.full_since.get_or_insert(at_ns);
        }
    }

    /// Data arrives. What fills a hole late was lost where nobody looks, and sent again.
    fn arrives(&mut self, at_ns: u64, way: EventStreamDirection, from: u64, end: u64) {
        let is_sender_seen = self.ends[way as usize].host.is_some();
        if !is_sender_seen {
            self.note_pause(at_ns, way, from, end);
        }
        let own = &mut self.ways[way as usize];
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
        own.arrives(at_ns, from, end);
        own.largest = own.largest.max(end - from);
        if !is_sender_seen && own.is_out_of_room() {
            own.full_since.get_or_insert(at_ns);
        }
    }

    /// New data that comes long after all before it was acknowledged: its sender had nothing to send. Seen from its receiver, the
    /// acknowledgement and the data were on their way meanwhile.
    fn note_pause(&mut self, at_ns: u64, way: EventStreamDirection, from: u64, end: u64) {
        let Some((up_to, acked_ns)) = self.ways[1 - way as usize].acknowledged else {
            return;
        };
        let trip = match self.ends[way as usize].host {
            Some(_) => Some(0),
            None => self.round_trip_ns,
        };
        let own = &mut self.ways[way as usize];
        let passed = if own.left.end() > 0 {
            &own.left
        } else {
            own.arrived.progress()
        };
        let (Some(before), Some(trip)) = (passed.whole(from), trip) else {
            return;
        };
        let had_room = own.full.back().map_or(0, |(_, until)| *until);
        let since = acked_ns
            .max(before.at_ns)
            .max(had_room)
            .saturating_add(trip);
        let is_free = up_to >= from && own.full_since.is_none();
        if passed.end() == from && is_free && at_ns.saturating_sub(since) >= PAUSE_NS {
            remember(&mut own.pauses, (end, since, at_ns), &mut self.left_out);
        }
    }

    fn dissect_segment(
        &mut self,
        way: EventStreamDirection,
        from: u64,
        end: u64,
        segment: &DissectedSegment,
        bytes: &[u8],
    ) -> Vec<DissectorEvent> {
        let mut found = Vec::new();
        let own = &mut self.ways[way as usize];
        if segment.bytes > 0 {
            // What lies behind a hole is not reported yet.
            own.dissected_end = if from <= own.dissected_end {
                own.dissected_end.max(end)
            } else {
                own.dissected_end
            };
            let captured = &bytes[..bytes
                .len()
                .min(usize::try_from(segment.bytes).unwrap_or(usize::MAX))];
            self.conversation
                .segment(way, from, captured, segment.bytes, &mut found);
        }
        let behind = self.ways[1 - way as usize].position;
        if let Some(up_to) = segment
            .acknowledged
            .and_then(|number| behind?.offset(number))
        {
            self.ways[1 - way as usize].dissected_end =
                self.ways[1 - way as usize].dissected_end.max(up_to);
            self.conversation
                .acknowledged(other(way), up_to, &mut found);
        }
        if segment.fin || segment.reset {
            // Behind an end there is nothing; the end itself has a sequence number.
            if !std::mem::replace(&mut self.ways[way as usize].finished, true) {
                self.conversation.end(way, end, &mut found);
            }
            if segment.reset {
                let sent = self.ways[1 - way as usize].left.end();
                self.conversation.cut(way, end, &mut found);
                self.conversation.cut(other(way), sent, &mut found);
            }
        }
        found
    }

    /// A side says what it has of the other direction, and how much it has room for: here its sender hears it.
    fn acknowledged(&mut self, at_ns: u64, way: EventStreamDirection, segment: &DissectedSegment) {
        let scaled = self.ways.iter().all(|way| way.scale.is_some());
        let behind = self.ways[1 - way as usize].position;
        let Some(up_to) = segment
            .acknowledged
            .and_then(|number| behind?.offset(number))
        else {
            return;
        };
        let own = &mut self.ways[way as usize];
        let is_news = own.acknowledged.is_none_or(|(known, _)| up_to > known);
        let is_old = own.acknowledged.is_some_and(|(known, _)| up_to < known);
        if is_news {
            own.acknowledged = Some((up_to, at_ns));
        }
        let sent = &self.ways[1 - way as usize];
        // Of what was sent again it is not known which was acknowledged (Karn and Partridge 1987).
        let is_new = is_news && sent.again.back().is_none_or(|(_, end, ..)| *end < up_to);
        if self.round_trip_ns.is_none()
            && is_new
            && let Some(left) = sent.left.whole(up_to)
        {
            let took = at_ns.saturating_sub(left.at_ns);
            self.least_ack_ns = Some(self.least_ack_ns.map_or(took, |least| least.min(took)));
        }
        let own = &mut self.ways[way as usize];
        let shift = if segment.syn || !scaled {
            0
        } else {
            own.scale.unwrap_or(0)
        };
        let window = u64::from(segment.window) << shift.min(14);
        let is_zero = window == 0 && !segment.syn && !segment.reset;
        let sent = &mut self.ways[1 - way as usize];
        sent.zero_windows += u64::from(is_zero && !std::mem::replace(&mut sent.is_zero, is_zero));
        let sent = &mut self.ways[1 - way as usize];
        // What comes out of its turn says nothing new.
        if !segment.syn && !is_old {
            // How the window is scaled is said at the beginning alone; none is none.
            let is_known = !self.midway || window == 0;
            sent.room_end = is_known.then_some(up_to.saturating_add(window));
        }
        match (sent.is_out_of_room(), sent.full_since) {
            (true, None) => sent.full_since = Some(at_ns),
            (false, Some(since)) => {
                sent.full_since = None;
                // An acknowledgement that comes late because of queues would come late with any window: then the way is the limit.
                let passed = if sent.left.end() > 0 {
                    &sent.left
                } else {
                    sent.arrived.progress()
                };
                let took = passed
                    .whole(up_to)
                    .map(|moment| at_ns.saturating_sub(moment.at_ns));
                let trip = self
                    .round_trip_ns
                    .map(|trip| trip.saturating_mul(2).saturating_add(QUEUES_NS));
                let in_time = took.zip(trip).is_some_and(|(took, trip)| took <= trip);
                if at_ns.saturating_sub(since) >= FULL_NS && (!is_news || in_time) {
                    sent.full_ns = sent.full_ns.saturating_add(at_ns.saturating_sub(since));
                    self.quiet.restart(at_ns);
                    remember(&mut sent.full, (since, at_ns), &mut self.left_out);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, found: Vec<DissectorEvent>, done: &mut Vec<Exchange>) {
        for found in found {
            match found {
                DissectorEvent::Begins {
                    exchange,
                    role,
                    kind,
                    side,
                    at,
                } => {
                    if self.open.len() >= MOST_OPEN && !self.open.contains_key(&exchange) {
                        self.make_room(done);
                    }
                    self.begins(exchange, role, kind, side, at);
                }
                DissectorEvent::LeftOut(bound, count) => self.left_out.add(bound, count),
                DissectorEvent::Named {
                    exchange,
                    role,
                    name,
                } => {
                    self.left_out.add(
                        Bound::Name,
                        u64::from(
                            name.kept().len().max(name.whole().len()) + LETTER >= LONGEST_NAME,
                        ),
                    );
                    if let Some(open) = self.open.get_mut(&exchange) {
                        *if role == ExchangeRole::Request {
                            &mut open.name
                        } else {
                            &mut open.status
                        } = name;
                    }
                }
                DissectorEvent::Part { exchange, .. } => {
                    self.open.entry(exchange).and_modify(|open| open.parts += 1);
                }
                DissectorEvent::Ends {
                    exchange, role, at, ..
                } => {
                    let last_ns = self.last_ns;
                    self.open.entry(exchange).and_modify(|open| {
                        open.ends[role as usize] = Some(at);
                        open.over_ns = last_ns;
                    });
                }
                DissectorEvent::Void { exchange, why } => {
                    let last_ns = self.last_ns;
                    self.open.entry(exchange).and_modify(|open| {
                        open.void = Some(why);
                        open.over_ns = last_ns;
                    });
                }
            }
        }
    }

    fn begins(
        &mut self,
        exchange: u64,
        role: ExchangeRole,
        kind: ExchangeKind,
        side: EventStreamDirection,
        at: u64,
    ) {
        let asks = if role == ExchangeRole::Request {
            side
        } else {
            other(side)
        };
        if exchange < self.next && !self.open.contains_key(&exchange) {
            return; // It was reported already.
        }
        self.next = self.next.max(exchange.saturating_add(1));
        let open = self
            .open
            .entry(exchange)
            .or_insert_with(|| OpenRequestExchange {
                kind,
                asks,
                begins: [None; 2],
                ends: [None; 2],
                name: RedactedName::default(),
                status: RedactedName::default(),
                parts: 0,
                void: None,
                over_ns: self.last_ns,
            });
        open.begins[role as usize].get_or_insert(at);
    }

    // --- sockets ---

    /// What was written up to an offset by the program of one end.
    pub(crate) fn wrote(&mut self, end: EventStreamDirection, up_to: u64, at_ns: u64, thread: u32) {
        self.sockets[end as usize] = true;
        self.ways[end as usize].written.pass(up_to, at_ns, thread);
    }

    /// What the program of one end has read of the other's direction.
    pub(crate) fn has_read(
        &mut self,
        end: EventStreamDirection,
        up_to: u64,
        at_ns: u64,
        thread: u32,
    ) {
        self.sockets[end as usize] = true;
        self.ways[1 - end as usize].read.pass(up_to, at_ns, thread);
    }

    /// The same of a socket that was there before, `count` bytes since somebody counts. What has left was written, and what is read
    /// has arrived: once both agree, it is known where counting began.
    pub(crate) fn counted(
        &mut self,
        end: EventStreamDirection,
        wrote: bool,
        count: u64,
        at_ns: u64,
        thread: u32,
    ) {
        let way = &mut self.ways[if wrote {
            end as usize
        } else {
            1 - end as usize
        }];
        let seen = if wrote {
            way.left.end()
        } else {
            way.arrived.progress().end()
        };
        let from = seen
            .cast_signed()
            .saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
        let known = &mut way.counted_from[usize::from(wrote)];
        if known.is_none() {
            let progress = if wrote {
                &mut way.written
            } else {
                &mut way.read
            };
            progress.begin_at(from.max(0).unsigned_abs());
        }
        let from = *known.insert(known.map_or(from, |known| {
            if wrote {
                known.max(from)
            } else {
                known.min(from)
            }
        }));
        let up_to = from.saturating_add_unsigned(count).max(0).unsigned_abs();
        match wrote {
            true => self.wrote(end, up_to, at_ns, thread),
            false => self.has_read(end, up_to, at_ns, thread),
        }
    }

    // --- exchanges ---

    /// Exchanges that are over by now; `all`: the others too, as far as they came.
    pub(crate) fn over(&mut self, now_ns: u64, all: bool, done: &mut Vec<Exchange>) {
        if all {
            let mut found = Vec::new();
            self.conversation.finish(&mut found);
            self.take(found, done);
        }
        let is_behind = self.is_behind();
        let settled = |open: &OpenRequestExchange| {
            let after = if !is_behind && self.is_unread(open) {
                LIES_UNREAD_NS
            } else {
                SETTLES_NS
            };
            open.is_whole() && open.over_ns.saturating_add(after) <= now_ns
        };
        let over: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| all || settled(open))
            .map(|(at, _)| *at)
            .collect();
        self.finish_exchanges(over, is_behind && !all, done);
    }

    /// What no exchange that goes on needs.
    fn forget(&mut self) {
        for way in [EventStreamDirection::There, EventStreamDirection::Back] {
            let needed = self.open.values().filter_map(|open| {
                let role = if open.asks == way {
                    ExchangeRole::Request
                } else {
                    ExchangeRole::Response
                };
                open.begins[role as usize]
            });
            let own = &mut self.ways[way as usize];
            // Of bytes that left, some may not have been reported yet.
            let needed = needed.min().unwrap_or(u64::MAX).min(own.dissected_end);
            own.left.forget(needed);
            own.arrived.forget(needed);
            own.written.forget(needed);
            own.read.forget(needed);
            while own.again.front().is_some_and(|(_, end, ..)| *end <= needed) {
                own.again.pop_front();
            }
            for ends in [&mut own.held, &mut own.pauses] {
                while ends.front().is_some_and(|(end, ..)| *end <= needed) {
                    ends.pop_front();
                }
            }
        }
    }

    /// Whether both sides have said all they will.
    pub(crate) fn is_over(&self) -> bool {
        self.reset || self.ways.iter().all(|way| way.finished)
    }

    /// Whether packets of only one side were seen.
    pub(crate) fn is_one_way(&self) -> bool {
        self.ways.iter().any(|way| way.position.is_none())
    }

    /// Whether any was reported.
    pub(crate) fn has_data(&self) -> bool {
        self.ways.iter().any(|way| way.dissected_end > 0)
    }

    /// What was left out of it, as there was more than is kept.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut left_out = self.left_out.clone();
        for way in &self.ways {
            way.arrived.left_out(&mut left_out);
            [&way.left, &way.written, &way.read]
                .into_iter()
                .for_each(|progress| progress.left_out(&mut left_out));
        }
        left_out
    }

    /// Bytes of it that no capture saw.
    pub(crate) fn lost(&self) -> u64 {
        self.conversation.lost()
    }
}

/// The other direction.
const fn other(way: EventStreamDirection) -> EventStreamDirection {
    match way {
        EventStreamDirection::There => EventStreamDirection::Back,
        EventStreamDirection::Back => EventStreamDirection::There,
    }
}

fn remember<T>(queue: &mut VecDeque<T>, what: T, left_out: &mut LeftOut) {
    if queue.len() >= MOST_REMEMBERED {
        queue.pop_front();
        left_out.add(Bound::Repeated, 1);
    }
    queue.push_back(what);
}

#[cfg(test)]
mod tests;
