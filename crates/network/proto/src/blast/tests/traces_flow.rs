//! Traces of what bounds a transfer: the receiver's buffer, its patience with silence, and the sender's.

use super::script::{ALL, MS, Script, fixed};
use crate::blast::{
    BlastFailure, BlastOptions, BlastPacing, BlastState, BlastStrategy, BlastTimeout,
};
use stackline_core::time::Duration;

const SILENT: BlastState = BlastState::Failed(BlastFailure::Silent);

/// An open connection whose receiving application takes nothing.
fn untaken(options: BlastOptions) -> Script {
    let mut script = Script::open(options);
    script.path.ends[1].takes = false;
    script
}

#[test]
fn a_receiver_without_buffers_is_probed_and_nothing_is_lost() {
    let mut script = untaken(BlastOptions {
        buffer: 4000,
        ..fixed(BlastStrategy::Selective, 4)
    });
    script.path.send(0, 10_000);
    let trace = [
        "0 -> 0.0 0 1 2 3?",
        "1 <- 0.0 all",
        "7 -> Probe",
        "8 <- limit 4000",
        "17 -> Probe",
        "18 <- limit 4000",
    ];
    assert_eq!(script.until(36), trace);
    assert_eq!(script.until(37), ["37 -> Probe"]);
    // Half of the buffer is worth a limit.
    script.path.ends[1].connection.consume(1000);
    assert_eq!(script.until(38), ["38 <- limit 5000"]);
    assert_eq!(script.until(40), ["39 -> 1.0 0?", "40 <- 1.0 all"]);
    script.path.ends[1].connection.consume(5000);
    assert_eq!(
        script.until(100),
        [
            "40 <- limit 9000",
            "41 -> 2.0 0 1 2 3?",
            "42 <- 2.0 all",
            "48 -> Probe",
            "49 <- limit 9000",
            "58 -> Probe",
            "59 <- limit 9000",
            "78 -> Probe",
            "79 <- limit 9000"
        ]
    );
    script.take();
    assert_eq!(
        script.until(200),
        ["100 <- limit 13000", "101 -> 3.0 0?", "102 <- 3.0 all"]
    );
    assert!(script.path.arrived(0, 10_000));
    assert_eq!(script.end(0).facts().sent.repeated, 0);
}

#[test]
fn a_lost_limit_is_probed() {
    let mut script = untaken(BlastOptions {
        buffer: 2000,
        ..fixed(BlastStrategy::Full, 2)
    });
    script.path.send(0, 3000);
    assert_eq!(script.until(4), ["0 -> 0.0 0 1?", "1 <- 0.0 all"]);
    script.lose(&["<limit", ">Probe"]);
    script.take();
    let trace = [
        "4 <- (limit 4000)",
        "7 -> (Probe)",
        "17 -> Probe",
        "18 <- limit 4000",
        "19 -> 1.0 0?",
        "20 <- 1.0 all",
    ];
    assert_eq!(script.until(100), trace);
}

#[test]
fn a_blast_that_fits_partly_waits_for_room_while_others_are_in_flight() {
    let mut script = untaken(BlastOptions {
        buffer: 5000,
        flight: 4,
        ..fixed(BlastStrategy::Selective, 2)
    });
    script.path.send(0, 6000);
    let trace = [
        "0 -> 0.0 0 1?",
        "0 -> 1.0 0 1?",
        "1 <- 0.0 all",
        "1 <- 1.0 all",
        "2 -> 2.0 0?",
        "3 <- 2.0 all",
    ];
    assert_eq!(script.until(8), trace);
}

#[test]
fn a_fixed_interval_counts_from_the_requesting_packet() {
    let mut script = Script::open(fixed(BlastStrategy::Selective, 2));
    script.lose(&[ALL]);
    script.path.send(0, 2000);
    let trace = [
        "0 -> 0.0 (0) (1?)",
        "10 -> 0.1 (1?)",
        "20 -> 0.2 (1?)",
        "30 -> 0.3 (1?)",
    ];
    assert_eq!(script.until(39), trace);
    assert_eq!(script.end(0).facts().sent.timeouts, 3);
}

#[test]
fn an_interval_that_measures_doubles_in_silence() {
    let mut script = Script::open(BlastOptions {
        interval: BlastTimeout::Adaptive,
        ..fixed(BlastStrategy::Selective, 2)
    });
    script.lose(&[ALL]);
    script.path.send(0, 2000);
    // A round trip of 2 ms and the least above it.
    let trace = [
        "0 -> 0.0 (0) (1?)",
        "6 -> 0.1 (1?)",
        "18 -> 0.2 (1?)",
        "42 -> 0.3 (1?)",
        "90 -> 0.4 (1?)",
    ];
    assert_eq!(script.until(185), trace);
}

#[test]
fn an_interval_shorter_than_the_round_trip_ends_too() {
    for strategy in [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ] {
        let interval = BlastTimeout::Fixed(Duration(MS / 2));
        let mut script = Script::open(BlastOptions {
            interval,
            ..fixed(strategy, 4)
        });
        script.lose(&[">0.0:1"]);
        script.path.send(0, 12_000);
        script.until(100);
        assert!(
            script.path.arrived(0, 12_000) && script.end(0).sender().is_idle(),
            "{strategy:?}"
        );
    }
}

#[test]
fn a_repetition_that_the_pace_holds_back_is_dropped_for_a_refusal() {
    // A packet of 1000 bytes every 80 ms; the round trip of 2 ms is longer than the interval.
    let interval = BlastTimeout::Fixed(Duration(MS));
    let options = BlastOptions {
        interval,
        pacing: BlastPacing::Ceiling(1e5),
        ..fixed(BlastStrategy::Selective, 4)
    };
    let mut script = Script::open(options);
    script.lose(&[">3.0:0"]);
    script.path.send(0, 20_000);
    let lines = script.until(10_000);
    assert!(script.path.arrived(0, 20_000) && script.end(0).sender().is_idle());
    assert!(script.end(0).facts().sent.repeated < 5, "{lines:#?}");
}

#[test]
fn a_sender_gives_up_when_nothing_was_answered_for_its_patience() {
    for strategy in [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ] {
        let mut script = Script::open(BlastOptions {
            patience: Duration(45 * MS),
            ..fixed(strategy, 2)
        });
        script.path.send(0, 6000);
        assert_eq!(script.until(2).len(), 3);
        script.lose(&[ALL]);
        // The request of 2 ms is never answered.
        assert_eq!(
            (script.until(46).len(), script.state(0)),
            (5, BlastState::Open),
            "{strategy:?}"
        );
        assert_eq!(
            (script.until(47).len(), script.state(0)),
            (0, SILENT),
            "{strategy:?}"
        );
        let now = script.path.now;
        assert_eq!(script.end(0).deadline(now), None);
    }
}

#[test]
fn an_answer_within_its_patience_keeps_a_sender_waiting() {
    let mut script = Script::open(BlastOptions {
        patience: Duration(45 * MS),
        ..fixed(BlastStrategy::Selective, 2)
    });
    script.lose(&[
        ">0.0:0", ">0.0:1", ">0.1:1", ">0.2:1", ">0.4:0", ">0.5:0", ">0.6:0",
    ]);
    script.path.send(0, 2000);
    let trace = [
        "0 -> 0.0 (0) (1?)",
        "10 -> 0.1 (1?)",
        "20 -> 0.2 (1?)",
        "30 -> 0.3 1?",
        "31 <- 0.3 missing 0",
        "32 -> 0.4 (0?)",
        "42 -> 0.5 (0?)",
        "52 -> 0.6 (0?)",
        "62 -> 0.7 0?",
        "63 <- 0.7 all",
    ];
    assert_eq!(script.until(200), trace);
    assert_eq!(script.state(0), BlastState::Open);
}

#[test]
fn a_blocked_sender_gives_up_after_an_unanswered_probe() {
    let mut script = untaken(BlastOptions {
        buffer: 2000,
        patience: Duration(45 * MS),
        ..fixed(BlastStrategy::Selective, 2)
    });
    script.path.send(0, 3000);
    script.until(10);
    script.lose(&[ALL]);
    assert_eq!(script.until(61), ["17 -> (Probe)", "37 -> (Probe)"]);
    assert_eq!((script.until(62).len(), script.state(0)), (0, SILENT));
}

#[test]
fn a_receiver_in_the_middle_of_a_blast_gives_up_too() {
    let mut script = Script::open(BlastOptions {
        patience: Duration(45 * MS),
        ..fixed(BlastStrategy::Selective, 4)
    });
    script.lose(&[">0.0:1"]);
    script.path.send(0, 4000);
    script.until(1);
    script.lose(&[ALL]);
    script.until(45);
    assert_eq!(script.state(1), BlastState::Open);
    script.until(46);
    assert_eq!(script.state(1), SILENT);
    // Nothing is in flight, so no answer is due and the peer is not given up.
    let mut script = Script::open(BlastOptions {
        patience: Duration(45 * MS),
        ..fixed(BlastStrategy::Selective, 4)
    });
    script.path.send(0, 4000);
    script.until(10_000);
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Open, BlastState::Open)
    );
}

#[test]
fn a_receiver_reports_missing_packets_by_itself() {
    let nak_delay = Some(Duration(4 * MS));
    let options = BlastOptions {
        nak_delay,
        ..fixed(BlastStrategy::Selective, 4)
    };
    let mut script = Script::open(options);
    script.path.slot = Duration(MS / 2);
    script.lose(&[">0.0:2", ">0.0:3", "<0.0"]);
    script.path.send(0, 4000);
    // The second packet arrives after 2 ms; the NAK after it is lost, and repeated after twice as long.
    let trace = [
        "0 -> 0.0 0 1 (2) (3?)",
        "6 <- (0.0 missing 2 3)",
        "10 -> 0.1 3?",
        "11.5 <- 0.1 missing 2",
        "13 -> 0.2 2?",
        "14.5 <- 0.2 all",
    ];
    assert_eq!(script.until(100), trace);
    assert_eq!(script.end(1).facts().received.unsolicited_naks, 1);
}

#[test]
fn a_slow_path_causes_no_needless_naks() {
    for strategy in [
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ] {
        let mut script = Script::open(BlastOptions {
            interval: BlastTimeout::Adaptive,
            ..BlastOptions::blast(strategy, 1000, 16_000)
        });
        script.path.slot = Duration(11 * MS);
        script.path.send(0, 48_000);
        script.until(3000);
        assert!(
            script.path.arrived(0, 48_000),
            "{strategy:?} {:?}",
            script.end(0).facts()
        );
        assert_eq!(
            script.end(1).facts().received.unsolicited_naks,
            0,
            "{strategy:?}"
        );
    }
}

#[test]
fn an_unsolicited_answer_is_no_round_trip() {
    let mut script = Script::open(BlastOptions {
        interval: BlastTimeout::Adaptive,
        ..BlastOptions::blast(BlastStrategy::Selective, 1000, 4000)
    });
    script.path.slot = Duration(MS / 10);
    script.path.send(0, 4000);
    script.until(20);
    // The receiver reports after 10 ms, the sender would repeat after about 6; that is switched off here.
    let before = script.end(0).facts().rtt.map(|(smoothed, ..)| smoothed);
    script.lose(&[">1.0:3", ">1.1:3"]);
    script.path.send(0, 4000);
    script.until(100);
    assert!(script.path.arrived(0, 8000));
    let after = script.end(0).facts().rtt.map(|(smoothed, ..)| smoothed);
    assert!(
        before
            .zip(after)
            .is_some_and(|(before, after)| after.0 < before.0 + MS),
        "{before:?} {after:?}"
    );
    assert_eq!(script.end(1).facts().received.unsolicited_naks, 1);
}

#[test]
fn an_unsolicited_answer_replaces_a_lost_request() {
    let options = BlastOptions {
        nak_delay: Some(Duration(4 * MS)),
        ..fixed(BlastStrategy::Selective, 4)
    };
    let mut script = Script::open(options);
    script.path.slot = Duration(MS / 2);
    script.lose(&[">0.0:1", ">0.0:3"]);
    script.path.send(0, 4000);
    // Packets 0 and 2 come 1 ms after each other; 4 ms of silence are reported.
    let trace = [
        "0 -> 0.0 0 (1) 2 (3?)",
        "6.5 <- 0.0 missing 1 3",
        "8 -> 0.1 1 3?",
        "10 <- 0.1 all",
    ];
    assert_eq!(script.until(100), trace);
}
