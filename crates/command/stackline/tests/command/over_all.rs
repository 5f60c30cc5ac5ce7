//! `run --over all`: every stack that can, in one table, and what becomes of those that cannot.

use crate::support::{Finished, Place, has_program, program, skip};
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
    // Where the loopback interface is down, only stacks without IP can run.
    if !has_program("unshare", "util-linux") {
        skip("no unshare");
        return;
    }
    let place = Place::new();
    let run = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--map-root-user",
                "--net",
                program(),
                "run",
                "--over",
                "all",
            ])
            .args(flags)
            .args(["-e", "2 rr 32*5"])
            .env("STACKLINE_RUNS", place.path("runs"))
            .env("XDG_CONFIG_HOME", place.path("configuration"));
        place.finish(&mut command)
    };
    let shown = run(&[]);
    shown.succeeds();
    assert!(shown.out.contains("2 rr 32*5, unix"), "{}", shown.out);
    let said = unwrapped(&shown);
    for why in [
        "failed: line 1: 2 rr 32*5 over tcp",
        "the loopback interface is down",
        "INCOMPLETE: only the runs above",
    ] {
        assert!(said.contains(why), "{why}: {said}");
    }
    let json = run(&["--json"]).json();
    assert_eq!(json["complete"], false);
    let reason = json["reason"].as_str().unwrap();
    assert!(
        reason.contains("over tcp") && reason.contains("over quic"),
        "{reason}"
    );
    assert_eq!(json["measurements"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn a_server_of_others_has_one_stack() {
    let text = "1 to \"http://127.0.0.1:1/\" rr 0*5";
    let refused = Place::new().stackline(&["run", "--over", "all", "-e", text]);
    refused.fails(2, &["no stack can carry this out, as `--over all` asks"]);
}
