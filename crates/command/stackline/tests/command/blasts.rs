//! Stop-and-wait, sliding window and blasts, live and emulated: every application type, every strategy, beside TCP.

use crate::support::{Place, number, skip};

const STACKS: &str = "saw, window, blast(full), blast(full_nak), blast(partial), blast(selective), \
                      blast(checked, sealed, size = 10000, flight = 2), tcp";

#[test]
fn every_application_type_runs_over_each() {
    for what in [
        "bulk_put 10000*20",
        "bulk_get 10000*20",
        "rr 32, 4000*20",
        "connect_disconnect 0*5",
        "rr 1*20",
    ] {
        let place = Place::new();
        let json = place.json(&format!("2 {what} over {STACKS}"));
        for index in 0..8 {
            let runs = number(&json, &format!("/measurements/{index}/runs"));
            assert!((runs - 2.0).abs() < 1e-9, "{what}, stack {index}");
        }
    }
}

#[test]
fn a_time_limit_ends_them_after_a_whole_unit() {
    let place = Place::new();
    let json = place
        .json("2 timelimit 0.1 bulk_put 70001*1000000000 over saw, window, blast(full), blast");
    for index in 0..4 {
        assert!(
            number(
                &json,
                &format!("/measurements/{index}/throughput_bit_s/mean")
            ) > 0.0
        );
    }
    place.json("2 timelimit 0.1 bulk_get 70001*1000000000 over saw, blast; 2 timelimit 0.1 rr 32*100000000 over blast");
}

#[test]
fn loads_and_parallel_parts_share_a_host() {
    let place = Place::new();
    place
        .run("2 background over blast, window: rr 32*50 | 2 bulk_get 10000")
        .succeeds();
    place
        .run("2 parallel: 3 bulk_put 1000*500 over saw | rr 32*50 over blast(partial)")
        .succeeds();
}

#[test]
fn across_an_emulated_network_that_loses() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 20 Mbit/s 2 ms loss 1%; } \
                1 from a to b bulk_put 10000*10 over saw, window, blast(full), blast(full_nak), blast(partial), \
                blast(selective), tcp across n;";
    let output = place.stackline(&["run", "--json", "-e", text, "--in", "emulated"]);
    if output.status.code() == Some(3) {
        return skip(&output.err);
    }
    let json = output.json();
    for index in 0..7 {
        let rate = number(
            &json,
            &format!("/measurements/{index}/throughput_bit_s/mean"),
        );
        assert!(rate > 0.0 && rate < 20e6, "stack {index}: {rate}");
    }
}

#[test]
fn what_contradicts_itself_or_cannot_cross_is_refused() {
    let place = Place::new();
    place
        .run("1 bulk_put 1000*10 over blast(full, partial)")
        .mistakes(&["either full or partial"]);
    let text = "network n { host a, b; link a - b 20 Mbit/s 2 ms; } 1 from a to b bulk_put 1*1 over saw(carrier = ethernet) across n;";
    place
        .stackline(&["check", "-e", text, "--in", "emulated"])
        .mistakes(&["would not cross"]);
}
