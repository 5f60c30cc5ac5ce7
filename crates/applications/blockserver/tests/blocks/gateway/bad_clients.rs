//! Clients that give up, are slow, take nothing, or do not speak HTTP: they hold a bounded amount, and others are served.

use crate::common::{self, Site, set};
use crate::http::{Http, options, start};
use stackline_blocks::set::BlockSet;
use stackline_blockserver::gateway::{self, limits::Patience};
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::time::Duration;

#[test]
fn who_gives_up_leaves_nothing_behind() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 64 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let gateway = start(&site);
    for _ in 0..30 {
        let mut http = Http::to(gateway.address());
        http.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(http.head().unwrap().status, 200);
        let mut some = [0; 100];
        http.0.read_exact(&mut some).unwrap();
        // And one that goes before it is answered.
        Http::to(gateway.address()).send("GET /large/7 HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    let mut http = Http::to(gateway.address());
    for number in 0..64 {
        assert_eq!(http.get(&format!("/large/{number}")).body.len(), 1 << 20);
    }
}

#[test]
fn a_request_that_is_given_up_is_waited_for_no_more() {
    // A master that takes connections and says nothing: what is asked for is waited for.
    let silent = std::net::TcpListener::bind(std::net::SocketAddr::from(common::ANYWHERE)).unwrap();
    let options = gateway::GatewayOptions {
        listen: common::ANYWHERE.into(),
        master: silent.local_addr().unwrap().to_string(),
        patience: Patience::default(),
        connections: 4,
        room: gateway::limits::ROOM,
    };
    let gateway = gateway::start(options).unwrap();
    let asked = || {
        let mut http = Http::to(gateway.address());
        http.send("GET /map/1 HTTP/1.1\r\nHost: x\r\n\r\n");
        http
    };
    let status = || {
        let mut http = Http::to(gateway.address());
        // It may be refused before it was sent.
        let _ = http
            .0
            .get_mut()
            .write_all(b"PUT / HTTP/1.1\r\nHost: x\r\n\r\n");
        http.answer(false).map(|answer| answer.status)
    };
    // One whose request was not read yet is idle, and may have given way.
    let is_open = |http: &Http| {
        http.0.get_ref().set_nonblocking(true).unwrap();
        http.0
            .get_ref()
            .peek(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let mut asking: Vec<Http> = Vec::new();
    loop {
        asking.retain(is_open);
        asking.extend((asking.len()..4).map(|_| asked()));
        if status() == Some(503) {
            break;
        }
    }
    // All places are taken by those who wait; three of them give up.
    let waiting = asking.remove(0);
    drop(asking);
    while status() != Some(405) {}
    // Their places are free before what they had asked for was answered, or refused.
    assert!(is_open(&waiting));
}

#[test]
fn the_idlest_connection_beyond_the_limit_is_closed() {
    let site = Site::new(1);
    let gateway = gateway::start(gateway::GatewayOptions {
        connections: 4,
        ..options(&site)
    })
    .unwrap();
    let mut held: Vec<Http> = (0..4).map(|_| Http::to(gateway.address())).collect();
    for http in &mut held {
        assert_eq!(http.get("/").status, 200);
    }
    // As many strangers as may say nothing, and whoever asks gets an answer.
    let _silent: Vec<Http> = (0..40).map(|_| Http::to(gateway.address())).collect();
    let mut asks = Http::to(gateway.address());
    assert_eq!(asks.get("/").status, 200);
    assert!(
        held.iter_mut().all(|http| http.head().is_none()),
        "idle connections were closed"
    );
}

#[test]
fn slow_clients_are_let_go() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 64 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let short = Duration::from_millis(300);
    let patience = Patience {
        head: short,
        stall: short,
        ..Patience::default()
    };
    let gateway = gateway::start(gateway::GatewayOptions {
        patience,
        ..options(&site)
    })
    .unwrap();
    // One that never asks, one that never ends its head, one that was served once.
    let silent = Http::to(gateway.address());
    let mut dripping = Http::to(gateway.address());
    dripping.send("GET / HTTP/1.1\r\nHo");
    let mut served = Http::to(gateway.address());
    assert_eq!(served.get("/").status, 200);
    for (mut http, what) in [
        (silent, "silent"),
        (dripping, "dripping"),
        (served, "served"),
    ] {
        let mut rest = Vec::new();
        // Closed, perhaps with a 408 before; a time-out of the test would be an error.
        http.0
            .read_to_end(&mut rest)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    // One that takes nothing of what it asked for: it gets what the system had taken, and no more.
    let mut lazy = Http::to(gateway.address());
    lazy.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    std::thread::sleep(short * 5);
    let mut came = 0;
    let mut some = vec![0; 1 << 16];
    while let Ok(count @ 1..) = lazy.0.read(&mut some) {
        came += count;
    }
    assert!(came < 64 << 20, "{came}");
}

#[test]
fn what_is_no_http_is_refused() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let long = format!(
        "GET /map/1 HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "a".repeat(40_000)
    );
    let many: String = (0..80).map(|n| format!("X{n}: 1\r\n")).collect();
    let many = format!("GET /map/1 HTTP/1.1\r\nHost: x\r\n{many}\r\n");
    let target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a/".repeat(30_000));
    for (what, statuses) in [
        (long.as_str(), &[431][..]),
        (&many, &[431]),
        (&target, &[414, 431]),
        ("GET /map/1 HTTP/9.9\r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1 \r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1\r\nHost: x\r\n\r\n", &[400]),
        ("nonsense\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: a/b@c\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x y\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost : x\r\n\r\n", &[400]),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            &[400],
        ),
    ] {
        let mut http = Http::to(gateway.address());
        // It may be refused before it was sent whole.
        let _ = http.0.get_mut().write_all(what.as_bytes());
        let words = &what[..what.len().min(80)];
        match http.head() {
            Some(answer) => assert!(
                statuses.contains(&answer.status),
                "{words:?}: {}",
                answer.status
            ),
            // Refused before it was sent whole, the connection may be reset with what was said.
            None => assert!(
                what.len() > 10_000 || statuses == [400],
                "{words:?}: no answer"
            ),
        }
    }
    // What is good by the same rules.
    for what in [
        "GET /map/1 HTTP/1.0\r\n\r\n",
        "GET http://x/map/1 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    ] {
        let mut http = Http::to(gateway.address());
        http.send(what);
        assert_eq!(http.answer(false).unwrap().status, 200, "{what}");
    }
    // Bytes of a generator, whatever they are.
    for seed in 0..200_u64 {
        let mut http = Http::to(gateway.address());
        let bytes: Vec<u8> = (0..300_u64)
            .map(|at| ((seed * 7919 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        let _ = http.0.get_mut().write_all(&bytes);
    }
    assert_eq!(Http::to(gateway.address()).get("/map/1").status, 200);
}

#[test]
fn clients_that_do_not_read_hold_a_bounded_amount_together_and_are_closed() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 24 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let room = 8 << 20;
    // Blocks may wait for longer than usual: it is not the speed of this machine that is looked at.
    let patience = Patience {
        block: Duration::from_secs(120),
        ..options(&site).patience
    };
    let gateway = gateway::start(gateway::GatewayOptions {
        room,
        patience,
        ..options(&site)
    })
    .unwrap();
    // Each from another block on: clients that stall at the same block hold it together, and that would be little.
    let lazy: Vec<std::net::TcpStream> = (0..60)
        .map(|client| {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            socket.connect(&gateway.address().into()).unwrap();
            let mut stream = std::net::TcpStream::from(socket);
            let from = (client % 20) << 20;
            let asked = format!("GET /large HTTP/1.1\r\nHost: x\r\nRange: bytes={from}-\r\n\r\n");
            stream.write_all(asked.as_bytes()).unwrap();
            stream
        })
        .collect();
    // They take all there is, until somebody waits for it.
    let mut http = Http::to(gateway.address());
    for number in 0..24 {
        assert_eq!(
            http.get(&format!("/large/{number}")).body.len(),
            1 << 20,
            "block {number}"
        );
    }
    assert!(http.get("/").text().contains("\"large\""));
    // On a busy machine lists move for longer before they stall.
    wait_until("somebody is closed who takes nothing", || {
        assert_eq!(http.get("/large/0").body.len(), 1 << 20);
        gateway.closed_for_room() > 0
    });
    let held = gateway.most_held();
    assert!(held <= room && held > room / 2, "{held} bytes held");
    drop(lazy);
}
