//! One direction of a connection: segments in any order to bytes in theirs. Bytes that came before are dropped; a hole is waited for
//! until the other side acknowledges what lies behind it: then it was there and the capture lost it, and it is named.

use crate::left_out::Bound;
use std::collections::BTreeMap;

/// Bytes behind a hole that are held, at most; with more of them the hole counts as lost.
pub const MOST_HELD: usize = Bound::BehindHole.most();

/// Bytes in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReassembledPiece<'b> {
    /// Captured bytes, from that offset on.
    Bytes(u64, &'b [u8]),
    /// So many that were not captured, from that offset on.
    Unseen(u64, u64),
}

/// What is held of a segment behind a hole.
#[derive(Debug)]
struct ReassemblySegment {
    bytes: Vec<u8>,
    /// Bytes of the segment, captured or not.
    length: u64,
}

/// One direction.
#[derive(Debug, Default)]
pub struct StreamReassembly {
    /// Where what was given ends.
    next: u64,
    held: BTreeMap<u64, ReassemblySegment>,
    held_bytes: usize,
    /// Bytes that were never captured.
    lost: u64,
    /// Holes that were given up, as too much lay behind them.
    given_up: u64,
    /// Where the side says that it ends.
    end: Option<u64>,
}

impl StreamReassembly {
    /// From that offset on.
    #[must_use]
    pub fn at(next: u64) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    /// Where what was given ends.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes behind holes that are held, with what holding takes.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held_bytes
    }

    /// Bytes that the capture lost or cut off.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Holes that were given up since this was asked last, as too much lay behind them.
    pub const fn take_given_up(&mut self) -> u64 {
        std::mem::replace(&mut self.given_up, 0)
    }

    /// A segment of `length` bytes, of which `bytes` were captured.
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

    /// The other side has everything before that offset.
    pub fn acknowledged(&mut self, to: u64, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        while self.next < to && self.held.first_key_value().is_some_and(|(at, _)| *at < to) {
            self.skip_hole(give);
        }
        // With nothing held behind it, it may still come: an acknowledgement overtakes data between two taps. But the end itself has a
        // number, and who acknowledges that has all before it.
        if let Some(end) = self.end.filter(|end| to > *end && *end > self.next) {
            self.unseen(end, give);
        }
    }

    /// The side has sent everything up to that offset and ends. What is missing may still come: it is sent again behind the end.
    pub fn end(&mut self, at: u64) {
        self.end = Some(self.end.unwrap_or(0).max(at));
    }

    /// Where the side says that it ends.
    #[must_use]
    pub const fn said_end(&self) -> Option<u64> {
        self.end
    }

    /// Whether everything up to the end of the side was given.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Nothing more comes: what is missing will not.
    pub fn finish(&mut self, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        while !self.held.is_empty() {
            self.skip_hole(give);
        }
        if let Some(end) = self.end.filter(|end| *end > self.next) {
            self.unseen(end, give);
        }
    }

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

    fn skip_hole(&mut self, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        if let Some((at, _)) = self.held.first_key_value() {
            let at = *at;
            if at > self.next {
                self.unseen(at, give);
            }
            self.give_held(give);
        }
    }

    fn unseen(&mut self, to: u64, give: &mut impl FnMut(ReassembledPiece<'_>)) {
        self.lost += to - self.next;
        give(ReassembledPiece::Unseen(self.next, to - self.next));
        self.next = to;
    }

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

    /// What of a segment was not given before.
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
