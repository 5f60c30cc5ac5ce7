//! `blocks replay` in virtual time: what it keeps can be diagnosed, and shown.

use crate::support::{Place, until};
use serde_json::Value;

const COLLAPSES: &str = "network atm { host s1, s2, s3, master, app; switch x { buffer 1500 bytes per port; cells 53; }
  link s1 - x 155.52 Mbit/s 100 us mtu 9180; link s2 - x 155.52 Mbit/s 100 us mtu 9180; link s3 - x 155.52 Mbit/s 100 us mtu 9180;
  link master - x 155.52 Mbit/s 100 us mtu 9180; link app - x 155.52 Mbit/s 100 us mtu 9180; }";

/// Replays in virtual time.
fn replayed(place: &Place, network: &str, flags: &[&str]) {
    place.write("net.stackline", network);
    let words = [
        "blocks",
        "replay",
        "--across",
        "net.stackline",
        "--in",
        "simulated",
        "--interval",
        "200ms",
    ];
    place.stackline(&[&words, flags].concat()).succeeds();
}

fn texts<'j>(list: &'j Value, field: &str) -> Vec<&'j str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one[field].as_str())
        .collect()
}

#[test]
fn the_port_whose_buffer_is_too_small_is_named_first() {
    let place = Place::new();
    replayed(
        &place,
        COLLAPSES,
        &[
            "--for",
            "5s",
            "--disk",
            "exponential(12 ms)",
            "--blocks",
            "60",
        ],
    );
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let json = place.stackline(&["diagnose", run, "--json"]).json();
    let first = &json["findings"][0];
    assert_eq!(first["kind"], "queue_drop", "{json:#}");
    assert!(
        first["sentence"]
            .as_str()
            .unwrap()
            .contains("x>app (capacity 1500 B)"),
        "{first:#}"
    );
    let evidence = texts(&first["evidence"], "what").join("\n");
    for words in [
        "frames damaged",
        "retransmitted",
        "units were abandoned",
        "shares of all units' time",
    ] {
        assert!(evidence.contains(words), "{words}: {evidence}");
    }
    assert!(
        json["scope"]
            .as_str()
            .unwrap()
            .contains("reasons why units waited inside hosts"),
        "{}",
        json["scope"]
    );

    let json = place.stackline(&["lifelines", run, "--json"]).json();
    assert!(
        ["s1", "s2", "s3"]
            .iter()
            .all(|host| texts(&json["profiles"], "host").contains(host)),
        "{json:#}"
    );
    let together = &json["together"];
    assert!(
        together["groups"] == 3 && together["share"].as_f64().unwrap() > 0.0,
        "{together}"
    );
    let text = place.stackline(&["lifelines", run]).succeeds().out.clone();
    assert!(
        text.contains("time in each host")
            && text.contains("at least two of 3 groups blocked at once"),
        "{text}"
    );

    place
        .stackline(&["report", run, "-o", "page.html"])
        .succeeds();
}

#[test]
fn cells_lost_and_frames_spoilt_are_events_of_ports() {
    let place = Place::new();
    replayed(
        &place,
        COLLAPSES,
        &["--for", "1s", "--disk", "2 ms", "--blocks", "40"],
    );
    let run = place.kept().0;
    let exported = place
        .stackline(&["export", run.to_str().unwrap(), "--text", "-"])
        .succeeds()
        .out
        .clone();
    let of = |keyword: &str| {
        exported
            .lines()
            .filter(|line| line.starts_with(keyword))
            .count()
    };
    assert!(of("PORT_SETUP") >= 8, "{exported}");
    let spoilt: u64 = exported
        .lines()
        .filter(|line| line.starts_with("PORT_USE; x;") && line.contains("x>app"))
        .filter_map(|line| line.split("; ").nth(11)?.parse::<u64>().ok())
        .sum();
    assert!(spoilt > 0, "{exported}");
}

#[test]
fn what_keeps_up_is_healthy() {
    let place = Place::new();
    let lan = COLLAPSES.replace("buffer 1500 bytes per port; cells 53;", "");
    replayed(
        &place,
        &lan,
        &["--for", "2s", "--disk", "5 ms", "--blocks", "12"],
    );
    let run = place.kept().0;
    let json = place
        .stackline(&["diagnose", run.to_str().unwrap(), "--json"])
        .json();
    assert_eq!(texts(&json["findings"], "kind"), ["healthy"], "{json:#}");
}

#[test]
fn a_flag_that_says_nothing_is_refused() {
    let place = Place::new();
    place.write("net.stackline", COLLAPSES);
    let live = ["replay", "picture"];
    let emulated = ["replay", "--across", "net.stackline", "--in", "emulated"];
    let simulated = ["replay", "--across", "net.stackline", "--in", "simulated"];
    for (words, flags, says) in [
        (&live[..], &["--disks", "2"][..], "--disks"),
        (&live, &["--disk", "8 ms"], "--disk"),
        (&live, &["--cache", "1MiB"], "--cache"),
        (&live, &["--in", "simulated"], "--in"),
        (&live, &["--over", "tcp"], "--over"),
        (&live, &["--picture", "512x512"], "--picture"),
        (&live, &["--server", "s1"], "--server"),
        (&live, &["--blocks", "8193"], "8192"),
        (&live, &["--random", "--path", "pan"], "--random"),
        (&live, &["--speed", "5", "--blocks", "5"], "--speed"),
        (&simulated, &["--age", "1ms"], "--age"),
        (&simulated, &["--master", "10.0.0.1:1"], "--master"),
        (&simulated, &["--capture", "lists"], "--capture"),
        (
            &simulated,
            &["--over", "tcp(congestion = nosuch)"],
            "nosuch",
        ),
        (
            &simulated,
            &[
                "--over",
                "tcp(receive_buffer = 64 KiB)",
                "--receive-buffer",
                "32KiB",
            ],
            "--receive-buffer",
        ),
        (
            &emulated,
            &["--over", "tcp(congestion = nosuch)"],
            "congestion",
        ),
        (&emulated, &["--over", "udp"], "--over"),
        (&emulated, &["--disk", "fast"], "fast"),
        (&emulated, &["--trace", "lists"], "--trace"),
    ] {
        let refused = place.stackline(&[&["blocks"], words, flags].concat());
        assert_eq!(refused.status.code(), Some(2), "{flags:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{flags:?}: {}", refused.err);
    }
}

#[test]
fn a_receive_buffer_is_that_of_simulated_connections_too() {
    let place = Place::new();
    let slow = COLLAPSES
        .replace("100 us", "10 ms")
        .replace("buffer 1500 bytes per port; cells 53;", "");
    let throughput = |flags: &[&str]| {
        place.write("net.stackline", &slow);
        let words = [
            "blocks",
            "replay",
            "--across",
            "net.stackline",
            "--in",
            "simulated",
            "--for",
            "1s",
            "--json",
        ];
        let asked = ["--blocks", "400", "--no-history"];
        place
            .stackline(&[&words[..], &asked, flags].concat())
            .json()["useful_throughput_bit_s"]
            .as_f64()
            .unwrap()
    };
    let (large, small) = (throughput(&[]), throughput(&["--receive-buffer", "16KiB"]));
    assert!(small < large / 2.0, "{small} {large}");
    assert_eq!(
        small,
        throughput(&["--over", "tcp(receive_buffer = 16 KiB)"])
    );
}

#[test]
fn however_a_replay_is_ended_its_key_and_disks_go() {
    use nix::sys::signal::{Signal, kill};
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("net.stackline", "network n { host s, m, c; switch x; link s - x 100 Mbit/s 1 ms; link m - x 100 Mbit/s 1 ms; link c - x 100 Mbit/s 1 ms; }");
    std::fs::create_dir(place.path("tmp")).unwrap();
    let left = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(place.path("tmp"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        entries
            .filter(|path| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with("stackline-")
            })
            .collect()
    };
    // Ended while it loads, and in the midst of its session.
    for (signal, file) in [
        (Signal::SIGINT, "key"),
        (Signal::SIGTERM, "key"),
        (Signal::SIGHUP, "key"),
        (Signal::SIGINT, "ports"),
        (Signal::SIGTERM, "ports"),
        (Signal::SIGHUP, "ports"),
    ] {
        let words = [
            "blocks",
            "replay",
            "--across",
            "net.stackline",
            "--in",
            "emulated",
            "--for",
            "60s",
        ];
        let roles = [
            "--blocks",
            "4",
            "--picture",
            "1024x1024",
            "--server",
            "s",
            "--master-host",
            "m",
            "--client",
            "c",
        ];
        let mut command = place.command(&[&words[..], &roles].concat());
        command
            .env("TMPDIR", place.path("tmp"))
            .stdin(std::process::Stdio::null());
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let directory = until("it has a directory", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            left().into_iter().find(|path| path.join(file).exists())
        });
        for path in [directory.clone(), directory.join("key")] {
            assert_eq!(
                path.metadata().unwrap().permissions().mode() & 0o077,
                0,
                "{path:?} is private"
            );
        }
        kill(
            nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()),
            signal,
        )
        .unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(
            ended.status.code(),
            Some(130),
            "{signal} {file}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
        assert_eq!(left(), Vec::<std::path::PathBuf>::new(), "{signal} {file}");
    }
}
