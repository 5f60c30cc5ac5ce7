//! `stackline display bench` over real connections: its four levels, through an agent, by V's messages, through a terminal.

use crate::support::Place;
use crate::support::display::{Served, background, rate};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

#[test]
fn each_level_costs_what_it_saves() {
    let place = Place::new();
    let words = [
        "display", "bench", "--trials", "2", "--json", "--png", "drawn",
    ];
    let rates = place.stackline(&words).succeeds().json();
    for picture in ["vectors", "rectangles"] {
        // An answer for each item costs a round trip; without, hundreds go in one, and nothing is drawn.
        assert!(rate(&rates, picture, "construction") > rate(&rates, picture, "stop-and-wait"));
    }
    assert!(rate(&rates, "rectangles", "structured") > 0.0);
    for name in ["vectors", "rectangles", "text"] {
        let png = std::fs::read(place.path(&format!("drawn/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{name}");
    }
    let table = place.stackline(&[
        "display",
        "bench",
        "--trials",
        "2",
        "--picture",
        "text",
        "--level",
        "batched",
    ]);
    let table = table.succeeds().out.clone();
    assert!(
        table.contains("characters/s") && !table.contains("stop-and-wait  2"),
        "{table}"
    );
}

#[test]
fn an_item_has_a_line_from_its_call_to_the_pixel() {
    let place = Place::new();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_stackline"));
    bench.args([
        "display",
        "bench",
        "--trials",
        "1",
        "--picture",
        "vectors",
        "--level",
        "pipelined",
    ]);
    let ended = bench
        .current_dir(place.path("."))
        .env("STACKLINE_EVENTS", "file:bench.tape")
        .output()
        .unwrap();
    assert!(ended.status.success());
    place.stackline(&["import", "bench.tape"]).succeeds();
    let lines = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    for segment in ["gathering", "display wait", "storing", "drawing", "answer"] {
        assert!(lines.contains(segment), "{segment}: {lines}");
    }
    // No request is a block that a cache had.
    assert!(!lines.contains("cache"), "{lines}");
    assert!(
        lines.contains("complete") && !lines.contains("never arrived"),
        "{lines}"
    );
}

#[test]
fn a_program_draws_through_its_terminal() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let program = env!("CARGO_BIN_EXE_stackline");
    let bench = [
        "--",
        program,
        "display",
        "bench",
        "--to",
        "tty",
        "--trials",
        "1",
        "--picture",
        "rectangles",
    ];
    let mut command = background(&place, &[]);
    command
        .args(["display", "terminal", "--listen", "127.0.0.1:0"])
        .args(bench);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let terminal = first.split_once(": ").unwrap().1.trim();
    place
        .stackline(&[
            "display",
            "telnet",
            terminal,
            "--to",
            &display.clients,
            "--typed",
        ])
        .succeeds();
    child.kill().unwrap();
    let said = child.wait_with_output().unwrap();
    let table = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        table.contains("structured") && table.contains("rectangles/s"),
        "{table}"
    );
    place
        .stackline(&["display", "bench", "--to", "tty"])
        .fails(2, &["is not a terminal"])
        .hints("display terminal");
    place
        .stackline(&["display", "telnet", "127.0.0.1:1"])
        .fails(3, &["no terminal is served"]);
}

#[test]
fn an_agent_gives_a_display_that_is_started_again_its_pictures() {
    let place = Place::new();
    let first = Served::start(&place, &["--listen", "unix:display"]);
    let mut command = background(
        &place,
        &[
            "display",
            "agent",
            "--listen",
            "unix:agent",
            "--to",
            "unix:display",
        ],
    );
    let mut agent = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut bench = background(
        &place,
        &[
            "display",
            "bench",
            "--to",
            "unix:agent",
            "--trials",
            "12",
            "--json",
        ],
    );
    let bench = bench
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    drop(first);
    let _second = Served::start(&place, &["--listen", "unix:display"]);
    let done = bench.wait_with_output().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let rates: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(rate(&rates, "text", "display") > 0.0);
    let behind = ["display", "agent", "--to", "tty"];
    place
        .stackline(&behind)
        .fails(2, &["behind a terminal"])
        .hints("HOST:PORT or unix:PATH");
}

#[test]
fn a_display_by_messages_is_drawn_on_too() {
    let place = Place::new();
    let display = Served::start(
        &place,
        &["--listen", "unix:display", "--listen", "ikp:127.0.0.1:0"],
    );
    // Streams are told first; the line after them is the page's in `Served`, and here that of messages.
    let by_messages = display.page.clone();
    assert!(by_messages.starts_with("ikp:127.0.0.1:"), "{by_messages}");
    let words = [
        "display",
        "bench",
        "--to",
        &by_messages,
        "--trials",
        "1",
        "--picture",
        "rectangles",
        "--json",
    ];
    assert!(
        rate(
            &place.stackline(&words).succeeds().json(),
            "rectangles",
            "structured"
        ) > 0.0
    );
    place
        .stackline(&["display", "agent", "--to", &by_messages])
        .fails(2, &["cannot relay V messages"]);
}
