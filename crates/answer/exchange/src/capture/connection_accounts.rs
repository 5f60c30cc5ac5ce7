//! Sums up the packets of each connection of a capture: round-trip times, bytes, retransmissions, how long the receive window was full,
//! the longest quiet period. All of it is seen from the place of the capture.
//!
//! The handshake's round-trip time is the time from the SYN to the acknowledgement of its answer, each seen once: it is the whole round
//! trip wherever the capture was taken. A time from data to its acknowledgement covers only the path beyond the capture and the
//! receiver's delay; retransmitted data gives none (Karn and Partridge 1987).

use stackline_dissect::connections::Location;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::segment::DissectedSegment;
use stackline_dissect::stream_holes::{StreamHoles, is_mended_loss};
use stackline_events::catalogue::rows::{TcpConnection, TcpTransfer};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_events::{EventTable, EventValue};
use stackline_requests::goodput_series::GoodputSeries;
use stackline_requests::quiet_time::QuietTime;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// The most segments of a direction that wait for their acknowledgement.
const WAITING: usize = 256;
/// The most connections of a capture that are summed up.
const MOST_ACCOUNTS: usize = Bound::Accounts.most();
/// The most samples for a median; when they are reached, every second one is dropped and fewer are taken.
const SAMPLES: usize = 256;
/// The directions, those with most bytes, of which the goodput over time is kept.
const MOST_SERIES: usize = 256;
/// The maximum segment size, in bytes, where no SYN announces one (RFC 9293, 3.7.1).
const SEGMENT: u64 = 536;
/// The largest room, in bytes, that a sender is taken to need for one segment: the segment of an Ethernet path.
const WHOLE_SEGMENT: u64 = 1460;

/// The accounts of all connections of a capture, by flow number.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    by_flow: BTreeMap<i64, CaptureAccount>,
    left_out: LeftOut,
}

/// The account of one connection.
#[derive(Debug)]
struct CaptureAccount {
    /// The host at which the capture was taken.
    host: String,
    initiator: SocketAddr,
    responder: SocketAddr,
    /// The time of the first packet, ns.
    first_ns: u64,
    /// The time of the latest packet, ns.
    last_ns: u64,
    handshake: AccountHandshake,
    /// The directions there (from the initiator) and back.
    directions: [CapturedDirection; 2],
    /// Times without data, from the first packet on.
    quiet: QuietTime,
    reset: bool,
}

/// The times of the handshake's packets, ns. There is no round-trip time if a SYN was seen twice or the handshake's start is missing.
#[derive(Debug, Default)]
struct AccountHandshake {
    syn_ns: Option<u64>,
    answer_ns: Option<u64>,
    repeated: bool,
    round_trip_ns: Option<u64>,
}

/// One direction: what its sender sends, and what it announces for the other direction.
#[derive(Debug, Default)]
struct CapturedDirection {
    /// The data bytes that were seen, each once.
    bytes: u64,
    /// These bytes by intervals of time.
    goodput: GoodputSeries,
    /// The number of retransmitted segments.
    again: u64,
    holes: StreamHoles,
    ended: bool,
    /// The sequence number behind the highest byte sent.
    sent: Option<u32>,
    /// The highest acknowledgement number from the other side.
    acknowledged: Option<u32>,
    /// The receive window that this sender announces, in bytes, if its scale is known.
    window: Option<u64>,
    scale: Option<u8>,
    /// Whether the latest window is zero.
    is_zero: bool,
    /// How often the window became zero.
    zero_windows: u64,
    largest_segment: Option<u16>,
    /// Since when the receiver's window has no room for another segment, ns.
    full_since: Option<u64>,
    /// For how long that was so before, ns.
    full_ns: u64,
    /// Unacknowledged segments: the sequence number behind each and the time it was seen, ns.
    waiting: VecDeque<(u32, u64)>,
    round_trips: Samples,
}

/// A bounded sample of values: every so many are kept.
#[derive(Debug, Default)]
struct Samples {
    kept: Vec<u64>,
    /// How many values are skipped after each one that is kept.
    skip: u32,
    /// How many values are still to be skipped.
    left: u32,
}

impl Accounts {
    /// Takes a segment at its location; returns whether it fills a gap late, so that it must be a retransmission.
    pub(super) fn take(
        &mut self,
        host: &str,
        at_ns: u64,
        segment: &DissectedSegment,
        at: &Location,
    ) -> bool {
        let back = (at.stream & 1) as usize;
        let (initiator, responder) = if back == 0 {
            segment.ends
        } else {
            (segment.ends.1, segment.ends.0)
        };
        if self.by_flow.len() >= MOST_ACCOUNTS && !self.by_flow.contains_key(&(at.stream >> 1)) {
            self.left_out.add(Bound::Accounts, 1);
            return false;
        }
        let account = self
            .by_flow
            .entry(at.stream >> 1)
            .or_insert_with(|| CaptureAccount {
                host: host.to_owned(),
                initiator,
                responder,
                first_ns: at_ns,
                last_ns: at_ns,
                handshake: AccountHandshake::default(),
                directions: Default::default(),
                quiet: QuietTime::since(at_ns),
                reset: false,
            });
        account.take(back, at_ns, segment, at);
        let is_new = segment.bytes > 0 && !at.repeated && !at.is_probe;
        is_new && account.fills_late(back, at_ns, segment, at, &mut self.left_out)
    }

    /// Writes a `TCP_CONNECTION` event for each connection.
    pub(super) fn finish(self, table: &mut EventTable, left_out: &mut LeftOut) {
        left_out.merge(&self.left_out);
        let mut sizes: Vec<u64> = self
            .by_flow
            .values()
            .flat_map(|account| {
                account
                    .directions
                    .each_ref()
                    .map(|direction| direction.bytes)
            })
            .collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let least = sizes.get(MOST_SERIES).copied().unwrap_or(0);
        for (flow, account) in self.by_flow {
            account.write(flow, least, table);
        }
    }
}

impl CaptureAccount {
    /// Whether a segment fills a gap so late that it must be a retransmission.
    fn fills_late(
        &mut self,
        back: usize,
        at_ns: u64,
        segment: &DissectedSegment,
        at: &Location,
        left_out: &mut LeftOut,
    ) -> bool {
        let trip = self.handshake.round_trip_ns;
        let direction = &mut self.directions[back];
        let end = at.offset.saturating_add(segment.bytes);
        let open_ns = direction.holes.pass(at.offset, end, at_ns, left_out);
        let is_late = open_ns.is_some_and(|open_ns| is_mended_loss(open_ns, trip));
        // The first copy was lost before the capture point.
        direction.again += u64::from(is_late);
        is_late
    }

    /// Takes a segment of the direction `back` (0 there, 1 back).
    fn take(&mut self, back: usize, at_ns: u64, segment: &DissectedSegment, at: &Location) {
        self.last_ns = self.last_ns.max(at_ns);
        self.reset |= segment.reset;
        self.directions[back].ended |= segment.fin;
        self.handshake.take(back, at_ns, segment);
        if segment.syn {
            self.directions[back].scale = segment.window_scale;
            self.directions[back].largest_segment = segment.largest_segment;
            self.quiet.restart(at_ns);
        }
        if segment.bytes > 0 && !at.is_probe {
            let direction = match back {
                0 => EventStreamDirection::There,
                _ => EventStreamDirection::Back,
            };
            let trip_ns = self.handshake.round_trip_ns;
            self.quiet.end(at_ns, direction, !at.repeated, trip_ns);
        }
        let scaled = self
            .directions
            .iter()
            .all(|direction| direction.scale.is_some());
        self.directions[back].announce(segment, scaled);
        let window = self.directions[back].window;
        let [there, other] = &mut self.directions;
        let (own, other) = if back == 0 {
            (there, other)
        } else {
            (other, there)
        };
        if let Some(acknowledged) = segment.acknowledged {
            other.is_acknowledged(at_ns, acknowledged);
        }
        let was_full = other.full_since.is_some();
        other.room(at_ns, window, own.largest_segment);
        // While the window was full, the connection waited for the receiver only: this time is not quiet.
        if was_full && other.full_since.is_none() {
            self.quiet.restart(at_ns);
        }
        if segment.bytes > 0 || segment.syn || segment.fin {
            own.send(at_ns, segment, at);
            own.room(at_ns, other.window, other.largest_segment);
        }
        if self.directions.iter().all(|one| one.in_flight() == 0) {
            self.quiet.all_acknowledged(at_ns);
        }
    }

    /// How the connection ended.
    fn end(&self) -> &'static str {
        match (
            self.reset,
            self.directions.iter().all(|direction| direction.ended),
        ) {
            (true, _) => "reset",
            (false, true) => "closed",
            (false, false) => "open",
        }
    }

    /// Writes the connection's events; the goodput over time of directions with more than `least` bytes.
    fn write(mut self, flow: i64, least: u64, table: &mut EventTable) {
        let last_ns = self.last_ns;
        let full_ns = self.directions.iter().fold(0_u64, |all, direction| {
            all.saturating_add(direction.full_ns_until(last_ns))
        });
        let end = self.end();
        let [initiator, responder] = [self.initiator, self.responder].map(|end| end.to_string());
        let [there, back] = &mut self.directions;
        let row = TcpConnection {
            stream: (flow << 1).into(),
            initiator: EventValue::from(&initiator),
            responder: EventValue::from(&responder),
            duration_ns: (self.last_ns - self.first_ns).into(),
            handshake_ns: self.handshake.round_trip_ns.into(),
            ack_there_ns: there.round_trips.median().into(),
            ack_back_ns: back.round_trips.median().into(),
            bytes_there: there.bytes.into(),
            bytes_back: back.bytes.into(),
            again_there: there.again.into(),
            again_back: back.again.into(),
            zero_windows: (there.zero_windows + back.zero_windows).into(),
            window_full_ns: full_ns.into(),
            quiet_ns: self.quiet.longest_ns().into(),
            quiet_until: self.quiet.until().into(),
            end: end.into(),
        };
        let mut emit = table.emitter();
        row.emit_on(&self.host, self.first_ns, &mut emit);
        let [there, back] = self.quiet.pauses();
        let row = TcpTransfer {
            stream: (flow << 1).into(),
            pauses_there: there.count.into(),
            paused_there_ns: there.ns.into(),
            pauses_back: back.count.into(),
            paused_back_ns: back.ns.into(),
            ..TcpTransfer::default()
        };
        row.emit_on(&self.host, self.first_ns, &mut emit);
        let directions = self.directions.iter().zip(flow << 1..);
        for (direction, stream) in directions.filter(|(direction, _)| direction.bytes > least) {
            direction.goodput.emit(stream, &self.host, &mut emit);
        }
    }
}

impl AccountHandshake {
    fn take(&mut self, back: usize, at_ns: u64, segment: &DissectedSegment) {
        if segment.syn {
            let seen = if back == 0 {
                &mut self.syn_ns
            } else {
                &mut self.answer_ns
            };
            self.repeated |= seen.is_some();
            *seen = Some(at_ns);
        } else if back == 0
            && self.round_trip_ns.is_none()
            && !self.repeated
            && self.answer_ns.is_some()
        {
            self.round_trip_ns = self.syn_ns.map(|syn_ns| at_ns.saturating_sub(syn_ns));
        }
    }
}

impl CapturedDirection {
    /// Takes the receive window that a segment announces. The window of a SYN is not scaled.
    fn announce(&mut self, segment: &DissectedSegment, scaled: bool) {
        if segment.reset || segment.acknowledged.is_none() {
            return;
        }
        let is_zero = segment.window == 0 && !segment.syn;
        self.zero_windows += u64::from(is_zero && !self.is_zero);
        self.is_zero = is_zero;
        let bits = if segment.syn {
            Some(0)
        } else {
            self.scale.filter(|_| scaled)
        };
        self.window = bits
            .map(|bits| u64::from(segment.window) << bits)
            .or(is_zero.then_some(0));
    }

    /// Takes an acknowledgement number of the other side.
    fn is_acknowledged(&mut self, at_ns: u64, up_to: u32) {
        let mut latest = None;
        while self
            .waiting
            .front()
            .is_some_and(|(end, _)| !is_behind(*end, up_to))
        {
            latest = self.waiting.pop_front();
        }
        if let Some((_, sent_ns)) = latest {
            self.round_trips.push(at_ns.saturating_sub(sent_ns));
        }
        self.acknowledged = Some(
            self.acknowledged
                .filter(|end| is_behind(*end, up_to))
                .unwrap_or(up_to),
        );
    }

    /// Takes a segment of this direction.
    fn send(&mut self, at_ns: u64, segment: &DissectedSegment, at: &Location) {
        let flags = u32::from(segment.syn) + u32::from(segment.fin);
        let end = segment
            .sequence
            .wrapping_add(segment.bytes as u32)
            .wrapping_add(flags);
        self.bytes = self.bytes.saturating_add(at.fresh);
        if at.fresh > 0 {
            self.goodput.add(at_ns, at.fresh);
        }
        if at.repeated {
            self.again += 1;
            self.waiting.clear();
        } else if !at.is_probe && segment.bytes > 0 && self.waiting.len() < WAITING {
            self.waiting.push_back((end, at_ns));
        }
        self.sent = Some(
            self.sent
                .filter(|sent| !is_behind(end, *sent))
                .unwrap_or(end),
        );
    }

    /// The bytes that were sent and not acknowledged; of data that was never acknowledged, one.
    fn in_flight(&self) -> u64 {
        match (self.sent, self.acknowledged) {
            (Some(sent), Some(acknowledged)) if is_behind(sent, acknowledged) => {
                u64::from(sent.wrapping_sub(acknowledged))
            }
            (Some(_), None) => 1,
            _ => 0,
        }
    }

    /// Notes whether another segment fits into the receiver's window, and since when it does not.
    fn room(&mut self, at_ns: u64, window: Option<u64>, largest: Option<u16>) {
        let in_flight = match self.acknowledged {
            Some(_) => self.in_flight(),
            None => 0,
        };
        // On loopback a segment may be as long as the window, and a sender with little data needs less room: hence the limit.
        let segment = largest.map_or(SEGMENT, u64::from).min(WHOLE_SEGMENT);
        let is_full = window
            .is_some_and(|window| in_flight + segment > window && (in_flight > 0 || window == 0));
        match (is_full, self.full_since) {
            (true, None) => self.full_since = Some(at_ns),
            (false, Some(_)) => {
                self.full_ns = self.full_ns_until(at_ns);
                self.full_since = None;
            }
            _ => {}
        }
    }

    /// How long the window was full until a time, ns.
    fn full_ns_until(&self, at_ns: u64) -> u64 {
        self.full_ns.saturating_add(
            self.full_since
                .map_or(0, |since| at_ns.saturating_sub(since)),
        )
    }
}

impl Samples {
    fn push(&mut self, value: u64) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.kept.push(value);
        if self.kept.len() == SAMPLES {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.skip = self.skip * 2 + 1;
        }
        self.left = self.skip;
    }

    fn median(&mut self) -> Option<u64> {
        self.kept.sort_unstable();
        self.kept.get(self.kept.len() / 2).copied()
    }
}

/// Whether a sequence number lies behind another one, with wraparound.
const fn is_behind(number: u32, other: u32) -> bool {
    number != other && number.wrapping_sub(other) < 1 << 31
}

#[cfg(test)]
mod tests;
