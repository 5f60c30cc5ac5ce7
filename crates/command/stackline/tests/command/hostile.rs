//! Strangers on the agent's pipe, and on a port of a running measurement.

use crate::support::{Kept, Place, Started, noise, number, until};
use std::hash::{BuildHasher, RandomState};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::{Path, PathBuf};

#[test]
fn random_bytes_are_no_control_messages() {
    let place = Place::new();
    let mut bytes = noise(5000, 3);
    bytes.push(b'\n');
    for bytes in [
        &bytes[..],
        b"\n",
        b"{}\n",
        b"{\"go\":{\"job\":7}",
        b"{\"listen\":{\"job\":1,\"task\":{}}}\n",
        b"[[[[[[[[\n",
    ] {
        let mut agent = place.start(&mut place.command(&["agent"]));
        agent.say(bytes);
        let output = agent.finish();
        output.fails(1, &[]);
        assert!(
            output.err.chars().all(|c| c == '\n' || !c.is_control()),
            "{:?}",
            output.err
        );
    }
}

#[test]
fn a_line_without_end_takes_bounded_memory() {
    let place = Place::new();
    let mut agent = place.start(&mut place.command(&["agent"]));
    let chunk = vec![b'['; 1 << 20];
    let mut peak = 0;
    for _ in 0..100 {
        agent.say(&chunk);
        peak = agent.process().peak_memory().max(peak);
    }
    agent.finish().fails(1, &["longer than 64 MiB"]);
    assert!(peak < 200 << 20, "{peak}");
}

fn free_port() -> u16 {
    // Below those that the system gives to whoever wants any, four in a row: each of several pairs takes one.
    let free = |port| {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
    };
    let mut drawn =
        (0..).map(|turn: u32| 10_000 + (RandomState::new().hash_one(turn) % 20_000) as u16);
    drawn.find(|port| (*port..port + 4).all(free)).unwrap()
}

fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn inode(descriptor: &Path) -> Option<String> {
    let target = std::fs::read_link(descriptor).ok()?;
    Some(
        target
            .to_str()?
            .strip_prefix("socket:[")?
            .strip_suffix(']')?
            .to_string(),
    )
}

/// The abstract sockets that listen for the agents of this run; others' runs have other agents.
fn unix_names(started: &Started) -> Vec<String> {
    // Each thread has a file table of its own.
    let agents = started.agents(2);
    let threads = agents
        .iter()
        .flat_map(|agent| entries(format!("/proc/{}/task", agent.0)));
    let inodes: Vec<String> = threads
        .flat_map(|thread| entries(thread.join("fd")))
        .filter_map(|fd| inode(&fd))
        .collect();
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    let rows = table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let listening = rows.filter(|row| {
        row.len() == 8 && row[5] == "01" && inodes.iter().any(|inode| inode == row[6])
    });
    listening
        .filter_map(|row| {
            row[7]
                .strip_prefix("@stackline-")
                .map(|name| format!("stackline-{name}"))
        })
        .collect()
}

/// A socket of this machine knows its peers by their processes; that of a port is tested where it is.
#[test]
fn strangers_use_up_no_connection_of_a_loop() {
    let place = Place::new();
    let started = place.start(&mut place.command(&[
        "run",
        "--json",
        "-e",
        "100 connect_disconnect 0*500 over unix",
    ]));
    let mut times = 0;
    while place
        .runs()
        .first()
        .is_none_or(|run| Kept(run.clone()).journal() < 95)
    {
        for name in unix_names(&started) {
            times += u64::from(
                UnixStream::connect_addr(&UnixAddr::from_abstract_name(name).unwrap()).is_ok(),
            );
        }
    }
    assert!(times > 0);
    assert_eq!(
        number(&started.finish().json(), "/measurements/0/connect_s/n"),
        50_000.0
    );
}

#[test]
fn a_peer_that_says_nothing_keeps_no_port() {
    // The stranger holds its connection open while the run ends.
    let place = Place::new();
    let port = free_port();
    let started = place.running(&format!("5 rr 32*100 over tcp(port = {port})"));
    let silent = until("the port is open or the run over", || {
        if place.processes().is_empty() {
            Some(None)
        } else {
            TcpStream::connect(("127.0.0.1", port)).ok().map(Some)
        }
    });
    started.finish().succeeds();
    drop(silent);
}

/// What a specification names may be a device without end, or a pipe that nobody writes to.
#[test]
fn files_that_are_named_are_regular_and_bounded() {
    let place = Place::new();
    let pipe = place.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::File::create(place.path("large"))
        .unwrap()
        .set_len(17 << 20)
        .unwrap();
    for (name, words) in [
        (
            "/dev/zero",
            "it is a device, but a regular file is expected",
        ),
        ("pipe", "it is a pipe, but a regular file is expected"),
        (".", "it is a directory, but a regular file is expected"),
        ("large", "it is larger than 16 MiB"),
        ("absent", "No such file"),
    ] {
        let network = format!("network n {{ host a, b; link a - b trace \"{name}\" 1 ms; }}");
        let drawn = format!("1 rr empirical(file \"{name}\")*10");
        for text in [&network, &drawn] {
            let output = place.stackline(&["check", "-e", text]);
            assert_eq!(output.status.code(), Some(2), "{}", output.err);
            assert!(output.err.contains(words), "{name}: {}", output.err);
        }
        let shown = place.stackline(&["net", "show", "-e", &network]);
        assert_eq!(shown.status.code(), Some(2), "{}", shown.err);
    }
}

#[test]
fn nobody_listens_to_what_is_wrong() {
    let place = Place::new();
    for text in [
        "10 rr 0*10",
        "1 from a to a rr 1*1 in simulated; network n { host a, b; link a - b 1 Mbit/s 0 ms; }",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = place
            .command(&["check", "-e", text])
            .stderr(writer)
            .stdout(std::process::Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(2), "{text}");
    }
}

#[test]
fn a_mistake_far_to_the_right_in_a_line_is_shown() {
    let place = Place::new();
    place.write("long", "1 rr 32*1;".repeat(10_001));
    place.write(
        "deep",
        format!(
            "procedure p {{ initiator {{ {}",
            "repeat count { ".repeat(20_000)
        ),
    );
    for name in ["long", "deep"] {
        let output = place.stackline(&["check", name]);
        assert_eq!(output.status.code(), Some(2), "{}", output.err);
        assert!(
            output.err.lines().all(|line| line.len() < 2000),
            "{}",
            output.err
        );
    }
}
