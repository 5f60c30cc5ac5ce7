//! Streams and offsets of all connections of a capture, and which ranges were there before. Nothing is known of them
//! beforehand but perhaps their ids.

use crate::position::Position;
use crate::segment::Segment;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Who sends and who receives.
pub type Ends = (SocketAddr, SocketAddr);

/// Ranges that are remembered of one stream; when there are more holes the lowest are closed.
const MOST_RANGES: usize = 1024;

/// Where a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The id of its stream.
    pub stream: i64,
    /// Of its first byte.
    pub offset: u64,
    /// Whether all of its bytes, and at least one, were there before.
    pub repeated: bool,
}

/// Most streams of a capture; what comes on further ones has no place.
const MOST_STREAMS: usize = 1 << 18;

/// All connections of a capture.
#[derive(Debug)]
pub struct Connections {
    known: BTreeMap<Ends, i64>,
    open: BTreeMap<Ends, Stream>,
    next_flow: u32,
}

#[derive(Debug)]
struct Stream {
    id: i64,
    position: Position,
    /// Ranges that were there, by where they begin, apart from one another.
    ranges: BTreeMap<u64, u64>,
    began: bool,
}

impl Connections {
    /// Of which those streams are known; others get flows from that one on.
    #[must_use]
    pub const fn new(known: BTreeMap<Ends, i64>, first_flow: u32) -> Self {
        Self { known, open: BTreeMap::new(), next_flow: first_flow }
    }

    /// Where a segment that was captured is; `None` when there are more streams than can be remembered.
    pub fn locate(&mut self, segment: &Segment) -> Option<Location> {
        let &Segment { ends, sequence, bytes, syn, .. } = segment;
        let first = if syn { sequence.wrapping_add(1) } else { sequence };
        let there = self.open.contains_key(&ends);
        if !there && self.open.len() >= MOST_STREAMS {
            return None;
        }
        if !there || (syn && !self.is_again(&ends, first)) {
            let id = self.id(ends, there);
            let stream = Stream { id, position: Position::new(first), ranges: BTreeMap::new(), began: syn };
            self.open.insert(ends, stream);
        }
        let stream = self.open.get_mut(&ends)?;
        // Where the capture begins in the middle, what comes from before its first segment is there too.
        let offset = stream.position.offset(first).unwrap_or(0);
        let repeated = bytes > 0 && !stream.keep(offset, offset + bytes);
        Some(Location { stream: stream.id, offset, repeated })
    }

    /// Whether a SYN is one that is sent again.
    fn is_again(&self, ends: &Ends, first: u32) -> bool {
        self.open
            .get(ends)
            .is_some_and(|stream| stream.began && stream.ranges.is_empty() && stream.position.begins_at(first))
    }

    /// The id of a stream that begins; `again`: these ends had a connection before, which is another.
    fn id(&mut self, ends: Ends, again: bool) -> i64 {
        // Whoever sends first in a connection counts as its initiator.
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
    #[must_use]
    pub fn known(self) -> (BTreeMap<Ends, i64>, u32) {
        let latest = self.open.into_iter().map(|(ends, stream)| (ends, stream.id));
        (self.known.into_iter().chain(latest).collect(), self.next_flow)
    }

    /// Streams whose first captured segment was no SYN.
    pub fn without_beginning(&self) -> impl Iterator<Item = (Ends, i64)> {
        self.open.iter().filter(|(_, stream)| !stream.began && !stream.ranges.is_empty()).map(|(ends, s)| (*ends, s.id))
    }
}

impl Stream {
    /// Remembers a range; whether some of it is new.
    fn keep(&mut self, from: u64, to: u64) -> bool {
        let covered = self.ranges.range(..=from).next_back().is_some_and(|(_, end)| *end >= to);
        if covered {
            return false;
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
        self.position.advance(to);
        true
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

    fn segment(ends: Ends, sequence: u32, bytes: u64, syn: bool) -> Segment {
        Segment {
            ends,
            sequence,
            bytes,
            syn,
            fin: false,
            reset: false,
            acknowledged: None,
            window: 0,
            window_scale: None,
            largest_segment: None,
            length: 40 + bytes,
        }
    }

    fn first(stream: i64, offset: u64) -> Location {
        Location { stream, offset, repeated: false }
    }

    #[test]
    fn offsets_count_from_the_syn_through_the_wrap() {
        let mut connections = Connections::new(BTreeMap::new(), 7);
        let isn = u32::MAX - 1000;
        let mut locate =
            |sequence: u32, bytes, syn| connections.locate(&segment(ends(), sequence, bytes, syn)).unwrap();
        assert_eq!(locate(isn, 0, true), first(14, 0));
        let data = isn.wrapping_add(1);
        assert_eq!(locate(data, 1000, false), first(14, 0));
        assert_eq!(locate(data.wrapping_add(2000), 1000, false), first(14, 2000));
        assert_eq!(locate(data, 1000, false), Location { repeated: true, ..first(14, 0) });
        // What fills a hole is no retransmission.
        assert_eq!(locate(data.wrapping_add(1000), 1000, false), first(14, 1000));
        assert_eq!(locate(data.wrapping_add(500), 2500, false), Location { repeated: true, ..first(14, 500) });
        let back = (ends().1, ends().0);
        assert_eq!(connections.locate(&segment(back, 5, 10, false)).unwrap(), first(15, 0));
        assert_eq!(connections.without_beginning().collect::<Vec<_>>(), [(back, 15)]);
    }

    #[test]
    fn known_connections_keep_their_ids_and_ports_used_again_are_another_connection() {
        let mut connections = Connections::new(BTreeMap::from([(ends(), 8)]), 20);
        let mut locate = |ends, sequence, bytes, syn| connections.locate(&segment(ends, sequence, bytes, syn)).unwrap();
        let back = (ends().1, ends().0);
        assert_eq!(locate(ends(), 100, 0, true), first(8, 0));
        assert_eq!(locate(back, 700, 0, true), first(9, 0));
        assert_eq!(locate(ends(), 101, 50, false), first(8, 0));
        assert_eq!(locate(ends(), 9000, 0, true), first(40, 0));
        assert_eq!(locate(back, 9700, 0, true), first(41, 0));
        assert_eq!(locate(ends(), 9001, 50, false), first(40, 0));
        let (known, next) = connections.known();
        assert_eq!((known[&ends()], known[&back], next), (40, 41, 21));
    }
}
