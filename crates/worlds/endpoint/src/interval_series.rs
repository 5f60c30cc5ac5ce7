//! What an endpoint did in each interval of its measured period, in bounded memory: when there are too many intervals, each two become
//! one. Adding to the present interval is a few additions; memory is allocated before the clock starts, and when an interval ends.

use crate::latency_counts::{LatencyCount, LatencyCounts};
use stackline_core::interval_record::{
    IntervalCalls, IntervalRow, IntervalTransport, LEAST_INTERVAL, LONGEST_INTERVAL, MOST_INTERVALS,
};
use stackline_core::run_record::TransportRecord;
use stackline_core::time::{Duration, Instant};
use std::ops::Range;

/// Room for counts of times that is allocated at once, and the most that is used.
const TIMES: (usize, usize) = (1 << 14, 1 << 18);
/// The least and the most bytes that are moved between two readings of the clock.
const PORTION: (u64, u64) = (4 << 10, 1 << 20);
/// A portion takes at least this share of an interval, and at most ten times it, as far as units and bounds allow.
const PORTION_SHARE: u64 = 1000;
/// A last interval below this share of the others is joined to the one before it.
const SHORT_SHARE: u64 = 10;

/// What a connection has reported until a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalReading {
    /// The transport.
    pub transport: Option<TransportRecord>,
    /// The numbers of the data units that arrived.
    pub progress: Option<SequenceProgress>,
}

/// How far a stream of numbered data units has come, some of which may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceProgress {
    /// One more than the highest number that arrived.
    pub next: u64,
    /// How many different numbers arrived.
    pub arrived: u64,
}

impl SequenceProgress {
    /// The units that are missing below the highest number.
    const fn missing(self) -> u64 {
        self.next.saturating_sub(self.arrived)
    }
}

/// An interval that is over, with the place of its times.
#[derive(Clone, Debug, Default)]
struct ClosedInterval {
    row: IntervalRow,
    /// Its entries among all counts of times; `None` if there was no room.
    times: Option<Range<usize>>,
}

impl ClosedInterval {
    /// Adds the interval after it.
    fn join(&mut self, next: &Self) {
        self.row = joined(&self.row, &next.row);
        self.times = match (self.times.take(), &next.times) {
            (Some(one), Some(next)) => Some(one.start..next.end),
            _ => None,
        };
    }
}

/// The intervals of one endpoint until now.
#[derive(Debug)]
pub struct IntervalSeries {
    every: Duration,
    begun: Instant,
    /// When the present interval ends.
    ends: Instant,
    row: IntervalRow,
    calls: IntervalCalls,
    counts: LatencyCounts,
    closed: Vec<ClosedInterval>,
    times: Vec<LatencyCount>,
    /// What was reported when the last interval ended.
    before: IntervalReading,
    /// Bytes until the clock is read again.
    portion: u64,
    /// When the clock was read last.
    ticked: Instant,
    jitter: Option<JitterEstimate>,
}

/// The interarrival jitter of units that are sent at even intervals (RFC 3550, section 6.4.1): as there, the time of sending is the nominal
/// one, which follows from a unit's number.
#[derive(Clone, Copy, Debug)]
struct JitterEstimate {
    pace: Duration,
    last: Option<(Instant, u64)>,
    estimate_ns: f64,
}

impl JitterEstimate {
    #[expect(clippy::cast_precision_loss, reason = "an estimate in ns")]
    fn arrived(&mut self, now: Instant, next: u64) {
        if let Some((at, before)) = self.last {
            if next <= before {
                return;
            }
            let nominal = (next - before).saturating_mul(self.pace.0);
            let difference = now.since(at).0.abs_diff(nominal);
            self.estimate_ns += (difference as f64 - self.estimate_ns) / 16.0;
        }
        self.last = Some((now, next));
    }
}

/// The intervals of an endpoint whose clock has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointIntervals {
    /// The length of an interval.
    pub(crate) every: Duration,
    /// From clock start to clock stop.
    pub(crate) length: Duration,
    pub(crate) rows: Vec<EndpointInterval>,
}

/// An interval with all its times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndpointInterval {
    /// `calls` has the number of calls and the longest; the others follow from `times`.
    pub(crate) row: IntervalRow,
    /// The times of its calls; `None` if there was no room.
    pub(crate) times: Option<Vec<LatencyCount>>,
}

impl IntervalSeries {
    /// A series that has not begun. `pace` is the time between two data units that arrive, where it is constant; `has_calls` says whether
    /// times will be added.
    #[must_use]
    pub fn new(every: Duration, pace: Option<Duration>, has_calls: bool) -> Self {
        let every = every.clamp(LEAST_INTERVAL, LONGEST_INTERVAL);
        Self {
            every,
            begun: Instant::default(),
            ends: Instant::default() + every,
            row: IntervalRow::default(),
            calls: IntervalCalls::default(),
            counts: LatencyCounts::new(has_calls),
            closed: Vec::with_capacity(MOST_INTERVALS),
            times: Vec::with_capacity(if has_calls { TIMES.0 } else { 0 }),
            before: IntervalReading::default(),
            portion: PORTION.0,
            ticked: Instant::default(),
            jitter: pace.map(|pace| JitterEstimate {
                pace,
                last: None,
                estimate_ns: 0.0,
            }),
        }
    }

    /// The clock starts, or starts again.
    pub fn begin(&mut self, at: Instant, reading: IntervalReading) {
        self.begun = at;
        self.ends = at + self.every;
        self.ticked = at;
        self.before = reading;
        self.row = IntervalRow::default();
        self.calls = IntervalCalls::default();
        self.closed.clear();
        self.times.clear();
        if let Some(jitter) = &mut self.jitter {
            jitter.last = None;
            jitter.estimate_ns = 0.0;
        }
    }

    /// How many units of this size are moved before the clock is read again: of `least` bytes or more, but at least one.
    #[must_use]
    pub const fn portion_units(&self, bytes: u64, least: u64) -> u64 {
        let portion = if self.portion < least {
            least
        } else {
            self.portion
        };
        let units = portion / if bytes == 0 { 1 } else { bytes };
        if units == 0 { 1 } else { units }
    }

    /// Whether the present interval is over.
    #[inline]
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }

    /// Ends the present interval, and those after it in which nothing ended, until `now` is in one.
    #[cold]
    pub fn close(&mut self, now: Instant, reading: &IntervalReading) {
        self.report(reading);
        while self.is_over(now) {
            if self.closed.len() == MOST_INTERVALS {
                // The present interval is the first half of a longer one, and goes on.
                self.halve();
            } else {
                self.push();
                self.ends += self.every;
            }
        }
    }

    /// Data units ended; the clock was just read.
    #[inline]
    pub fn moved(&mut self, now: Instant, has_received: bool, units: u64, bytes: u64) {
        let (all_units, all_bytes) = match has_received {
            true => (&mut self.row.received_units, &mut self.row.received_bytes),
            false => (&mut self.row.sent_units, &mut self.row.sent_bytes),
        };
        *all_units += units;
        *all_bytes += units.saturating_mul(bytes);
        let took = now.since(self.ticked).0;
        self.ticked = now;
        let least = self.every.0 / PORTION_SHARE;
        if took < least {
            self.portion = (2 * self.portion).min(PORTION.1);
        } else if took > 10 * least {
            self.portion = (self.portion / 2).max(PORTION.0);
        }
    }

    /// A call ended, or a connection.
    #[inline]
    pub fn called(&mut self, took: Duration) {
        self.calls.n += 1;
        self.calls.max_ns = self.calls.max_ns.max(took.0);
        self.counts.add(took);
    }

    /// A unit of a stream that may lose some has arrived.
    #[inline]
    pub fn arrived(&mut self, now: Instant, progress: SequenceProgress) {
        if let Some(jitter) = &mut self.jitter {
            jitter.arrived(now, progress.next);
        }
    }

    /// The clock stops.
    #[must_use]
    pub fn finish(mut self, at: Instant, reading: &IntervalReading) -> EndpointIntervals {
        if self.is_over(at) {
            self.close(at, reading);
        } else {
            self.report(reading);
        }
        let ended = self.row.received_units + self.row.sent_units + self.calls.n;
        if at + self.every > self.ends || self.closed.is_empty() || ended > 0 {
            self.keep_last(at);
        }
        let times = self.times;
        let closed = self.closed.into_iter();
        EndpointIntervals {
            every: self.every,
            length: at.since(self.begun),
            rows: closed
                .map(|one| EndpointInterval {
                    row: one.row,
                    times: one.times.map(|range| times[range].to_vec()),
                })
                .collect(),
        }
    }

    /// Adds what the connection reports beyond the last interval to the present one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times in ns, which are not negative"
    )]
    fn report(&mut self, reading: &IntervalReading) {
        let row = &mut self.row;
        row.transport = reading.transport.map(|now| {
            let before = self.before.transport.map_or(0, |then| then.retransmits);
            let counted = row.transport.map_or(0, |then| then.retransmits);
            IntervalTransport {
                retransmits: counted + now.retransmits.saturating_sub(before),
                window_bytes: now.cwnd_segments.map(|n| n.saturating_mul(now.mss_bytes)),
                round_trip_ns: Duration::from_seconds(now.rtt_s).0,
            }
        });
        let lost = reading.progress.map(|now| {
            let before = self.before.progress.map_or(0, SequenceProgress::missing);
            now.missing().saturating_sub(before)
        });
        row.lost = added(row.lost, lost);
        if reading.progress.is_some() {
            let known = self.jitter.filter(|jitter| jitter.last.is_some());
            row.jitter_ns = known.map(|jitter| jitter.estimate_ns as u64);
        }
        self.before = *reading;
    }

    /// Keeps the present interval, and begins another one.
    fn push(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        let calls = std::mem::take(&mut self.calls);
        row.calls = (calls.n > 0).then_some(calls);
        let from = self.times.len();
        let has_room = from + self.counts.different() <= TIMES.1;
        if has_room {
            self.counts.drain_into(&mut self.times);
        } else {
            self.counts.clear();
        }
        self.closed.push(ClosedInterval {
            row,
            times: has_room.then_some(from..self.times.len()),
        });
    }

    /// Keeps the interval in which the clock stops; a very short one belongs to the one before it, as its rate would say nothing.
    fn keep_last(&mut self, at: Instant) {
        if self.closed.len() == MOST_INTERVALS {
            self.halve();
        }
        self.push();
        let begun = self.begun + Duration(self.every.0 * (self.closed.len() as u64 - 1));
        if self.closed.len() > 1
            && at.since(begun).0 < self.every.0 / SHORT_SHARE
            && let Some(last) = self.closed.pop()
            && let Some(before) = self.closed.last_mut()
        {
            before.join(&last);
        }
    }

    /// Makes one interval of each two.
    fn halve(&mut self) {
        let pairs = std::mem::take(&mut self.closed);
        self.closed = Vec::with_capacity(MOST_INTERVALS);
        for pair in pairs.chunks(2) {
            let mut first = pair[0].clone();
            if let Some(second) = pair.get(1) {
                first.join(second);
            }
            self.closed.push(first);
        }
        self.every = Duration(2 * self.every.0);
        self.ends = self.begun + Duration((self.closed.len() as u64 + 1) * self.every.0);
    }
}

/// Two intervals, of which the second follows the first, as one.
pub(crate) fn joined(first: &IntervalRow, second: &IntervalRow) -> IntervalRow {
    IntervalRow {
        received_units: first.received_units + second.received_units,
        received_bytes: first.received_bytes + second.received_bytes,
        sent_units: first.sent_units + second.sent_units,
        sent_bytes: first.sent_bytes + second.sent_bytes,
        calls: added_calls(first.calls, second.calls),
        transport: match (first.transport, second.transport) {
            (Some(one), Some(next)) => Some(one.then(next)),
            (one, next) => next.or(one),
        },
        lost: added(first.lost, second.lost),
        jitter_ns: second.jitter_ns.or(first.jitter_ns),
    }
}

/// The number and the longest of two groups of calls; other figures follow from their times.
pub(crate) fn added_calls(
    one: Option<IntervalCalls>,
    other: Option<IntervalCalls>,
) -> Option<IntervalCalls> {
    match (one, other) {
        (Some(one), Some(other)) => Some(IntervalCalls {
            n: one.n + other.n,
            max_ns: one.max_ns.max(other.max_ns),
            ..IntervalCalls::default()
        }),
        (one, other) => one.or(other),
    }
}

/// The sum, or the one that is known.
pub(crate) fn added(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
