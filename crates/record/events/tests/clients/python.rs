//! The Python client: its own tests by pytest, and what it writes. Passed over, with a word, where there is no Python.

use crate::common::{events, lines, read_event_log};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python")
}

/// Runs Python with the package in its path; nothing where it has not what that needs.
fn python(arguments: &[&str], events: &str) -> Option<Output> {
    let needed = if arguments.contains(&"pytest") {
        "import sys, pytest"
    } else {
        "import sys"
    };
    let old = "; sys.exit(sys.version_info < (3, 8))";
    let there = Command::new("python3")
        .args(["-c", &format!("{needed}{old}")])
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "passed over: no python3 (3.8 or later) here can `{needed}`, so that part is not tested"
        );
        return None;
    }
    let mut command = Command::new("python3");
    command
        .args(arguments)
        .current_dir(package())
        .env("PYTHONPATH", package())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command.env("STACKLINE_EVENTS", events).output().unwrap())
}

#[test]
fn its_own_tests_pass() {
    let Some(output) = python(
        &[
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_events.py",
        ],
        "",
    ) else {
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

const PROGRAM: &str = r#"
import logging, threading
import stackline_events as events
totals = None
with events.recording("khons"):
    events.event("EMPTY")
    events.event("NUMBERS", -7, 2**70, -2**63, True)
    events.event("TEXTS", "a; b", "95%", " edge ", "100%3B", "ä\ud800", None, "")
    events.event("LONG", "x" * 4094 + "€", None, "17", 1.5)
    events.event("SIXTEEN", *range(1, 18))
    parent = events.Traceparent.parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    events.event("APP_CALL", parent.unit)
    handler = events.Handler()
    with events.of_unit(3):
        handler.handle(logging.LogRecord("app.disk", logging.WARNING, "", 0, "%d left", (2,), None))
    def emit(thread):
        for n in range(200):
            events.event("APP_SEND", thread, n)
    threads = [threading.Thread(target=emit, args=(n,)) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
totals = events.totals()
assert totals == (1607, 0, None), totals
"#;

#[test]
fn what_it_writes_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let (event_log, text) = (
        directory.path().join("a.tape"),
        directory.path().join("a.log"),
    );
    for setting in [
        format!("file:{}", event_log.display()),
        format!("text:{}", text.display()),
    ] {
        let Some(output) = python(&["-c", PROGRAM], &setting) else {
            return;
        };
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let events = events(&event_log, &text);
    let expected = [
        "EMPTY".to_owned(),
        format!("NUMBERS; -7; {}; {}; 1", i64::MAX, i64::MIN),
        "TEXTS; a%3B b; 95%; %20edge%20; 100%253B; ä?; ; ;".into(),
        format!("LONG; {}; ; 17; 1.5", "x".repeat(4094)),
        "SIXTEEN; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; 12; 13; 14; 15; 16".into(),
        format!("APP_CALL; {}", 0x33e5_8050_75a0_02ad_i64),
        "LOG; 3; ; ; ; warning; app.disk; 2 left".into(),
    ];
    assert_eq!(lines(&events[..7]), expected);
    let mut numbers: Vec<Vec<i64>> = events[7..].iter().map(|event| event.numbers()).collect();
    numbers.sort_unstable();
    assert!(
        numbers
            .into_iter()
            .eq((0..8).flat_map(|thread| (0..200).map(move |n| vec![thread, n])))
    );
    assert!(events.iter().all(|event| event.host == "khons"));
    assert!(
        events
            .iter()
            .all(|event| event.at_ns > 1_600_000_000_000_000_000)
    );
}

#[test]
fn the_example_needs_nothing_but_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let event_log = directory.path().join("a.tape");
    let Some(output) = python(&["example.py"], &format!("file:{}", event_log.display())) else {
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "3 recorded, 0 lost\n",
        "{output:?}"
    );
    let expected = [
        "APP_SEND; 17; ; 0; 1500",
        "DPSS_START_WRITE; 17; set 3",
        "DPSS_END_WRITE; 17; set 3",
    ];
    assert_eq!(lines(&read_event_log(&event_log)), expected);
}
