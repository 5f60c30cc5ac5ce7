//! Records of sockets as a kernel wrote them, and a real ping-pong.

use super::*;
use crate::observe::connections::SocketConnections;
use proptest::prelude::*;
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};

fn sample(kind: Kind) -> TraceEventFormat {
    let text = match kind {
        Kind::State => include_str!("../../kernel_trace/samples/6.18/inet_sock_set_state"),
        Kind::Sent => include_str!("../samples/6.18/sock_send_length"),
        Kind::Received => include_str!("../samples/6.18/sock_recv_length"),
        Kind::Ready => include_str!("../samples/6.18/sk_data_ready"),
        Kind::Probe => include_str!("../samples/6.18/tcp_probe"),
    };
    TraceEventFormat::parse(text).unwrap()
}

/// The beginning of a record: flags, thread and the address of a socket.
fn head(flags: u8, thread: u32, length: usize) -> Vec<u8> {
    let mut record = vec![0; length];
    record[2] = flags;
    record[4..8].copy_from_slice(&thread.to_ne_bytes());
    record[8..16].copy_from_slice(&0xffff_8881_u64.to_ne_bytes());
    record
}

fn length(ret: i32, flags: i32, protocol: u16) -> Vec<u8> {
    let mut record = head(0, 77, 28);
    record[16..18].copy_from_slice(&2_u16.to_ne_bytes());
    record[18..20].copy_from_slice(&protocol.to_ne_bytes());
    record[20..24].copy_from_slice(&ret.to_ne_bytes());
    record[24..28].copy_from_slice(&flags.to_ne_bytes());
    record
}

fn event_of(kind: Kind, record: &[u8]) -> SocketEvent {
    decode(kind, &sample(kind), record).unwrap()
}

#[test]
fn a_send_has_its_bytes_or_its_error() {
    let sent = event_of(Kind::Sent, &length(1_400, 0, 6));
    assert_eq!(
        sent.what,
        SocketChange::Sent {
            bytes: 1_400,
            flags: 0
        }
    );
    assert_eq!(
        (sent.socket, sent.thread, sent.in_interrupt),
        (0xffff_8881, 77, false)
    );
    assert_eq!(sent.transport, Transport::Tcp);
    let failed = event_of(Kind::Sent, &length(-libc::EAGAIN, 0, 17));
    assert_eq!(
        failed.what,
        SocketChange::Sent {
            bytes: (-libc::EAGAIN).into(),
            flags: 0
        }
    );
    assert_eq!(failed.transport, Transport::Udp);
}

#[test]
fn a_receive_that_only_looks_takes_nothing() {
    let [looked, taken, failed] = [(64, libc::MSG_PEEK), (64, 0), (-libc::EAGAIN, 0)]
        .map(|(ret, flags)| event_of(Kind::Received, &length(ret, flags, 6)).what);
    assert_eq!(
        looked,
        SocketChange::Received {
            bytes: 64,
            flags: 2
        }
    );
    assert_eq!([looked, taken, failed].map(|what| what.taken()), [0, 64, 0]);
    assert_eq!(
        decode(
            Kind::Received,
            &sample(Kind::Received),
            &length(1, 0, 6)[..27]
        ),
        None,
        "too short"
    );
}

#[test]
fn ready_data_comes_with_the_thread_that_was_interrupted() {
    let ready = event_of(Kind::Ready, &head(0x10, 5, 32));
    assert_eq!(
        (ready.what, ready.thread, ready.in_interrupt),
        (SocketChange::Ready, 5, true)
    );
}

fn state(states: [u32; 2], ports: [u16; 2], family: u16) -> Vec<u8> {
    let mut record = head(0, 5, 72);
    record[16..20].copy_from_slice(&states[0].to_ne_bytes());
    record[20..24].copy_from_slice(&states[1].to_ne_bytes());
    record[24..26].copy_from_slice(&ports[0].to_ne_bytes());
    record[26..28].copy_from_slice(&ports[1].to_ne_bytes());
    record[28..30].copy_from_slice(&family.to_ne_bytes());
    record[30..32].copy_from_slice(&6_u16.to_ne_bytes());
    record[32..40].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    record[40..56].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
    record[56..72].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
    record
}

#[test]
fn a_state_names_the_addresses_that_have_ports() {
    let address = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
    let what = event_of(Kind::State, &state([2, 1], [5_001, 80], 2)).what;
    let (local, remote) = (address("10.0.0.1:5001"), address("10.0.0.2:80"));
    assert_eq!(
        what,
        SocketChange::State {
            old: TcpState::SynSent,
            new: TcpState::Established,
            local,
            remote
        }
    );
    let what = event_of(Kind::State, &state([7, 10], [80, 0], 10)).what;
    let local = address("[::1]:80");
    assert_eq!(
        what,
        SocketChange::State {
            old: TcpState::Closed,
            new: TcpState::Listen,
            local,
            remote: None
        }
    );
    for number in [0, 13] {
        assert_eq!(
            decode(
                Kind::State,
                &sample(Kind::State),
                &state([number, 1], [1, 2], 2)
            ),
            None,
            "no such state"
        );
    }
}

#[test]
fn a_probe_has_its_figures() {
    let mut record = head(0x10, 5, 136);
    for at in [8, 36] {
        record[at..at + 8].copy_from_slice(&[2, 0, 0, 80, 10, 0, 0, 1]);
    }
    record[76..78].copy_from_slice(&1_448_u16.to_ne_bytes());
    for (value, at) in (1_u32..).zip((80..108).step_by(4)) {
        record[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    record[128..136].copy_from_slice(&9_u64.to_ne_bytes());
    let probe = event_of(Kind::Probe, &record);
    let local = Some("10.0.0.1:80".parse().unwrap());
    let figures = Probe {
        snd_nxt: 1,
        snd_una: 2,
        snd_cwnd: 3,
        ssthresh: 4,
        snd_wnd: 5,
        srtt_us: 6,
        rcv_wnd: 7,
        length: 1_448,
        local,
        remote: local,
    };
    assert_eq!(
        (probe.socket, probe.what),
        (9, SocketChange::Probe(figures))
    );
}

proptest! {
    #[test]
    fn any_record_is_harmless(record in proptest::collection::vec(any::<u8>(), 0..140)) {
        for kind in [Kind::State, Kind::Sent, Kind::Received, Kind::Ready, Kind::Probe] {
            let _ = decode(kind, &sample(kind), &record);
        }
    }
}

fn started(probes: bool) -> Option<SocketTrace> {
    match SocketTrace::start(SocketCoverage::Everything) {
        Ok((mut trace, absent)) => {
            if probes {
                trace.probe(&BTreeSet::new()).unwrap();
            }
            assert!(absent.is_empty(), "{absent:?}");
            Some(trace)
        }
        Err(reason) => {
            stackline_testing::skip(reason);
            None
        }
    }
}

/// Adds the events up to now: how many were lost.
fn drain(trace: &mut SocketTrace, out: &mut Vec<SocketEvent>) -> u64 {
    let mut read = UndecodedTrace::default();
    trace.read(&mut read).unwrap();
    trace.decoder().decode(&read, out);
    read.lost
}

fn this_thread() -> u32 {
    nix::unistd::gettid().as_raw().cast_unsigned()
}

/// What happened at the sockets of one connection: at the end that connected, and at the end that accepted.
struct Seen {
    near: Vec<SocketEvent>,
    far: Vec<SocketEvent>,
}

impl Seen {
    fn from_events(events: &[SocketEvent], near: SocketAddr, far: SocketAddr) -> Self {
        let mut connections = SocketConnections::default();
        let mut seen = Self {
            near: Vec::new(),
            far: Vec::new(),
        };
        for event in events {
            match connections.see(event) {
                Some(pair) if pair == (near, far) => seen.near.push(*event),
                Some(pair) if pair == (far, near) => seen.far.push(*event),
                _ => {}
            }
        }
        seen
    }
}

/// Bytes sent and taken, in turn, sends as positive numbers, with their threads.
fn calls(events: &[SocketEvent]) -> Vec<(i64, u32)> {
    let call = |event: &SocketEvent| match event.what {
        SocketChange::Sent { bytes, .. } => Some((bytes, event.thread)),
        SocketChange::Received { bytes, .. } => Some((-bytes, event.thread)),
        _ => None,
    };
    events.iter().filter_map(call).collect()
}

#[test]
fn a_ping_pong_is_seen_byte_for_byte() {
    let Some(mut trace) = started(true) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut room = [0; 100];
        for _ in 0..20 {
            stream.read_exact(&mut room).unwrap();
            stream.write_all(&[7; 300]).unwrap();
        }
        assert_eq!(stream.read(&mut room).unwrap(), 0);
        this_thread()
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let near = stream.local_addr().unwrap();
    for _ in 0..20 {
        stream.write_all(&[1; 100]).unwrap();
        stream.peek(&mut [0; 1]).unwrap();
        stream.read_exact(&mut [0; 300]).unwrap();
    }
    drop(stream);
    let (client, server) = (this_thread(), server.join().unwrap());
    let mut events = Vec::new();
    assert_eq!(
        drain(&mut trace, &mut events),
        0,
        "the ring has room for this"
    );
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    let seen = Seen::from_events(&events, near, address);
    let mut expected = [(100, client), (-1, client), (-300, client)].repeat(20);
    assert_eq!(calls(&seen.near), expected);
    expected = [(-100, server), (300, server)].repeat(20);
    expected.push((0, server));
    assert_eq!(calls(&seen.far), expected);
    for (events, taken) in [(&seen.near, 6_000), (&seen.far, 2_000)] {
        assert_eq!(
            events.iter().map(|event| event.what.taken()).sum::<u64>(),
            taken
        );
        assert!(
            events
                .iter()
                .filter(|event| event.what == SocketChange::Ready)
                .count()
                >= 20
        );
        assert!(
            events
                .iter()
                .any(|event| matches!(event.what, SocketChange::Probe(probe) if probe.length > 0))
        );
    }
    let established = |events: &[SocketEvent]| {
        let old = events.iter().find_map(|event| match event.what {
            SocketChange::State {
                old,
                new: TcpState::Established,
                ..
            } => Some(old),
            _ => None,
        });
        old.unwrap()
    };
    assert_eq!(established(&seen.near), TcpState::SynSent);
    assert_eq!(established(&seen.far), TcpState::SynReceived);
}

#[test]
fn ipv6_and_datagrams_are_seen_and_other_families_are_not() {
    let Some(mut trace) = started(false) else {
        return;
    };
    let mut events = Vec::new();
    let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    one.send_to(&[1; 77], other.local_addr().unwrap()).unwrap();
    other.recv(&mut [0; 100]).unwrap();
    let (mut near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.write_all(&[1; 99]).unwrap();
    far.read_exact(&mut [0; 99]).unwrap();
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return stackline_testing::skip("no IPv6 here");
    };
    let address = listener.local_addr().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let (mut accepted, near) = listener.accept().unwrap();
    accepted.write_all(&[1; 33]).unwrap();
    stream.read_exact(&mut [0; 33]).unwrap();
    assert_eq!(
        drain(&mut trace, &mut events),
        0,
        "the ring has room for this"
    );
    let ours = |event: &&SocketEvent| event.thread == this_thread() && !event.in_interrupt;
    let datagrams: Vec<_> = events
        .iter()
        .filter(ours)
        .filter(|event| event.transport == Transport::Udp)
        .copied()
        .collect();
    assert_eq!(
        calls(&datagrams),
        [(77, this_thread()), (-77, this_thread())]
    );
    let seen = Seen::from_events(&events, near, address);
    assert_eq!(calls(&seen.near), [(-33, this_thread())]);
    assert_eq!(calls(&seen.far), [(33, this_thread())]);
    assert!(
        events
            .iter()
            .filter(ours)
            .all(|event| !calls(&[*event]).iter().any(|(bytes, _)| bytes.abs() == 99))
    );
}
