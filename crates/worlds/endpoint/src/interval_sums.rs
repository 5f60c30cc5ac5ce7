//! The intervals of all endpoints of a side: their sum, and each of the first ones.

use crate::interval_series::{EndpointInterval, EndpointIntervals, added, added_calls, joined};
use crate::latency_counts::{LatencyCount, percentiles};
use stackline_core::interval_record::{IntervalRow, MOST_PAIRS, SideIntervals};
use stackline_core::time::Duration;

/// Combines the intervals of endpoints whose clocks started together; `None` if none has any.
pub(crate) fn sum_intervals<'e>(
    all: impl Iterator<Item = &'e EndpointIntervals> + Clone,
) -> Option<SideIntervals> {
    let every = all.clone().map(|one| one.every).max()?;
    let length = all.clone().map(|one| one.length).max().unwrap_or_default();
    let (mut sum, mut pairs): (Vec<EndpointInterval>, Vec<Vec<IntervalRow>>) = Default::default();
    let mut endpoints = 0_usize;
    for one in all {
        endpoints += 1;
        let rows = with_interval(one, every);
        if pairs.len() < MOST_PAIRS {
            pairs.push(rows.iter().cloned().map(summarised).collect());
        }
        if sum.len() < rows.len() {
            sum.resize_with(rows.len(), || EndpointInterval {
                times: Some(Vec::new()),
                ..EndpointInterval::default()
            });
        }
        for (whole, row) in sum.iter_mut().zip(rows) {
            whole.row = together(&whole.row, &row.row);
            whole.times = merged_times(whole.times.take(), row.times);
        }
    }
    if endpoints == 1 {
        pairs.clear();
    }
    Some(SideIntervals {
        every_ns: every.0,
        length_ns: length.0,
        sum: sum.into_iter().map(summarised).collect(),
        pairs,
    })
}

/// The intervals of an endpoint, with others that are a power of two as long.
fn with_interval(one: &EndpointIntervals, every: Duration) -> Vec<EndpointInterval> {
    let (mut rows, mut length) = (one.rows.clone(), one.every);
    while length < every {
        rows = rows.chunks(2).map(both).collect();
        length = Duration(2 * length.0);
    }
    rows
}

fn both(pair: &[EndpointInterval]) -> EndpointInterval {
    match pair {
        [first, second] => EndpointInterval {
            row: joined(&first.row, &second.row),
            times: merged_times(first.times.clone(), second.times.clone()),
        },
        _ => pair.first().cloned().unwrap_or_default(),
    }
}

fn merged_times(
    one: Option<Vec<LatencyCount>>,
    other: Option<Vec<LatencyCount>>,
) -> Option<Vec<LatencyCount>> {
    let mut one = one?;
    one.extend(other?);
    Some(one)
}

/// The same interval of two pairs.
fn together(one: &IntervalRow, other: &IntervalRow) -> IntervalRow {
    IntervalRow {
        received_units: one.received_units + other.received_units,
        received_bytes: one.received_bytes + other.received_bytes,
        sent_units: one.sent_units + other.sent_units,
        sent_bytes: one.sent_bytes + other.sent_bytes,
        calls: added_calls(one.calls, other.calls),
        transport: match (one.transport, other.transport) {
            (Some(one), Some(other)) => Some(one.with(other)),
            (one, other) => one.or(other),
        },
        lost: added(one.lost, other.lost),
        // Jitters do not add up: that of the worst pair is kept.
        jitter_ns: one.jitter_ns.max(other.jitter_ns),
    }
}

/// The row with the percentiles of its times.
fn summarised(interval: EndpointInterval) -> IntervalRow {
    let mut row = interval.row;
    if let (Some(calls), Some(mut times)) = (&mut row.calls, interval.times)
        && let Some([median, p99]) = percentiles(&mut times, [0.5, 0.99])
    {
        calls.median_ns = Some(median.min(calls.max_ns));
        calls.p99_ns = Some(p99.min(calls.max_ns));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval_series::{IntervalReading, IntervalSeries};
    use stackline_core::time::Instant;

    /// Calls that end at these moments and take so long, ms, over intervals of 10 ms.
    fn calls(ended: &[(u64, u64)], stop: u64) -> EndpointIntervals {
        let ms = |ms: u64| Instant(ms * 1_000_000);
        let mut series = IntervalSeries::new(Duration(10_000_000), None, true);
        series.begin(ms(0), IntervalReading::default());
        for (at, took) in ended {
            if series.is_over(ms(*at)) {
                series.close(ms(*at), &IntervalReading::default());
            }
            series.called(Duration(took * 1_000_000));
        }
        series.finish(ms(stop), &IntervalReading::default())
    }

    #[test]
    fn calls_of_all_pairs_have_common_percentiles() {
        let all = [calls(&[(1, 1), (2, 1), (12, 5)], 20), calls(&[(3, 3)], 15)];
        let side = sum_intervals(all.iter()).unwrap();
        let n: Vec<Option<u64>> = side.sum.iter().map(|row| row.calls.map(|c| c.n)).collect();
        assert_eq!((n, side.length_ns), (vec![Some(3), Some(1)], 20_000_000));
        let first = side.sum[0].calls.unwrap();
        let median = first.median_ns.unwrap();
        assert!(median.abs_diff(1_000_000) < 10_000, "{median}");
        let p99 = first.p99_ns.unwrap();
        assert!(p99.abs_diff(3_000_000) < 30_000, "{p99}");
        assert_eq!(first.max_ns, 3_000_000);
        assert_eq!(side.pairs.len(), 2);
        assert_eq!(sum_intervals([].iter()), None);
    }

    #[test]
    fn a_single_pair_is_its_own_sum() {
        let one = [calls(&[(1, 1)], 5)];
        let side = sum_intervals(one.iter()).unwrap();
        assert!(side.pairs.is_empty());
        assert_eq!(side.sum.len(), 1);
    }
}
