//! Which events explain which waits. Coincidence is not cause: an event explains a wait if it is about the very bytes that were waited for.
//! Where the bytes of events are not known, significantly more waits must contain one than by chance.

use crate::findings::event_log::{FindingEventLog, FlowByteRange};
use crate::findings::measured::endpoints::ReceiveWait;
use crate::statistics::{to_f64, upper_median};
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// The waiting time that some events explain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explained {
    /// Seconds of the explained waits beyond the usual length of a wait.
    pub(crate) seconds: f64,
    /// The number of waits explained.
    pub(crate) waits: u64,
    /// The longest time of one of them beyond the usual length, s.
    pub(crate) longest_s: f64,
    /// The events, in the order of the waits they explain.
    pub(crate) rows: Vec<u32>,
    /// How sure it is, 0 to 1.
    pub(crate) confidence: f64,
}

/// Significance level: if so many coincidences occur by chance with a greater probability, nothing is explained.
const SIGNIFICANT: f64 = 0.01;
/// A wait is long if it takes more than this many times the usual one.
const LONG: f64 = 2.0;

/// The waits that the events of `rows` explain because they are about the bytes waited for, and the waits that none of them is about. An
/// event counts from `before_ns` before the beginning of the wait to its end plus the error of the clocks.
pub(crate) fn by_bytes(
    log: &FindingEventLog<'_>,
    waits: &[ReceiveWait],
    rows: &[u32],
    before_ns: u64,
) -> (Explained, Vec<ReceiveWait>) {
    let mut explained = Explained {
        confidence: 0.95,
        ..Explained::default()
    };
    let hits = hit_by_bytes(log, waits, rows, before_ns);
    let others: Vec<f64> = waits
        .iter()
        .zip(&hits)
        .filter(|(_, hit)| hit.is_none())
        .map(|(wait, _)| wait.seconds())
        .collect();
    // If events are about every wait, the shortest stands for the usual one.
    let shortest = waits
        .iter()
        .map(ReceiveWait::seconds)
        .reduce(f64::min)
        .unwrap_or(0.0);
    let usual = if others.is_empty() {
        shortest
    } else {
        upper_median(others)
    };
    let mut left = Vec::new();
    for (wait, hit) in waits.iter().zip(hits) {
        match hit {
            Some(row) if is_long(log, wait, usual) => explained.add(wait.seconds() - usual, row),
            // A wait of usual length was not prolonged by the event.
            Some(_) => {}
            None => left.push(wait.clone()),
        }
    }
    (explained, left)
}

/// For each wait, an event of `rows` about bytes that it needed, from `before_ns` before its beginning to its end plus the clocks' error.
pub(crate) fn hit_by_bytes(
    log: &FindingEventLog<'_>,
    waits: &[ReceiveWait],
    rows: &[u32],
    before_ns: u64,
) -> Vec<Option<u32>> {
    let marks = ByteEventIndex::from_log(log, rows);
    let error_ns = log.input.lifelines.clock_error_ns;
    let hit = |wait| marks.hit(wait, before_ns, error_ns);
    waits.iter().map(hit).collect()
}

/// Whether a wait is long compared with the usual one, by more than the error of the clocks.
fn is_long(log: &FindingEventLog<'_>, wait: &ReceiveWait, usual: f64) -> bool {
    wait.seconds() > LONG * usual
        && 1e9 * (wait.seconds() - usual) > to_f64(log.input.lifelines.clock_error_ns)
}

/// The waits that events without known bytes explain, less those expected by chance: nothing unless the number of long waits with an event
/// is significant in a binomial test, where events are taken to come at a constant rate.
pub(crate) fn by_rate(log: &FindingEventLog<'_>, waits: &[ReceiveWait], rows: &[u32]) -> Explained {
    let usual = upper_median(waits.iter().map(ReceiveWait::seconds).collect());
    let long: Vec<&ReceiveWait> = waits
        .iter()
        .filter(|wait| is_long(log, wait, usual))
        .collect();
    let (Some(first), Some(last)) = (waits.first(), waits.last()) else {
        return Explained::default();
    };
    let span = to_f64(last.to_ns.saturating_sub(first.from_ns)) / 1e9;
    if long.is_empty() || rows.is_empty() || span <= 0.0 {
        return Explained::default();
    }
    let times: Vec<u64> = rows.iter().map(|row| log.at(*row)).collect();
    let rate = to_f64(rows.len() as u64) / span;
    // At a constant rate, the probability of at least one event in a wait of this length.
    let chance = long
        .iter()
        .map(|wait| 1.0 - (-rate * wait.seconds()).exp())
        .sum::<f64>()
        / to_f64(long.len() as u64);
    let mut found = Explained::default();
    for wait in &long {
        let at = times.partition_point(|at| *at < wait.from_ns);
        if times.get(at).is_some_and(|at| *at <= wait.to_ns) {
            found.add(wait.seconds() - usual, rows[at]);
        }
    }
    let (n, chance) = (long.len() as u64, chance.clamp(1e-12, 1.0 - 1e-12));
    let by_chance = match Binomial::new(chance, n) {
        // The probability of as many or more.
        Ok(binomial) if found.waits > 0 => binomial.sf(found.waits - 1),
        _ => 1.0,
    };
    if by_chance > SIGNIFICANT {
        return Explained::default();
    }
    // Some of the waits with an event contain it by chance: they are subtracted.
    // Solved from: found = real + (n - real) x chance.
    let real_ones = (to_f64(found.waits) - to_f64(n) * chance) / (1.0 - chance);
    found.seconds *= (real_ones / to_f64(found.waits)).clamp(0.0, 1.0);
    found.confidence = 0.9 * (1.0 - by_chance / SIGNIFICANT).max(0.5);
    found
}

impl Explained {
    /// The sum of both, with the confidence of the one that explains more time.
    pub(crate) fn and(mut self, other: Self) -> Self {
        if other.seconds > self.seconds {
            self.confidence = other.confidence;
        }
        self.seconds += other.seconds;
        self.longest_s = self.longest_s.max(other.longest_s);
        self.waits += other.waits;
        self.rows.extend(other.rows);
        self
    }

    fn add(&mut self, seconds: f64, row: u32) {
        self.seconds += seconds.max(0.0);
        self.longest_s = self.longest_s.max(seconds);
        self.waits += 1;
        self.rows.push(row);
    }
}

/// Events by the bytes they are about.
struct ByteEventIndex {
    /// Range, time (ns) and row of each event, by stream and in the order of the ranges.
    by_stream: BTreeMap<i64, Vec<(FlowByteRange, u64, u32)>>,
    /// The length of the longest range, bytes: how far before a byte a range that contains it may begin.
    longest: i64,
    /// Events of datagrams, which have no offset in a stream: time (ns) and row, by the id of the call they belong to.
    by_call: BTreeMap<i64, Vec<(u64, u32)>>,
    /// Events of packets without data: time (ns) and row, by flow.
    bare: BTreeMap<u32, Vec<(u64, u32)>>,
}

impl ByteEventIndex {
    fn from_log(log: &FindingEventLog<'_>, rows: &[u32]) -> Self {
        let mut by_stream: BTreeMap<i64, Vec<(FlowByteRange, u64, u32)>> = BTreeMap::new();
        let mut longest = 0;
        let (mut by_call, mut bare): (BTreeMap<_, Vec<_>>, BTreeMap<_, Vec<_>>) =
            Default::default();
        for row in rows {
            let Some(range) = log.range(*row) else {
                match (log.number(*row, "unit"), log.flow(*row)) {
                    (Some(unit), _) => by_call.entry(unit).or_default().push((log.at(*row), *row)),
                    (None, Some(flow)) => bare.entry(flow).or_default().push((log.at(*row), *row)),
                    (None, None) => {}
                }
                continue;
            };
            longest = longest.max(range.to - range.from);
            by_stream
                .entry(range.stream)
                .or_default()
                .push((range, log.at(*row), *row));
        }
        by_stream
            .values_mut()
            .for_each(|marks| marks.sort_unstable_by_key(|(range, at, _)| (range.from, *at)));
        Self {
            by_stream,
            longest,
            by_call,
            bare,
        }
    }

    /// An event about the bytes, the call or the connection that a wait needed, from `before_ns` before it began to `after_ns` after it
    /// ended.
    fn hit(&self, wait: &ReceiveWait, before_ns: u64, after_ns: u64) -> Option<u32> {
        let times = wait.from_ns.saturating_sub(before_ns)..=wait.to_ns.saturating_add(after_ns);
        let by_bytes = wait.needs.iter().find_map(|need| {
            let marks = self.by_stream.get(&need.stream)?;
            let first = marks
                .partition_point(|(range, ..)| range.from < need.from.saturating_sub(self.longest));
            let near = marks[first..]
                .iter()
                .take_while(|(range, ..)| range.from < need.to);
            near.filter(|(range, at, _)| range.meets(need) && times.contains(at))
                .map(|(.., row)| *row)
                .next()
        });
        let within = |marks: &Vec<(u64, u32)>, from_ns: u64| {
            let first = marks
                .iter()
                .find(|(at, _)| *at >= from_ns && times.contains(at));
            first.map(|(_, row)| *row)
        };
        let of_call = || within(self.by_call.get(&wait.call?)?, 0);
        // A loss before the connection was requested does not delay it.
        let opening = || {
            within(
                self.bare.get(&wait.opens?)?,
                wait.from_ns.saturating_sub(after_ns),
            )
        };
        by_bytes.or_else(of_call).or_else(opening)
    }
}
