//! Streams and offsets of all connections of a capture, and which ranges were there before. Nothing is known of them
//! beforehand but perhaps their ids.

use crate::left_out::{Bound, LeftOut};
use crate::segment::DissectedSegment;
use crate::sequence_position::Position;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Who sends and who receives.
pub type SegmentEnds = (SocketAddr, SocketAddr);

/// Ranges that are remembered of one stream; when there are more holes the lowest are closed.
const MOST_RANGES: usize = Bound::Ranges.most();

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
const MOST_STREAMS: usize = Bound::Streams.most();

/// Most connections whose beginnings are remembered for other captures of them.
const MOST_BEGUN: usize = Bound::Begun.most();

/// Streams over all captures that are read together: the same connection has the same streams in each of them.
#[derive(Clone, Debug, Default)]
pub struct StreamRegistry {
    /// Streams that are known beforehand.
    given: BTreeMap<SegmentEnds, i64>,
    /// The latest streams of captures, and the sequence number of their first byte where their SYN was seen.
    latest: BTreeMap<SegmentEnds, (i64, Option<u32>)>,
    /// Streams by the sequence number of their first byte.
    begun: BTreeMap<(SegmentEnds, u32), i64>,
    next_flow: u32,
    left_out: LeftOut,
}

impl StreamRegistry {
    /// Those streams; others get flows from that one on.
    #[must_use]
    pub fn new(given: BTreeMap<SegmentEnds, i64>, first_flow: u32) -> Self {
        Self {
            given,
            next_flow: first_flow,
            ..Self::default()
        }
    }

    /// What was left out, as there was more than is remembered.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The first flow that is free.
    #[must_use]
    pub const fn next_flow(&self) -> u32 {
        self.next_flow
    }

    /// The id of a stream that begins with a SYN, and where it belongs to one that another capture saw.
    fn of_syn(&self, ends: &SegmentEnds, first: u32) -> Option<i64> {
        let before = || {
            self.given
                .get(ends)
                .copied()
                .filter(|_| !self.latest.contains_key(ends))
        };
        self.begun.get(&(*ends, first)).copied().or_else(before)
    }

    /// The id of a stream whose beginning this capture missed, and its first byte's sequence number where another one saw it.
    fn of_middle(&self, ends: &SegmentEnds) -> Option<(i64, Option<u32>)> {
        let other = || {
            self.latest
                .get(&(ends.1, ends.0))
                .map(|(id, _)| (id ^ 1, None))
        };
        let given = || self.given.get(ends).map(|id| (*id, None));
        self.latest.get(ends).copied().or_else(other).or_else(given)
    }

    fn next(&mut self) -> i64 {
        self.next_flow = self.next_flow.saturating_add(1);
        i64::from(self.next_flow - 1) << 1
    }

    fn keep(&mut self, ends: SegmentEnds, id: i64, first: Option<u32>) {
        if self.latest.len() < MOST_BEGUN || self.latest.contains_key(&ends) {
            self.latest.insert(ends, (id, first));
        } else {
            self.left_out.add(Bound::Begun, 1);
        }
        if let Some(first) = first {
            if self.begun.len() < MOST_BEGUN {
                self.begun.insert((ends, first), id);
            } else {
                self.left_out.add(Bound::Begun, 1);
            }
        }
    }
}

/// All connections of one capture.
#[derive(Debug, Default)]
pub struct CaptureConnections {
    open: BTreeMap<SegmentEnds, CaptureStream>,
    left_out: LeftOut,
}

#[derive(Debug)]
struct CaptureStream {
    id: i64,
    position: Position,
    /// Ranges that were there, by where they begin, apart from one another.
    ranges: BTreeMap<u64, u64>,
    began: bool,
}

impl CaptureConnections {
    /// What was left out, as there was more than is remembered.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Where a segment that was captured is; `None` when there are more streams than can be remembered.
    pub fn locate(
        &mut self,
        known: &mut StreamRegistry,
        segment: &DissectedSegment,
    ) -> Option<Location> {
        let &DissectedSegment {
            ends,
            sequence,
            bytes,
            syn,
            ..
        } = segment;
        let first = if syn {
            sequence.wrapping_add(1)
        } else {
            sequence
        };
        let there = self.open.contains_key(&ends);
        if !there && self.open.len() >= MOST_STREAMS {
            self.left_out.add(Bound::Streams, 1);
            return None;
        }
        if !there || (syn && !self.is_again(&ends, first)) {
            let (id, begin) = self.begin(known, segment, first);
            // Where another capture saw the beginning, offsets count from there.
            let begin = begin.filter(|begin| first.wrapping_sub(*begin) < 1 << 31);
            let position = Position::new(begin.unwrap_or(first));
            known.keep(ends, id, if syn { Some(first) } else { begin });
            self.open.insert(
                ends,
                CaptureStream {
                    id,
                    position,
                    ranges: BTreeMap::new(),
                    began: syn || begin.is_some(),
                },
            );
        }
        let stream = self.open.get_mut(&ends)?;
        // Where the capture begins in the middle, what comes from before its first segment is there too.
        let offset = stream.position.offset(first).unwrap_or(0);
        let repeated = bytes > 0 && !stream.keep(offset, offset.saturating_add(bytes));
        if stream.ranges.len() > MOST_RANGES {
            stream.close_the_lowest_hole();
            self.left_out.add(Bound::Ranges, 1);
        }
        Some(Location {
            stream: stream.id,
            offset,
            repeated,
        })
    }

    /// Whether a SYN is one that is sent again.
    fn is_again(&self, ends: &SegmentEnds, first: u32) -> bool {
        self.open.get(ends).is_some_and(|stream| {
            stream.began && stream.ranges.is_empty() && stream.position.begins_at(first)
        })
    }

    /// The id of a stream that begins, or begins here, and where its first byte is, if another capture saw that.
    fn begin(
        &self,
        known: &mut StreamRegistry,
        segment: &DissectedSegment,
        first: u32,
    ) -> (i64, Option<u32>) {
        let (from, to) = segment.ends;
        let other = self.open.get(&(to, from)).map(|other| other.id ^ 1);
        let opens = segment.syn && segment.acknowledged.is_none();
        if segment.syn
            && let Some(id) = known.of_syn(&segment.ends, first)
        {
            return (id, None);
        }
        if opens {
            // Of simultaneous opens, or where a SYN says nothing of an acknowledgement, the first was the initiator's.
            return (
                other
                    .filter(|id| id & 1 == 1)
                    .unwrap_or_else(|| known.next()),
                None,
            );
        }
        if let Some(id) = other {
            return (id, None);
        }
        if !segment.syn
            && let Some(known) = known.of_middle(&segment.ends)
        {
            return known;
        }
        // The answer tells who opened; else whoever serves at the lower port was connected to.
        let is_back = segment.syn || from.port() < to.port();
        (known.next() | i64::from(is_back), None)
    }

    /// Streams whose first captured segment was no SYN.
    pub fn without_beginning(&self) -> impl Iterator<Item = (SegmentEnds, i64)> {
        self.open
            .iter()
            .filter(|(_, stream)| !stream.began && !stream.ranges.is_empty())
            .map(|(ends, s)| (*ends, s.id))
    }
}

impl CaptureStream {
    /// Remembers a range; whether some of it is new.
    fn keep(&mut self, from: u64, to: u64) -> bool {
        let covered = self
            .ranges
            .range(..=from)
            .next_back()
            .is_some_and(|(_, end)| *end >= to);
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
        self.position.advance(to);
        true
    }

    fn close_the_lowest_hole(&mut self) {
        if let (Some((begin, _)), Some((_, end))) =
            (self.ranges.pop_first(), self.ranges.pop_first())
        {
            self.ranges.insert(begin, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> SegmentEnds {
        (
            "10.0.0.1:5000".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        )
    }

    fn segment(ends: SegmentEnds, sequence: u32, bytes: u64, syn: bool) -> DissectedSegment {
        DissectedSegment {
            ends,
            sequence,
            bytes,
            syn,
            fin: false,
            reset: false,
            acknowledged: (!syn || ends.0.port() == 80).then_some(0),
            window: 0,
            window_scale: None,
            largest_segment: None,
            ttl: 64,
            length: 40 + bytes,
        }
    }

    fn first(stream: i64, offset: u64) -> Location {
        Location {
            stream,
            offset,
            repeated: false,
        }
    }

    #[test]
    fn offsets_count_from_the_syn_through_the_wrap() {
        let (mut connections, mut known) = (
            CaptureConnections::default(),
            StreamRegistry::new(BTreeMap::new(), 7),
        );
        let isn = u32::MAX - 1000;
        let mut locate = |sequence: u32, bytes, syn| {
            connections
                .locate(&mut known, &segment(ends(), sequence, bytes, syn))
                .unwrap()
        };
        assert_eq!(locate(isn, 0, true), first(14, 0));
        let data = isn.wrapping_add(1);
        assert_eq!(locate(data, 1000, false), first(14, 0));
        assert_eq!(
            locate(data.wrapping_add(2000), 1000, false),
            first(14, 2000)
        );
        assert_eq!(
            locate(data, 1000, false),
            Location {
                repeated: true,
                ..first(14, 0)
            }
        );
        // What fills a hole is not a retransmission.
        assert_eq!(
            locate(data.wrapping_add(1000), 1000, false),
            first(14, 1000)
        );
        assert_eq!(
            locate(data.wrapping_add(500), 2500, false),
            Location {
                repeated: true,
                ..first(14, 500)
            }
        );
        let back = (ends().1, ends().0);
        assert_eq!(
            connections
                .locate(&mut known, &segment(back, 5, 10, false))
                .unwrap(),
            first(15, 0)
        );
        assert_eq!(
            connections.without_beginning().collect::<Vec<_>>(),
            [(back, 15)]
        );
    }

    #[test]
    fn known_connections_keep_their_ids_and_ports_used_again_are_another_connection() {
        let (mut connections, mut known) = (
            CaptureConnections::default(),
            StreamRegistry::new(BTreeMap::from([(ends(), 8)]), 20),
        );
        let mut locate = |known: &mut StreamRegistry, ends, sequence, bytes, syn| {
            connections
                .locate(known, &segment(ends, sequence, bytes, syn))
                .unwrap()
        };
        let back = (ends().1, ends().0);
        assert_eq!(locate(&mut known, ends(), 100, 0, true), first(8, 0));
        assert_eq!(locate(&mut known, back, 700, 0, true), first(9, 0));
        assert_eq!(locate(&mut known, ends(), 101, 50, false), first(8, 0));
        assert_eq!(locate(&mut known, ends(), 9000, 0, true), first(40, 0));
        assert_eq!(locate(&mut known, back, 9700, 0, true), first(41, 0));
        assert_eq!(locate(&mut known, ends(), 9001, 50, false), first(40, 0));
        assert_eq!(known.next_flow(), 21);
        // Another capture of both: each of them is the same, and a third one is not.
        let mut other = CaptureConnections::default();
        let mut locate = |ends, sequence, bytes, syn| {
            other
                .locate(&mut known, &segment(ends, sequence, bytes, syn))
                .unwrap()
        };
        assert_eq!(locate(ends(), 100, 0, true), first(8, 0));
        assert_eq!(locate(back, 700, 0, true), first(9, 0));
        assert_eq!(locate(ends(), 9000, 0, true), first(40, 0));
        assert_eq!(locate(ends(), 20_000, 0, true), first(42, 0));
    }

    #[test]
    fn a_capture_that_begins_late_counts_from_where_another_one_saw_the_beginning() {
        let (mut early, mut known) = (CaptureConnections::default(), StreamRegistry::default());
        early
            .locate(&mut known, &segment(ends(), 100, 0, true))
            .unwrap();
        let mut late = CaptureConnections::default();
        assert_eq!(
            late.locate(&mut known, &segment(ends(), 601, 50, false))
                .unwrap(),
            first(0, 500)
        );
        assert_eq!(late.without_beginning().count(), 0);
        // Whoever serves at the lower port was connected to.
        let strange = (
            "10.0.0.3:80".parse().unwrap(),
            "10.0.0.4:6000".parse().unwrap(),
        );
        assert_eq!(
            late.locate(&mut known, &segment(strange, 5, 10, false))
                .unwrap(),
            first(3, 0)
        );
        assert_eq!(
            late.locate(&mut known, &segment((strange.1, strange.0), 9, 1, false))
                .unwrap(),
            first(2, 0)
        );
    }
}
