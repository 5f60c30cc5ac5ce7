//! How an endpoint ends early: at the limit, where the peer ends, where something fails; and many of them at once.

mod common;

use common::{
    Script, initiator, period_ms, plan, responder, task, task_of_part, times_ms, walk_replica,
};
use stackline_core::error::{Blame, Error};
use stackline_core::procedure::PairSide;
use stackline_endpoint::observation::gather;
use stackline_endpoint::records::{MeasurementRun, make_records};

fn limit(ms: u64) -> Script {
    Script {
        limit_ms: Some(ms),
        ..Script::default()
    }
}

fn peer_ends_after(units: u64) -> Script {
    Script {
        peer_ends_after: Some(units),
        ..Script::default()
    }
}

fn fails(operation: &'static str, time: usize, error: Error) -> Script {
    Script {
        failure: Some((operation, time, error)),
        ..Script::default()
    }
}

#[test]
fn at_the_limit_a_sender_ends_its_stream_and_then_everything_else_as_usual() {
    let walked = initiator("1 bulk_put 1000 timelimit 3 ms over pair;", limit(3));
    walked.is("
        0 connect
        5 settle
        7 barrier
        107 ClockStarts
        107 start Put
        108 send 1000*18446744073709551615
        110 end_stream
        110 stop Put
        114 ClockStops
        114 disconnect
    ");
    let observed = walked.observed();
    assert!(observed.limited);
    assert_eq!(observed.record.sent_units, 2);
}

#[test]
fn at_the_limit_no_further_call_begins() {
    let walked = initiator("1 rr 32*1000 timelimit 25 ms over pair;", limit(25));
    assert_eq!((walked.count("call"), walked.count("end_stream")), (3, 1));
    let observed = walked.observed();
    assert!(observed.limited);
    assert_eq!(times_ms(&observed.calls), [10, 10, 10]);
}

#[test]
fn a_limit_that_comes_while_a_pace_is_waited_for_ends_there() {
    let walked = initiator(
        "1 rr 32*1000 constant(40 ms) timelimit 100 ms over pair;",
        limit(100),
    );
    // Due at 40, 80 and 120 ms of the clock; the third is never made.
    assert_eq!((walked.count("call"), walked.count("end_stream")), (2, 1));
    let observed = walked.observed();
    assert_eq!(period_ms(&observed), Some((107, 207)));
}

#[test]
fn who_only_awaits_goes_on_behind_the_repeat_when_the_stream_has_ended() {
    let text = "1 bulk_put 1000 timelimit 3 ms over pair;";
    let mut script = peer_ends_after(2);
    script.peer_stays = true;
    let walked = responder(text, script);
    assert_eq!(
        (walked.count("receive"), walked.count("await_stop")),
        (1, 1)
    );
    let observed = walked.observed();
    assert!(observed.limited);
    assert_eq!(observed.record.received_units, 2);
    // It measures no time of its own.
    assert_eq!(task(text, PairSide::Responder).own_time_limit(), None);
    assert!(task(text, PairSide::Initiator).own_time_limit().is_some());
}

#[test]
fn the_end_of_a_stream_lets_what_follows_the_units_be_done_once() {
    let text = "
        procedure bursts {
          initiator { ConnectRequest; StartMeasurement; repeat count { repeat 3 { DataRequest(unit); } AwaitDataIndication(unit); } StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; repeat count { repeat 3 { AwaitDataIndication(unit); } DataRequest(unit); } AwaitDisconnectIndication; }
        }
        1 bursts 500 timelimit 1 over pair;";
    let walked = responder(text, peer_ends_after(5));
    assert_eq!((walked.count("receive"), walked.count("send")), (3, 2));
    assert_eq!(walked.observed().record.received_units, 5);
}

#[test]
fn a_reliable_peer_that_ends_in_the_midst_is_an_error_and_a_lossy_one_is_not() {
    let ends = |text: &str| responder(text, peer_ends_after(2));
    for (what, over) in [("1 bulk_put 1000*5", "pair"), ("1 rr 32*5", "pair")] {
        let error = ends(&format!("{what} over {over};")).result.unwrap_err();
        assert_eq!(
            error.message, "the peer vanished before it had sent everything",
            "{what}"
        );
    }
    let walked = ends("1 bulk_put 1000*5 over lossy;");
    assert_eq!(walked.count("await_disconnect"), 1);
    let observed = walked.observed();
    assert_eq!(
        (observed.record.received_units, observed.limited),
        (2, false)
    );
    // Before the first, too.
    let none = responder("1 bulk_get 1000*5 over pair;", peer_ends_after(0));
    assert!(none.result.is_err());
}

#[test]
fn a_failure_in_the_midst_is_the_runs_and_nothing_follows_it() {
    let refused = Error::measurement("the wire is cut");
    let operations = [
        ("1 bulk_get 1000*3 over pair;", "connect", 0),
        ("1 bulk_get 1000*3 over pair;", "barrier", 0),
        ("1 bulk_get 1000*3 over pair;", "receive", 0),
        ("1 bulk_put 1000*3 over pair;", "stop", 0),
        ("1 rr 32*3 over pair;", "call", 2),
        ("1 rr 32*3 over pair;", "disconnect", 0),
    ];
    for (text, operation, time) in operations {
        let walked = initiator(text, fails(operation, time, refused.clone()));
        let last = walked
            .journal
            .last()
            .map(String::as_str)
            .unwrap_or_default();
        assert!(last.contains(operation), "{text} {operation}: {last}");
        let message = walked.result.unwrap_err().message;
        assert_eq!(message, "the wire is cut", "{text} {operation}");
    }
}

#[test]
fn who_gives_up_keeps_what_was_observed_until_then() {
    let interrupted = Error::new(Blame::Interrupted, "interrupted");
    let walked = initiator("1 rr 32*9 over pair;", fails("call", 3, interrupted));
    assert_eq!(walked.count("disconnect"), 0);
    let observed = walked.observed();
    assert_eq!(times_ms(&observed.calls), [10, 10, 10]);
    assert_eq!(period_ms(&observed), Some((107, 137)));
}

#[test]
fn a_load_begins_again_until_it_is_no_longer_wanted() {
    let text = "
        procedure visit {
          initiator { ConnectRequest; StartMeasurement; repeat 3 { RPCCall(unit, reply); } StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; repeat 3 { RPCAwaitCallInd(unit); RPCReturn(reply); } AwaitDisconnectIndication; }
        }
        1 background over pair: rr 32*10 | visit 1000;";
    let load = task_of_part(text, 1, PairSide::Initiator);
    let walked = walk_replica(&load, 0, limit(400));
    // A visit takes 140 ms, and the one at the limit ends its stream in the midst.
    assert_eq!((walked.count("connect"), walked.count("call")), (3, 8));
    assert!(walked.result.is_ok());
}

#[test]
fn a_load_takes_what_comes_in_portions_until_its_peer_ends() {
    let text = "1 background over pair: rr 32*10 | bulk_get 1000*20;";
    let load = task_of_part(text, 1, PairSide::Initiator);
    let walked = walk_replica(&load, 0, peer_ends_after(40));
    assert_eq!((walked.count("1000*16"), walked.count("connect")), (3, 1));
    let observed = walked.observed();
    assert_eq!(
        (observed.record.received_units, observed.limited),
        (40, true)
    );
}

const DRAWN: &str = "1 parallel over pair: 4 rr uniform(10, 90)*25;";

/// The sizes of requests in a journal.
fn sizes(side: PairSide, replica: u32) -> Vec<String> {
    let walked = walk_replica(&task(DRAWN, side), replica, Script::default());
    let size = |line: &String| {
        let mut words = line.split(' ').skip(1);
        let call = words.next().is_some_and(|w| w.ends_with("call"));
        call.then(|| words.next().unwrap_or_default().to_string())
    };
    walked.journal.iter().filter_map(size).collect()
}

#[test]
fn both_ends_of_a_pair_draw_the_same_and_pairs_differ() {
    let drawn: Vec<Vec<String>> = (0..4)
        .map(|pair| sizes(PairSide::Initiator, pair))
        .collect();
    for (pair, sent) in (0..).zip(&drawn) {
        assert_eq!(sent.len(), 25);
        assert_eq!(*sent, sizes(PairSide::Responder, pair));
        assert!(drawn.iter().filter(|other| *other == sent).count() == 1);
    }
}

#[test]
fn pairs_of_a_part_are_one_record_and_the_longest_counts() {
    let text = "1 parallel over pair: 3 rr 32*5;";
    let walk = |side, replica| {
        // The second pair is held up by calls that are lost.
        let lost_calls = if replica == 1 { vec![0, 1] } else { Vec::new() };
        let script = Script {
            lost_calls,
            limit_ms: (replica == 2).then_some(20),
            ..Script::default()
        };
        walk_replica(&task(text, side), replica, script).observed()
    };
    let initiators = gather((0..3).map(|pair| walk(PairSide::Initiator, pair)).collect());
    assert_eq!(
        (initiators.elapsed_ns, initiators.span_ns),
        (50_000_000, 50_000_000)
    );
    assert!(initiators.limited, "one of them was");
    assert_eq!(times_ms(&initiators.calls).len(), 5 + 3 + 2);

    let plan = plan(text);
    let run = MeasurementRun {
        measurement: &plan.measurements[0],
        index: 4,
        run: 7,
        warmup: true,
    };
    let responders = gather(vec![walk(PairSide::Responder, 0)]);
    let observed = [
        (0, PairSide::Initiator, initiators),
        (0, PairSide::Responder, responders),
        (9, PairSide::Initiator, gather(Vec::new())),
    ];
    let records = make_records(&run, observed);
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(
        (
            record.measurement,
            record.part,
            record.run,
            record.warmup,
            record.replicas
        ),
        (4, 0, 7, true, 3)
    );
    assert_eq!(record.elapsed_ns, 50_000_000, "the initiators' clocks hold");
    assert_eq!(record.calls.n(), 10);
    assert_eq!(
        record.absent["transport"],
        "pair reports no transport statistics"
    );
}
