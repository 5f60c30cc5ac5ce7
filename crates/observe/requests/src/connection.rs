//! One TCP connection: turns its packets at the doors of its hosts and the bytes at their sockets into exchanges and their times. A
//! door is the network interface at which packets leave or enter a host.
//!
//! A packet may be seen twice: where it leaves and where it arrives. Its contents are parsed (dissected) at one of the two doors
//! only, in the order in which they passed there.

mod doors;
mod finished_exchange;
mod loss_waits;
mod open_exchange;
mod send_stalls;
mod stream_state;
mod transfer_account;

use crate::exchange::{Exchange, ExchangeEnd, ExchangeMessage};
use crate::goodput_series::GoodputSeries;
use crate::observation_end::ObservationEnd;
use crate::quiet_time::QuietTime;
use crate::stream_progress::{StreamPointProgress, late_ns};
pub(crate) use finished_exchange::part_from_idle_set_up;
use open_exchange::{OpenRequestExchange, OpenRequestExchanges};
use stackline_dissect::conversation::connection::Conversation;
use stackline_dissect::conversation::tls::session_secrets::Secrets;
use stackline_dissect::conversation::{
    DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_NAME, RESET_BEFORE, UNANSWERED,
    is_unanswered,
};
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::segment::DissectedSegment;
use stackline_dissect::sequence_position::Position;
use stackline_events::traceparent::Traceparent;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::RedactedName;
use std::collections::{BTreeMap, VecDeque};
use stream_state::RequestStreamState;
pub use transfer_account::TransferAccount;

/// The reason for a missing answer where neither side had ended the connection.
pub(crate) const UNDER_WAY: &str = "it was under way when the trace ended";

/// The most retransmissions and waits that are remembered of each kind and direction.
const MOST_REMEMBERED: usize = Bound::Repeated.most();
/// The most exchanges that may be open on a connection. At that number, complete exchanges are reported without waiting for what
/// sockets and the far door still report.
const MOST_OPEN: usize = Bound::Open.most();
/// That many of the latest open exchanges stay open when room is made.
const GO_ON: usize = MOST_OPEN / 2;
/// The reason for an exchange that was reported before it was complete.
const TOO_MANY_OPEN: &str = "more than 8,192 requests were open on its connection";
/// A name at most this many bytes shorter than the longest possible one may have been cut: a character of UTF-8 has up to four
/// bytes, so up to three may be left free.
const LETTER: usize = 3;
/// An exchange is reported this long after its last byte, ns: socket events come later than packets.
const SETTLES_NS: u64 = 500_000_000;
/// The open exchanges of a connection are checked no more often than this, ns.
const LOOKS_NS: u64 = 50_000_000;
/// For an answer that has arrived and is not read, this long is waited, ns.
const LIES_UNREAD_NS: u64 = 30_000_000_000;
/// If more exchanges than this are open, reading is not waited for at all: how their answers are read is not known then.
const MOST_UNREAD: usize = Bound::Unread.most();

/// How a packet passes a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passing {
    /// Whether it leaves the host of its sender.
    pub(crate) leaves: bool,
    /// Whether it arrives at the host of its receiver. Both are true on a loopback, where sender and receiver are on one host.
    pub(crate) arrives: bool,
    /// Whether its contents are parsed at this door.
    pub(crate) is_dissected: bool,
}

/// One TCP connection and the exchanges on it.
#[derive(Debug)]
pub(crate) struct RequestConnection {
    /// The number of the connection.
    pub(crate) flow: u32,
    /// Who opened it, and who was connected to.
    pub(crate) ends: [ExchangeEnd; 2],
    /// The observed host that forwards its packets, if neither end is on an observed host.
    pub(crate) seen_at: Option<usize>,
    /// The host at whose door its contents are parsed.
    dissected_at: Option<usize>,
    /// The parser of what both sides say.
    conversation: Conversation,
    /// The state of each direction, indexed by [`EventStreamDirection`].
    directions: [RequestStreamState; 2],
    /// Exchanges that are not reported yet.
    open: OpenRequestExchanges,
    /// One more than the highest exchange number so far.
    next: u64,
    pub(crate) left_out: LeftOut,
    /// When the first SYN left the client, ns; if the client is not observed, when it was first seen.
    pub(crate) syn_ns: Option<u64>,
    /// How often the SYN was sent again.
    syn_again: u64,
    /// When the SYN-ACK arrived at the client, ns.
    established_ns: Option<u64>,
    /// When the SYN-ACK left the server, ns; `None` if it was sent more than once, or once the client's next packet has arrived.
    syn_ack_ns: Option<u64>,
    /// How often the SYN-ACK left the server.
    syn_acks: u64,
    /// The round trip of the set-up, ns.
    round_trip_ns: Option<u64>,
    /// The shortest time from data to its acknowledgement, of data that was sent once, ns. If the set-up was not seen, it is an
    /// upper bound of the round trip.
    least_ack_ns: Option<u64>,
    /// From the first DNS question before the connection to the last answer, ns.
    pub(crate) lookup: Option<(u64, u64)>,
    /// From the first to the last byte of handshakes (TLS, login) on it, ns.
    handshake: Option<(u64, u64)>,
    /// Whether no call on it has been reported yet. The first call gets the times of the set-up.
    is_first: bool,
    /// Whether a call on it was answered or given up.
    has_answers: bool,
    /// When its first packet was seen, ns; 0 before.
    first_ns: u64,
    /// When its open exchanges are checked next, ns.
    looks_at_ns: u64,
    quiet: QuietTime,
    /// The goodput of both directions.
    goodput: [GoodputSeries; 2],
    /// Whether it existed before the observation began.
    pub(crate) midway: bool,
    /// When its latest packet was seen, ns.
    pub(crate) last_ns: u64,
    /// Whether a side has reset it.
    pub(crate) reset: bool,
    /// The moment from which the observer itself ends programs.
    pub(crate) observation_end: ObservationEnd,
    /// Whether it was open when that moment came.
    pub(crate) is_cut_by_observer: bool,
    /// For each end, whether calls at its socket are seen.
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
            directions: Default::default(),
            open: OpenRequestExchanges::default(),
            next: 0,
            left_out: LeftOut::default(),
            syn_ns: None,
            syn_again: 0,
            established_ns: None,
            syn_ack_ns: None,
            syn_acks: 0,
            round_trip_ns: None,
            least_ack_ns: None,
            lookup: None,
            handshake: None,
            is_first: true,
            has_answers: false,
            first_ns: 0,
            looks_at_ns: 0,
            quiet: QuietTime::default(),
            goodput: Default::default(),
            midway,
            last_ns: 0,
            reset: false,
            observation_end: ObservationEnd::default(),
            is_cut_by_observer: false,
            sockets: [false; 2],
        }
    }

    // --- packets ---

    /// Whether packets are parsed at a host's door: at the server's if that sees the connection from its beginning, else at the door
    /// that saw it first. `None`: the packet is of no use, as it passes between two ends that are seen themselves.
    pub(crate) fn is_dissected_at(&mut self, host: usize, between: bool) -> Option<bool> {
        if between && self.seen_at != Some(host) {
            return None;
        }
        let nothing_yet = || {
            self.directions
                .iter()
                .all(|direction| direction.dissected_end == 0)
        };
        if self.dissected_at.is_none() || (self.ends[1].host == Some(host) && nothing_yet()) {
            self.dissected_at = Some(host);
        }
        Some(self.dissected_at == Some(host))
    }

    /// A segment of one direction passes a door. If too many exchanges are open, some are moved to `done`.
    pub(crate) fn segment(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
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
        let ends = segment.fin || segment.reset;
        if ends && self.observation_end.has_come_by(at_ns) {
            self.is_cut_by_observer |= !self.is_closed();
        } else if ends {
            let own = &mut self.directions[direction as usize];
            own.closed_ns.get_or_insert(at_ns);
            own.reset_ns = own.reset_ns.or(segment.reset.then_some(at_ns));
        }
        if ends && passing.arrives {
            self.directions[direction as usize]
                .end_arrived_ns
                .get_or_insert(at_ns);
        }
        if segment.syn {
            self.syn(at_ns, direction, passing, segment);
        } else if passing.arrives && direction == EventStreamDirection::There {
            self.hears_client(at_ns);
        }
        // A SYN takes the number before the first byte.
        let first = segment.sequence.wrapping_add(u32::from(segment.syn));
        let own = &mut self.directions[direction as usize];
        let position = own.position.get_or_insert_with(|| Position::new(first));
        let from = position.offset(first).unwrap_or(0);
        let end = from.saturating_add(segment.bytes);
        position.advance(end);
        let acknowledged = self.directions[1 - direction as usize]
            .acknowledged
            .map(|(up_to, _)| up_to);
        let is_data = segment.bytes > 0
            && !self.directions[direction as usize].is_probe(from, end, acknowledged);
        // Before the two below, which move on what it compares with.
        if passing.is_dissected && is_data {
            self.data_passes(at_ns, direction, end, passing.leaves);
        }
        if passing.leaves && is_data {
            self.leaves(at_ns, direction, from, end, segment);
        }
        if passing.arrives && is_data {
            self.arrives(at_ns, direction, from, end);
        }
        // If the other host is not observed, its acknowledgements count as heard at this door.
        if passing.arrives
            || (passing.is_dissected && self.ends[1 - direction as usize].host.is_none())
        {
            self.acknowledged(at_ns, direction, segment);
        }
        // Parsed last: an exchange that this segment ends needs the times noted above.
        if passing.is_dissected {
            let found = self.dissect_segment(direction, from, end, segment, bytes);
            self.take(found, done);
        }
    }

    /// Data up to `end` passes the door at which it is parsed; `leaves`: that of its sender.
    fn data_passes(&mut self, at_ns: u64, direction: EventStreamDirection, end: u64, leaves: bool) {
        let own = &self.directions[direction as usize];
        // At the receiver's door the sender's may have seen it before.
        let is_new = match leaves {
            true => end > own.left.end(),
            false => end > own.farthest.end().max(own.arrived.progress().end()),
        };
        self.quiet.end(at_ns, direction, is_new, self.round_trip_ns);
        // Of a connection with answers no account is written (`transfer_account`).
        if !self.has_answers {
            self.goodput[direction as usize].reach(at_ns, end);
        }
    }

    /// Gives a segment to the parser and returns what it found.
    fn dissect_segment(
        &mut self,
        direction: EventStreamDirection,
        from: u64,
        end: u64,
        segment: &DissectedSegment,
        bytes: &[u8],
    ) -> Vec<DissectorEvent> {
        let mut found = Vec::new();
        let own = &mut self.directions[direction as usize];
        if segment.bytes > 0 {
            // The parser holds back bytes behind a hole.
            own.dissected_end = if from <= own.dissected_end {
                own.dissected_end.max(end)
            } else {
                own.dissected_end
            };
            let captured = &bytes[..bytes
                .len()
                .min(usize::try_from(segment.bytes).unwrap_or(usize::MAX))];
            self.conversation
                .segment(direction, from, captured, segment.bytes, &mut found);
        }
        let behind = self.directions[1 - direction as usize].position;
        if let Some(up_to) = segment
            .acknowledged
            .and_then(|number| behind?.offset(number))
        {
            self.directions[1 - direction as usize].dissected_end = self.directions
                [1 - direction as usize]
                .dissected_end
                .max(up_to);
            self.conversation
                .acknowledged(other(direction), up_to, &mut found);
        }
        if segment.fin || segment.reset {
            // No byte follows a FIN or RST; it takes a sequence number itself, so the end is given to the parser once.
            if !std::mem::replace(&mut self.directions[direction as usize].finished, true) {
                self.conversation.end(direction, end, &mut found);
            }
            if segment.reset {
                let sent = self.directions[1 - direction as usize].left.end();
                self.conversation.cut(direction, end, &mut found);
                self.conversation.cut(other(direction), sent, &mut found);
            }
        }
        found
    }

    /// Applies what the parser found to the open exchanges.
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
                    if self.open.len() >= MOST_OPEN && !self.open.contains(exchange) {
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
                    self.open.name(exchange, role, name);
                }
                DissectorEvent::GoesOn { exchange, of } => self.open.join(exchange, of),
                DissectorEvent::InTrace { exchange, context } => {
                    self.open
                        .change(exchange, |open| open.context = Some(context));
                }
                DissectorEvent::Part { exchange, .. } => {
                    self.open.change(exchange, |open| open.parts += 1);
                }
                DissectorEvent::Ends {
                    exchange, role, at, ..
                } => self.open.end(exchange, role, at, self.last_ns),
                DissectorEvent::Void { exchange, why } => {
                    self.open.void(exchange, why, self.last_ns);
                }
            }
        }
    }

    /// The first byte of a message is at stream offset `at`, from `side`.
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
        if exchange < self.next && !self.open.contains(exchange) {
            return; // It was reported already.
        }
        self.next = self.next.max(exchange.saturating_add(1));
        self.open.begin(exchange, role, at, || {
            OpenRequestExchange::new(kind, asks, self.last_ns)
        });
    }

    // --- sockets ---

    /// The program of one end wrote the bytes up to offset `up_to`.
    pub(crate) fn wrote(&mut self, end: EventStreamDirection, up_to: u64, at_ns: u64, thread: u32) {
        self.sockets[end as usize] = true;
        self.directions[end as usize]
            .written
            .pass(up_to, at_ns, thread);
    }

    /// The program of one end has read the other direction up to offset `up_to`.
    pub(crate) fn has_read(
        &mut self,
        end: EventStreamDirection,
        up_to: u64,
        at_ns: u64,
        thread: u32,
    ) {
        self.sockets[end as usize] = true;
        self.directions[1 - end as usize]
            .read
            .pass(up_to, at_ns, thread);
    }

    /// As [`Self::wrote`] or [`Self::has_read`], for a socket that existed before the observation: `count` bytes were written or
    /// read since counting began, at an unknown offset. Bytes that left were written before and bytes that are read have arrived
    /// before, which bounds that offset.
    pub(crate) fn counted(
        &mut self,
        end: EventStreamDirection,
        wrote: bool,
        count: u64,
        at_ns: u64,
        thread: u32,
    ) {
        let direction = &mut self.directions[if wrote {
            end as usize
        } else {
            1 - end as usize
        }];
        let seen = if wrote {
            direction.left.end()
        } else {
            direction.arrived.progress().end()
        };
        let from = seen
            .cast_signed()
            .saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
        let known = &mut direction.counted_from[usize::from(wrote)];
        if known.is_none() {
            let progress = if wrote {
                &mut direction.written
            } else {
                &mut direction.read
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

    /// Moves the exchanges that are over at `now_ns` to `done`; with `all` the unfinished ones too, as far as they came.
    pub(crate) fn over(&mut self, now_ns: u64, all: bool, done: &mut Vec<Exchange>) {
        if !all && now_ns < self.looks_at_ns {
            return;
        }
        self.looks_at_ns = now_ns.saturating_add(LOOKS_NS);
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

    /// Forgets the moments, retransmissions and waits that no open exchange needs.
    fn forget(&mut self) {
        for direction in [EventStreamDirection::There, EventStreamDirection::Back] {
            let needed = self.open.values().filter_map(|open| {
                let role = if open.asks == direction {
                    ExchangeRole::Request
                } else {
                    ExchangeRole::Response
                };
                open.first.begins[role as usize]
            });
            let own = &mut self.directions[direction as usize];
            // Bytes that have left may not be parsed yet.
            let needed = needed.min().unwrap_or(u64::MAX).min(own.dissected_end);
            own.left.forget(needed);
            own.arrived.forget(needed);
            own.farthest.forget(needed);
            own.room.forget(needed);
            own.written.forget(needed);
            own.read.forget(needed);
            while own.again.front().is_some_and(|(_, end, ..)| *end <= needed) {
                own.again.pop_front();
            }
            while own.held.front().is_some_and(|(end, ..)| *end <= needed) {
                own.held.pop_front();
            }
            while own.stalls.front().is_some_and(|stall| stall.from <= needed) {
                own.stalls.pop_front();
            }
            while own.gaps.front().is_some_and(|gap| gap.end <= needed) {
                own.gaps.pop_front();
            }
        }
    }

    /// The totals of a connection on which nothing that was asked was answered; `None` if something was, or if it carried no data.
    pub(crate) fn transfer_account(&self) -> Option<TransferAccount> {
        if self.has_answers || !self.has_data() {
            return None;
        }
        let of_both =
            |of: fn(&RequestStreamState) -> u64| [of(&self.directions[0]), of(&self.directions[1])];
        let is_closed = self.directions.iter().all(|direction| direction.finished);
        let full = |direction: &RequestStreamState| {
            let rest = direction
                .full_since
                .map_or(0, |since| self.last_ns.saturating_sub(since));
            direction.full_ns.saturating_add(rest)
        };
        Some(TransferAccount {
            flow: self.flow,
            ends: self.ends.clone(),
            span_ns: (self.first_ns, self.last_ns),
            is_new: self.syn_ns.is_some() || self.syn_ack_ns.is_some(),
            round_trip_ns: self.round_trip_ns,
            least_ack_ns: self.least_ack_ns,
            bytes: of_both(|direction| {
                direction.left.end().max(direction.arrived.progress().end())
            }),
            again: of_both(|direction| direction.again_count + direction.late_count),
            full_ns: self
                .directions
                .iter()
                .map(full)
                .fold(0, u64::saturating_add),
            zero_windows: self
                .directions
                .iter()
                .map(|direction| direction.zero_windows)
                .sum(),
            quiet: self.quiet,
            goodput: self.goodput.clone(),
            threads: self.end_threads(),
            end: match (self.reset, is_closed) {
                (true, _) => "reset",
                (false, true) => "closed",
                (false, false) => "open",
            },
        })
    }

    /// The thread of each end that wrote its data, or else read that of the other; 0 if neither was seen.
    fn end_threads(&self) -> [u32; 2] {
        let [there, back] = &self.directions;
        let of = |own: &RequestStreamState, other: &RequestStreamState| match own.written.thread() {
            0 => other.read.thread(),
            thread => thread,
        };
        [of(there, back), of(back, there)]
    }

    /// Whether it was reset, or both sides have finished sending.
    pub(crate) fn is_over(&self) -> bool {
        self.reset || self.directions.iter().all(|direction| direction.finished)
    }

    /// Whether a side has closed or reset it.
    pub(crate) fn is_closed(&self) -> bool {
        self.directions
            .iter()
            .any(|direction| direction.closed_ns.is_some())
    }

    /// Whether packets of only one side were seen.
    pub(crate) fn is_one_way(&self) -> bool {
        self.directions
            .iter()
            .any(|direction| direction.position.is_none())
    }

    /// Whether any data of it was seen where it is parsed.
    pub(crate) fn has_data(&self) -> bool {
        self.directions
            .iter()
            .any(|direction| direction.dissected_end > 0)
    }

    /// What was left out of it because a bound on memory was reached.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut left_out = self.left_out.clone();
        for direction in &self.directions {
            direction.arrived.left_out(&mut left_out);
            [
                &direction.left,
                &direction.farthest,
                &direction.written,
                &direction.read,
            ]
            .into_iter()
            .for_each(|progress| progress.left_out(&mut left_out));
        }
        left_out
    }

    /// How many of its bytes no capture saw.
    pub(crate) fn lost(&self) -> u64 {
        self.conversation.lost()
    }
}

/// The other direction.
const fn other(direction: EventStreamDirection) -> EventStreamDirection {
    match direction {
        EventStreamDirection::There => EventStreamDirection::Back,
        EventStreamDirection::Back => EventStreamDirection::There,
    }
}

/// Appends to a queue of at most [`MOST_REMEMBERED`] elements; the oldest gives way and is counted as left out.
fn remember<T>(queue: &mut VecDeque<T>, what: T, left_out: &mut LeftOut) {
    if queue.len() >= MOST_REMEMBERED {
        queue.pop_front();
        left_out.add(Bound::Repeated, 1);
    }
    queue.push_back(what);
}

#[cfg(test)]
mod tests;
