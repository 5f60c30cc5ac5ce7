//! What a coordinator says of agents that are no agents: programs that end, are of another version, or talk about other things.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_core::plan::HostPlan;
use stackline_live::control::{AgentHello, FromAgent, LONGEST_EVENT_LOG, PROTOCOL};
use stackline_live::coordinator::{Coordinator, LOCAL_INITIATOR};
use stackline_live::error::{Blame, Error};
use stackline_live::launch::{Launcher, greeting};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

fn hello(protocol: u32) -> String {
    let hello = AgentHello {
        version: "7.8.9".into(),
        protocol,
        pid: 1,
        machine: "m".into(),
        address: None,
        coordinator: None,
        clock: None,
        network: None,
        share: None,
    };
    serde_json::to_string(&FromAgent::Hello(hello)).unwrap()
}

/// What becomes of a coordinator whose agent is that shell script.
fn refused(script: &str) -> Error {
    refused_unless(script, &AtomicBool::new(false))
}

/// Writes a program that can be started at once. Another process writes it: a descriptor of ours that is open for writing would also be
/// in whatever another test forks at that moment, and until that has executed its program, the kernel refuses to start this one
/// (`ETXTBSY`).
fn install(program: &Path, text: &str) {
    let mut writer = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(program)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success());
}

fn refused_unless(script: &str, interrupted: &AtomicBool) -> Error {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("agent");
    install(&program, &format!("#!/bin/sh\n{script}\n"));
    let hosts = BTreeMap::from([(LOCAL_INITIATOR.to_string(), HostPlan::default())]);
    let launcher = Launcher::new(program, None);
    let Err(error) = Coordinator::start(hosts, &launcher, interrupted) else {
        panic!("{script} is an agent");
    };
    error
}

/// The script greets, and goes on with that.
fn greets_and(then: &str) -> String {
    format!("echo '{}'; {then}", hello(PROTOCOL))
}

#[test]
fn a_program_that_is_not_there_and_one_that_ends_say_why() {
    let launcher = Launcher::new(Path::new("/there/is/none").into(), None);
    let hosts = BTreeMap::from([("khons".to_string(), HostPlan::default())]);
    let nobody = AtomicBool::new(false);
    let error = Coordinator::start(hosts, &launcher, &nobody).err().unwrap();
    assert_eq!(error.blame, Blame::Environment);
    assert!(error.message.contains("khons") && error.message.contains("/there/is/none"));
    let error = refused("echo first >&2; echo second >&2; echo third >&2; exit 3");
    for word in ["exited immediately", "exit code 3", "second; third"] {
        assert!(error.message.contains(word), "{error}");
    }
    assert!(!error.message.contains("first"), "its last words: {error}");
}

#[test]
fn another_version_is_named_with_what_to_do() {
    let error = refused(&format!("echo '{}'; cat >/dev/null", hello(PROTOCOL + 1)));
    assert!(error.message.contains("stackline 7.8.9"), "{error}");
    assert_eq!(
        error.hint.as_deref(),
        Some("install the same version on both hosts")
    );
}

#[test]
fn one_that_ends_when_it_is_asked_is_reported_with_how_it_ended() {
    let error = refused(&greets_and("read question; echo broken >&2; kill -9 $$"));
    assert_eq!(error.blame, Blame::Measurement);
    for word in ["exited in the middle", "killed by signal 9", "broken"] {
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn garbage_in_place_of_an_answer_is_shown_and_bounded() {
    let error = refused(&greets_and(
        "read question; echo 'Segmentation fault'; cat >/dev/null",
    ));
    assert!(
        error
            .message
            .contains("not a control message: Segmentation fault"),
        "{error}"
    );
    let long =
        greets_and("read question; head -c 5000 /dev/zero | tr '\\0' x; echo; cat >/dev/null");
    assert!(refused(&long).message.len() < 400);
    let greedy = format!(
        r#"echo '{{"event_log":{{"length":{}}}}}'; cat >/dev/null"#,
        LONGEST_EVENT_LOG + 1
    );
    let error = refused(&greets_and(&greedy));
    assert!(error.message.contains("more than 256 MiB"), "{error}");
}

#[test]
fn an_interruption_ends_the_wait_for_a_greeting() {
    let error = refused_unless("sleep 3600", &AtomicBool::new(true));
    assert_eq!(error.blame, Blame::Interrupted);
}

#[test]
fn a_greeting_is_found_behind_the_noise_of_a_shell_and_noise_is_bounded() {
    let greeted = |text: &str| greeting(&mut text.as_bytes()).map(|hello| hello.version);
    let hello = hello(PROTOCOL);
    assert_eq!(greeted(&hello), Some("7.8.9".into()));
    assert_eq!(
        greeted(&format!("Welcome!\n{{}}\n{hello}\n")),
        Some("7.8.9".into())
    );
    assert_eq!(
        greeted(&format!("{}{hello}\n", "Welcome!\n".repeat(10_000))),
        None
    );
    assert_eq!(greeted("Welcome!\n"), None);
}
