//! Waits and what may explain them. Coincidence is not cause: an event explains a wait when it is about the very bytes that
//! were waited for; where its bytes are not known, more waits have to hold one than chance would give them.

use super::endpoints::{Wait, median};
use super::log::{Log, Range};
use crate::statistics::real;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// What some events explain of the time that was waited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explained {
    /// Seconds beyond a usual wait.
    pub(crate) seconds: f64,
    /// How many waits.
    pub(crate) waits: u64,
    /// The longest of them, s.
    pub(crate) longest_s: f64,
    /// The events, in the order of the waits they explain.
    pub(crate) rows: Vec<u32>,
    /// How sure it is, 0 to 1.
    pub(crate) confidence: f64,
}

/// A share above which a chance of being wrong is too large to blame anything.
const SIGNIFICANT: f64 = 0.01;
/// A wait is long when it is this many times the usual one.
const LONG: f64 = 3.0;

/// What the events of `rows` explain, by byte range; `slack_ns` before a wait may lie what makes it long.
pub(crate) fn by_bytes(log: &Log<'_>, waits: &[Wait], rows: &[u32], slack_ns: u64) -> Explained {
    let marks = Marks::of(log, rows);
    let mut explained = Explained { confidence: 0.95, ..Explained::default() };
    let hits: Vec<Option<u32>> = waits.iter().map(|wait| marks.hit(wait, slack_ns)).collect();
    let others = waits.iter().zip(&hits).filter(|(_, hit)| hit.is_none());
    let usual = median(others.map(|(wait, _)| wait.seconds()).collect());
    for (wait, hit) in waits.iter().zip(hits) {
        let (Some(row), excess) = (hit, wait.seconds() - usual) else { continue };
        // A wait that is no longer than others was not made longer.
        if wait.seconds() > LONG * usual.max(0.0) || excess > usual {
            explained.add(excess, row);
        }
    }
    explained
}

/// What events explain whose bytes are not known: only what is beyond chance, and only when there is clearly something.
pub(crate) fn by_rate(log: &Log<'_>, waits: &[Wait], rows: &[u32]) -> Explained {
    let usual = median(waits.iter().map(Wait::seconds).collect());
    let long: Vec<&Wait> = waits.iter().filter(|wait| wait.seconds() > LONG * usual).collect();
    let (Some(first), Some(last)) = (waits.first(), waits.last()) else { return Explained::default() };
    let span = real(last.to_ns.saturating_sub(first.from_ns)) / 1e9;
    if long.is_empty() || rows.is_empty() || span <= 0.0 {
        return Explained::default();
    }
    let times: Vec<u64> = rows.iter().map(|row| log.at(*row)).collect();
    let rate = real(rows.len() as u64) / span;
    let chance = long.iter().map(|wait| 1.0 - (-rate * wait.seconds()).exp()).sum::<f64>() / real(long.len() as u64);
    let mut found = Explained::default();
    for wait in &long {
        let at = times.partition_point(|at| *at < wait.from_ns);
        if times.get(at).is_some_and(|at| *at <= wait.to_ns) {
            found.add(wait.seconds() - usual, rows[at]);
        }
    }
    let (n, chance) = (long.len() as u64, chance.clamp(1e-12, 1.0 - 1e-12));
    let by_chance = match Binomial::new(chance, n) {
        Ok(binomial) if found.waits > 0 => binomial.sf(found.waits - 1),
        _ => 1.0,
    };
    if by_chance > SIGNIFICANT {
        return Explained::default();
    }
    // Of those that hold one, some would have held one by chance.
    let real_ones = (real(found.waits) - real(n) * chance) / (1.0 - chance);
    found.seconds *= (real_ones / real(found.waits)).clamp(0.0, 1.0);
    found.confidence = 0.9 * (1.0 - by_chance / SIGNIFICANT).max(0.5);
    found
}

impl Explained {
    fn add(&mut self, seconds: f64, row: u32) {
        self.seconds += seconds.max(0.0);
        self.longest_s = self.longest_s.max(seconds);
        self.waits += 1;
        self.rows.push(row);
    }
}

/// Events by the bytes they are about.
struct Marks {
    by_stream: BTreeMap<i64, Vec<(Range, u64, u32)>>,
    longest: i64,
}

impl Marks {
    fn of(log: &Log<'_>, rows: &[u32]) -> Self {
        let mut by_stream: BTreeMap<i64, Vec<(Range, u64, u32)>> = BTreeMap::new();
        let mut longest = 0;
        for row in rows {
            let Some(range) = log.range(*row) else { continue };
            longest = longest.max(range.to - range.from);
            by_stream.entry(range.stream).or_default().push((range, log.at(*row), *row));
        }
        by_stream.values_mut().for_each(|marks| marks.sort_unstable_by_key(|(range, at, _)| (range.from, *at)));
        Self { by_stream, longest }
    }

    /// An event about bytes that a wait needed, from `slack_ns` before it began to its end.
    fn hit(&self, wait: &Wait, slack_ns: u64) -> Option<u32> {
        let times = wait.from_ns.saturating_sub(slack_ns)..=wait.to_ns.saturating_add(slack_ns);
        wait.needs.iter().find_map(|need| {
            let marks = self.by_stream.get(&need.stream)?;
            let first = marks.partition_point(|(range, ..)| range.from < need.from.saturating_sub(self.longest));
            let near = marks[first..].iter().take_while(|(range, ..)| range.from < need.to);
            near.filter(|(range, at, _)| range.meets(need) && times.contains(at)).map(|(.., row)| *row).next()
        })
    }
}
