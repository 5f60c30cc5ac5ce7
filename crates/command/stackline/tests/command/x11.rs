//! `stackline trace --on` with an X client as the distribution has it: how often it waits for its display, and what that costs. Passed over,
//! with a word, where there is no X here, or where networks or packets are not to be had.

use crate::support::{Finished, Place, number, skip};
use std::process::{Command, Output, Stdio};

/// Tries until the display listens. Nobody else sees its number: it is behind an address of the emulated network.
const CLIENT: &str = "n=0; until xdpyinfo -display screen:7 > information; do n=$((n + 1)); test $n -lt 100 && sleep 0.1 || exit 1; done";

fn is_here(program: &str, flag: &str) -> bool {
    let run = Command::new(program)
        .arg(flag)
        .stdin(Stdio::null())
        .output();
    run.is_ok_and(|output| output.status.success())
}

#[test]
fn an_x_client_waits_a_round_trip_for_each_answer() {
    if !is_here("Xvfb", "-help") || !is_here("xdpyinfo", "-version") {
        return skip("there is no Xvfb, or no xdpyinfo, here");
    }
    let place = Place::new();
    let name = format!("x_{}", std::process::id());
    place.write(
        "net.stackline",
        format!("network {name} {{ host app, screen; link app - screen 100 Mbit/s 20 ms; }}"),
    );
    let display: &[&str] = &[
        "screen",
        "--",
        "Xvfb",
        ":7",
        "-listen",
        "tcp",
        "-nolisten",
        "unix",
        "-nolock",
        "-ac",
    ];
    let words = [
        &[
            "trace",
            "--see",
            "packets",
            "--json",
            "--on",
            "net.stackline",
        ],
        display,
        &["app", "--", "sh", "-c", CLIENT],
    ]
    .concat();
    let Output {
        status,
        stdout,
        stderr,
    } = place.command(&words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let done = Finished {
        status,
        out: text(stdout),
        err: text(stderr),
    };
    if done.status.code() == Some(3) {
        return skip(&done.err);
    }
    let findings = done.json()["findings"].clone();
    let turns = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["kind"] == "chatty_requests");
    let takes = &turns.unwrap_or_else(|| panic!("{findings}"))["takes"];
    // A relay that counts changes of direction counts ten.
    let (waits, each_s) = (number(takes, "/requests"), number(takes, "/each_s"));
    assert!((8.0..=20.0).contains(&waits), "{takes}");
    // There and back is 40 ms by the link alone; a turn whose end still leaves while its answer begins waits for less of it.
    assert!((0.036..0.06).contains(&each_s), "{takes}");
}
