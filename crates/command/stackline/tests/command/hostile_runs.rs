//! Runs and logs that somebody else made: readers only read, and nothing of them steers a terminal.

use crate::support::{Finished, Place};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// A simulated run with events.
fn run(place: &Place, flags: &[&str]) -> PathBuf {
    let text = "network n { host a, b; link a - b 10 Mbit/s 1 ms; } 1 from a to b rr 32*5 over tcp across n";
    place
        .stackline(
            &[
                &["run", "-e", text, "--in", "simulated", "--trace", "--json"],
                flags,
            ]
            .concat(),
        )
        .succeeds();
    place.runs().pop().unwrap()
}

/// Names in the status of a run are those of its own files.
#[test]
fn a_status_names_no_file_outside_the_run() {
    let place = Place::new();
    let status = run(&place, &[]).join("status.json");
    let own: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&status).unwrap()).unwrap();
    let outside = place.write("outside", "precious");
    for name in [
        outside.to_str().unwrap(),
        "../../outside",
        "events/../../../outside",
        "/proc/kmsg",
        "",
    ] {
        let mut changed = own.clone();
        changed["sums"][name] = 1.into();
        fs::write(&status, changed.to_string()).unwrap();
        let shown = place.stackline(&["show", "last"]);
        shown.fails(3, &["status.json", "not belong to a run"]);
        assert!(
            !shown.err.contains("outside") && !shown.err.contains("kmsg"),
            "{}",
            shown.err
        );
    }
}

/// All commands that read a run.
fn read(place: &Place, run: &str) -> Vec<(String, Finished)> {
    let commands: [&[&str]; 9] = [
        &["show", run],
        &["diagnose", run],
        &["report", run],
        &["lifelines", run],
        &["compare", run, run],
        &["ncc", run],
        &["export", run, "--text", "-"],
        &["predict", "--run", run, "-e", "1 rr 32*1"],
        &["import", "--into", run, "no.log"],
    ];
    commands
        .iter()
        .map(|words| (words.join(" "), place.stackline(words)))
        .collect()
}

#[test]
fn readers_write_nothing_elsewhere_and_wait_for_no_pipe() {
    let place = Place::new();
    let run = run(&place, &[]);
    let precious = place.write("precious", "precious");
    for name in ["findings.json", "report.html"] {
        let _ = fs::remove_file(run.join(name));
        symlink(&precious, run.join(name)).unwrap();
    }
    read(&place, "last");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    // None of them waits: a pipe that nobody writes to, in the place of each file.
    for name in [
        "status.json",
        "plan.json",
        "specification.stackline",
        "results.parquet",
        "events/index.json",
        "events/a.parquet",
    ] {
        let (file, aside) = (run.join(name), place.path("aside"));
        fs::rename(&file, &aside).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let shown = place.stackline(&["lifelines", "last"]);
        assert!(
            shown.status.code().is_some_and(|code| code > 0),
            "{name}: {}",
            shown.out
        );
        assert!(
            shown
                .err
                .contains("it is a pipe, but a regular file is expected"),
            "{name}: {}",
            shown.err
        );
        fs::remove_file(&file).unwrap();
        fs::rename(&aside, &file).unwrap();
    }
    place.stackline(&["lifelines", "last"]).succeeds();
}

#[test]
fn a_run_is_private_unless_it_is_shared() {
    for (flags, directory, file) in [(&[][..], 0o700, 0o600), (&["--share"][..], 0o755, 0o644)] {
        let place = Place::new();
        let run = run(&place, flags);
        place.stackline(&["report", "last"]).succeeds();
        place.stackline(&["diagnose", "last"]).succeeds();
        let mut left = vec![run];
        while let Some(path) = left.pop() {
            let about = fs::symlink_metadata(&path).unwrap();
            let expected = if about.is_dir() { directory } else { file };
            assert_eq!(
                about.permissions().mode() & 0o777,
                expected,
                "{}",
                path.display()
            );
            if about.is_dir() {
                left.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            }
        }
    }
}

/// Whatever the umask is: neither does it open a private run, nor close a shared one, and nobody may replace runs.
#[test]
fn the_umask_changes_nothing_of_who_may_read_a_run() {
    for (umask, flags, directory) in [
        ("000", &[][..], 0o700),
        ("077", &["--share"][..], 0o755),
        ("000", &["--share"][..], 0o755),
    ] {
        let place = Place::new();
        let mut command = std::process::Command::new("sh");
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        command
            .args([
                "-c",
                &script,
                crate::support::program(),
                "run",
                "-e",
                "1 rr 32*5 over unix",
            ])
            .args(flags);
        let runs = place.path("new");
        command
            .env("STACKLINE_RUNS", &runs)
            .stdout(std::process::Stdio::null());
        assert!(command.status().unwrap().success());
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            mode(&runs),
            directory,
            "{umask} {flags:?}: shared runs are reached through it"
        );
        let run = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
        assert_eq!(
            (mode(&run), mode(&run.join("results.parquet"))),
            (directory, directory & 0o666),
            "{umask} {flags:?}"
        );
    }
}

#[test]
fn events_of_a_host_that_are_missing_are_named() {
    let place = Place::new();
    let run = run(&place, &[]);
    fs::remove_file(run.join("events/b.parquet")).unwrap();
    for words in [
        ["lifelines", "last"],
        ["diagnose", "last"],
        ["report", "last"],
    ] {
        let output = place.stackline(&words);
        let words = output.out + &output.err;
        assert!(
            words.contains("event files are missing: b.parquet"),
            "{words}"
        );
    }
}

/// Colours, bells and titles in what others wrote.
#[test]
fn foreign_text_steers_no_terminal() {
    let place = Place::new();
    let steering = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J";
    place.write(
        "log",
        format!("h{steering}; APP_SEND; 1000; unit=1\nh{steering}; APP_RECEIVE; 2000; unit=1\n"),
    );
    place.stackline(&["import", "--as", "text", "log"]);
    let texts = [
        format!("1 rr 32*{steering}"),
        format!("network n {{ host a; }} 1 from a to {steering} rr 32*1"),
    ];
    let mut outputs: Vec<Finished> = texts
        .iter()
        .flat_map(|text| {
            [
                place.stackline(&["check", "-e", text]),
                place.stackline(&["plan", "-e", text]),
            ]
        })
        .collect();
    outputs.extend(
        [
            ["lifelines", "last"],
            ["diagnose", "last"],
            ["show", "last"],
        ]
        .map(|words| place.stackline(&words)),
    );
    outputs.push(place.stackline(&["lifelines", "last", "--by", "host"]));
    outputs.push(place.stackline(&["show", &format!("no{steering}")]));
    for Finished { out, err, .. } in outputs {
        for text in [out, err] {
            assert!(
                text.chars()
                    .all(|c| matches!(c, '\n' | '\t') || !c.is_control()),
                "{text:?}"
            );
        }
    }
}
