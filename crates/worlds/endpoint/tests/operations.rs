//! What an endpoint asks of its world and counts for each kind of operation.

mod common;

use common::{Script, initiator, period_ms, responder, times_ms};
use stackline_core::run_record::{IN_TRANSIT, UNPLACED, UnitLosses};
use stackline_endpoint::ConnectionFacts;

#[test]
fn a_get_is_timed_from_a_quiet_connection_until_its_last_unit_is_there() {
    let walked = initiator("1 bulk_get 1000*3 over pair;", Script::default());
    walked.is("
        0 connect
        5 settle
        7 barrier
        107 ClockStarts
        107 start Get
        108 receive 1000*3
        111 stop Get
        115 ClockStops
        115 disconnect
    ");
    let observed = walked.observed();
    assert_eq!(period_ms(&observed), Some((107, 115)));
    let record = &observed.record;
    assert_eq!((record.received_units, record.received_bytes), (3, 3000));
    assert_eq!((record.sent_units, record.sent_bytes), (0, 0));
    assert_eq!(record.settings["recorded"], "yes");
}

#[test]
fn the_sender_of_a_get_begins_its_period_when_it_hears_of_it() {
    let walked = responder("1 bulk_get 1000*3 over pair;", Script::default());
    walked.is("
        0 accept
        5 ClockStarts
        5 await_start Get
        6 ClockStarts
        6 send 1000*3
        9 await_stop Get
        13 ClockStops
        13 await_disconnect
    ");
    let observed = walked.observed();
    assert_eq!(period_ms(&observed), Some((6, 13)));
    assert_eq!(observed.record.sent_units, 3);
}

#[test]
fn a_put_ends_when_the_receiver_has_it_all() {
    let put = "1 bulk_put 1000*3 over pair;";
    let walked = initiator(put, Script::default());
    walked.is("
        0 connect
        5 settle
        7 barrier
        107 ClockStarts
        107 start Put
        108 send 1000*3
        111 stop Put
        115 ClockStops
        115 disconnect
    ");
    let observed = walked.observed();
    assert_eq!(observed.record.sent_bytes, 3000);
    assert!(observed.record.bytes_are_timed());
    responder(put, Script::default()).is("
        0 accept
        5 ClockStarts
        5 await_start Put
        6 ClockStarts
        6 receive 1000*3
        9 await_stop Put
        13 ClockStops
        13 await_disconnect
    ");
}

/// Units that nothing confirms before the clock stops.
const UNCONFIRMED: &str = "
    procedure shout {
      initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); } StopMeasurement; DisconnectRequest; }
      responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); } AwaitDisconnectIndication; }
    }
    1 shout 1000*3 over pair;";

#[test]
fn a_clock_that_stops_over_units_in_transit_says_so() {
    let notes = |confirms| {
        let script = Script {
            confirms,
            ..Script::default()
        };
        initiator(UNCONFIRMED, script).observed().record.notes
    };
    assert_eq!(notes(false), [IN_TRANSIT]);
    assert!(notes(true).is_empty(), "a stack that acknowledges each");
}

#[test]
fn calls_are_timed_one_by_one_and_lost_ones_are_not() {
    let script = Script {
        lost_calls: vec![1],
        ..Script::default()
    };
    let walked = initiator("1 rr 32, 1000*4 over lossy;", script);
    walked.is("
        0 connect
        5 settle
        7 barrier
        107 ClockStarts
        107 call 32 1000
        117 call 32 1000
        127 call 32 1000
        137 call 32 1000
        147 ClockStops
        147 disconnect
    ");
    assert_eq!(times_ms(&walked.observed().calls), [10, 10, 10]);
}

#[test]
fn a_paced_call_counts_from_its_intended_moment() {
    // Calls take 10 ms and are due each 6 ms: each waits 4 ms longer than the one before it.
    let walked = initiator("1 rr 32*4 constant(6 ms) over pair;", Script::default());
    assert_eq!(walked.count("sleep"), 4);
    let observed = walked.observed();
    assert_eq!(times_ms(&observed.calls), [10, 14, 18, 22]);
    assert_eq!(times_ms(&observed.lateness), [0, 4, 8, 12]);
}

#[test]
fn a_responder_serves_and_waits_as_its_service_says() {
    let walked = responder(
        "1 rr 32, 1000*2 constant(0) constant(20 ms) over pair;",
        Script::default(),
    );
    walked.is("
        0 accept
        5 ClockStarts
        5 await_call 32
        12 ClockStarts
        12 sleep until 32
        32 reply 1000
        33 await_call 32
        40 sleep until 60
        60 reply 1000
        61 ClockStops
        61 await_disconnect
    ");
}

#[test]
fn what_lies_between_connect_and_disconnect_is_part_of_neither() {
    let text = "
        procedure visit {
          initiator { StartMeasurement; repeat count { ConnectRequest; Delay(constant(50 ms)); DisconnectRequest; } StopMeasurement; }
          responder { repeat count { AwaitConnectIndication; AwaitDisconnectIndication; } }
        }
        1 visit 0*3 over pair;";
    let walked = initiator(text, Script::default());
    assert_eq!(walked.count("barrier"), 1);
    let observed = walked.observed();
    assert_eq!(times_ms(&observed.connects), [8, 8, 8]);
    assert_eq!(period_ms(&observed), Some((100, 100 + 3 * 58)));
    // A responder that only waits for connections is measured from first to last.
    let observed = responder(text, Script::default()).observed();
    assert_eq!(period_ms(&observed), Some((0, 3 * 8)));
}

/// A unit before the clock, two within, one behind.
const OUTSIDE: &str = "
    procedure warmed {
      initiator {
        ConnectRequest; AwaitDataIndication(10);
        StartMeasurement; RPCCall(20, 30); AwaitDataIndication(40); StopMeasurement;
        AwaitDataIndication(50); DisconnectRequest;
      }
      responder {
        AwaitConnectIndication; DataRequest(10);
        RPCAwaitCallInd(20); RPCReturn(30); DataRequest(40);
        DataRequest(50); AwaitDisconnectIndication;
      }
    }";

#[test]
fn only_what_lies_within_the_clock_is_counted() {
    let text = format!("{OUTSIDE} 1 warmed 1*1 over pair;");
    let record = initiator(&text, Script::default()).observed().record;
    assert_eq!((record.received_units, record.received_bytes), (1, 40));
    let walked = responder(&text, Script::default());
    walked.is("
        0 accept
        5 send 10*1
        6 ClockStarts
        6 await_call 20
        13 ClockStarts
        13 reply 30
        14 send 40*1
        15 ClockStops
        15 send 50*1
        16 await_disconnect
    ");
    let record = walked.observed().record;
    assert_eq!((record.sent_units, record.sent_bytes), (1, 40));
}

#[test]
fn losses_are_those_of_the_clock_and_make_the_rest_unplaced() {
    // Each unit that came is accompanied by one that did not.
    let script = Script {
        facts: Some(|came| ConnectionFacts {
            losses: Some(UnitLosses {
                lost: came,
                duplicated: 2 * came,
                reordered: 3 * came,
            }),
            received_bytes: Some(7 * came),
            notes: Vec::new(),
        }),
        ..Script::default()
    };
    let text = format!("{OUTSIDE} 1 warmed 1*1 over lossy;");
    let record = initiator(&text, script).observed().record;
    assert_eq!(
        (record.lost, record.duplicated, record.reordered),
        (Some(1), Some(2), Some(3)),
        "of three units one lay within the clock"
    );
    assert_eq!(record.received_bytes, 7);
    assert_eq!(record.notes, [UNPLACED]);
}

#[test]
fn marks_files_and_delays() {
    let text = "
        procedure copy {
          initiator {
            ConnectRequest; StartMeasurement;
            repeat count { ReadFile(100); Mark(read); Delay(constant(20 ms)); DataRequest(unit); Mark(sent); }
            StopMeasurement; DisconnectRequest;
          }
          responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); WriteFile(unit); } AwaitDisconnectIndication; }
        }
        1 copy 500*2 < file a > file b over pair;";
    let walked = initiator(text, Script::default());
    walked.is("
        0 connect
        5 settle
        7 barrier
        107 ClockStarts
        107 read 100
        108 sleep until 128
        128 send 500*1
        129 read 100
        130 sleep until 150
        150 send 500*1
        151 ClockStops
        151 disconnect
    ");
    let marks = walked.observed().record.marks;
    let passed = |name: &str| times_ms(&marks[name]);
    assert_eq!(
        (passed("read"), passed("sent")),
        (vec![1, 23], vec![22, 44])
    );
    assert_eq!(
        (passed("read -> sent"), passed("sent -> read")),
        (vec![21, 21], vec![1])
    );
    assert_eq!(responder(text, Script::default()).count("write"), 2);
}
