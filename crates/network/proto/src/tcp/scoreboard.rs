//! The scoreboard of a sender: ranges that were sent and are not acknowledged, and their state: in flight, arrived out
//! of order (sacked), lost.
//!
//! A run is a range of segments of one size that share their state, so a window of thousands of segments is a handful
//! of runs where little is lost. Counts are in segments, as windows are.

use super::sequence_numbers::TcpStreamRange;
use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpSegmentFate {
    InFlight,
    /// The peer has reported it as arrived.
    Sacked,
    Lost,
}

/// A run: consecutive segments of one size, the last one perhaps shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpSegmentRun {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When its segments were last sent.
    pub(super) sent: Instant,
    /// Bytes of a full segment.
    size: u32,
    pub(super) segments: u32,
    pub(super) fate: TcpSegmentFate,
    /// Whether it was sent more than once.
    pub(super) again: bool,
}

impl TcpSegmentRun {
    /// Whether `next` begins where this run ends and has the same state, so that the two can be joined.
    const fn goes_on(&self, next: &Self) -> bool {
        let alike = self.fate as u8 == next.fate as u8
            && self.again == next.again
            && self.sent.0 == next.sent.0;
        alike && self.size == next.size && self.end == next.start && self.is_whole()
    }

    const fn is_whole(&self) -> bool {
        self.end - self.start == self.segments as u64 * self.size as u64
    }

    /// The first boundary between its segments at or behind a place, and the number of segments before it.
    pub(super) fn boundary_from(&self, place: u64) -> (u64, u32) {
        let before = place
            .saturating_sub(self.start)
            .div_ceil(u64::from(self.size))
            .min(u64::from(self.segments));
        self.boundary(before as u32)
    }

    /// The last boundary at or before a place, and the number of segments before it.
    pub(super) fn boundary_to(&self, place: u64) -> (u64, u32) {
        if place >= self.end {
            return (self.end, self.segments);
        }
        self.boundary((place.saturating_sub(self.start) / u64::from(self.size)) as u32)
    }

    fn boundary(&self, before: u32) -> (u64, u32) {
        (
            self.end
                .min(self.start + u64::from(before) * u64::from(self.size)),
            before,
        )
    }
}

/// The segment that was sent last among those that have arrived (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpNewestArrival {
    pub(super) sent: Instant,
    pub(super) end: u64,
    /// The round trip that it took.
    pub(super) rtt: Duration,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpAckEffect {
    /// Segments newly reported as arrived.
    pub(super) segments: u32,
    /// When the first of the segments was sent that were sent only once and are acknowledged cumulatively.
    pub(super) first: Option<Instant>,
    /// When the last of those segments was sent.
    pub(super) last: Option<Instant>,
    /// When the last of the segments was sent that are newly acknowledged selectively.
    pub(super) sacked: Option<Instant>,
    /// The lowest place of a segment that was sent only once and arrived after a higher one.
    pub(super) late: Option<u64>,
    /// The segment that was sent last: when, its end, and whether it was sent more than once.
    pub(super) newest: Option<(Instant, u64, bool)>,
}

impl TcpAckEffect {
    fn newest(&mut self, sent: Instant, end: u64, again: bool) {
        if self
            .newest
            .is_none_or(|(at, upto, _)| (sent, end) > (at, upto))
        {
            self.newest = Some((sent, end, again));
        }
    }
}

/// Everything that was sent and is not acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    pub(super) runs: VecDeque<TcpSegmentRun>,
    /// Retransmissions that are not reported as arrived, in the order in which they were sent.
    pub(super) retransmissions: VecDeque<(TcpStreamRange, Instant)>,
    /// The number of segments in all.
    pub(super) out: u32,
    /// Segments that are selectively acknowledged.
    pub(super) sacked: u32,
    /// Segments that are lost and not sent again.
    pub(super) lost: u32,
    /// No segment below this place is lost and not sent again: where the search begins.
    lost_from: u64,
    /// Below this place, every segment sent only once has arrived or is lost.
    pub(super) judged: u64,
    /// The end of the highest range that is selectively acknowledged.
    pub(super) highest: u64,
}

impl Scoreboard {
    pub(super) fn clear(&mut self) {
        let mut spare = core::mem::take(self);
        spare.runs.clear();
        spare.retransmissions.clear();
        (self.runs, self.retransmissions) = (spare.runs, spare.retransmissions);
    }

    /// Segments in flight.
    pub(super) const fn in_flight(&self) -> u32 {
        self.out - self.sacked - self.lost
    }

    /// Adds a segment that is sent for the first time.
    pub(super) fn send(&mut self, range: TcpStreamRange, size: u32, now: Instant) {
        let TcpStreamRange { start, end } = range;
        // The FIN makes its segment longer than the others.
        let size = size.max(range.len() as u32);
        let run = TcpSegmentRun {
            start,
            end,
            sent: now,
            size,
            segments: 1,
            fate: TcpSegmentFate::InFlight,
            again: false,
        };
        self.out += 1;
        match self.runs.back_mut() {
            Some(last) if last.goes_on(&run) => {
                (last.end, last.segments) = (end, last.segments + 1)
            }
            _ => self.runs.push_back(run),
        }
    }

    /// Handles a cumulative acknowledgement of everything up to a place.
    pub(super) fn acknowledge(&mut self, upto: u64, arrived: &mut TcpAckEffect) {
        while let Some(run) = self.runs.front_mut() {
            let (boundary, segments) = run.boundary_to(upto);
            if segments == 0 {
                break;
            }
            self.out -= segments;
            match run.fate {
                TcpSegmentFate::Sacked => self.sacked -= segments,
                fate => {
                    if fate == TcpSegmentFate::Lost {
                        self.lost -= segments;
                    }
                    arrived.segments += segments;
                    arrived.newest(run.sent, boundary, run.again);
                    // Karn's rule: which copy of a segment sent twice has arrived is unknown (RFC
                    // 6298, section 3).
                    if !run.again {
                        arrived.first = arrived.first.or(Some(run.sent));
                        arrived.last = Some(run.sent);
                        if run.start < self.highest && arrived.late.is_none() {
                            arrived.late = Some(run.start);
                        }
                    }
                }
            }
            if boundary < run.end {
                (run.start, run.segments) = (boundary, run.segments - segments);
                break;
            }
            self.runs.pop_front();
        }
        while self
            .retransmissions
            .front()
            .is_some_and(|(range, _)| range.end <= upto)
        {
            self.retransmissions.pop_front();
        }
    }

    /// Handles a selective acknowledgement of a range.
    pub(super) fn sack(&mut self, range: TcpStreamRange, arrived: &mut TcpAckEffect) {
        let mut at = self.runs.partition_point(|run| run.end <= range.start);
        let before = self.highest;
        while let Some(&run) = self.runs.get(at) {
            if run.start >= range.end {
                break;
            }
            if run.fate == TcpSegmentFate::Sacked {
                at += 1;
                continue;
            }
            let ((start, first), (end, last)) =
                (run.boundary_from(range.start), run.boundary_to(range.end));
            if start >= end {
                at += 1;
                continue;
            }
            let segments = last - first;
            self.sacked += segments;
            if run.fate == TcpSegmentFate::Lost {
                self.lost -= segments;
            }
            arrived.segments += segments;
            arrived.newest(run.sent, end, run.again);
            if !run.again {
                arrived.sacked = Some(run.sent);
                if start < before {
                    arrived.late = Some(arrived.late.map_or(start, |late| late.min(start)));
                }
            }
            self.highest = self.highest.max(end);
            at = self.mark(at, (start, end, segments), |run| {
                // An arrived run needs neither of both: equal values let neighbours join.
                (run.fate, run.again, run.sent) = (TcpSegmentFate::Sacked, true, Instant(0));
            });
        }
    }

    /// Changes the state of a part (start, end, segments) of a run; the part begins and ends at boundaries of segments.
    /// Returns the index of the run that then contains it.
    fn mark(
        &mut self,
        at: usize,
        part: (u64, u64, u32),
        change: impl FnOnce(&mut TcpSegmentRun),
    ) -> usize {
        let (start, end, segments) = part;
        let whole = self.runs[at];
        let mut part = TcpSegmentRun {
            start,
            end,
            segments,
            ..whole
        };
        change(&mut part);
        let before = ((start - whole.start) / u64::from(whole.size)) as u32;
        let after = whole.segments - before - segments;
        let rest = TcpSegmentRun {
            start: end,
            segments: after,
            ..whole
        };
        if before > 0 {
            let run = &mut self.runs[at];
            (run.end, run.segments) = (start, before);
            self.runs.insert(at + 1, part);
            if after > 0 {
                self.runs.insert(at + 2, rest);
            }
            return self.join(at + 1);
        }
        if at > 0 && self.runs[at - 1].goes_on(&part) {
            let previous = &mut self.runs[at - 1];
            (previous.end, previous.segments) = (end, previous.segments + segments);
            if after > 0 {
                self.runs[at] = rest;
                return at - 1;
            }
            self.runs.remove(at);
            return self.join(at - 1);
        }
        self.runs[at] = part;
        if after > 0 {
            self.runs.insert(at + 1, rest);
            return at;
        }
        self.join(at)
    }

    /// Joins a run with the next one if they have the same state.
    fn join(&mut self, at: usize) -> usize {
        if let (Some(&run), Some(&next)) = (self.runs.get(at), self.runs.get(at + 1))
            && run.goes_on(&next)
        {
            let joined = &mut self.runs[at];
            (joined.end, joined.segments) = (next.end, run.segments + next.segments);
            self.runs.remove(at + 1);
        }
        at
    }

    /// Marks a part of a run as lost.
    pub(super) fn lose(&mut self, at: usize, part: (u64, u64, u32)) -> usize {
        self.lost += part.2;
        self.lost_from = self.lost_from.min(part.0);
        self.mark(at, part, |run| run.fate = TcpSegmentFate::Lost)
    }

    /// Marks the first segment as lost.
    pub(super) fn lose_first(&mut self) {
        if let Some(&run) = self.runs.front()
            && run.fate == TcpSegmentFate::InFlight
        {
            self.lose(0, (run.start, run.boundary(1).0, 1));
        }
    }

    /// Marks everything as lost that is not sacked, except segments sent after `recent`. Called at a time-out.
    pub(super) fn lose_all(&mut self, recent: Instant) {
        let mut at = 0;
        while let Some(&run) = self.runs.get(at) {
            // The first segment is lost whenever it was sent: the time-out was its own.
            if run.fate == TcpSegmentFate::InFlight && (at == 0 || run.sent <= recent) {
                at = self.lose(at, (run.start, run.end, run.segments));
            }
            at += 1;
        }
        self.retransmissions.retain(|(_, sent)| *sent > recent);
        self.lost_from = 0;
    }

    /// Handles a peer that has selectively acknowledged the first range but does not acknowledge it: it has discarded
    /// its out-of-order data (reneging).
    pub(super) fn forget_false_sacks(&mut self) {
        if self
            .runs
            .front()
            .is_none_or(|run| run.fate != TcpSegmentFate::Sacked)
        {
            return;
        }
        for run in &mut self.runs {
            if run.fate == TcpSegmentFate::Sacked {
                run.fate = TcpSegmentFate::InFlight;
            }
        }
        (self.sacked, self.highest) = (0, 0);
    }

    /// Puts lost ranges back in flight. Ranges that a time-out marked are judged by their age again. Ranges that were
    /// judged by age before are not, until they are sent again or a time-out comes: in Linux they have left the list of
    /// segments by time.
    pub(super) fn nothing_is_lost(&mut self, by_timeout: bool) {
        for run in self
            .runs
            .iter_mut()
            .filter(|run| run.fate == TcpSegmentFate::Lost)
        {
            if by_timeout && run.again {
                let range = TcpStreamRange {
                    start: run.start,
                    end: run.end,
                };
                self.retransmissions.push_back((range, run.sent));
            }
            (run.fate, run.again) = (TcpSegmentFate::InFlight, run.again || !by_timeout);
        }
        self.lost = 0;
        if by_timeout {
            self.judged = 0;
            let by_time = |(range, sent): &(TcpStreamRange, Instant)| (*sent, range.end);
            self.retransmissions
                .make_contiguous()
                .sort_unstable_by_key(by_time);
        }
    }

    /// The next segment that is lost and not sent again.
    pub(super) fn next_lost(&mut self) -> Option<TcpStreamRange> {
        if self.lost == 0 {
            return None;
        }
        let first = self.runs.partition_point(|run| run.end <= self.lost_from);
        let run = self
            .runs
            .iter()
            .skip(first)
            .find(|run| run.fate == TcpSegmentFate::Lost)?;
        self.lost_from = run.start;
        Some(TcpStreamRange {
            start: run.start,
            end: run.boundary(1).0,
        })
    }

    /// The last segment, if it is in flight.
    pub(super) fn last(&self) -> Option<TcpStreamRange> {
        let run = self.runs.back()?;
        (run.fate == TcpSegmentFate::InFlight).then(|| TcpStreamRange {
            start: run.boundary(run.segments - 1).0,
            end: run.end,
        })
    }

    /// Notes that a segment is sent again.
    pub(super) fn send_again(&mut self, range: TcpStreamRange, now: Instant) {
        let at = self.runs.partition_point(|run| run.end <= range.start);
        let Some(&run) = self.runs.get(at) else {
            return;
        };
        if run.fate == TcpSegmentFate::Lost {
            self.lost -= 1;
            self.lost_from = range.end;
        }
        self.mark(at, (range.start, range.end, 1), |run| {
            (run.fate, run.again, run.sent) = (TcpSegmentFate::InFlight, true, now);
        });
        match self.retransmissions.back_mut() {
            Some((last, sent)) if last.end == range.start && *sent == now => last.end = range.end,
            _ => self.retransmissions.push_back((range, now)),
        }
    }

    /// What a test may check after every step.
    #[cfg(test)]
    pub(super) fn check(&self, una: u64, next: u64) {
        let (mut sacked, mut lost, mut out, mut at) = (0, 0, 0, None);
        for run in &self.runs {
            assert!(
                run.start < run.end && run.segments > 0 && at.is_none_or(|at| at == run.start),
                "{self:?}"
            );
            assert_eq!(
                (run.end - run.start).div_ceil(u64::from(run.size)),
                u64::from(run.segments),
                "{run:?}"
            );
            out += run.segments;
            match run.fate {
                TcpSegmentFate::Sacked => sacked += run.segments,
                TcpSegmentFate::Lost => {
                    lost += run.segments;
                    assert!(run.end > self.lost_from);
                }
                TcpSegmentFate::InFlight => {}
            }
            at = Some(run.end);
        }
        assert_eq!(
            (out, sacked, lost),
            (self.out, self.sacked, self.lost),
            "{self:?}"
        );
        assert!(
            self.runs
                .front()
                .is_none_or(|run| run.start <= una && una < run.end),
            "{una} {self:?}"
        );
        assert_eq!(at.unwrap_or(next), next);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tcp) fn sent(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for n in 0..segments {
            board.send(
                TcpStreamRange {
                    start: 1 + n * 1000,
                    end: 1001 + n * 1000,
                },
                1000,
                Instant(n / 2),
            );
        }
        board
    }

    pub(in crate::tcp) fn range(from: u64, to: u64) -> TcpStreamRange {
        TcpStreamRange {
            start: 1 + from * 1000,
            end: 1 + to * 1000,
        }
    }

    #[test]
    fn segments_sent_together_are_one_run() {
        let mut board = sent(10);
        assert_eq!((board.runs.len(), board.out), (5, 10));
        let mut arrived = TcpAckEffect::default();
        board.acknowledge(3001, &mut arrived);
        assert_eq!(
            (board.out, arrived.segments, arrived.first, arrived.last),
            (7, 3, Some(Instant(0)), Some(Instant(1)))
        );
        board.check(3001, 10_001);
    }

    #[test]
    fn sacked_ranges_grow_together() {
        let mut board = sent(10);
        for n in [3, 5, 4, 8, 9] {
            board.sack(range(n, n + 1), &mut TcpAckEffect::default());
            board.check(1, 10_001);
        }
        let sacked: alloc::vec::Vec<_> = board
            .runs
            .iter()
            .filter(|run| run.fate == TcpSegmentFate::Sacked)
            .map(|run| (run.start, run.end))
            .collect();
        assert_eq!(sacked, [(3001, 6001), (8001, 10_001)]);
        assert_eq!((board.sacked, board.in_flight()), (5, 5));
    }

    #[test]
    fn a_time_out_marks_unsacked_segments_as_lost() {
        let mut board = sent(4);
        board.sack(range(1, 2), &mut TcpAckEffect::default());
        board.lose_all(Instant(100));
        assert_eq!((board.lost, board.sacked, board.in_flight()), (3, 1, 0));
        board.check(1, 4001);
    }

    #[test]
    fn a_probe_is_judged_by_its_age_again_after_a_needless_time_out() {
        let mut board = sent(4);
        let last = board.last().unwrap();
        board.send_again(last, Instant(50));
        board.lose_all(Instant(100));
        board.nothing_is_lost(true);
        assert_eq!((board.lost, board.in_flight()), (0, 4));
        let newest = TcpNewestArrival {
            sent: Instant(200),
            rtt: Duration(10),
            end: 1001,
        };
        assert_eq!(board.detect(Instant(300), &newest, Duration::ZERO), None);
        assert_eq!((board.lost, board.in_flight()), (4, 0));
        board.check(1, 4001);
    }
}
