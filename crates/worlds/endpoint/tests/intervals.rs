//! The sums of intervals: of what ended in each, in a task that asks for them.

mod common;

use common::{MS, Script, Walked, task, walk_replica};
use stackline_core::interval_record::SideIntervals;
use stackline_core::procedure::PairSide;
use stackline_core::time::Duration;
use stackline_endpoint::observation::gather;
use stackline_endpoint::{ConnectionFacts, EndpointTask};
use std::sync::Arc;

/// Walks one side of a text, with intervals of so many ms.
fn walked(text: &str, side: PairSide, every_ms: u64, script: Script) -> Walked {
    let mut asked = EndpointTask::clone(&task(text, side));
    asked.interval = Some(Duration(every_ms * MS));
    walk_replica(&Arc::new(asked), 0, script)
}

fn intervals(walked: Walked) -> SideIntervals {
    let side = gather(vec![walked.observed()]);
    side.intervals.expect("intervals were asked for")
}

#[test]
fn units_that_arrive_are_counted_in_portions_of_4_kib() {
    let get = "1 bulk_get 1024*10 over pair;";
    let made = walked(get, PairSide::Initiator, 5, Script::default());
    // Each portion takes 4 ms, which is long beside an interval: it does not grow.
    let portions: Vec<&str> = made
        .journal
        .iter()
        .filter(|line| line.contains("receive"))
        .map(|line| line.split_once(' ').expect("a moment and what").1)
        .collect();
    assert_eq!(
        portions,
        ["receive 1024*4", "receive 1024*4", "receive 1024*2"]
    );
    let side = intervals(made);
    let bytes: Vec<u64> = side.sum.iter().map(|row| row.received_bytes).collect();
    // The clock starts 1 ms before the first unit may come, and stops 4 ms after the last one.
    assert_eq!(bytes, [0, 8 * 1024, 2 * 1024]);
    assert_eq!((side.every_ns, side.length_ns), (5 * MS, 15 * MS));
    assert!(side.pairs.is_empty());
}

#[test]
fn a_limit_is_seen_between_portions_of_one_unit() {
    let put = "1 timelimit 1 bulk_put 64 KiB over pair;";
    let script = Script {
        limit_ms: Some(20),
        ..Script::default()
    };
    let made = walked(put, PairSide::Initiator, 10, script);
    assert_eq!(made.count("end_stream"), 1);
    let side = intervals(made);
    let units: Vec<u64> = side.sum.iter().map(|row| row.sent_units).collect();
    assert_eq!(units.iter().sum::<u64>(), 19, "{units:?}");
}

#[test]
fn calls_have_their_number_and_times_in_the_interval_in_which_they_end() {
    let calls = "1 rr 32*4 constant(6 ms) over pair;";
    let side = intervals(walked(calls, PairSide::Initiator, 20, Script::default()));
    let rows: Vec<_> = side.sum.iter().filter_map(|row| row.calls).collect();
    // They end after 16, 26, 36 and 46 ms, and have waited since their intended moments.
    let n: Vec<u64> = rows.iter().map(|calls| calls.n).collect();
    let longest: Vec<u64> = rows.iter().map(|calls| calls.max_ns / MS).collect();
    assert_eq!((n, longest), (vec![1, 2, 1], vec![10, 18, 22]));
}

#[test]
fn connections_without_data_are_counted_as_calls_are() {
    let text = "1 connect_disconnect 0*3 over pair;";
    let side = intervals(walked(text, PairSide::Initiator, 1000, Script::default()));
    assert_eq!(side.sum[0].calls.map(|calls| calls.n), Some(3));
}

#[test]
fn a_task_without_an_interval_moves_all_at_once() {
    let get = "1 bulk_get 1024*10 over pair;";
    let plain = walk_replica(&task(get, PairSide::Initiator), 0, Script::default());
    assert_eq!(plain.count("1024*10"), 1);
    assert_eq!(gather(vec![plain.observed()]).intervals, None);
}

#[test]
fn units_of_an_even_stream_that_may_be_lost_are_noted_one_by_one() {
    let text = "1 stream 1000*5 constant(2 ms) over lossy;";
    let script = Script {
        facts: Some(|_| ConnectionFacts::default()),
        ..Script::default()
    };
    let mut asked = EndpointTask::clone(&task(text, PairSide::Responder));
    asked.interval = Some(Duration(10 * MS));
    assert_eq!(asked.pace, None, "known only when intervals are asked for");
    asked.pace = Some(Duration(2 * MS));
    let made = walk_replica(&Arc::new(asked), 0, script);
    assert_eq!(made.count("1000*1"), 5);
}
