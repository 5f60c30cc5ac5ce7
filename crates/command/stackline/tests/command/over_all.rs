//! `run --over all`: every stack that can, in one table, and what becomes of those that cannot.

use crate::support::{Finished, Place, program};
use std::process::Command;

/// What was printed, whatever the width of its lines.
fn unwrapped(shown: &Finished) -> String {
    shown.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_stack_that_can_is_in_one_table_and_the_others_are_named() {
    let shown = Place::new().stackline(&["run", "--over", "all", "-e", "1 rr 100 kB*5"]);
    shown.succeeds();
    for stack in [
        "tcp",
        "unix",
        "tls",
        "websocket",
        "http1",
        "http2",
        "grpc",
        "quic",
        "http3",
    ] {
        assert!(
            shown
                .out
                .lines()
                .any(|line| line.split_whitespace().nth(1) == Some(stack)),
            "{stack}: {}",
            shown.out
        );
    }
    assert!(unwrapped(&shown).contains("left out: udp (`udp` carries data units of at most 65507"));
    assert!(
        !unwrapped(&shown).contains("redis"),
        "servers are named by addresses"
    );
}

#[test]
fn a_stack_that_fails_ends_the_runs_of_no_other() {
    // quic needs more descriptors for a pair than tcp.
    let place = Place::new();
    let script = format!(
        "ulimit -n 256; exec {} run --over all -e '1 parallel: 70 rr 32*5'",
        program()
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("STACKLINE_RUNS", place.path("runs"));
    let shown = place.finish(&mut command);
    shown.succeeds();
    let rows = |stack: &str| {
        let mut words = shown.out.lines().map(|line| line.split_whitespace().nth(1));
        words.any(|word| word == Some(stack))
    };
    assert!(
        rows("tcp") && rows("ikp"),
        "before and behind it: {}",
        shown.out
    );
    assert!(!rows("quic"), "{}", shown.out);
    assert!(unwrapped(&shown).contains("no result: "), "{}", shown.out);
    assert!(
        unwrapped(&shown).contains("Too many open files"),
        "{}",
        shown.out
    );
}
