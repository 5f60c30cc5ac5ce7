//! Strangers on the agent's pipe and on the ports of a running measurement.

use crate::support::{Kept, Place, Started, noise, number, until};
use nix::sys::socket::{setsockopt, sockopt};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

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
fn orders_for_jobs_that_are_not_there_do_nothing() {
    let place = Place::new();
    let mut agent = place.start(&mut place.command(&["agent"]));
    agent.say(b"{\"go\":{\"job\":7}}\n{\"end\":{\"job\":7,\"now\":true}}\n\"quit\"\n");
    agent.finish().succeeds();
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

/// Bothers a port until it is stopped.
struct Stranger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Stranger {
    fn new(mut bother: impl FnMut(u64) -> bool + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut times = 0;
            for turn in 0.. {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                times += u64::from(bother(turn));
                std::thread::sleep(Duration::from_micros(200));
            }
            times
        });
        Self { stop, thread }
    }

    /// How often it got through.
    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Random bytes, nothing at all, or gone at once; `idle` holds those that stay and say nothing.
fn bother<S: Write>(mut stream: S, turn: u64, idle: &mut Vec<S>) {
    if idle.len() > 20 {
        idle.clear();
    }
    match turn % 3 {
        // It may be closed before all is said.
        0 => drop(stream.write_all(&noise(100, turn))),
        1 => idle.push(stream),
        _ => {}
    }
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

#[test]
fn strangers_on_a_tcp_port() {
    let place = Place::new();
    let port = free_port();
    let mut idle: Vec<TcpStream> = Vec::new();
    let stranger = Stranger::new(move |turn| {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        // Gone without TIME_WAIT: a test must not use up the machine's ports.
        let _ = setsockopt(
            &stream,
            sockopt::Linger,
            &libc::linger {
                l_onoff: 1,
                l_linger: 0,
            },
        );
        bother(stream, turn, &mut idle);
        true
    });
    let measured = place.measure(&format!(
        "20 rr 32*200 over tcp(port = {port}); 20 bulk_get 1000*200 over tcp(port = {port}); \
         20 bulk_put 1000*200 over tcp(port = {port}); 20 4 rr 32*50 over tcp(port = {port}, threads = 1)"
    ));
    assert!(stranger.stop() > 0);
    for calls in [0, 3] {
        assert_eq!(number(&measured[calls], "/response_s/n"), 4000.0);
        assert!(
            number(&measured[calls], "/response_s/max") < 1.5,
            "a silent stranger keeps nobody waiting: {calls}"
        );
    }
    assert_eq!(
        number(&measured[1], "/initiator/received_bytes"),
        20.0 * 200_000.0
    );
    assert_eq!(
        number(&measured[2], "/responder/received_bytes"),
        20.0 * 200_000.0
    );
}

#[test]
fn strangers_use_up_no_connection_of_a_loop() {
    let place = Place::new();
    let port = free_port();
    let mut idle: Vec<TcpStream> = Vec::new();
    let stranger = Stranger::new(move |turn| {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        let _ = setsockopt(
            &stream,
            sockopt::Linger,
            &libc::linger {
                l_onoff: 1,
                l_linger: 0,
            },
        );
        bother(stream, turn, &mut idle);
        true
    });
    let measured = place.measure(&format!(
        "10 connect_disconnect 0*500 over tcp(port = {port})"
    ));
    assert!(stranger.stop() > 0);
    assert_eq!(
        number(&measured[0], "/connect_s/n"),
        5000.0,
        "{}",
        measured[0]
    );

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
fn strangers_on_a_udp_port() {
    let place = Place::new();
    let port = free_port();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stranger = Stranger::new(move |turn| {
        // 25 bytes are as long as a control datagram.
        let sizes = [25, 0, 8, 1000, 17];
        let sent = sizes.map(|size| {
            socket.send_to(&noise(size, turn), SocketAddr::from(([127, 0, 0, 1], port)))
        });
        sent.iter().any(Result::is_ok)
    });
    let over = format!("over udp(port = {port})");
    let measured = place.measure(&format!(
        "20 rr 32*200 {over}; 20 bulk_get 1000*50 {over}; 20 bulk_put 1000*50 over udp(port = {port}, batch = 4)"
    ));
    assert!(stranger.stop() > 0);
    assert_eq!(
        number(&measured[0], "/response_s/n") + number(&measured[0], "/lost"),
        4000.0
    );
    for (m, sender, receiver) in [
        (&measured[1], "responder", "initiator"),
        (&measured[2], "initiator", "responder"),
    ] {
        let received = number(m, &format!("/{receiver}/received_units"));
        assert_eq!(number(m, &format!("/{sender}/sent_units")), 1000.0);
        assert_eq!(received + number(m, "/lost"), 1000.0, "{m}");
        assert_eq!(
            number(m, &format!("/{receiver}/received_bytes")),
            received * 1000.0,
            "{m}"
        );
        assert_eq!(
            number(m, "/duplicated") + number(m, "/reordered"),
            0.0,
            "{m}"
        );
    }
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

#[test]
fn strangers_on_a_unix_socket() {
    let place = Place::new();
    let started = place.start(&mut place.command(&[
        "run",
        "--json",
        "-e",
        "100 rr 32*200 over unix; 50 bulk_get 1000*200 over unix",
    ]));
    let mut idle = Vec::new();
    let mut times = 0;
    for turn in 0.. {
        if place
            .runs()
            .first()
            .is_some_and(|run| Kept(run.clone()).journal() >= 100)
        {
            break;
        }
        for name in unix_names(&started) {
            let Ok(stream) = UnixStream::connect_addr(&UnixAddr::from_abstract_name(name).unwrap())
            else {
                continue;
            };
            bother(stream, turn, &mut idle);
            times += 1;
        }
    }
    let json = started.finish().json();
    assert!(times > 0);
    assert_eq!(number(&json, "/measurements/0/response_s/n"), 100.0 * 200.0);
    assert!(number(&json, "/measurements/0/response_s/max") < 1.5);
    assert_eq!(
        number(&json, "/measurements/1/initiator/received_bytes"),
        50.0 * 200_000.0
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
            "it is a device, where a regular file is expected",
        ),
        ("pipe", "it is a pipe, where a regular file is expected"),
        (".", "it is a directory, where a regular file is expected"),
        ("large", "it is longer than 16 MiB"),
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
