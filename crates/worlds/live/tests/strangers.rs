//! Strangers on the ports of running measurements: whatever they send, the runs are as if nobody had been there.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;

use common::{Agent, tasks};
use socket2::SockRef;
use stackline_endpoint::SideObservation;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes that do not repeat soon.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
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

/// Connections to a port that go without TIME_WAIT: a test does not use up the machine's ports.
fn on_tcp() -> impl FnMut(&str, u64) + Send {
    let mut idle = Vec::new();
    move |port, turn| {
        if let Ok(stream) = TcpStream::connect(format!("127.0.0.1:{port}")) {
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            bother(stream, turn, &mut idle);
        }
    }
}

fn on_unix() -> impl FnMut(&str, u64) + Send {
    let mut idle = Vec::new();
    move |name, turn| {
        let address = SocketAddr::from_abstract_name(name.trim_start_matches('@'));
        if let Ok(stream) = address.and_then(|address| UnixStream::connect_addr(&address)) {
            bother(stream, turn, &mut idle);
        }
    }
}

fn on_udp() -> impl FnMut(&str, u64) + Send {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    move |port, turn| {
        // 25 bytes are as long as a control datagram.
        for size in [25, 0, 8, 1000, 17] {
            let _ = socket.send_to(&noise(size, turn), format!("127.0.0.1:{port}"));
        }
    }
}

/// Runs of a text, each bothered before its initiators connect and until it is over; what both sides saw.
fn bothered<B: FnMut(&str, u64) + Send>(
    runs: u32,
    text: &str,
    stranger: impl Fn() -> B,
) -> Vec<[SideObservation; 2]> {
    let one = |_| {
        let [initiate, respond] = tasks(text);
        let (mut initiators, mut responders) = (Agent::start(), Agent::start());
        let addresses = responders.listen(respond);
        // Behind a port there may be the fingerprint of a certificate.
        let door = addresses[0].split('/').next().unwrap_or_default();
        let (over, mut bother) = (AtomicBool::new(false), stranger());
        (0..6).for_each(|turn| bother(door, turn));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 6.. {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    bother(door, turn);
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            initiators.connect(initiate, &addresses);
            initiators.is_ready();
            responders.go();
            initiators.go();
            let seen = [&mut initiators, &mut responders].map(Agent::outcome);
            over.store(true, Ordering::Relaxed);
            assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
            seen.map(|side| side.unwrap_or_else(|error| panic!("{text}: {error}")))
        })
    };
    (0..runs).map(one).collect()
}

fn sum(seen: &[[SideObservation; 2]], of: impl Fn(&[SideObservation; 2]) -> u64) -> u64 {
    seen.iter().map(of).sum()
}

/// Calls and bulk transfers over a stream are whole.
fn streams_are_whole<B: FnMut(&str, u64) + Send>(over: &str, stranger: impl Fn() -> B) {
    let seen = bothered(20, &format!("1 rr 32*200 over {over};"), &stranger);
    assert_eq!(sum(&seen, |[initiator, _]| initiator.calls.n()), 4000);
    files_are_whole(over, stranger);
}

/// Bulk transfers are.
fn files_are_whole<B: FnMut(&str, u64) + Send>(over: &str, stranger: impl Fn() -> B) {
    let seen = bothered(20, &format!("1 bulk_get 1000*200 over {over};"), &stranger);
    let bytes = sum(&seen, |[initiator, _]| initiator.record.received_bytes);
    assert_eq!(bytes, 20 * 200_000);
    let seen = bothered(20, &format!("1 bulk_put 1000*200 over {over};"), &stranger);
    let bytes = sum(&seen, |[_, responder]| responder.record.received_bytes);
    assert_eq!(bytes, 20 * 200_000);
}

#[test]
fn strangers_on_a_tcp_port() {
    streams_are_whole("tcp", on_tcp);
    let text = "1 parallel over tcp(threads = 1): 4 rr 32*50;";
    let seen = bothered(20, text, on_tcp);
    assert_eq!(sum(&seen, |[initiator, _]| initiator.calls.n()), 4000);
}

#[test]
fn strangers_on_the_ports_of_protocols() {
    for over in ["tls", "websocket", "http1", "http2(tls)", "grpc", "ftam"] {
        streams_are_whole(over, on_tcp);
    }
    for over in ["quic", "http3"] {
        streams_are_whole(over, on_udp);
    }
    for over in ["ftp", "ftp(mode = active)"] {
        files_are_whole(over, on_tcp);
        let text = format!("1 connect_disconnect 0*20 over {over};");
        let seen = bothered(10, &text, on_tcp);
        assert_eq!(sum(&seen, |[initiator, _]| initiator.connects.n()), 200);
    }
}

#[test]
fn strangers_on_a_unix_socket() {
    streams_are_whole("unix", on_unix);
}

#[test]
fn strangers_use_up_no_connection_of_a_loop() {
    let seen = bothered(10, "1 connect_disconnect 0*500 over tcp;", on_tcp);
    assert_eq!(sum(&seen, |[initiator, _]| initiator.connects.n()), 5000);
}

#[test]
fn strangers_on_a_udp_port() {
    let seen = bothered(20, "1 rr 32*200 over udp;", on_udp);
    let lost = sum(&seen, |[initiator, _]| initiator.record.lost.unwrap_or(0));
    assert_eq!(
        sum(&seen, |[initiator, _]| initiator.calls.n()) + lost,
        4000
    );
    for (what, receiver) in [
        ("bulk_get 1000*50 over udp", 0),
        ("bulk_put 1000*50 over udp(batch = 4)", 1),
    ] {
        let seen = bothered(20, &format!("1 {what};"), on_udp);
        for sides in &seen {
            let (to, from) = (&sides[receiver].record, &sides[1 - receiver].record);
            assert_eq!(from.sent_units, 50, "{what}");
            assert_eq!(to.received_units + to.lost.unwrap_or(0), 50, "{what}");
            assert_eq!(to.received_bytes, 1000 * to.received_units, "{what}");
            assert_eq!((to.duplicated, to.reordered), (Some(0), Some(0)), "{what}");
        }
    }
}
