//! When servers were blocked, and whether several were at the same time.
//!
//! A server is blocked while at least one of its units is under way (handed to the network, not yet arrived whole) and nothing
//! arrives for longer than five times its median gap. Two servers that are often blocked will sometimes be so at the same time by
//! chance; how often is found by shifting the intervals of the one in time (cyclically) against those of the other.

use crate::lifeline_percentiles::continuous;
use crate::lifelines::Lifelines;
use crate::rates::{Senders, find_arrival_passage};
use serde::Serialize;

/// A gap longer than this many median gaps is a blocked interval.
const GAPS: f64 = 5.0;
/// With fewer gaps than this the median gap means little, and the server is left out.
const LEAST_GAPS: usize = 10;
/// Most shifts of one server's intervals against another's; with 999, the smallest p is 0.001.
const SHIFTS: u64 = 999;
/// Most intervals that are compared over all shifts of one pair: it bounds the time; at least 99 shifts are made.
const STEPS: u64 = 20_000_000;
/// Most servers that are compared with each other: those blocked longest.
const SERVERS: usize = 32;

/// The blocked intervals of a group of lifelines: a server, if lifelines are grouped by server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocked {
    /// Index of the group in [`Lifelines::groups`].
    pub group: u32,
    /// Begin and end of each blocked interval, reference time, ns.
    pub intervals: Vec<(u64, u64)>,
    /// The least length of a blocked interval: five median gaps, ns.
    pub threshold_ns: u64,
    /// Sum of all gaps, that is the time in which something was under way, ns.
    pub busy_ns: u64,
    /// Sum of the blocked intervals, ns.
    pub blocked_ns: u64,
}

/// Two groups that were blocked at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Synchrony {
    /// Index of the one group.
    pub a: u32,
    /// Index of the other group.
    pub b: u32,
    /// Share of the time in which both were blocked; the time is that from the first blocked interval of any group to the last.
    pub share: f64,
    /// The share that is expected if they are independent: the mean over all shifts.
    pub expected: f64,
    /// The p-value: how often chance alone gives at least that share, from the shifts.
    pub p: f64,
}

impl Synchrony {
    /// Whether chance is an unlikely explanation: at most one shift in a hundred gives as large a share.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p <= 0.01 && self.share > self.expected
    }
}

/// How often several groups were blocked at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConcurrentBlocking {
    /// How many groups were blocked at all.
    pub groups: usize,
    /// Share of the time from the first blocked interval to the last in which at least two were blocked.
    pub share: f64,
    /// The share that is expected if each group is blocked as long as it was, independently of the others.
    pub expected: f64,
}

/// How often several groups were blocked at once; `None` if fewer than two were blocked at all.
#[must_use]
pub fn measure_concurrency(blocked: &[Blocked]) -> Option<ConcurrentBlocking> {
    let some: Vec<&Blocked> = blocked
        .iter()
        .filter(|blocked| !blocked.intervals.is_empty())
        .collect();
    let from = some
        .iter()
        .filter_map(|blocked| blocked.intervals.first())
        .map(|(from, _)| *from)
        .min()?;
    let to = some
        .iter()
        .filter_map(|blocked| blocked.intervals.last())
        .map(|(_, to)| *to)
        .max()?;
    if some.len() < 2 || to <= from {
        return None;
    }
    let mut changes: Vec<(u64, i32)> = some
        .iter()
        .flat_map(|one| &one.intervals)
        .flat_map(|(from, to)| [(*from, 1), (*to, -1)])
        .collect();
    // Of one moment, ends come first: intervals that touch do not overlap.
    changes.sort_unstable();
    let (mut at_once, mut since, mut several) = (0, from, 0);
    for (at, change) in changes {
        several += if at_once > 1 { at - since } else { 0 };
        (at_once, since) = (at_once + change, at);
    }
    let span = (to - from) as f64;
    // The probabilities that none is blocked, and that exactly one is.
    let (none, one) = some.iter().fold((1.0, 0.0), |(none, one), blocked| {
        let share = (blocked.blocked_ns as f64 / span).min(1.0);
        (none * (1.0 - share), one * (1.0 - share) + none * share)
    });
    Some(ConcurrentBlocking {
        groups: some.len(),
        share: several as f64 / span,
        expected: (1.0 - none - one).max(0.0),
    })
}

/// The blocked intervals of every group that has at least `LEAST_GAPS` gaps between arrivals.
#[must_use]
pub fn blocked(lifelines: &Lifelines) -> Vec<Blocked> {
    let senders = Senders::from_lifelines(lifelines);
    let mut transits: Vec<Vec<(u64, u64)>> = vec![Vec::new(); lifelines.groups.len()];
    for line in &lifelines.lines {
        let (Some(sent), Some(received)) = (
            senders.moment(lifelines, line),
            find_arrival_passage(lifelines, line),
        ) else {
            continue;
        };
        if sent.at_ns <= received.at_ns {
            transits[line.group as usize].push((received.at_ns, sent.at_ns));
        }
    }
    (0_u32..)
        .zip(transits)
        .filter_map(|(group, transits)| of_server(group, transits))
        .collect()
}

/// The blocked intervals of one group; `None` if it has too few gaps. `transits` has (arrival, departure) of each unit, ns.
fn of_server(group: u32, mut transits: Vec<(u64, u64)>) -> Option<Blocked> {
    transits.sort_unstable();
    // The earliest departure of the units that arrive at `at` or later: a gap counts only while one of them is under way.
    let mut earliest = u64::MAX;
    let mut gaps: Vec<(u64, u64)> = Vec::with_capacity(transits.len());
    for at in (1..transits.len()).rev() {
        earliest = earliest.min(transits[at].1);
        gaps.push((transits[at - 1].0.max(earliest), transits[at].0));
    }
    gaps.reverse();
    // No unit departs after it arrives, so no gap is negative.
    let mut lengths: Vec<i64> = gaps
        .iter()
        .map(|(from, to)| (to - from) as i64)
        .filter(|length| *length > 0)
        .collect();
    if lengths.len() < LEAST_GAPS {
        return None;
    }
    let busy_ns = lengths.iter().map(|length| *length as u64).sum();
    let threshold_ns = (continuous(&mut lengths, 0.5)? * GAPS) as u64;
    let intervals: Vec<(u64, u64)> = gaps
        .into_iter()
        .filter(|(from, to)| to - from > threshold_ns)
        .collect();
    let blocked_ns = total(&intervals);
    Some(Blocked {
        group,
        intervals,
        threshold_ns,
        busy_ns,
        blocked_ns,
    })
}

/// Compares each two groups that were blocked at all.
#[must_use]
pub fn synchrony(blocked: &[Blocked]) -> Vec<Synchrony> {
    let mut some: Vec<&Blocked> = blocked
        .iter()
        .filter(|blocked| !blocked.intervals.is_empty())
        .collect();
    some.sort_by_key(|blocked| (std::cmp::Reverse(blocked.blocked_ns), blocked.group));
    some.truncate(SERVERS);
    some.sort_by_key(|blocked| blocked.group);
    let from = some
        .iter()
        .filter_map(|blocked| blocked.intervals.first())
        .map(|(from, _)| *from)
        .min()
        .unwrap_or(0);
    let to = some
        .iter()
        .filter_map(|blocked| blocked.intervals.last())
        .map(|(_, to)| *to)
        .max()
        .unwrap_or(0);
    let pairs = (0..some.len()).flat_map(|a| (a + 1..some.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| held(some[a], some[b], from, to))
        .collect()
}

/// Compares two groups over the time `from` to `to`: their overlap, and that with one of them shifted.
fn held(a: &Blocked, b: &Blocked, from: u64, to: u64) -> Synchrony {
    let span = (to - from).max(1);
    let [mut one, other] = [a, b].map(|blocked| relative(&blocked.intervals, from));
    let observed = overlap(&one, &other);
    let shifts = (STEPS / (one.len() + other.len()) as u64).clamp(99, SHIFTS);
    // The observed position counts as one of the shifts: p is never 0.
    let (mut as_much, mut sum) = (1_u64, 0.0);
    for shift in 1..=shifts {
        let by = (u128::from(span) * u128::from(shift) / u128::from(shifts + 1)) as u64;
        one = shifted(&relative(&a.intervals, from), by, span);
        let chance = overlap(&one, &other);
        as_much += u64::from(chance >= observed);
        sum += chance as f64;
    }
    let share = |ns: f64| ns / span as f64;
    let p = as_much as f64 / (shifts + 1) as f64;
    Synchrony {
        a: a.group,
        b: b.group,
        share: share(observed as f64),
        expected: share(sum / shifts as f64),
        p,
    }
}

/// Intervals in times from `from` on.
fn relative(intervals: &[(u64, u64)], from: u64) -> Vec<(u64, u64)> {
    intervals
        .iter()
        .map(|(begin, end)| (begin - from, end - from))
        .collect()
}

/// Intervals shifted cyclically within a span: what moves beyond its end comes in at its beginning. Sorted.
fn shifted(intervals: &[(u64, u64)], by: u64, span: u64) -> Vec<(u64, u64)> {
    let mut moved = Vec::with_capacity(intervals.len() + 1);
    for (from, to) in intervals {
        let (from, to) = (from + by, to + by);
        match (from >= span, to > span) {
            (true, _) => moved.push((from - span, to - span)),
            (false, true) => moved.extend([(from, span), (0, to - span)]),
            (false, false) => moved.push((from, to)),
        }
    }
    moved.sort_unstable();
    moved
}

/// The time that is in an interval of `a` and in one of `b`, ns; both are sorted.
fn overlap(a: &[(u64, u64)], b: &[(u64, u64)]) -> u64 {
    let (mut sum, mut at) = (0, 0);
    for (from, to) in a {
        while b.get(at).is_some_and(|other| other.1 <= *from) {
            at += 1;
        }
        let within = b[at..].iter().take_while(|other| other.0 < *to);
        sum += within
            .map(|other| other.1.min(*to).saturating_sub(other.0.max(*from)))
            .sum::<u64>();
    }
    sum
}

fn total(intervals: &[(u64, u64)]) -> u64 {
    intervals.iter().map(|(from, to)| to - from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use stackline_events::{EventTable, EventValue};

    /// Servers that send a block every ms; none arrive in the pauses of a server.
    fn servers(pauses_ms: &[&[(u64, u64)]], until_ms: u64) -> Lifelines {
        let mut table = EventTable::default();
        let mut block = 0;
        for (server, pauses) in pauses_ms.iter().enumerate() {
            let host = format!("s{server}");
            for ms in 1..until_ms {
                let late = pauses
                    .iter()
                    .find(|(from, to)| (*from..*to).contains(&ms))
                    .map_or(ms, |(_, to)| *to);
                block += 1;
                table.push(
                    "app_send",
                    "app",
                    ms * 1_000_000 - 900_000,
                    &[EventValue::Number(block)],
                );
                table.push(
                    "start_write",
                    &host,
                    ms * 1_000_000 - 500_000,
                    &[EventValue::Number(block)],
                );
                table.push(
                    "app_receive",
                    "app",
                    late * 1_000_000 + ms,
                    &[EventValue::Number(block)],
                );
            }
        }
        lifelines(&table, None, &LifelineOptions::default())
    }

    #[test]
    fn a_pause_with_something_under_way_is_blocked() {
        let found = blocked(&servers(&[&[(20, 40), (60, 61)]], 100));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].intervals,
            [(19_500_000, 40_000_020)],
            "a gap that is a little longer is no block"
        );
    }

    #[test]
    fn a_server_that_has_nothing_to_do_is_not_blocked() {
        let mut lifelines = servers(&[&[]], 100);
        lifelines
            .lines
            .retain(|line| !(40..70).contains(&line.unit.number().unwrap()));
        assert_eq!(blocked(&lifelines)[0].intervals, []);
    }

    #[test]
    fn only_servers_that_stop_together_are_synchronous() {
        let pauses: Vec<(u64, u64)> = (0..12)
            .map(|n| (50 + n * n * 13, 50 + n * n * 13 + 20))
            .collect();
        let others: Vec<(u64, u64)> = (0..12).map(|n| (90 + n * 157, 90 + n * 157 + 20)).collect();
        let found = blocked(&servers(&[&pauses, &pauses, &others], 2000));
        let held = synchrony(&found);
        let observed: Vec<(u32, u32, bool)> = held
            .iter()
            .map(|held| (held.a, held.b, held.is_significant()))
            .collect();
        assert_eq!(
            observed,
            [(0, 1, true), (0, 2, false), (1, 2, false)],
            "{held:?}"
        );
        assert!(held[0].share > 5.0 * held[0].expected);
        // Two of three stop together for 12 times 20 ms or a little more of some 2 s; by chance for little of it.
        let of_all = measure_concurrency(&found).unwrap();
        assert!(
            (0.10..0.16).contains(&of_all.share) && of_all.share > 2.5 * of_all.expected,
            "{of_all:?}"
        );
        assert_eq!(
            measure_concurrency(&found[2..]),
            None,
            "one alone is with no other"
        );
    }
}
