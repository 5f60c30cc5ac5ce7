//! What counts in which interval, how intervals become longer, what connections report in each.

use super::*;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant(ms * MS)
}

/// Units of 1000 bytes that end at these moments, ms.
fn units(every_ms: u64, ended: impl IntoIterator<Item = u64>, stop: u64) -> EndpointIntervals {
    let mut series = IntervalSeries::new(Duration(every_ms * MS), None, false);
    series.begin(at(0), IntervalReading::default());
    for ms in ended {
        if series.is_over(at(ms)) {
            series.close(at(ms), &IntervalReading::default());
        }
        series.moved(at(ms), true, 1, 1000);
    }
    series.finish(at(stop), &IntervalReading::default())
}

fn bytes(intervals: &EndpointIntervals) -> Vec<u64> {
    let rows = intervals.rows.iter();
    rows.map(|one| one.row.received_bytes).collect()
}

#[test]
fn units_count_in_the_interval_in_which_they_end() {
    let made = units(10, [1, 9, 10, 35], 39);
    assert_eq!(bytes(&made), [2000, 1000, 0, 1000]);
    assert_eq!(made.length, Duration(39 * MS));
    let nothing = units(10, [], 25);
    assert_eq!(bytes(&nothing), [0, 0, 0]);
}

#[test]
fn a_stop_at_the_end_of_an_interval_begins_no_other() {
    assert_eq!(bytes(&units(10, [1, 11], 20)), [1000, 1000]);
    // What ends at that very moment is not lost, and has no interval of its own.
    assert_eq!(bytes(&units(10, [1, 20], 20)), [1000, 1000]);
    assert_eq!(bytes(&units(10, [1, 21], 21)), [1000, 0, 1000]);
}

#[test]
fn of_too_many_intervals_each_two_become_one_and_nothing_is_lost() {
    let made = units(1, 0..10_000, 10_000);
    assert!(made.rows.len() <= MOST_INTERVALS, "{}", made.rows.len());
    assert_eq!(made.every, Duration(16 * MS));
    assert_eq!(bytes(&made)[..3], [16_000, 16_000, 16_000]);
    assert_eq!(bytes(&made).iter().sum::<u64>(), 10_000_000);
}

#[test]
fn a_portion_grows_while_the_clock_is_read_too_often_and_shrinks_again() {
    let mut series = IntervalSeries::new(Duration(1000 * MS), None, false);
    series.begin(at(0), IntervalReading::default());
    assert_eq!(
        (
            series.portion_units(1024, 0),
            series.portion_units(1 << 20, 0)
        ),
        (4, 1)
    );
    (0..20).for_each(|step| series.moved(Instant(step * 1000), true, 1, 1024));
    assert_eq!(series.portion_units(1024, 0), 1024);
    (1..20).for_each(|step| series.moved(at(step * 50), true, 1, 1024));
    assert_eq!(series.portion_units(1024, 0), 4);
}

fn progress(next: u64, arrived: u64) -> IntervalReading {
    IntervalReading {
        progress: Some(SequenceProgress { next, arrived }),
        ..IntervalReading::default()
    }
}

#[test]
fn what_is_missing_is_found_in_the_interval_in_which_a_later_unit_arrives() {
    let mut series = IntervalSeries::new(Duration(10 * MS), Some(Duration(MS)), false);
    series.begin(at(0), progress(2, 2));
    for (next, ms) in (3..=12).zip(1..) {
        series.arrived(
            at(ms),
            SequenceProgress {
                next,
                arrived: next,
            },
        );
    }
    series.close(at(10), &progress(12, 11));
    // One comes 4 ms late, by which the estimate moves a sixteenth of 4 ms.
    series.arrived(
        at(15),
        SequenceProgress {
            next: 13,
            arrived: 12,
        },
    );
    let made = series.finish(at(18), &progress(15, 12));
    let rows: Vec<_> = made
        .rows
        .iter()
        .map(|one| (one.row.lost, one.row.jitter_ns))
        .collect();
    assert_eq!(rows, [(Some(1), Some(0)), (Some(2), Some(MS / 4))]);
}

#[test]
fn a_transport_counts_beyond_what_it_had_counted_before() {
    let reading = |retransmits| IntervalReading {
        transport: Some(TransportRecord {
            retransmits,
            rtt_s: 0.01,
            cwnd_segments: Some(10),
            mss_bytes: 1448,
            ..TransportRecord::default()
        }),
        ..IntervalReading::default()
    };
    let mut series = IntervalSeries::new(Duration(10 * MS), None, false);
    series.begin(at(0), reading(5));
    series.close(at(10), &reading(7));
    let made = series.finish(at(15), &reading(8));
    let transport = |row: usize| made.rows[row].row.transport.unwrap();
    assert_eq!([0, 1].map(|row| transport(row).retransmits), [2, 1]);
    assert_eq!(
        (transport(1).window_bytes, transport(1).round_trip_ns),
        (Some(14_480), 10 * MS)
    );
}
