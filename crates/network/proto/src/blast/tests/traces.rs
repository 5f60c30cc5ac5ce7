//! Traces of transfers (Zwaenepoel 1985, sections 2 and 3.2): what leaves, and when, for what is lost.

use super::script::{MS, Script, fixed};
use crate::blast::{BlastOptions, BlastStrategy, BlastTimeout};
use stackline_core::time::Duration;

fn saw() -> BlastOptions {
    BlastOptions {
        interval: BlastTimeout::Fixed(Duration(10 * MS)),
        nak_delay: None,
        ..BlastOptions::saw(1000)
    }
}

fn window(n: u32) -> BlastOptions {
    BlastOptions { flight: n, ..saw() }
}

#[test]
fn stop_and_wait_sends_one_packet_a_round_trip() {
    let trace = [
        "0 -> 0.0 0?",
        "1 <- 0.0 all",
        "2 -> 1.0 0?",
        "3 <- 1.0 all",
        "4 -> 2.0 0?",
        "5 <- 2.0 all",
    ];
    assert_eq!(Script::transfer(saw(), 3000, &[], 100), trace);
}

#[test]
fn stop_and_wait_sends_a_lost_packet_again_after_the_interval() {
    let trace = [
        "0 -> 0.0 0?",
        "1 <- 0.0 all",
        "2 -> 1.0 (0?)",
        "12 -> 1.1 0?",
        "13 <- 1.1 all",
    ];
    assert_eq!(Script::transfer(saw(), 2000, &[">1.0:0"], 100), trace);
}

#[test]
fn stop_and_wait_acknowledges_duplicates_again() {
    let trace = [
        "0 -> 0.0 0?",
        "1 <- (0.0 all)",
        "10 -> 0.1 0?",
        "11 <- 0.1 all",
        "12 -> 1.0 0?",
        "13 <- 1.0 all",
    ];
    assert_eq!(Script::transfer(saw(), 2000, &["<0.0"], 100), trace);
}

#[test]
fn nothing_one_byte_and_one_packet_are_blasts_too() {
    for bytes in [0, 1, 1000] {
        assert_eq!(
            Script::transfer(saw(), bytes, &[], 100),
            ["0 -> 0.0 0?", "1 <- 0.0 all"],
            "{bytes}"
        );
        let lost = ["0 -> 0.0 (0?)", "10 -> 0.1 0?", "11 <- 0.1 all"];
        for strategy in [
            BlastStrategy::Full,
            BlastStrategy::FullNak,
            BlastStrategy::Partial,
            BlastStrategy::Selective,
        ] {
            assert_eq!(
                Script::transfer(fixed(strategy, 8), bytes, &[">0.0:0"], 100),
                lost,
                "{bytes} {strategy:?}"
            );
        }
    }
    let two = ["0 -> 0.0 0?", "1 <- 0.0 all", "2 -> 1.0 0?", "3 <- 1.0 all"];
    assert_eq!(Script::transfer(saw(), 1001, &[], 100), two);
}

#[test]
fn a_window_goes_on_while_a_lost_packet_is_waited_for() {
    let trace = [
        "0 -> 0.0 0?",
        "0 -> 1.0 (0?)",
        "0 -> 2.0 0?",
        "1 <- 0.0 all",
        "1 <- 2.0 all",
        "2 -> 3.0 0?",
        "3 <- 3.0 all",
        "10 -> 1.1 0?",
        "11 <- 1.1 all",
        "12 -> 4.0 0?",
        "12 -> 5.0 0?",
        "13 <- 4.0 all",
        "13 <- 5.0 all",
    ];
    assert_eq!(Script::transfer(window(3), 6000, &[">1.0:0"], 100), trace);
}

#[test]
fn an_adaptive_window_resends_overtaken_packets() {
    let options = BlastOptions {
        interval: BlastTimeout::Adaptive,
        ..window(3)
    };
    // The round trip is 2 ms: a quarter more is waited once a later packet was acknowledged.
    let trace = [
        "0 -> 0.0 (0?)",
        "0 -> 1.0 0?",
        "0 -> 2.0 0?",
        "1 <- 1.0 all",
        "1 <- 2.0 all",
        "2.5 -> 0.1 0?",
        "3.5 <- 0.1 all",
        "4.5 -> 3.0 0?",
        "5.5 <- 3.0 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:0"], 100), trace);
}

#[test]
fn a_blast_is_acknowledged_once() {
    for strategy in [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ] {
        let trace = [
            "0 -> 0.0 0 1 2 3?",
            "1 <- 0.0 all",
            "2 -> 1.0 0 1?",
            "3 <- 1.0 all",
        ];
        assert_eq!(
            Script::transfer(fixed(strategy, 4), 5001, &[], 100),
            trace,
            "{strategy:?}"
        );
    }
}

#[test]
fn a_lost_acknowledgement_is_requested_again() {
    let whole = [
        "0 -> 0.0 0 1 2 3?",
        "1 <- (0.0 all)",
        "10 -> 0.1 0 1 2 3?",
        "11 <- 0.1 all",
    ];
    let last = [
        "0 -> 0.0 0 1 2 3?",
        "1 <- (0.0 all)",
        "10 -> 0.1 3?",
        "11 <- 0.1 all",
    ];
    let cases = [
        (BlastStrategy::Full, whole.as_slice()),
        (BlastStrategy::FullNak, whole.as_slice()),
        (BlastStrategy::Partial, last.as_slice()),
        (BlastStrategy::Selective, last.as_slice()),
    ];
    for (strategy, trace) in cases {
        assert_eq!(
            Script::transfer(fixed(strategy, 4), 4000, &["<0.0"], 100),
            trace,
            "{strategy:?}"
        );
    }
}

#[test]
fn full_retransmission_is_silent_and_sends_the_whole_blast_after_the_interval() {
    let one = |first: &'static str| [first, "10 -> 0.1 0 1 2 3?", "11 <- 0.1 all"];
    let options = fixed(BlastStrategy::Full, 4);
    for (lost, first) in [
        (">0.0:0", "0 -> 0.0 (0) 1 2 3?"),
        (">0.0:1", "0 -> 0.0 0 (1) 2 3?"),
        (">0.0:3", "0 -> 0.0 0 1 2 (3?)"),
    ] {
        assert_eq!(Script::transfer(options, 4000, &[lost], 100), one(first));
    }
    // What arrived of an earlier round counts for nothing.
    let trace = [
        "0 -> 0.0 (0) 1 2 3?",
        "10 -> 0.1 0 (1) 2 3?",
        "20 -> 0.2 0 1 2 3?",
        "21 <- 0.2 all",
    ];
    assert_eq!(
        Script::transfer(options, 4000, &[">0.0:0", ">0.1:1"], 100),
        trace
    );
}

#[test]
fn full_retransmission_with_refusals_sends_the_whole_blast_at_once() {
    let options = fixed(BlastStrategy::FullNak, 4);
    let trace = [
        "0 -> 0.0 (0) 1 2 3?",
        "1 <- 0.0 missing 0..",
        "2 -> 0.1 0 1 2 3?",
        "3 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:0"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- 0.0 missing 1..",
        "2 -> 0.1 0 1 (2) 3?",
        "3 <- 0.1 missing 2..",
    ];
    let lines = Script::transfer(options, 4000, &[">0.0:1", ">0.1:2"], 100);
    assert_eq!(lines[..4], trace);
    assert_eq!(lines[4..], ["4 -> 0.2 0 1 2 3?", "5 <- 0.2 all"]);
    // The last packet, or the refusal, is lost: only the interval helps.
    let trace = ["0 -> 0.0 0 1 2 (3?)", "10 -> 0.1 0 1 2 3?", "11 <- 0.1 all"];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:3"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- (0.0 missing 1..)",
        "10 -> 0.1 0 1 2 3?",
        "11 <- 0.1 all",
    ];
    assert_eq!(
        Script::transfer(options, 4000, &[">0.0:1", "<0.0"], 100),
        trace
    );
}

#[test]
fn partial_retransmission_goes_back_to_the_first_that_is_missing() {
    let options = fixed(BlastStrategy::Partial, 4);
    let trace = [
        "0 -> 0.0 (0) 1 2 3?",
        "1 <- 0.0 missing 0..",
        "2 -> 0.1 0 1 2 3?",
        "3 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:0"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- 0.0 missing 1..",
        "2 -> 0.1 1 2 3?",
        "3 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:1"], 100), trace);
    // Only the last packet is sent again after the interval (section 3.2.3).
    let trace = ["0 -> 0.0 0 1 2 (3?)", "10 -> 0.1 3?", "11 <- 0.1 all"];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:3"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- (0.0 missing 1..)",
        "10 -> 0.1 3?",
        "11 <- 0.1 missing 1..",
        "12 -> 0.2 1 2 3?",
        "13 <- 0.2 all",
    ];
    assert_eq!(
        Script::transfer(options, 4000, &[">0.0:1", "<0.0"], 100),
        trace
    );
}

#[test]
fn selective_retransmission_sends_missing_packets() {
    let options = fixed(BlastStrategy::Selective, 4);
    let trace = [
        "0 -> 0.0 (0) 1 2 3?",
        "1 <- 0.0 missing 0",
        "2 -> 0.1 0?",
        "3 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:0"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- 0.0 missing 1",
        "2 -> 0.1 1?",
        "3 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:1"], 100), trace);
    let trace = ["0 -> 0.0 0 1 2 (3?)", "10 -> 0.1 3?", "11 <- 0.1 all"];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:3"], 100), trace);
    let trace = [
        "0 -> 0.0 0 (1) 2 3?",
        "1 <- (0.0 missing 1)",
        "10 -> 0.1 3?",
        "11 <- 0.1 missing 1",
        "12 -> 0.2 1?",
        "13 <- 0.2 all",
    ];
    assert_eq!(
        Script::transfer(options, 4000, &[">0.0:1", "<0.0"], 100),
        trace
    );
}

#[test]
fn selective_retransmission_repeats_packets_lost_again() {
    // D = 10, then D' = 4, 2, and the last of them reliably.
    let losses = [
        ">0.0:1", ">0.0:4", ">0.0:5", ">0.0:8", ">0.1:4", ">0.1:8", ">0.2:8",
    ];
    let trace = [
        "0 -> 0.0 0 (1) 2 3 (4) (5) 6 7 (8) 9?",
        "1 <- 0.0 missing 1 4 5 8",
        "2 -> 0.1 1 (4) 5 (8?)",
        "12 -> 0.2 (8?)",
        "22 -> 0.3 8?",
        "23 <- 0.3 missing 4",
        "24 -> 0.4 4?",
        "25 <- 0.4 all",
    ];
    assert_eq!(
        Script::transfer(fixed(BlastStrategy::Selective, 10), 10_000, &losses, 100),
        trace
    );
}

#[test]
fn several_blasts_in_flight_do_not_wait_for_each_other() {
    let options = BlastOptions {
        flight: 3,
        ..fixed(BlastStrategy::Selective, 2)
    };
    let trace = [
        "0 -> 0.0 0 1?",
        "0 -> 1.0 (0) 1?",
        "0 -> 2.0 0 1?",
        "1 <- 0.0 all",
        "1 <- 1.0 missing 0",
        "1 <- 2.0 all",
        "2 -> 1.1 0?",
        "2 -> 3.0 0 1?",
        "3 <- 1.1 all",
        "3 <- 3.0 all",
    ];
    assert_eq!(Script::transfer(options, 8000, &[">1.0:0"], 100), trace);
}

#[test]
fn an_overtaken_request_is_repeated_early() {
    let options = BlastOptions {
        interval: BlastTimeout::Adaptive,
        flight: 2,
        ..fixed(BlastStrategy::Selective, 2)
    };
    let trace = [
        "0 -> 0.0 0 (1?)",
        "0 -> 1.0 0 1?",
        "1 <- 1.0 all",
        "2.5 -> 0.1 1?",
        "3.5 <- 0.1 all",
    ];
    assert_eq!(Script::transfer(options, 4000, &[">0.0:1"], 100), trace);
}
