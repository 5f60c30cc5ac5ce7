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

    /// A segment was captured.
    pub(super) fn see(&mut self, ends: Ends, sequence: u32, bytes: u64, syn: bool) -> (Seen, Range) {
        let first = if syn { sequence.wrapping_add(1) } else { sequence };
        if !self.open.contains_key(&ends) || (syn && !self.is_again(&ends, first)) {
            let id = self.id(ends);
            let stream = Stream { id, next: (first, 0), ranges: BTreeMap::new(), began: syn };
            self.open.insert(ends, stream);
        }
        // It was put in above when it was not there.
        let Some(stream) = self.open.get_mut(&ends) else { return (Seen::First, Range { stream: 0, offset: 0 }) };
        let offset = stream.offset(first);
        let seen = if bytes > 0 { stream.keep(offset, offset + bytes) } else { Seen::First };
        (seen, Range { stream: stream.id, offset })
    }

    /// Whether a SYN is one that is sent again.
    fn is_again(&self, ends: &Ends, first: u32) -> bool {
        self.open.get(ends).is_some_and(|stream| stream.began && stream.ranges.is_empty() && stream.next.0 == first)
    }

    fn id(&mut self, ends: Ends) -> i64 {
        if let Some(id) = self.known.get(&ends) {
            return *id;
        }
        // Whoever is seen first in a connection counts as its initiator.
        let back = (ends.1, ends.0);
        if let Some(other) = self.open.get(&back).filter(|other| other.id & 1 == 0) {
            return other.id | 1;
        }
        self.next_flow += 1;
        i64::from(self.next_flow - 1) << 1
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
        let mut see = |sequence: u32, bytes, syn| streams.see(ends(), sequence, bytes, syn);
        assert_eq!(see(isn, 0, true), (Seen::First, Range { stream: 14, offset: 0 }));
        let data = isn.wrapping_add(1);
        assert_eq!(see(data, 1000, false), (Seen::First, Range { stream: 14, offset: 0 }));
        assert_eq!(see(data.wrapping_add(2000), 1000, false), (Seen::First, Range { stream: 14, offset: 2000 }));
        assert_eq!(see(data, 1000, false), (Seen::Before, Range { stream: 14, offset: 0 }));
        // What fills a hole is no retransmission that was seen.
        assert_eq!(see(data.wrapping_add(1000), 1000, false), (Seen::First, Range { stream: 14, offset: 1000 }));
        assert_eq!(see(data.wrapping_add(500), 2500, false).0, Seen::Before);
        let back = (ends().1, ends().0);
        assert_eq!(streams.see(back, 5, 10, false).1, Range { stream: 15, offset: 0 });
        assert_eq!(streams.without_beginning().collect::<Vec<_>>(), [(back, 15)]);
    }

    #[test]
    fn known_streams_keep_their_ids_and_ports_used_again_begin_anew() {
        let mut streams = Streams::new(BTreeMap::from([(ends(), 9)]), 0);
        assert_eq!(streams.see(ends(), 100, 0, true).1, Range { stream: 9, offset: 0 });
        assert_eq!(streams.see(ends(), 101, 50, false).1, Range { stream: 9, offset: 0 });
        assert_eq!(streams.see(ends(), 9000, 0, true).1, Range { stream: 9, offset: 0 });
        assert_eq!(streams.see(ends(), 9001, 50, false), (Seen::First, Range { stream: 9, offset: 0 }));
    }
}
