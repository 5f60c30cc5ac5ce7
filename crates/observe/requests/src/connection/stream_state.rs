//! The state of one direction of a TCP connection: which of its bytes passed which point when, what was sent again, and what held
//! its sender up.

use crate::stream_progress::{Arrivals, StreamPointProgress};
use stackline_dissect::sequence_position::Position;
use stackline_dissect::stream_holes::StreamHoles;
use std::collections::VecDeque;

/// The payload of a full-sized segment, bytes, as on Ethernet; segment offload makes larger ones that are split on their way.
pub(super) const SEGMENT: u64 = 1460;
/// A gap in sending shorter than this is not counted as a pause, ns.
pub(super) const PAUSE_NS: u64 = 1_000_000;
/// Data that leaves within this after an acknowledgement was released by it, ns.
pub(super) const LETS_GO_NS: u64 = 2_000_000;

/// A time, `since_ns` to `until_ns`, in which nothing was sent although there was room.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendGap {
    /// The stream offset behind the data that ended it.
    pub(super) end: u64,
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
    /// Whether acknowledgements show that the sender had nothing to send. If not, only the time at which its program wrote can show
    /// it.
    pub(super) is_pause: bool,
    /// How long the sender waited for a message of the other end, without the round trip, ns.
    pub(super) awaited_ns: u64,
    /// The travel time of that message and of the data that follows it, ns: no pause of the sender.
    pub(super) travelled_ns: u64,
}

/// The time between the last segments, ns: a slow path spaces them, whatever their sender does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSpacing {
    /// The last distances, as a ring.
    last: [u64; 4],
    /// The place of the next distance in the ring.
    next: usize,
}

impl SegmentSpacing {
    /// A distance of more than this times the widest of the last ones is not the path's spacing.
    const REGULAR: u64 = 3;

    /// Whether a distance is like those of the segments before.
    pub(super) fn is_regular(&self, ns: u64) -> bool {
        let widest = self.last.iter().max().copied().unwrap_or(0);
        ns <= widest.saturating_mul(Self::REGULAR)
    }

    /// Adds the distance of another segment.
    pub(super) fn add(&mut self, ns: u64) {
        self.last[self.next] = ns;
        self.next = (self.next + 1) % self.last.len();
    }
}

/// A sender stood still for `ns` until an acknowledgement came, before the byte at offset `from`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendStall {
    pub(super) from: u64,
    pub(super) ns: u64,
}

/// One direction of a connection. Offsets count bytes from the beginning of its stream.
#[derive(Debug, Default)]
pub(super) struct RequestStreamState {
    /// Maps sequence numbers to offsets; `None` before the first segment.
    pub(super) position: Option<Position>,
    /// When bytes left the sender's host.
    pub(super) left: StreamPointProgress,
    /// When bytes arrived at the receiver's host, in order.
    pub(super) arrived: Arrivals,
    /// The farthest byte that arrived, whatever is missing before it. If only the receiver is observed, segments show it; if only
    /// the sender is, acknowledgements do, one round trip earlier.
    pub(super) farthest: StreamPointProgress,
    /// Segments that were sent again: first offset, end offset, when (ns), and how long after the first copy (ns).
    pub(super) again: VecDeque<(u64, u64, u64, u64)>,
    /// How many segments were seen to leave again.
    pub(super) again_count: u64,
    /// Of how many retransmitted segments only the second copy was seen.
    pub(super) late_count: u64,
    /// How long the receiver's window was full, ns.
    pub(super) full_ns: u64,
    /// How often the window became zero.
    pub(super) zero_windows: u64,
    /// Whether the window is zero.
    pub(super) is_zero: bool,
    /// Bytes that were missing when others behind them came.
    pub(super) holes: StreamHoles,
    /// When nothing was sent although there was room.
    pub(super) gaps: VecDeque<SendGap>,
    /// The spacing of the last segments.
    pub(super) spacing: SegmentSpacing,
    /// When the sender stood still until an acknowledgement came.
    pub(super) stalls: VecDeque<SendStall>,
    /// The offset before which the last such stall was.
    pub(super) stalled_from: u64,
    /// The offset of the first byte after the last pause.
    pub(super) burst_from: u64,
    /// Data that was held back for an acknowledgement: its end offset, when it left, and since when it waited, ns.
    pub(super) held: VecDeque<(u64, u64, u64)>,
    /// The end offset of the last small segment that left.
    small_end: Option<u64>,
    /// A small segment left while another was unacknowledged: Nagle's algorithm is off or holds nothing back (Minshall).
    pub(super) is_nagle_off: bool,
    /// When the receiver had no room: from, to, ns.
    pub(super) full: VecDeque<(u64, u64)>,
    /// Since when the receiver has had no room, ns.
    pub(super) full_since: Option<u64>,
    /// The end offset of the receiver's window, as its sender last heard.
    pub(super) room_end: Option<u64>,
    /// The end offsets of the window by the moments at which the receiver announced them, if the sender is not observed.
    pub(super) room: StreamPointProgress,
    /// The most data of one segment so far, bytes.
    pub(super) largest: u64,
    /// Up to which offset of the other direction its sender has acknowledged, and when that last grew, ns.
    pub(super) acknowledged: Option<(u64, u64)>,
    /// The window scale that its sender announced, if any.
    pub(super) scale: Option<u8>,
    /// The largest segment that its sender announced to accept, if any.
    pub(super) announced: Option<u64>,
    /// Whether its end was given to the parser.
    pub(super) finished: bool,
    /// When its sender closed this direction or reset the connection, ns.
    pub(super) closed_ns: Option<u64>,
    /// When its sender reset the connection, ns.
    pub(super) reset_ns: Option<u64>,
    /// When the FIN or RST arrived at the other side, if that door is observed, ns.
    pub(super) end_arrived_ns: Option<u64>,
    /// The end offset of what was given to the parser without a hole, or acknowledged.
    pub(super) dissected_end: u64,
    /// When the sender's program wrote its bytes.
    pub(super) written: StreamPointProgress,
    /// When the receiver's program read its bytes.
    pub(super) read: StreamPointProgress,
    /// For a socket that existed before the observation, the offset at which counting of read (0) and written (1) bytes began, as
    /// far as it is known.
    pub(super) counted_from: [Option<i64>; 2],
}

/// A sending call returns within this after its bytes have left, ns.
const CALL_NS: u64 = 1_000_000;

impl RequestStreamState {
    /// Whether a segment is a probe (keep-alive or zero window) that only asks for an acknowledgement: one byte that its receiver
    /// has already, or has no room for (RFC 1122, 4.2.3.6; RFC 9293, 3.8.6.1). `acknowledged`: the offset up to which the receiver
    /// has acknowledged.
    pub(super) fn is_probe(&self, from: u64, end: u64, acknowledged: Option<u64>) -> bool {
        let has = acknowledged.is_some_and(|up_to| up_to >= end);
        let has_no_room = self.room_end.is_some_and(|room_end| room_end <= from);
        let known = self.left.end().max(self.arrived.progress().end());
        end == from + 1 && end >= known && (has || has_no_room)
    }

    /// A segment arrives at the receiver's host. If all its bytes are there already, it was sent again needlessly and is not counted
    /// as a loss.
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

    /// A small segment leaves while its receiver has acknowledged up to an offset: shows whether Nagle's algorithm holds anything
    /// back.
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

    /// Whether another segment fits behind offset `sent` into a window that ends at `room_end`.
    pub(super) fn has_room_for_more(&self, sent: u64, room_end: u64) -> bool {
        room_end.saturating_sub(sent) >= self.largest.clamp(1, SEGMENT)
    }

    /// The progress of its bytes where they are first seen: at its sender's door, or else at its receiver's.
    pub(super) const fn passed(&self) -> &StreamPointProgress {
        if self.left.end() > 0 {
            &self.left
        } else {
            self.arrived.progress()
        }
    }

    /// How long the byte at an offset waited, after it was written, until the byte before it had left, ns; 0 where its sender is not observed.
    pub(super) fn behind_ns(&self, from: u64) -> u64 {
        let written = self.written.moment_of(from);
        let before = from
            .checked_sub(1)
            .and_then(|before| self.left.moment_of(before));
        let waited = written.zip(before);
        waited.map_or(0, |(written, before)| {
            before.at_ns.saturating_sub(written.at_ns)
        })
    }

    /// How long its sender sent nothing between two offsets although nothing hindered it, ns.
    pub(super) fn paused_ns(&self, from: u64, end: u64) -> u64 {
        self.paused_after(from, end, 0)
    }

    /// The same from a moment on: an answer such as `100 Continue` begins before its request is complete, and goes on only after it.
    pub(super) fn paused_after(&self, from: u64, end: u64, after_ns: u64) -> u64 {
        self.sum_of_pauses(from, end, |gap| {
            let whole = gap.until_ns.saturating_sub(gap.since_ns.max(after_ns));
            whole.saturating_sub(gap.awaited_ns + gap.travelled_ns)
        })
    }

    /// How long its sender waited between two offsets for a message of the other end, ns.
    pub(super) fn awaited_ns(&self, from: u64, end: u64) -> u64 {
        self.sum_of_pauses(from, end, |gap| gap.awaited_ns)
    }

    /// Sums a time over the gaps between two offsets that were pauses of the program.
    fn sum_of_pauses(&self, from: u64, end: u64, ns: impl Fn(&SendGap) -> u64) -> u64 {
        let passed = self.passed();
        // A gap before the first byte is no pause within the message.
        let begun = passed.moment_of(from).map_or(u64::MAX, |first| first.at_ns);
        // Gaps are in the order of their end offsets.
        let of_these = self.gaps.iter().skip_while(|gap| gap.end <= from);
        of_these
            .take_while(|gap| gap.end <= end)
            .filter(|gap| gap.since_ns >= begun)
            .filter(|gap| gap.is_pause || self.was_written_behind(gap))
            .map(ns)
            .fold(0, u64::saturating_add)
    }

    /// Whether the data after a gap was written only when it left. A call that goes on long after that waits for room itself.
    fn was_written_behind(&self, gap: &SendGap) -> bool {
        let written = gap
            .end
            .checked_sub(1)
            .and_then(|last| self.written.moment_of(last));
        written.is_some_and(|written| {
            written.at_ns > gap.since_ns && written.at_ns <= gap.until_ns.saturating_add(CALL_NS)
        })
    }
}
