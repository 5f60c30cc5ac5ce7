//! How programs on emulated hosts end, how long their network stays, and what is left of both: nothing.

use crate::support::emulated::Net;
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::process::Child;

#[test]
fn a_program_may_catch_signals() {
    let Some(net) = Net::pair("signals") else {
        return;
    };
    for (signal, name) in [
        (Signal::SIGINT, "INT"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGUSR1, "USR1"),
    ] {
        let script =
            format!("trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let started = net.start("khons", &["sh", "-c", &script]);
        started.process().signal(signal);
        assert_eq!(
            started.finish(),
            (Some(9), "caught\n".into(), String::new())
        );
    }
    net.place.empties();
}

#[test]
fn an_interruption_reaches_what_a_shell_waits_for() {
    let Some(net) = Net::pair("waits") else {
        return;
    };
    let started = net.start(
        "khons",
        &["sh", "-c", "sleep 1000 & echo ready; sleep 1000; wait"],
    );
    started.process().signal(Signal::SIGINT);
    assert_eq!(started.finish().0, Some(128 + 2));
    net.place.empties();
}

#[test]
fn daemons_end_with_the_program_that_left_them() {
    let Some(net) = Net::pair("daemons") else {
        return;
    };
    let ended = net.run(
        "khons",
        &["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & exit 3"],
    );
    assert_eq!(ended.status.code(), Some(3));
    net.place.empties();
}

#[test]
fn kill_9_leaves_nothing() {
    let Some(net) = Net::pair("killed") else {
        return;
    };
    let started = net.start(
        "khons",
        &[
            "sh",
            "-c",
            "setsid sleep 1000 & sleep 1000 & echo ready; sleep 1000",
        ],
    );
    started.process().signal(Signal::SIGKILL);
    net.place.empties();
    let started = net.start("khons", &["sh", "-c", "echo ready; sleep 1000"]);
    net.place.emulator().signal(Signal::SIGKILL);
    let (code, _, err) = started.finish();
    assert_eq!(code, Some(1));
    assert!(
        err.starts_with("error: the network emulator exited"),
        "{err}"
    );
    net.place.empties();
}

#[test]
fn a_network_stays_while_somebody_is_there() {
    let Some(net) = Net::pair("stays") else {
        return;
    };
    let first = net.start(
        "khons",
        &["sh", "-c", "readlink /proc/self/ns/net; sleep 1000"],
    );
    let emulator = net.place.emulator();
    let second = net.start("udjat", &["sh", "-c", "echo ready; sleep 1000"]);
    first.process().signal(Signal::SIGKILL);
    first.finish();
    assert_eq!(
        net.place.emulator(),
        emulator,
        "it has outlived the one who started it"
    );
    let third = net.start("khons", &["readlink", "/proc/self/ns/net"]);
    assert_eq!(third.finish().0, Some(0));
    assert_eq!(net.place.emulator(), emulator);
    second.process().signal(Signal::SIGKILL);
    second.finish();
    net.place.empties();
}

#[test]
fn many_who_come_at_once_meet() {
    let Some(net) = Net::pair("at_once") else {
        return;
    };
    let wait = ["sh", "-c", "readlink /proc/self/ns/net; sleep 1000"];
    let children: Vec<Child> = (0..8)
        .map(|_| net.command("khons", &wait).spawn().unwrap())
        .collect();
    let lines = children.into_iter().map(|mut child| {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        (line, child)
    });
    let (lines, children): (Vec<String>, Vec<Child>) = lines.unzip();
    assert!(
        lines[0].starts_with("net:[") && lines.iter().all(|line| *line == lines[0]),
        "{lines:?}"
    );
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    net.place.empties();
}
