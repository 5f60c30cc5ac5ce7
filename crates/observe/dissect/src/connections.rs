//! Assigns each TCP segment of a capture its stream and offset, and finds the ranges that were seen before (retransmissions). Nothing is
//! known of the connections beforehand, except perhaps their stream ids.
//! A stream is one direction of a connection; its id is twice the number of the flow (the connection), plus 1 for the direction back.

use crate::left_out::{Bound, LeftOut};
use crate::segment::DissectedSegment;
use crate::sequence_position::Position;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The sender's and the receiver's address, in this order.
pub type SegmentEnds = (SocketAddr, SocketAddr);

/// How many separate ranges are remembered of one stream; beyond this, the lowest gap is treated as filled.
const MOST_RANGES: usize = Bound::Ranges.most();

/// The place of a segment in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The id of its stream.
    pub stream: i64,
    /// The offset of its first byte, in bytes from the start of the stream.
    pub offset: u64,
    /// Whether the segment has data and all of it was seen before: it was retransmitted. False for a probe.
    pub repeated: bool,
    /// How many of its bytes were not seen before.
    pub fresh: u64,
    /// Whether the segment only asks for an acknowledgement: a keep-alive of one byte (RFC 1122, 4.2.3.6), or a probe of a closed window
    /// (RFC 9293, 3.8.6.1).
    pub is_probe: bool,
}

/// The most streams of one capture; segments of further streams get no location.
const MOST_STREAMS: usize = Bound::Streams.most();

/// The most connections whose start is remembered, so that other captures can recognise them.
const MOST_BEGUN: usize = Bound::Begun.most();

/// The ids of streams across all captures that are read together: a connection has the same ids in each of them.
#[derive(Clone, Debug, Default)]
pub struct StreamRegistry {
    /// Stream ids that are known beforehand.
    given: BTreeMap<SegmentEnds, i64>,
    /// Per direction, the stream that a capture saw last, and the sequence number of its first byte if a SYN was seen.
    latest: BTreeMap<SegmentEnds, (i64, Option<u32>)>,
    /// Stream ids by the sequence number of the first byte: this identifies a connection in another capture.
    begun: BTreeMap<(SegmentEnds, u32), i64>,
    /// The number that the next new flow gets.
    next_flow: u32,
    left_out: LeftOut,
}

impl StreamRegistry {
    /// A registry with the given stream ids; connections that are not in it get flow numbers from `first_flow` on.
    #[must_use]
    pub fn new(given: BTreeMap<SegmentEnds, i64>, first_flow: u32) -> Self {
        Self {
            given,
            next_flow: first_flow,
            ..Self::default()
        }
    }

    /// What was left out because a limit was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The first flow number that is not in use.
    #[must_use]
    pub const fn next_flow(&self) -> u32 {
        self.next_flow
    }

    /// The id for a stream that begins with a SYN, if another capture saw the same SYN, or if it is given beforehand and not used yet.
    fn of_syn(&self, ends: &SegmentEnds, first: u32) -> Option<i64> {
        let before = || {
            self.given
                .get(ends)
                .copied()
                .filter(|_| !self.latest.contains_key(ends))
        };
        self.begun.get(&(*ends, first)).copied().or_else(before)
    }

    /// The id for a stream whose start is not in this capture, and the sequence number of its first byte if another capture saw it.
    fn of_middle(&self, ends: &SegmentEnds) -> Option<(i64, Option<u32>)> {
        let other = || {
            self.latest
                .get(&(ends.1, ends.0))
                .map(|(id, _)| (id ^ 1, None))
        };
        let given = || self.given.get(ends).map(|id| (*id, None));
        self.latest.get(ends).copied().or_else(other).or_else(given)
    }

    /// The id of the forward stream of a new flow.
    fn next(&mut self) -> i64 {
        self.next_flow = self.next_flow.saturating_add(1);
        i64::from(self.next_flow - 1) << 1
    }

    /// Remembers a stream for the other captures.
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

/// The connections of one capture.
#[derive(Debug, Default)]
pub struct CaptureConnections {
    /// The streams by sender and receiver.
    open: BTreeMap<SegmentEnds, CaptureStream>,
    left_out: LeftOut,
}

/// One direction of a connection.
#[derive(Debug)]
struct CaptureStream {
    id: i64,
    position: Position,
    /// The byte ranges that were seen (start to end), disjoint and not adjacent.
    ranges: BTreeMap<u64, u64>,
    /// Whether the start of the stream is known, from its SYN or from another capture.
    began: bool,
    /// The latest acknowledgement number that the sender of this stream announced for the other direction.
    acknowledged: Option<u32>,
    /// Whether the sender of this stream announced a zero receive window.
    is_closed: bool,
}

impl CaptureConnections {
    /// What was left out because a limit was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The place of a captured segment; `None` if the capture has more streams than are remembered.
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
            // Where another capture saw the start of the stream, offsets count from there.
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
                    acknowledged: None,
                    is_closed: false,
                },
            );
        }
        let other = self.open.get(&(ends.1, ends.0));
        // As a zero-window probe (RFC 9293, section 3.8.6.1) or a keep-alive (section 3.8.4).
        let wants_nothing = bytes == 1 && other.is_some_and(|other| other.refuses(sequence));
        let stream = self.open.get_mut(&ends)?;
        stream.announce(segment);
        // Where the capture begins in the middle of a connection, bytes from before its first segment get offset 0.
        let offset = stream.position.offset(first).unwrap_or(0);
        let is_probe = wants_nothing && offset + 1 >= stream.position.farthest();
        let fresh = stream.keep(offset, offset.saturating_add(bytes));
        let repeated = bytes > 0 && fresh == 0 && !is_probe;
        if stream.ranges.len() > MOST_RANGES {
            stream.close_the_lowest_hole();
            self.left_out.add(Bound::Ranges, 1);
        }
        Some(Location {
            stream: stream.id,
            offset,
            repeated,
            fresh,
            is_probe,
        })
    }

    /// Whether a SYN is a retransmission of the one that opened the stream.
    fn is_again(&self, ends: &SegmentEnds, first: u32) -> bool {
        self.open.get(ends).is_some_and(|stream| {
            stream.began && stream.ranges.is_empty() && stream.position.begins_at(first)
        })
    }

    /// The id of a stream that this capture sees first in this segment, and the sequence number of its first byte if another capture saw
    /// it.
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
            // In a simultaneous open, or where a SYN carries no acknowledgement, the first SYN is taken as the initiator's.
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
        // A SYN with an acknowledgement comes from the responder. Otherwise the side with the lower port is taken as the server.
        let is_back = segment.syn || from.port() < to.port();
        (known.next() | i64::from(is_back), None)
    }

    /// The streams whose first captured segment was not a SYN.
    pub fn without_beginning(&self) -> impl Iterator<Item = (SegmentEnds, i64)> {
        self.open
            .iter()
            .filter(|(_, stream)| !stream.began && !stream.ranges.is_empty())
            .map(|(ends, s)| (*ends, s.id))
    }
}

impl CaptureStream {
    /// Notes the acknowledgement and the window that a segment announces for the other direction.
    fn announce(&mut self, segment: &DissectedSegment) {
        if let Some(number) = segment.acknowledged.filter(|_| !segment.reset) {
            self.acknowledged = Some(number);
            self.is_closed = segment.window == 0 && !segment.syn;
        }
    }

    /// Whether the sender of this stream has already acknowledged the byte with this sequence number, or has no room for it.
    fn refuses(&self, sequence: u32) -> bool {
        // Modulo 2^32 (RFC 9293, section 3.4).
        let behind = |number: u32| number.wrapping_sub(sequence.wrapping_add(1)) < 1 << 31;
        self.is_closed || self.acknowledged.is_some_and(behind)
    }

    /// Remembers a range; returns how many bytes of it are new.
    fn keep(&mut self, from: u64, to: u64) -> u64 {
        let covered = self
            .ranges
            .range(..=from)
            .next_back()
            .is_some_and(|(_, end)| *end >= to);
        if covered || from == to {
            return 0;
        }
        let (own, mut known) = ((from, to), 0);
        let (mut from, mut to) = own;
        // Every range that overlaps or touches the new one is merged with it.
        while let Some((begin, end)) = self.ranges.range(..=to).next_back().map(|(b, e)| (*b, *e)) {
            if end < from {
                break;
            }
            self.ranges.remove(&begin);
            known += end.min(own.1).saturating_sub(begin.max(own.0));
            (from, to) = (from.min(begin), to.max(end));
        }
        self.ranges.insert(from, to);
        self.position.advance(to);
        // The merged ranges were disjoint, so they share at most the whole with this one.
        own.1 - own.0 - known
    }

    /// Joins the two lowest ranges, as if the bytes between them had been seen.
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
            window: 500,
            selectively_acknowledged: None,
            window_scale: None,
            largest_segment: None,
            ttl: 64,
            length: 40 + bytes,
        }
    }

    fn new(stream: i64, offset: u64, fresh: u64) -> Location {
        Location {
            stream,
            offset,
            repeated: false,
            fresh,
            is_probe: false,
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
        assert_eq!(locate(isn, 0, true), new(14, 0, 0));
        let data = isn.wrapping_add(1);
        assert_eq!(locate(data, 1000, false), new(14, 0, 1000));
        assert_eq!(
            locate(data.wrapping_add(2000), 1000, false),
            new(14, 2000, 1000)
        );
        assert_eq!(
            locate(data, 1000, false),
            Location {
                repeated: true,
                ..new(14, 0, 0)
            }
        );
        // What fills a hole is not a retransmission.
        assert_eq!(
            locate(data.wrapping_add(1000), 1000, false),
            new(14, 1000, 1000)
        );
        assert_eq!(
            locate(data.wrapping_add(500), 2500, false),
            Location {
                repeated: true,
                ..new(14, 500, 0)
            }
        );
        let back = (ends().1, ends().0);
        assert_eq!(
            connections
                .locate(&mut known, &segment(back, 5, 10, false))
                .unwrap(),
            new(15, 0, 10)
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
        assert_eq!(locate(&mut known, ends(), 100, 0, true), new(8, 0, 0));
        assert_eq!(locate(&mut known, back, 700, 0, true), new(9, 0, 0));
        assert_eq!(locate(&mut known, ends(), 101, 50, false), new(8, 0, 50));
        assert_eq!(locate(&mut known, ends(), 9000, 0, true), new(40, 0, 0));
        assert_eq!(locate(&mut known, back, 9700, 0, true), new(41, 0, 0));
        assert_eq!(locate(&mut known, ends(), 9001, 50, false), new(40, 0, 50));
        assert_eq!(known.next_flow(), 21);
        // Another capture of both: each of them is the same, and a third one is not.
        let mut other = CaptureConnections::default();
        let mut locate = |ends, sequence, bytes, syn| {
            other
                .locate(&mut known, &segment(ends, sequence, bytes, syn))
                .unwrap()
        };
        assert_eq!(locate(ends(), 100, 0, true), new(8, 0, 0));
        assert_eq!(locate(back, 700, 0, true), new(9, 0, 0));
        assert_eq!(locate(ends(), 9000, 0, true), new(40, 0, 0));
        assert_eq!(locate(ends(), 20_000, 0, true), new(42, 0, 0));
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
            new(0, 500, 50)
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
            new(3, 0, 10)
        );
        assert_eq!(
            late.locate(&mut known, &segment((strange.1, strange.0), 9, 1, false))
                .unwrap(),
            new(2, 0, 1)
        );
    }

    #[test]
    fn probes_of_one_byte_are_not_sent_again() {
        let back = (ends().1, ends().0);
        let (mut connections, mut known) =
            (CaptureConnections::default(), StreamRegistry::default());
        let mut locate = |from, sequence, bytes, acknowledged, window| {
            let segment = DissectedSegment {
                acknowledged: Some(acknowledged),
                window,
                ..segment(from, sequence, bytes, false)
            };
            let at = connections.locate(&mut known, &segment).unwrap();
            (at.repeated, at.is_probe, at.fresh)
        };
        assert_eq!(locate(ends(), 100, 10, 1, 500), (false, false, 10));
        // Not acknowledged yet: the last byte again is a loss.
        assert_eq!(locate(ends(), 109, 1, 1, 500), (true, false, 0));
        locate(back, 1, 0, 110, 500);
        assert_eq!(locate(ends(), 109, 1, 1, 500), (false, true, 0));
        // A closed window: the byte behind it is new once, and belongs to what is sent when there is room.
        locate(back, 1, 0, 110, 0);
        assert_eq!(locate(ends(), 110, 1, 1, 500), (false, true, 1));
        assert_eq!(locate(ends(), 110, 1, 1, 500), (false, true, 0));
        locate(back, 1, 0, 110, 500);
        assert_eq!(locate(ends(), 110, 20, 1, 500), (false, false, 19));
    }
}
