//! Sequence numbers to offsets in streams, and which ranges were there before.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Who sends and who receives.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Ranges that are remembered of one stream; when there are more holes the lowest are closed.
const MOST_RANGES: usize = 1024;

/// Whether a segment's data were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Some of its bytes are new.
    First,
    /// All of its bytes, and at least one, were seen before.
    Before,
}

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) stream: i64,
    pub(super) offset: u64,
}

/// Most streams of a capture; what comes on further ones is not told.
const MOST_STREAMS: usize = 1 << 18;

/// All streams of a capture.
#[derive(Debug)]
pub(super) struct Streams {
    known: BTreeMap<Ends, i64>,
    open: BTreeMap<Ends, Stream>,
    next_flow: u32,
}

#[derive(Debug)]
struct Stream {
    id: i64,
    /// Sequence number of the next byte expected, and its offset: what is near it is told apart from what wrapped.
    next: (u32, u64),
    /// Ranges seen, by where they begin, apart from one another.
    ranges: BTreeMap<u64, u64>,
    began: bool,
}

impl Streams {
    pub(super) const fn new(known: BTreeMap<Ends, i64>, first_flow: u32) -> Self {
        Self { known, open: BTreeMap::new(), next_flow: first_flow }
    }

    /// A segment was captured; `None` when there are more streams than can be remembered.
    pub(super) fn see(&mut self, ends: Ends, sequence: u32, bytes: u64, syn: bool) -> Option<(Seen, Range)> {
        let first = if syn { sequence.wrapping_add(1) } else { sequence };
        let there = self.open.contains_key(&ends);
        if !there && self.open.len() >= MOST_STREAMS {
            return None;
        }
        if !there || (syn && !self.is_again(&ends, first)) {
            let id = self.id(ends, there);
            let stream = Stream { id, next: (first, 0), ranges: BTreeMap::new(), began: syn };
            self.open.insert(ends, stream);
        }
        let stream = self.open.get_mut(&ends)?;
        let offset = stream.offset(first);
        let seen = if bytes > 0 { stream.keep(offset, offset + bytes) } else { Seen::First };
        Some((seen, Range { stream: stream.id, offset }))
    }

    /// Whether a SYN is one that is sent again.
    fn is_again(&self, ends: &Ends, first: u32) -> bool {
        self.open.get(ends).is_some_and(|stream| stream.began && stream.ranges.is_empty() && stream.next.0 == first)
    }

    /// The id of a stream that begins; `again`: these ends had a connection before, which is another.
    fn id(&mut self, ends: Ends, again: bool) -> i64 {
        // Whoever is seen first in a connection counts as its initiator.
        let back = (ends.1, ends.0);
        let initiator = self.open.get(&back).map(|other| other.id).filter(|id| id & 1 == 0);
        let known = self.known.get(&ends).copied().filter(|_| !again);
        if let Some(id) = initiator.map(|id| id | 1).or(known) {
            return id;
        }
        self.next_flow += 1;
        i64::from(self.next_flow - 1) << 1
    }

    /// What is known for the next capture of the same connections: their latest streams, and the first flow that is free.
    pub(super) fn known(self) -> (BTreeMap<Ends, i64>, u32) {
        let latest = self.open.into_iter().map(|(ends, stream)| (ends, stream.id));
        (self.known.into_iter().chain(latest).collect(), self.next_flow)
    }

    /// Streams whose first segment seen was no SYN.
    pub(super) fn without_beginning(&self) -> impl Iterator<Item = (Ends, i64)> {
        self.open.iter().filter(|(_, stream)| !stream.began && !stream.ranges.is_empty()).map(|(ends, s)| (*ends, s.id))
    }
}

impl Stream {
    fn offset(&self, sequence: u32) -> u64 {
        let ahead = sequence.wrapping_sub(self.next.0).cast_signed();
        self.next.1.saturating_add_signed(i64::from(ahead))
    }

    fn keep(&mut self, from: u64, to: u64) -> Seen {
        let covered = self.ranges.range(..=from).next_back().is_some_and(|(_, end)| *end >= to);
        if covered {
            return Seen::Before;
        }
        let (mut from, mut to) = (from, to);
        // Everything that touches it becomes one with it.
        while let Some((begin, end)) = self.ranges.range(..=to).next_back().map(|(b, e)| (*b, *e)) {
            if end < from {
                break;
            }
            self.ranges.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.ranges.insert(from, to);
        if self.ranges.len() > MOST_RANGES {
            self.close_the_lowest_hole();
        }
        if to > self.next.1 {
            let ahead = to - self.next.1;
            self.next = (self.next.0.wrapping_add(ahead as u32), to);
        }
        Seen::First
    }

    fn close_the_lowest_hole(&mut self) {
        if let (Some((begin, _)), Some((_, end))) = (self.ranges.pop_first(), self.ranges.pop_first()) {
            self.ranges.insert(begin, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
    }

    #[test]
    fn offsets_count_from_the_syn_through_the_wrap() {
        let mut streams = Streams::new(BTreeMap::new(), 7);
        let isn = u32::MAX - 1000;
        let mut see = |sequence: u32, bytes, syn| streams.see(ends(), sequence, bytes, syn).unwrap();
        assert_eq!(see(isn, 0, true), (Seen::First, Range { stream: 14, offset: 0 }));
        let data = isn.wrapping_add(1);
        assert_eq!(see(data, 1000, false), (Seen::First, Range { stream: 14, offset: 0 }));
        assert_eq!(see(data.wrapping_add(2000), 1000, false), (Seen::First, Range { stream: 14, offset: 2000 }));
        assert_eq!(see(data, 1000, false), (Seen::Before, Range { stream: 14, offset: 0 }));
        // What fills a hole is no retransmission that was seen.
        assert_eq!(see(data.wrapping_add(1000), 1000, false), (Seen::First, Range { stream: 14, offset: 1000 }));
        assert_eq!(see(data.wrapping_add(500), 2500, false).0, Seen::Before);
        let back = (ends().1, ends().0);
        assert_eq!(streams.see(back, 5, 10, false).unwrap().1, Range { stream: 15, offset: 0 });
        assert_eq!(streams.without_beginning().collect::<Vec<_>>(), [(back, 15)]);
    }

    #[test]
    fn known_streams_keep_their_ids_and_ports_used_again_are_another_connection() {
        let mut streams = Streams::new(BTreeMap::from([(ends(), 8)]), 20);
        let mut see = |ends, sequence, bytes, syn| streams.see(ends, sequence, bytes, syn).unwrap().1;
        let back = (ends().1, ends().0);
        assert_eq!(see(ends(), 100, 0, true), Range { stream: 8, offset: 0 });
        assert_eq!(see(back, 700, 0, true), Range { stream: 9, offset: 0 });
        assert_eq!(see(ends(), 101, 50, false), Range { stream: 8, offset: 0 });
        assert_eq!(see(ends(), 9000, 0, true), Range { stream: 40, offset: 0 });
        assert_eq!(see(back, 9700, 0, true), Range { stream: 41, offset: 0 });
        assert_eq!(see(ends(), 9001, 50, false), Range { stream: 40, offset: 0 });
        let (known, next) = streams.known();
        assert_eq!((known[&ends()], known[&back], next), (40, 41, 21));
    }
}
