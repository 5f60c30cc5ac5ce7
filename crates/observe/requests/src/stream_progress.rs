//! Records when each byte of a stream first passed a point, such as the door of a host or a socket. A bounded number of moments is
//! kept. Offsets are in bytes, times in ns.

use stackline_dissect::left_out::{Bound, LeftOut};
use std::collections::{BTreeMap, VecDeque};

/// The most moments that are kept; beyond that, every second one is dropped.
const MOST: usize = Bound::Moments.most();
/// The most pieces of data behind a hole that are remembered; further ones are dropped.
const MOST_AHEAD: usize = Bound::Ahead.most();

/// A moment at which everything before `end` had passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressMoment {
    /// The offset behind the last byte.
    pub end: u64,
    /// When, ns.
    pub at_ns: u64,
    /// The thread that wrote or read; 0 if it is not known, or the point is no socket.
    pub thread: u32,
}

/// When the bytes of a stream passed a point.
#[derive(Clone, Debug, Default)]
pub struct StreamPointProgress {
    moments: VecDeque<ProgressMoment>,
    /// The offset before which nothing is known.
    begin: u64,
    /// The offset behind the farthest byte that has passed.
    end: u64,
    /// How many moments were dropped at the bound.
    thinned: u64,
    /// The thread that let bytes pass last, by its number; 0 if that was never known.
    thread: u32,
}

impl StreamPointProgress {
    /// Sets the offset at which the observation begins.
    pub const fn begin_at(&mut self, offset: u64) {
        (self.begin, self.end) = (offset, offset);
    }

    /// Notes that all bytes before `end` have passed.
    pub fn pass(&mut self, end: u64, at_ns: u64, thread: u32) {
        if end <= self.end {
            return;
        }
        self.end = end;
        if thread > 0 {
            self.thread = thread;
        }
        self.moments
            .push_back(ProgressMoment { end, at_ns, thread });
        if self.moments.len() > MOST {
            let before = self.moments.len();
            let mut place = 0;
            // The newest stays: its bytes have not been asked for yet.
            self.moments.retain(|_| {
                place += 1;
                (before - place).is_multiple_of(2)
            });
            self.thinned += (before - self.moments.len()) as u64;
        }
    }

    /// Adds the number of dropped moments.
    pub fn left_out(&self, into: &mut LeftOut) {
        into.add(Bound::Moments, self.thinned);
    }

    /// The offset behind the farthest byte that has passed.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The thread that let bytes pass last, by its number; 0 if that was never known.
    #[must_use]
    pub const fn thread(&self) -> u32 {
        self.thread
    }

    /// When the byte at that offset passed.
    #[must_use]
    pub fn moment_of(&self, offset: u64) -> Option<ProgressMoment> {
        let at = self.first_beyond(offset);
        self.moments
            .get(at)
            .filter(|_| offset >= self.begin)
            .copied()
    }

    /// The index of the first moment at which the byte at that offset had passed. It is usually the last one or among the oldest, so
    /// the search begins there, in steps that double.
    fn first_beyond(&self, offset: u64) -> usize {
        let is_before = |at: usize| {
            self.moments
                .get(at)
                .is_some_and(|moment| moment.end <= offset)
        };
        let count = self.moments.len();
        if count > 1 && is_before(count - 2) {
            return count - usize::from(!is_before(count - 1));
        }
        let mut behind = 1;
        while is_before(behind - 1) {
            behind *= 2;
        }
        let (mut from, mut until) = (behind / 2, (behind - 1).min(count));
        while from < until {
            let middle = from.midpoint(until);
            if is_before(middle) {
                from = middle + 1;
            } else {
                until = middle;
            }
        }
        from
    }

    /// When all bytes before that offset had passed.
    #[must_use]
    pub fn whole(&self, end: u64) -> Option<ProgressMoment> {
        self.moment_of(end.checked_sub(1)?)
    }

    /// The offset behind the farthest byte that had passed at a moment.
    #[must_use]
    pub fn end_at(&self, at_ns: u64) -> u64 {
        let at = self.moments.partition_point(|moment| moment.at_ns <= at_ns);
        let before = at.checked_sub(1).and_then(|at| self.moments.get(at));
        before.map_or(self.begin, |moment| moment.end)
    }

    /// As [`Self::end_at`], but `None` if nothing had passed by then.
    #[must_use]
    pub fn end_before(&self, at_ns: u64) -> Option<u64> {
        let at = self.moments.partition_point(|moment| moment.at_ns <= at_ns);
        self.moments
            .get(at.checked_sub(1)?)
            .map(|moment| moment.end)
    }

    /// The moments at which bytes between two offsets passed.
    #[must_use]
    pub fn between(&self, from: u64, end: u64) -> Vec<ProgressMoment> {
        let at = self.first_beyond(from);
        let until = end
            .checked_sub(1)
            .map_or(at, |last| self.first_beyond(last));
        self.moments
            .range(at..self.moments.len().min(until + 1))
            .copied()
            .collect()
    }

    /// Forgets the moments of bytes before that offset.
    pub fn forget(&mut self, offset: u64) {
        while self
            .moments
            .front()
            .is_some_and(|moment| moment.end <= offset)
        {
            self.moments.pop_front();
        }
    }
}

/// When the bytes of a stream arrived in order: a byte counts when all before it have arrived too.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    progress: StreamPointProgress,
    /// Pieces that arrived behind a hole: their end offsets by their first.
    ahead: BTreeMap<u64, u64>,
    /// How many pieces were dropped at the bound.
    forgotten: u64,
}

impl Arrivals {
    /// Arrivals of a stream whose observation begins at that offset.
    #[must_use]
    pub fn from(offset: u64) -> Self {
        Self {
            progress: StreamPointProgress {
                end: offset,
                ..StreamPointProgress::default()
            },
            ..Self::default()
        }
    }

    /// The bytes `from..end` arrived.
    pub fn segment(&mut self, from: u64, end: u64, at_ns: u64) {
        if from > self.progress.end {
            if self.ahead.len() >= MOST_AHEAD && !self.ahead.contains_key(&from) {
                self.forgotten += 1;
                return;
            }
            let known = self.ahead.entry(from).or_default();
            *known = end.max(*known);
            return;
        }
        let mut end = end;
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() <= end) {
            end = end.max(entry.remove());
        }
        self.progress.pass(end, at_ns, 0);
    }

    /// Its receiver acknowledges everything before that offset.
    pub fn acknowledged(&mut self, end: u64, at_ns: u64) {
        self.segment(self.progress.end, end, at_ns);
    }

    /// Adds the numbers of dropped moments and pieces.
    pub fn left_out(&self, into: &mut LeftOut) {
        self.progress.left_out(into);
        into.add(Bound::Ahead, self.forgotten);
    }

    /// Whether data has arrived behind a hole that is still open.
    #[must_use]
    pub fn has_hole(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// When bytes arrived in order.
    #[must_use]
    pub const fn progress(&self) -> &StreamPointProgress {
        &self.progress
    }

    /// As [`StreamPointProgress::forget`].
    pub fn forget(&mut self, offset: u64) {
        self.progress.forget(offset);
    }
}

/// A receiver that reads nothing for at least this long, although bytes have arrived, is late, ns.
pub const LATE_NS: u64 = 1_000_000;

/// How long a receiver left arrived bytes unread, counting only times of [`LATE_NS`] or more, ns. `arrived` and `read`: when the
/// message's bytes arrived and were read. 0 if reading is not seen.
#[must_use]
pub fn late_ns(arrived: &[ProgressMoment], read: &[ProgressMoment]) -> u64 {
    let mut late_ns = 0_u64;
    // The offset up to which was read so far, and when, ns.
    let (mut taken, mut since_ns) = (None::<u64>, 0);
    for moment in read {
        let next = match taken {
            Some(taken) => arrived.get(arrived.partition_point(|arrived| arrived.end <= taken)),
            None => arrived.first(),
        };
        let idle_ns = next.map_or(0, |next| {
            moment.at_ns.saturating_sub(next.at_ns.max(since_ns))
        });
        late_ns = late_ns.saturating_add(if idle_ns >= LATE_NS { idle_ns } else { 0 });
        (taken, since_ns) = (Some(moment.end), moment.at_ns);
    }
    late_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_found_wherever_it_is() {
        for count in 0..40_u64 {
            let mut progress = StreamPointProgress::default();
            (1..=count).for_each(|at| progress.pass(10 * at, at, 0));
            for offset in 0..10 * count + 20 {
                let first = (offset / 10).min(count) as usize;
                assert_eq!(progress.first_beyond(offset), first, "{offset} of {count}");
            }
            let between = progress.between(15, 31).len() as u64;
            assert_eq!(between, count.saturating_sub(1).min(3), "of {count}");
        }
    }

    #[test]
    fn a_byte_passes_when_it_first_does() {
        let mut progress = StreamPointProgress::default();
        for (end, at_ns) in [(10, 1), (10, 2), (5, 3), (30, 4)] {
            progress.pass(end, at_ns, 7);
        }
        let at = |moment: Option<ProgressMoment>| moment.map(|moment| moment.at_ns);
        assert_eq!(
            [0, 9, 10, 29, 30].map(|offset| at(progress.moment_of(offset))),
            [Some(1), Some(1), Some(4), Some(4), None]
        );
        assert_eq!(
            [0, 10, 11].map(|end| at(progress.whole(end))),
            [None, Some(1), Some(4)]
        );
        progress.forget(10);
        assert_eq!((at(progress.moment_of(9)), progress.end()), (Some(4), 30));
        let mut late = StreamPointProgress::default();
        late.begin_at(20);
        late.pass(30, 5, 7);
        assert_eq!(
            [10, 19, 20].map(|offset| at(late.moment_of(offset))),
            [None, None, Some(5)],
            "nobody looked before"
        );
    }

    #[test]
    fn who_reads_in_pauses_is_late_while_something_lies_there() {
        const MS: u64 = 1_000_000;
        let moment = |(end, at_ms): (u64, u64)| ProgressMoment {
            end,
            at_ns: at_ms * MS,
            thread: 0,
        };
        let late = |arrived: &[(u64, u64)], read: &[(u64, u64)]| {
            let of =
                |moments: &[(u64, u64)]| moments.iter().copied().map(moment).collect::<Vec<_>>();
            late_ns(&of(arrived), &of(read)) / MS
        };
        assert_eq!(
            late(&[(100, 1)], &[(40, 1), (80, 11), (100, 21)]),
            20,
            "the rest lay there during both pauses"
        );
        assert_eq!(
            late(&[(40, 1), (100, 11)], &[(40, 1), (100, 11)]),
            0,
            "nothing lay there"
        );
        assert_eq!(late(&[(40, 1), (100, 8)], &[(40, 1), (100, 11)]), 3);
        assert_eq!(late(&[(40, 1)], &[]), 0, "it is not seen to read");
    }

    #[test]
    fn what_comes_behind_a_hole_is_there_when_the_hole_is_filled() {
        let mut arrivals = Arrivals::default();
        for (from, end, at_ns) in [
            (0, 10, 1),
            (20, 30, 2),
            (30, 40, 3),
            (10, 20, 9),
            (5, 15, 10),
        ] {
            arrivals.segment(from, end, at_ns);
        }
        let at = |end| arrivals.progress().whole(end).map(|moment| moment.at_ns);
        assert_eq!([10, 11, 40].map(at), [Some(1), Some(9), Some(9)]);
        assert!(!arrivals.has_hole());
    }
}
