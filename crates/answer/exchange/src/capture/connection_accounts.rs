//! What the packets of each connection of a capture say together: round trips, bytes, what was sent again, how long there was no
//! window, the longest quiet period. It sees what passes the place of the capture, and guesses nothing beyond.
//!
//! The handshake's round trip goes from the SYN to the acknowledgement of its answer, both seen once: it is the whole one wherever
//! the capture is. Times from data to its acknowledgement are only of the way beyond the capture and of the receiver's delay; of
//! data that is sent again there is none (Karn and Partridge 1987).

use stackline_dissect::connections::Location;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::segment::DissectedSegment;
use stackline_dissect::stream_holes::{StreamHoles, is_mended_loss};
use stackline_events::{EventTable, EventValue};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Segments of a direction whose acknowledgement is waited for, at most.
const WAITING: usize = 256;
/// Connections of a capture that are accounted for.
const MOST_ACCOUNTS: usize = Bound::Accounts.most();
/// Times that a median is taken of, at most; of more, every second, every fourth, and so on.
const SAMPLES: usize = 256;
/// The data of a segment where no SYN says what is accepted (RFC 9293, 3.7.1).
const SEGMENT: u64 = 536;
/// The same of a whole segment where larger ones are split on their way.
const WHOLE_SEGMENT: u64 = 1460;

/// All connections of a capture, by flow.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    by_flow: BTreeMap<i64, CaptureAccount>,
    left_out: LeftOut,
}

/// One connection.
#[derive(Debug)]
struct CaptureAccount {
    host: String,
    initiator: SocketAddr,
    responder: SocketAddr,
    first_ns: u64,
    last_ns: u64,
    handshake: AccountHandshake,
    /// There and back.
    directions: [CapturedDirection; 2],
    /// The latest data, or the handshake before it.
    data_ns: u64,
    quiet_ns: u64,
    quiet_until: &'static str,
    reset: bool,
}

/// When its packets were seen; none when one was seen twice, or too late.
#[derive(Debug, Default)]
struct AccountHandshake {
    syn_ns: Option<u64>,
    answer_ns: Option<u64>,
    repeated: bool,
    round_trip_ns: Option<u64>,
}

/// One direction: what its sender sends, and what it says of the other direction.
#[derive(Debug, Default)]
struct CapturedDirection {
    bytes: u64,
    again: u64,
    holes: StreamHoles,
    ended: bool,
    /// Behind the highest byte sent, and the highest acknowledged by the other side.
    sent: Option<u32>,
    acknowledged: Option<u32>,
    /// What its sender is ready to receive, where its scale is known.
    window: Option<u64>,
    scale: Option<u8>,
    is_zero: bool,
    zero_windows: u64,
    largest_segment: Option<u16>,
    full_since: Option<u64>,
    full_ns: u64,
    waiting: VecDeque<(u32, u64)>,
    round_trips: Samples,
}

/// Every so many of the values that came.
#[derive(Debug, Default)]
struct Samples {
    kept: Vec<u64>,
    skip: u32,
    left: u32,
}

impl Accounts {
    /// Takes a segment that was found there; whether it fills a hole late.
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
                data_ns: at_ns,
                quiet_ns: 0,
                quiet_until: "",
                reset: false,
            });
        account.take(back, at_ns, segment, at);
        let is_new = segment.bytes > 0 && !at.repeated && !at.is_probe;
        is_new && account.fills_late(back, at_ns, segment, at, &mut self.left_out)
    }

    /// An event of each.
    pub(super) fn finish(self, table: &mut EventTable, left_out: &mut LeftOut) {
        left_out.merge(&self.left_out);
        for (flow, account) in self.by_flow {
            account.write(flow, table);
        }
    }
}

impl CaptureAccount {
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
        // Its first copy was lost before the place of the capture.
        direction.again += u64::from(is_late);
        is_late
    }

    fn take(&mut self, back: usize, at_ns: u64, segment: &DissectedSegment, at: &Location) {
        self.last_ns = self.last_ns.max(at_ns);
        self.reset |= segment.reset;
        self.directions[back].ended |= segment.fin;
        self.handshake.take(back, at_ns, segment);
        if segment.syn {
            self.directions[back].scale = segment.window_scale;
            self.directions[back].largest_segment = segment.largest_segment;
            self.data_ns = at_ns;
        }
        if segment.bytes > 0 && !at.is_probe {
            self.quiet(back, at_ns, at.repeated);
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
        // While there was no room, nobody was waited for but the receiver.
        if was_full && other.full_since.is_none() {
            self.data_ns = self.data_ns.max(at_ns);
        }
        if segment.bytes > 0 || segment.syn || segment.fin {
            own.send(at_ns, segment, at);
            own.room(at_ns, other.window, other.largest_segment);
        }
    }

    /// The time since the latest data.
    fn quiet(&mut self, back: usize, at_ns: u64, repeated: bool) {
        let quiet_ns = at_ns.saturating_sub(self.data_ns);
        self.data_ns = self.data_ns.max(at_ns);
        if quiet_ns > self.quiet_ns {
            self.quiet_ns = quiet_ns;
            self.quiet_until = match (repeated, back) {
                (true, _) => "retransmission",
                (false, 0) => "initiator",
                (false, _) => "responder",
            };
        }
    }

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

    fn write(mut self, flow: i64, table: &mut EventTable) {
        let last_ns = self.last_ns;
        let full_ns = self.directions.iter().fold(0_u64, |all, direction| {
            all.saturating_add(direction.full_ns_until(last_ns))
        });
        let end = self.end();
        let [initiator, responder] = [self.initiator, self.responder].map(|end| end.to_string());
        let [there, back] = &mut self.directions;
        let values = [
            EventValue::from(flow << 1),
            EventValue::from(&initiator),
            EventValue::from(&responder),
            EventValue::from(self.last_ns - self.first_ns),
            EventValue::from(self.handshake.round_trip_ns),
            EventValue::from(there.round_trips.median()),
            EventValue::from(back.round_trips.median()),
            EventValue::from(there.bytes),
            EventValue::from(back.bytes),
            EventValue::from(there.again),
            EventValue::from(back.again),
            EventValue::from(there.zero_windows + back.zero_windows),
            EventValue::from(full_ns),
            EventValue::from(self.quiet_ns),
            EventValue::from(self.quiet_until),
            EventValue::from(end),
        ];
        table.push("TCP_CONNECTION", &self.host, self.first_ns, &values);
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
    /// Takes what its sender is ready to receive. A window of a SYN is not scaled.
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

    fn send(&mut self, at_ns: u64, segment: &DissectedSegment, at: &Location) {
        let flags = u32::from(segment.syn) + u32::from(segment.fin);
        let end = segment
            .sequence
            .wrapping_add(segment.bytes as u32)
            .wrapping_add(flags);
        self.bytes = self.bytes.saturating_add(at.fresh);
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

    /// Whether another segment fits into the receiver's window, and since when none does.
    fn room(&mut self, at_ns: u64, window: Option<u64>, largest: Option<u16>) {
        let in_flight = match (self.sent, self.acknowledged) {
            (Some(sent), Some(acknowledged)) if is_behind(sent, acknowledged) => {
                u64::from(sent.wrapping_sub(acknowledged))
            }
            _ => 0,
        };
        // On loopback a segment may be as long as the window. A sender that has less to send does not need that much room.
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

/// Whether a sequence number lies behind another, through the wrap.
const fn is_behind(number: u32, other: u32) -> bool {
    number != other && number.wrapping_sub(other) < 1 << 31
}

#[cfg(test)]
mod tests;
