//! One direction of a connection: which of its bytes passed which point when, what was sent again, and what held its sender up.

use crate::stream_progress::{Arrivals, StreamPointProgress};
use stackline_dissect::sequence_position::Position;
use stackline_dissect::stream_holes::StreamHoles;
use std::collections::VecDeque;

/// Bytes of a whole segment where larger ones are split on their way.
pub(super) const SEGMENT: u64 = 1460;
/// A pause shorter than this is none.
pub(super) const PAUSE_NS: u64 = 1_000_000;
/// An acknowledgement lets data go that leaves within this.
pub(super) const LETS_GO_NS: u64 = 2_000_000;

/// From when to when nothing was sent although there was room.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendGap {
    /// Behind the data that ended it.
    pub(super) end: u64,
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
    /// Whether acknowledgements say that the sender had nothing to send; else only what its program wrote does.
    pub(super) is_pause: bool,
    /// How long of it the sender waited for what the other end said then, beside a round trip, ns.
    pub(super) awaited_ns: u64,
    /// A part of it that nobody paused: what the other end said, and what follows that, was on its way.
    pub(super) travelled_ns: u64,
}

/// How far apart the last segments came, ns: a path that is slow spaces them, whatever their sender does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSpacing {
    last: [u64; 4],
    next: usize,
}

impl SegmentSpacing {
    /// So many times as far apart is no more the path's spacing.
    const REGULAR: u64 = 3;

    /// Whether another segment after so long is spaced as those before it.
    pub(super) fn is_regular(&self, ns: u64) -> bool {
        let widest = self.last.iter().max().copied().unwrap_or(0);
        ns <= widest.saturating_mul(Self::REGULAR)
    }

    /// Another segment came after so long.
    pub(super) fn add(&mut self, ns: u64) {
        self.last[self.next] = ns;
        self.next = (self.next + 1) % self.last.len();
    }
}

/// A sender stood still until an acknowledgement came, before the byte at an offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendStall {
    pub(super) from: u64,
    pub(super) ns: u64,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct RequestStreamState {
    pub(super) position: Option<Position>,
    pub(super) left: StreamPointProgress,
    pub(super) arrived: Arrivals,
    /// The farthest byte that arrived, whatever is missing before it: where its receiver alone is seen, by its segments; where its
    /// sender alone is, by acknowledgements, a round trip earlier.
    pub(super) farthest: StreamPointProgress,
    /// What was sent again: where it begins and ends, when, and how long after the first time.
    pub(super) again: VecDeque<(u64, u64, u64, u64)>,
    /// How many segments were sent again, and how many of them only the second copy was seen of.
    pub(super) again_count: u64,
    pub(super) late_count: u64,
    /// How long there was no room, and how often it was none at all.
    pub(super) full_ns: u64,
    pub(super) zero_windows: u64,
    pub(super) is_zero: bool,
    /// Bytes that were missing when others behind them came.
    pub(super) holes: StreamHoles,
    /// When nothing was sent although there was room.
    pub(super) gaps: VecDeque<SendGap>,
    /// How far apart its last segments came where its receiver alone is seen, ns.
    pub(super) spacing: SegmentSpacing,
    /// When its sender stood still until an acknowledgement came, and from where on it has sent since the last such gap.
    pub(super) stalls: VecDeque<SendStall>,
    pub(super) stalled_from: u64,
    /// Where what was sent since the last pause begins.
    pub(super) burst_from: u64,
    /// Where data ends whose sending was held back, when it left, and since when it waited.
    pub(super) held: VecDeque<(u64, u64, u64)>,
    /// Behind the last small segment that left.
    small_end: Option<u64>,
    /// One left while another was not acknowledged: nothing is held back by Nagle's algorithm (Minshall).
    pub(super) is_nagle_off: bool,
    /// From when to when the receiver had no room.
    pub(super) full: VecDeque<(u64, u64)>,
    pub(super) full_since: Option<u64>,
    /// Behind the last byte that the receiver has room for, as its sender last heard.
    pub(super) room_end: Option<u64>,
    /// The same by the moments when its receiver said so, where its sender is not seen.
    pub(super) room: StreamPointProgress,
    /// Of data, so far.
    pub(super) largest: u64,
    /// What its sender acknowledges of the other direction, and when that last grew.
    pub(super) acknowledged: Option<(u64, u64)>,
    /// How what its sender is ready to receive is scaled.
    pub(super) scale: Option<u8>,
    pub(super) finished: bool,
    /// When its sender closed this direction, and when it reset the connection.
    pub(super) closed_ns: Option<u64>,
    pub(super) reset_ns: Option<u64>,
    /// When the first of both came to the other side, where its door is watched.
    pub(super) end_arrived_ns: Option<u64>,
    /// Behind the farthest byte that was reported.
    pub(super) dissected_end: u64,
    /// What its sender's program wrote, and its receiver's read.
    pub(super) written: StreamPointProgress,
    pub(super) read: StreamPointProgress,
    /// Where counting began in the stream, of what was written and read at a socket that was there before: as far as is known.
    pub(super) counted_from: [Option<i64>; 2],
}

/// A sending call returns within this of its bytes' leaving.
const CALL_NS: u64 = 1_000_000;

impl RequestStreamState {
    /// Whether a segment asks for an acknowledgement alone: a byte that its receiver has, or has no room for (RFC 1122, 4.2.3.6; RFC
    /// 9293, 3.8.6.1). `acknowledged`: what the receiver said that it has.
    pub(super) fn is_probe(&self, from: u64, end: u64, acknowledged: Option<u64>) -> bool {
        let has = acknowledged.is_some_and(|up_to| up_to >= end);
        let has_no_room = self.room_end.is_some_and(|room_end| room_end <= from);
        let known = self.left.end().max(self.arrived.progress().end());
        end == from + 1 && end >= known && (has || has_no_room)
    }

    /// A segment is at the receiver's host. One whose bytes are all there already was sent again needlessly: the first was late.
    pub(super) fn arrives(&mut self, at_ns: u64, from: u64, end: u64) {
        if end <= self.arrived.progress().end() {
            let needless = self
                .again
                .iter()
                .rposition(|(begin, behind, ..)| *begin < end && *behind > from);
            needless.and_then(|at| self.again.remove(at));
        }
        self.arrived.segment(from, end, at_ns);
    }

    /// A small segment leaves, while its receiver has acknowledged so much.
    pub(super) fn sends_small(&mut self, end: u64, acknowledged: u64) {
        self.is_nagle_off |= self.small_end.is_some_and(|small| small > acknowledged);
        self.small_end = Some(end);
    }

    /// Whether the receiver has no room for another segment beyond what has left.
    pub(super) fn is_out_of_room(&self) -> bool {
        let sent = self.left.end().max(self.arrived.progress().end());
        let has_room = |room_end| self.has_room_for_more(sent, room_end);
        sent > 0 && !self.room_end.is_none_or(has_room)
    }

    /// Whether another segment may be sent behind `sent` bytes where there is room for all before `room_end`.
    pub(super) fn has_room_for_more(&self, sent: u64, room_end: u64) -> bool {
        room_end.saturating_sub(sent) >= self.largest.clamp(1, SEGMENT)
    }

    /// How its bytes passed where they were first seen: at its sender's door, or else at its receiver's.
    pub(super) const fn passed(&self) -> &StreamPointProgress {
        if self.left.end() > 0 {
            &self.left
        } else {
            self.arrived.progress()
        }
    }

    /// How long its sender sent nothing in the midst of bytes between two offsets although nothing hindered it, ns.
    pub(super) fn paused_ns(&self, from: u64, end: u64) -> u64 {
        self.sum_of_pauses(from, end, |gap| {
            let whole = gap.until_ns.saturating_sub(gap.since_ns);
            whole.saturating_sub(gap.awaited_ns + gap.travelled_ns)
        })
    }

    /// How long it waited there for what the other end said then, ns.
    pub(super) fn awaited_ns(&self, from: u64, end: u64) -> u64 {
        self.sum_of_pauses(from, end, |gap| gap.awaited_ns)
    }

    fn sum_of_pauses(&self, from: u64, end: u64, ns: impl Fn(&SendGap) -> u64) -> u64 {
        let passed = self.passed();
        // What comes before the first byte is not of these.
        let begun = passed.of(from).map_or(u64::MAX, |first| first.at_ns);
        // They are in the order of their ends.
        let of_these = self.gaps.iter().skip_while(|gap| gap.end <= from);
        of_these
            .take_while(|gap| gap.end <= end)
            .filter(|gap| gap.since_ns >= begun)
            .filter(|gap| gap.is_pause || self.was_written_behind(gap))
            .map(ns)
            .fold(0, u64::saturating_add)
    }

    /// Whether the data behind a gap were written only when they left. A call that goes on long behind that waits for room itself.
    fn was_written_behind(&self, gap: &SendGap) -> bool {
        let written = gap
            .end
            .checked_sub(1)
            .and_then(|last| self.written.of(last));
        written.is_some_and(|written| {
            written.at_ns > gap.since_ns && written.at_ns <= gap.until_ns.saturating_add(CALL_NS)
        })
    }
}
