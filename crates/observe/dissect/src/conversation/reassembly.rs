//! Reassembles one direction of a connection: takes segments in any order and gives bytes in order. Repeated bytes are dropped. A gap is
//! awaited until the other side acknowledges bytes behind it: then the bytes had arrived and only the capture lost them, so the gap is
//! reported and skipped.

use crate::left_out::Bound;
use std::collections::BTreeMap;

/// The most bytes behind a gap that are held; with more, the gap is skipped.
pub const MOST_HELD: usize = Bound::BehindHole.most();

/// A piece of the stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReassembledPiece<'b> {
    /// Captured bytes, and the offset of the first one.
    Bytes(u64, &'b [u8]),
    /// Bytes that were not captured: the offset of the first one, and their number.
    Unseen(u64, u64),
}

/// A segment behind a gap.
#[derive(Debug)]
struct ReassemblySegment {
    bytes: Vec<u8>,
    /// The length of the segment in bytes, captured or not.
    length: u64,
}

/// The reassembly of one direction.
#[derive(Debug, Default)]
pub struct StreamReassembly {
    /// The offset up to which pieces were given.
    next: u64,
    /// Segments behind gaps, by their offset.
    held: BTreeMap<u64, ReassemblySegment>,
    /// The memory that they take, in bytes.
    held_bytes: usize,
    /// The number of bytes that were never captured.
    lost: u64,
    /// The number of gaps that were skipped because too much was held behind them.
    given_up: u64,
    /// The length of the stream, once a FIN has announced it.
    end: Option<u64>,
}

impl StreamReassembly {
    /// A reassembly that begins at an offset.
    #[must_use]
    pub fn at(next: u64) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// The offset up to which pieces were given.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The memory that segments behind gaps take, in bytes.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held_bytes
    }

    /// How many bytes the capture lost or cut off.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The number of gaps that were skipped because of [`MOST_HELD`], since the last call.
    pub const fn take_given_up(&mut self) -> u64 {
        std::mem::replace(&mut self.given_up, 0)
    }

    /// Takes a segment of `length` bytes, of which `bytes` were captured.
    pub fn segment(
        &mut self,
        at: u64,
        bytes: &[u8],
        length: u64,
        give: &mut impl FnMut(ReassembledPiece<'_>),
    ) {
        let length = length.max(bytes.len() as u64);
        if at > self.next {
            self.hold(at, bytes, length);
            if self.held_bytes > MOST_HELD {
                self.given_up += 1;
                self.skip_hole(give);
            }
            return;
        }
        self.give(at, bytes, length, give);
        self.give_held(give);
    }

    /// The other side has acknowledged everything before the offset `to`.
    pub fn acknowledged(&mut self, to: u64, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        while self.next < to && self.held.first_key_value().is_some_and(|(at, _)| *at < to) {
            self.skip_hole(give);
        }
        // If nothing is held behind a gap, its bytes may still come, as an acknowledgement can overtake data between two capture points.
        // But an acknowledgement of the FIN, which has a sequence number of its own, covers all data.
        if let Some(end) = self.end.filter(|end| to > *end && *end > self.next) {
            self.unseen(end, give);
        }
    }

    /// A FIN ends the stream at an offset. Missing bytes may still be retransmitted.
    pub fn end(&mut self, at: u64) {
        self.end = Some(self.end.unwrap_or(0).max(at));
    }

    /// The end of the stream, if a FIN announced it.
    #[must_use]
    pub const fn said_end(&self) -> Option<u64> {
        self.end
    }

    /// Whether everything up to the end was given.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Nothing more will come: gives what is held, and reports the gaps.
    pub fn finish(&mut self, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        while !self.held.is_empty() {
            self.skip_hole(give);
        }
        if let Some(end) = self.end.filter(|end| *end > self.next) {
            self.unseen(end, give);
        }
    }

    /// Holds a segment behind a gap; 64 bytes are added for the memory of an entry.
    fn hold(&mut self, at: u64, bytes: &[u8], length: u64) {
        if self.held.get(&at).is_none_or(|held| held.length < length) {
            let old = self.held.insert(
                at,
                ReassemblySegment {
                    bytes: bytes.to_vec(),
                    length,
                },
            );
            self.held_bytes += bytes.len() + 64;
            self.held_bytes -= old.map_or(0, |old| old.bytes.len() + 64);
        }
    }

    /// Reports the first gap as unseen, and gives what is held behind it.
    fn skip_hole(&mut self, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        if let Some((at, _)) = self.held.first_key_value() {
            let at = *at;
            if at > self.next {
                self.unseen(at, give);
            }
            self.give_held(give);
        }
    }

    /// Reports the bytes up to `to` as not captured.
    fn unseen(&mut self, to: u64, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        self.lost += to - self.next;
        give(ReassembledPiece::Unseen(self.next, to - self.next));
        self.next = to;
    }

    /// Gives the held segments that follow without a gap.
    fn give_held(&mut self, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        while let Some(entry) = self
            .held
            .first_entry()
            .filter(|entry| *entry.key() <= self.next)
        {
            let (at, held) = entry.remove_entry();
            self.held_bytes -= held.bytes.len() + 64;
            self.give(at, &held.bytes, held.length, give);
        }
    }

    /// Gives the part of a segment that was not given before.
    fn give(
        &mut self,
        at: u64,
        bytes: &[u8],
        length: u64,
        give: &mut impl FnMut(ReassembledPiece<'_>),
    ) {
        let end = at.saturating_add(length);
        if end <= self.next {
            return;
        }
        let known = usize::try_from(self.next - at).unwrap_or(usize::MAX);
        if let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) {
            give(ReassembledPiece::Bytes(self.next, new));
            self.next += new.len() as u64;
        }
        if end > self.next {
            self.unseen(end, give);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(
        feed: impl FnOnce(&mut StreamReassembly, &mut dyn FnMut(ReassembledPiece<'_>)),
    ) -> Vec<String> {
        let (mut reassembly, mut out) = (StreamReassembly::default(), Vec::new());
        feed(&mut reassembly, &mut |piece| {
            out.push(match piece {
                ReassembledPiece::Bytes(at, bytes) => {
                    format!("{at} {}", String::from_utf8_lossy(bytes))
                }
                ReassembledPiece::Unseen(at, count) => format!("{at} unseen {count}"),
            });
        });
        out
    }

    #[test]
    fn segments_come_in_their_order_and_once() {
        let given = given(|reassembly, mut give| {
            for (at, bytes) in [
                (4, "efgh"),
                (0, "ab"),
                (0, "abcd"),
                (2, "cdef"),
                (8, "i"),
                (3, "d"),
            ] {
                reassembly.segment(at, bytes.as_bytes(), 0, &mut give);
            }
        });
        assert_eq!(given, ["0 ab", "2 cd", "4 efgh", "8 i"]);
    }

    #[test]
    fn a_hole_is_lost_when_what_lies_behind_it_is_acknowledged() {
        let given = given(|reassembly, mut give| {
            reassembly.segment(0, b"ab", 2, &mut give);
            reassembly.segment(5, b"fg", 2, &mut give);
            reassembly.acknowledged(2, &mut give);
            reassembly.acknowledged(5, &mut give);
            reassembly.acknowledged(7, &mut give);
        });
        assert_eq!(given, ["0 ab", "2 unseen 3", "5 fg"]);
    }

    #[test]
    fn what_a_capture_cut_off_is_unseen() {
        let given = given(|reassembly, mut give| {
            reassembly.segment(0, b"ab", 5, &mut give);
            reassembly.segment(5, b"fg", 2, &mut give);
            reassembly.segment(9, b"x", 1, &mut give);
            reassembly.end(12);
            reassembly.finish(&mut give);
        });
        assert_eq!(
            given,
            [
                "0 ab",
                "2 unseen 3",
                "5 fg",
                "7 unseen 2",
                "9 x",
                "10 unseen 2"
            ]
        );
    }

    #[test]
    fn what_comes_behind_the_end_is_not_lost_and_who_acknowledges_the_end_has_all() {
        let given = given(|reassembly, mut give| {
            reassembly.segment(0, b"ab", 2, &mut give);
            reassembly.end(5);
            reassembly.acknowledged(5, &mut give);
            assert!(!reassembly.has_ended());
            reassembly.segment(2, b"cd", 2, &mut give);
            reassembly.acknowledged(6, &mut give);
            assert!(reassembly.has_ended());
        });
        assert_eq!(given, ["0 ab", "2 cd", "4 unseen 1"]);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut reassembly = StreamReassembly::default();
        let (mut bytes, mut unseen) = (0, 0);
        for at in 0..(3 * MOST_HELD as u64 / 1000) {
            reassembly.segment(1 + at * 1000, &[7; 1000], 1000, &mut |piece| match piece {
                ReassembledPiece::Bytes(_, given) => bytes += given.len(),
                ReassembledPiece::Unseen(_, count) => unseen += count,
            });
            assert!(reassembly.held_bytes <= MOST_HELD + 2000);
        }
        assert_eq!(
            (unseen, reassembly.lost(), reassembly.take_given_up()),
            (1, 1, 1)
        );
        assert!(bytes > 2 * MOST_HELD);
    }
}
