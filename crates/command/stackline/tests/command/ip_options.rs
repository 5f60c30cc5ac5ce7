//! Options of stacks over IP: from where an initiator connects and how packets are marked, as a server and the wire see it.

use crate::support::{Place, number, skip};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, connect, recv,
    socket,
};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// The stacks of both ends that have all the options.
const MARKED: [&str; 11] = [
    "tcp",
    "udp",
    "saw",
    "window",
    "blast",
    "ikp",
    "tls",
    "websocket",
    "http1(tls)",
    "http2",
    "grpc",
];

/// A server that closes what connects, and the addresses that have connected.
fn server() -> (u16, Receiver<SocketAddr>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (found, peers) = channel();
    thread::spawn(move || {
        while let Ok((_, peer)) = listener.accept() {
            let _ = found.send(peer);
        }
    });
    (port, peers)
}

/// A port that nobody uses at the moment.
fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

#[test]
fn an_initiator_connects_from_where_it_is_asked_to() {
    let (port, peers) = server();
    let own = free_port();
    let options = format!("source = \"127.0.0.9\", source_port = {own}, interface = lo");
    let text = format!("1 to \"tcpconnect://127.0.0.1:{port}\" connect_disconnect 0*1");
    Place::new().measure(&format!("{text} over tcpconnect({options});"));
    let expected = SocketAddr::from(([127, 0, 0, 9], own));
    assert!(peers.try_iter().all(|peer| peer == expected));
}

#[test]
fn both_ends_of_every_stack_mark_their_packets() {
    let options = "source = \"127.0.0.8\", interface = lo, ttl = 9";
    let with = |stack: &str, more: &str| match stack.strip_suffix(')') {
        Some(open) => format!("{open}, {options}{more})"),
        None => format!("{stack}({options}{more})"),
    };
    let marked = MARKED.map(|stack| with(stack, ", dscp = 46"));
    let unmarked = ["quic", "http3"].map(|stack| with(stack, ""));
    let lines: String = marked
        .iter()
        .map(|stack| format!("1 rr 10*5 over {stack};\n1 connect_disconnect 0*3 over {stack};\n"))
        .chain(
            unmarked
                .iter()
                .map(|stack| format!("1 rr 10*5 over {stack};\n")),
        )
        .collect();
    let rows = Place::new().measure(&lines);
    assert_eq!(rows.len(), 2 * MARKED.len() + 2);
    for row in rows.iter().filter(|row| row["response_s"].is_object()) {
        assert_eq!(number(row, "/response_s/n"), 5.0, "{row}");
    }
    for row in rows.iter().take(2) {
        for side in ["initiator", "responder"] {
            let settings = &row[side]["settings"];
            assert_eq!(
                (&settings["ttl"], &settings["dscp"]),
                (&"9".into(), &"46".into()),
                "{row}"
            );
        }
    }
}

/// A socket that receives TCP packets of IPv4 with their headers, if that is permitted.
fn packets() -> Option<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK;
    match socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Tcp) {
        Err(Errno::EPERM) => None,
        socket => Some(socket.unwrap()),
    }
}

/// How many packets wait in a socket, all of which have this code point and this TTL.
fn marked(socket: &OwnedFd, dscp: u8, ttl: u8) -> u32 {
    let (mut room, mut count) = ([0; 2048], 0);
    while let Ok(bytes) = recv(socket.as_raw_fd(), &mut room, MsgFlags::empty()) {
        assert_eq!(
            (room[1] >> 2, room[8]),
            (dscp, ttl),
            "{:?}",
            &room[..bytes.min(40)]
        );
        count += 1;
    }
    count
}

#[test]
fn the_code_point_and_the_ttl_are_on_the_wire() {
    let (Some(there), Some(back)) = (packets(), packets()) else {
        skip("no raw sockets");
        return;
    };
    let source = SockaddrIn::new(127, 0, 0, 7, 0);
    connect(there.as_raw_fd(), &source).unwrap();
    bind(back.as_raw_fd(), &source).unwrap();
    Place::new().measure("1 rr 10*5 over tcp(source = \"127.0.0.7\", dscp = 10, ttl = 33);");
    let counts = [&there, &back].map(|socket| marked(socket, 10, 33));
    assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
}

#[test]
fn what_does_not_fit_this_host_is_refused_with_the_reason() {
    let place = Place::new();
    let cases = [
        (
            "source = \"192.0.2.1\"",
            3,
            "cannot connect from 192.0.2.1:0",
        ),
        ("source = lo", 2, "`source` takes an IP address, not `lo`"),
        (
            "source = \"::1\"",
            2,
            "the source ::1 is an address of IPv6",
        ),
        ("interface = nowhere", 3, "no interface named `nowhere`"),
    ];
    for (options, code, expected) in cases {
        for stack in ["tcp", "udp", "http2", "quic", "blast", "ikp"] {
            let finished = place.run(&format!("1 rr 1*1 over {stack}({options})"));
            finished.fails(code, &[expected]);
        }
    }
    let text =
        "1 to \"tcpconnect://127.0.0.1:9\" connect_disconnect 0*1 over tcpconnect(family = ipv6)";
    place
        .run(text)
        .fails(3, &["resolves to no address of IPv6"]);
}

/// A counter of `/proc/net/netstat`, whose lines are names and then their values.
fn netstat(text: &str, name: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let both = lines.chunks(2).find_map(|both| {
        let at = both.first()?.split(' ').position(|word| word == name)?;
        both.get(1)?.split(' ').nth(at)
    });
    both.unwrap().parse().unwrap()
}

#[test]
fn the_first_data_go_in_the_syn_where_the_host_allows_it() {
    let program = env!("CARGO_BIN_EXE_stackline");
    let place = Place::new();
    let in_a_namespace = |bits: u32, text: &str| {
        let script = format!(
            "ip link set lo up && echo {bits} > /proc/sys/net/ipv4/tcp_fastopen && '{program}' run --json -e '{text}' \
             && cat /proc/net/netstat >&2"
        );
        let mut command = Command::new("unshare");
        let command = command
            .args(["--user", "--map-root-user", "--net", "sh", "-c", &script])
            .current_dir(place.path(""));
        place.finish(command)
    };
    let text = "1 rr 100*5 over tcp(fastopen); 4 rr 100*5 over tcp(fastopen); 1 connect_disconnect 0*5 over tcp(fastopen)";
    let output = in_a_namespace(3, text);
    if output.status.code() != Some(0) && output.err.contains("unshare") {
        skip("no namespaces");
        return;
    }
    output.succeeds();
    let rows = output.json()["measurements"].clone();
    assert_eq!(number(&rows[1], "/response_s/n"), 20.0);
    // The first connection asks for the cookie that the others show.
    let said = |row: usize| rows[row]["initiator"]["settings"]["fastopen"].clone();
    assert_eq!(
        (said(0), said(1)),
        ("data after the handshake".into(), "data in the SYN".into())
    );
    assert_eq!(
        rows[1]["responder"]["settings"]["fastopen"],
        "data in the SYN"
    );
    let bits = &rows[1]["initiator"]["settings"]["net.ipv4.tcp_fastopen"];
    assert_eq!(bits, "3");
    assert_eq!(netstat(&output.err, "TCPFastOpenActive"), 4);
    assert_eq!(netstat(&output.err, "TCPFastOpenPassive"), 4);
    assert_eq!(number(&rows[2], "/connect_s/n"), 5.0);
    // Without the server's bit it is a connection as any.
    let output = in_a_namespace(1, "3 rr 100*5 over tcp(fastopen)");
    output.succeeds();
    let row = output.json()["measurements"][0].clone();
    let settings = &row["initiator"]["settings"];
    assert_eq!(settings["fastopen"], "data after the handshake");
    assert_eq!(netstat(&output.err, "TCPFastOpenActive"), 0);
    in_a_namespace(0, "1 rr 100*5 over tcp(fastopen)")
        .fails(3, &["this host refuses TCP Fast Open"])
        .hints("sysctl net.ipv4.tcp_fastopen=3");
}
