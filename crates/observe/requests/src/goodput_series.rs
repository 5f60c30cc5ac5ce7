//! The goodput of one direction of a connection over time: bytes of new data by intervals of one length. A series has a bounded number of
//! intervals: when more would be needed, each two become one.

use crate::exchange_events::RequestEventSink;
use stackline_events::catalogue::rows::TcpGoodput;

/// The length of intervals at first, ns.
const FIRST_INTERVAL_NS: u64 = 10_000_000;
/// The most intervals of a series; even.
const MOST: usize = 32;
/// A direction with fewer bytes has no series: it is no transfer.
const LEAST_BYTES: u64 = 64 << 10;

/// Bytes of new data of one direction by intervals from its first data on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoodputSeries {
    begin_ns: u64,
    last_ns: u64,
    /// How often the length of intervals was doubled.
    doublings: u32,
    bytes: Vec<u64>,
    /// The highest offset that was passed to `reach`.
    end: u64,
}

/// One interval of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodputInterval {
    /// When it began, ns.
    pub at_ns: u64,
    /// How long it was, ns.
    pub interval_ns: u64,
    /// The bytes of new data that passed.
    pub bytes: u64,
}

impl GoodputSeries {
    /// Data up to the offset `end` of the stream passes at `at_ns`; what is beyond the highest offset so far is new. A hole counts with the data
    /// behind it.
    pub fn reach(&mut self, at_ns: u64, end: u64) {
        if end > self.end {
            self.add(at_ns, end - self.end);
            self.end = end;
        }
    }

    /// Adds bytes of new data that passed at `at_ns`. Bytes that passed before the first ones count as theirs.
    pub fn add(&mut self, at_ns: u64, bytes: u64) {
        if self.bytes.is_empty() {
            self.begin_ns = at_ns;
        }
        self.last_ns = self.last_ns.max(at_ns);
        let since_ns = at_ns.saturating_sub(self.begin_ns);
        while since_ns / self.interval_ns() >= MOST as u64 {
            self.bytes = self
                .bytes
                .chunks(2)
                .map(|pair| {
                    pair.iter()
                        .fold(0, |sum: u64, one| sum.saturating_add(*one))
                })
                .collect();
            self.doublings += 1;
        }
        let at = (since_ns / self.interval_ns()) as usize;
        if self.bytes.len() <= at {
            self.bytes.resize(at + 1, 0);
        }
        self.bytes[at] = self.bytes[at].saturating_add(bytes);
    }

    const fn interval_ns(&self) -> u64 {
        FIRST_INTERVAL_NS << self.doublings
    }

    /// The intervals. The last one ends with the last data; if it is shorter than half of the others, it is part of the one before.
    #[must_use]
    pub fn intervals(&self) -> Vec<GoodputInterval> {
        let length_ns = self.interval_ns();
        let of = |(at, bytes): (usize, &u64)| GoodputInterval {
            at_ns: self
                .begin_ns
                .saturating_add(length_ns.saturating_mul(at as u64)),
            interval_ns: length_ns,
            bytes: *bytes,
        };
        let mut all: Vec<GoodputInterval> = self.bytes.iter().enumerate().map(of).collect();
        if let Some(mut last) = all.pop() {
            last.interval_ns = self.last_ns.saturating_sub(last.at_ns);
            match all.last_mut() {
                Some(before) if last.interval_ns < length_ns / 2 => {
                    before.interval_ns += last.interval_ns;
                    before.bytes = before.bytes.saturating_add(last.bytes);
                }
                _ => all.push(last),
            }
        }
        all
    }

    /// Emits the intervals of a stream at a host, if it is large enough to be a transfer and had more than one.
    pub fn emit(&self, stream: i64, host: &str, emit: &mut RequestEventSink<'_>) {
        let bytes = self
            .bytes
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        let intervals = self.intervals();
        if bytes < LEAST_BYTES || intervals.len() < 2 {
            return;
        }
        for one in intervals {
            let row = TcpGoodput {
                stream: stream.into(),
                interval_ns: one.interval_ns.into(),
                bytes: one.bytes.into(),
            };
            row.emit_on(host, one.at_ns, emit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn intervals(data: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let mut series = GoodputSeries::default();
        for (ms, bytes) in data {
            series.add(1_000 * MS + ms * MS, *bytes);
        }
        let all = series.intervals().into_iter();
        all.map(|one| {
            (
                (one.at_ns - 1_000 * MS) / MS,
                one.interval_ns / MS,
                one.bytes,
            )
        })
        .collect()
    }

    #[test]
    fn what_was_passed_before_is_not_new() {
        let mut series = GoodputSeries::default();
        for (ms, end) in [(0, 1_000), (5, 3_000), (9, 2_000), (9, 3_000), (15, 3_500)] {
            series.reach(ms * MS, end);
        }
        let all: Vec<u64> = series.intervals().iter().map(|one| one.bytes).collect();
        assert_eq!(all, [3_000, 500]);
    }

    #[test]
    fn bytes_are_summed_by_intervals_and_none_is_lost_when_these_grow() {
        assert_eq!(
            intervals(&[(0, 1), (9, 2), (10, 4), (25, 8)]),
            [(0, 10, 3), (10, 10, 4), (20, 5, 8)]
        );
        // A rest that is too short to have a rate of its own.
        assert_eq!(
            intervals(&[(0, 1), (12, 2), (21, 4)]),
            [(0, 10, 1), (10, 11, 6)]
        );
        let long: Vec<(u64, u64)> = (0..100_000).map(|second| (1_000 * second, 1)).collect();
        let found = intervals(&long);
        assert!((MOST / 2..=MOST).contains(&found.len()), "{found:?}");
        assert_eq!(found.iter().map(|one| one.2).sum::<u64>(), 100_000);
        assert_eq!(found.iter().map(|one| one.1).sum::<u64>(), 99_999_000);
        // Nothing, one moment, a packet from before, and times without end.
        assert!(intervals(&[]).is_empty());
        assert_eq!(intervals(&[(5, 7)]), [(5, 0, 7)]);
        let mut series = GoodputSeries::default();
        for at_ns in [1_000, 10, u64::MAX, u64::MAX] {
            series.add(at_ns, u64::MAX);
        }
        assert!(series.intervals().len() <= MOST);
    }
}
