//! Compares two traces segment by segment (a segment is the time between two monitor points that follow each other): the ratio of
//! the medians, with a 95 % interval.
//!
//! The interval of a median is that of its order statistics, which holds for any distribution; that of the ratio combines both on
//! the scale of logarithms (MOVER, Donner and Zou 2012). It covers only what varies from unit to unit within one trace.

use crate::compare::ComparisonVerdict;
use crate::findings::NamedRequests;
use crate::lifelines::{Lifeline, LifelinePoint, Lifelines};
use crate::names::{SENDS_AGAIN, segment_name};
use crate::segments::{SegmentTimes, lifeline_duration_ns, stretches};
use serde::Serialize;

/// The times of a segment in one trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    /// How many units passed the segment.
    pub n: usize,
    /// The median of their times, ns.
    pub median_ns: f64,
    /// The 95 % interval of the median, ns; absent with fewer than six units.
    pub ci95_ns: Option<(f64, f64)>,
}

/// A segment in both traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentComparison {
    /// Its name as in [`crate::names`], without the host.
    pub name: String,
    /// Where it begins; `None` for the whole way, from the first to the last point of the units that arrived.
    pub from: Option<LifelinePoint>,
    /// Where it ends.
    pub to: Option<LifelinePoint>,
    /// Whether it is of connections and not of data units.
    pub connections: bool,
    /// Its times in the first trace.
    pub a: Option<Median>,
    /// Its times in the second trace.
    pub b: Option<Median>,
    /// Median of the second over median of the first.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio.
    pub ci95: Option<(f64, f64)>,
    /// What the interval allows to claim about the second trace.
    pub verdict: ComparisonVerdict,
}

/// Compares two traces: first the whole way, then all segments in the order of the first trace, then those of the second alone.
/// Segments are paired if their points are equal; if no segment has an equal one, as with other host names, by keyword alone.
#[must_use]
pub fn compare_segments(a: &Lifelines, b: &Lifelines) -> Vec<SegmentComparison> {
    let (first, second) = (named(a), named(b));
    let with_hosts = first
        .iter()
        .any(|one| second.iter().any(|other| is_same(one, other, true)));
    let mut left: Vec<Option<&NamedSegment>> = second.iter().map(Some).collect();
    let whole = pair(whole(a), whole(b));
    let mut found = if whole.a.is_none() && whole.b.is_none() {
        Vec::new()
    } else {
        vec![whole]
    };
    for one in &first {
        let same = left
            .iter_mut()
            .find(|other| other.is_some_and(|other| is_same(one, other, with_hosts)));
        let other = same.and_then(Option::take);
        found.push(one.beside(pair(one.median, other.and_then(|other| other.median))));
    }
    found.extend(
        left.into_iter()
            .flatten()
            .map(|one| one.beside(pair(None, one.median))),
    );
    found
}

/// Compares requests with those of the same name in the other trace, as a median over different requests would mean little. In the
/// order of the first trace; a name that only one trace has is listed alone.
#[must_use]
pub fn compare_requests(a: &[NamedRequests], b: &[NamedRequests]) -> Vec<SegmentComparison> {
    let times = |named: &NamedRequests| {
        let times = named.times_ns.iter();
        median(
            times
                .map(|ns| i64::try_from(*ns).unwrap_or(i64::MAX))
                .collect(),
        )
    };
    // A request with a single server in each trace is the same, whatever these servers are called.
    let same = |one: &NamedRequests, other: &NamedRequests| {
        let is_server = || one.server == other.server;
        one.name == other.name
            && one.protocol == other.protocol
            && (is_server() || one.is_alone_among(a) && other.is_alone_among(b))
    };
    let of = |named: &NamedRequests, all, compared: SegmentComparison| SegmentComparison {
        name: if named.is_alone_among(all) {
            named.label()
        } else {
            format!("{} of {}", named.label(), named.server)
        },
        ..compared
    };
    let both = a.iter().map(|one| {
        let other = b.iter().find(|other| same(one, other));
        of(one, a, pair(times(one), other.and_then(times)))
    });
    let new = b
        .iter()
        .filter(|other| !a.iter().any(|one| same(one, other)));
    both.chain(new.map(|other| of(other, b, pair(None, times(other)))))
        .collect()
}

/// A segment of one trace with its points, and the median of its times.
#[derive(Debug)]
struct NamedSegment {
    from: LifelinePoint,
    to: LifelinePoint,
    connections: bool,
    /// Whether it is the wait for a retransmission.
    waits: bool,
    median: Option<Median>,
}

impl NamedSegment {
    fn beside(&self, compared: SegmentComparison) -> SegmentComparison {
        let name = match self.waits {
            true => SENDS_AGAIN.to_owned(),
            false => segment_name(&self.from, &self.to),
        };
        let (from, to) = (Some(self.from.clone()), Some(self.to.clone()));
        SegmentComparison {
            name,
            from,
            to,
            connections: self.connections,
            ..compared
        }
    }
}

fn is_same(one: &NamedSegment, other: &NamedSegment, with_hosts: bool) -> bool {
    let same = |a: &LifelinePoint, b: &LifelinePoint| match with_hosts {
        true => a == b,
        false => a.keyword == b.keyword,
    };
    let is_alike = one.connections == other.connections && one.waits == other.waits;
    is_alike && same(&one.from, &other.from) && same(&one.to, &other.to)
}

fn named(lifelines: &Lifelines) -> Vec<NamedSegment> {
    let mut all: Vec<SegmentTimes> = stretches(lifelines, |_| true, |_| true);
    all.sort_by_key(|stretch| {
        (
            stretch.connections,
            stretch.from,
            stretch.to,
            !stretch.waits,
        )
    });
    let point = |at: u32| lifelines.points[at as usize].clone();
    let name = |stretch: SegmentTimes| {
        let (from, to, connections) = (point(stretch.from), point(stretch.to), stretch.connections);
        NamedSegment {
            from,
            to,
            connections,
            waits: stretch.waits,
            median: median(stretch.into_times()),
        }
    };
    all.into_iter().map(name).collect()
}

/// The median time from the first to the last point of the units that arrived.
fn whole(lifelines: &Lifelines) -> Option<Median> {
    let of =
        |line: &&Lifeline| line.has_arrived() && !lifelines.is_connection(line) && line.count > 1;
    median(
        lifelines
            .lines
            .iter()
            .filter(of)
            .map(|line| lifeline_duration_ns(lifelines, line))
            .collect(),
    )
}

/// The median of times in ns, and its 95 % interval: two order statistics at equal distance around it, by the normal approximation
/// of the binomial distribution.
fn median(mut times: Vec<i64>) -> Option<Median> {
    times.sort_unstable();
    let n = times.len();
    let middle = times.get(n / 2)?;
    let before = times[(n - 1) / 2];
    let median_ns = f64::midpoint(before as f64, *middle as f64);
    let half = 1.96 * (n as f64).sqrt() / 2.0;
    // The lower rank, counted from one.
    let low = ((n as f64 + 1.0) / 2.0 - half - 0.5).floor();
    let place = (low >= 1.0).then_some(low as usize);
    let ci95_ns = place.map(|rank| (times[rank - 1] as f64, times[n - rank] as f64));
    Some(Median {
        n,
        median_ns,
        ci95_ns,
    })
}

/// Compares the medians of one segment; the caller sets the names.
fn pair(a: Option<Median>, b: Option<Median>) -> SegmentComparison {
    let both = a
        .zip(b)
        .filter(|(a, b)| a.median_ns > 0.0 && b.median_ns > 0.0);
    let ratio = both.map(|(a, b)| b.median_ns / a.median_ns);
    let ci95 = both.and_then(|(a, b)| interval(&a, &b));
    let verdict = match ci95 {
        None => ComparisonVerdict::CannotTell,
        Some((low, _)) if low > 1.0 => ComparisonVerdict::Slower,
        Some((_, high)) if high < 1.0 => ComparisonVerdict::Faster,
        Some(_) => ComparisonVerdict::NoDifferenceSeen,
    };
    let name = "first to last".to_owned();
    SegmentComparison {
        name,
        from: None,
        to: None,
        connections: false,
        a,
        b,
        ratio,
        ci95,
        verdict,
    }
}

/// The 95 % interval of the ratio of the medians; `None` if a median has no interval, or one that reaches zero.
fn interval(a: &Median, b: &Median) -> Option<(f64, f64)> {
    let ((a_low, a_high), (b_low, b_high)) = (a.ci95_ns?, b.ci95_ns?);
    if a_low <= 0.0 || b_low <= 0.0 {
        return None;
    }
    let centre = (b.median_ns / a.median_ns).ln();
    let below = (b.median_ns / b_low)
        .ln()
        .hypot((a_high / a.median_ns).ln());
    let above = (b_high / b.median_ns)
        .ln()
        .hypot((a.median_ns / a_low).ln());
    Some(((centre - below).exp(), (centre + above).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};

    #[test]
    fn requests_are_compared_by_name() {
        let named = |name: &str, ms: u64| NamedRequests {
            name: name.to_owned(),
            times_ns: (0..20).map(|at| ms * 1_000_000 + at * 10_000).collect(),
            ..NamedRequests::default()
        };
        let (before, after) = (
            [
                named("GET /slow", 80),
                named("GET /fast", 1),
                named("GET /old", 5),
            ],
            [
                named("GET /fast", 1),
                named("GET /slow", 20),
                named("GET /new", 5),
            ],
        );
        let found = compare_requests(&before, &after);
        let verdicts: Vec<(&str, ComparisonVerdict)> = found
            .iter()
            .map(|one| (one.name.as_str(), one.verdict))
            .collect();
        assert_eq!(
            verdicts,
            [
                ("GET /slow", ComparisonVerdict::Faster),
                ("GET /fast", ComparisonVerdict::NoDifferenceSeen),
                ("GET /old", ComparisonVerdict::CannotTell),
                ("GET /new", ComparisonVerdict::CannotTell),
            ]
        );
        assert!((found[0].ratio.unwrap() - 0.25).abs() < 0.01);
        assert!(found[2].b.is_none() && found[3].a.is_none());
    }

    use stackline_events::{EventTable, EventValue};

    /// So many units that go from one host to another and back; the way there takes so many us more than 100 to 119.
    fn trace(units: i64, more_us: i64, server: &str) -> Lifelines {
        let mut table = EventTable::default();
        for unit in 0..units {
            let begun = 1_000_000_000 + unit * 10_000_000;
            let there = begun + (100 + unit % 20 + more_us) * 1000;
            for (keyword, host, at) in [
                ("GO", "client", begun),
                ("COME", server, there),
                ("BACK", "client", there + 50_000 + unit % 7 * 1000),
            ] {
                table.push(keyword, host, at as u64, &[EventValue::Number(unit)]);
            }
        }
        lifelines(&table, None, &LifelineOptions::default())
    }

    fn verdicts(compared: &[SegmentComparison]) -> Vec<ComparisonVerdict> {
        compared.iter().map(|one| one.verdict).collect()
    }

    #[test]
    fn the_segment_that_became_slower_is_named_with_its_ratio() {
        let found = compare_segments(&trace(200, 0, "server"), &trace(200, 110, "server"));
        assert_eq!(
            verdicts(&found),
            [
                ComparisonVerdict::Slower,
                ComparisonVerdict::Slower,
                ComparisonVerdict::NoDifferenceSeen
            ]
        );
        let (ratio, (low, high)) = (found[1].ratio.unwrap(), found[1].ci95.unwrap());
        assert!(
            (ratio - 219.5 / 109.5).abs() < 0.02 && low < ratio && ratio < high && high - low < 0.1,
            "{found:?}"
        );
        assert_eq!(found[1].to.as_ref().unwrap().keyword, "COME");
        let faster = compare_segments(&trace(200, 110, "server"), &trace(200, 0, "server"));
        assert_eq!(faster[1].verdict, ComparisonVerdict::Faster);
    }

    #[test]
    fn the_same_trace_shows_no_difference_and_a_few_units_none_at_all() {
        let same = compare_segments(&trace(200, 0, "server"), &trace(200, 0, "server"));
        assert!(
            verdicts(&same)
                .iter()
                .all(|verdict| *verdict == ComparisonVerdict::NoDifferenceSeen)
        );
        let few = compare_segments(&trace(5, 0, "server"), &trace(200, 50, "server"));
        assert!(
            verdicts(&few)
                .iter()
                .all(|verdict| *verdict == ComparisonVerdict::CannotTell),
            "{few:?}"
        );
        assert!(few.iter().all(|one| one.ratio.is_some()));
    }

    #[test]
    fn hosts_that_are_called_otherwise_come_together_by_their_keywords() {
        let found = compare_segments(&trace(50, 0, "pod-1"), &trace(50, 0, "pod-2"));
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|one| one.a.is_some() && one.b.is_some()));
    }

    #[test]
    fn an_interval_of_a_median_holds_it_as_often_as_it_says() {
        // Of 25 values the 8th and the 18th are around the median with 95.7 % (binomial); the 7th with more.
        let times: Vec<i64> = (1..=25).map(|n| n * 10).collect();
        let found = median(times).unwrap();
        assert_eq!(
            (found.median_ns, found.ci95_ns),
            (130.0, Some((70.0, 190.0)))
        );
        assert_eq!(median((1..=5).collect()).unwrap().ci95_ns, None);
        assert_eq!(median(Vec::new()), None);
    }
}
