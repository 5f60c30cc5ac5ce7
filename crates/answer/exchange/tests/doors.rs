//! The same exchanges as their client captured them, as their server did, and both captures together: what is found has the same cause
//! from every door, or is not known from there.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what helpers of a test cannot do fails the test; it prints a table"
)]

#[path = "doors/mutated.rs"]
mod mutated;
#[path = "doors/wire.rs"]
mod wire;

use stackline_analyze::findings::{Finding, find_named_requests};
use stackline_analyze::lifelines::LifelineOutcome;
use stackline_analyze::loaded_run::LoadedRun;
use stackline_core::error::Error;
use stackline_exchange::import::{ImportEnding, ImportRequest, import_logs};
use stackline_runs::{RunDirectory, RunFileAccess};
use stackline_testing::exchange_verdicts::expected_kinds;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use wire::{Flags, MS, SEGMENT, Side, Wire};

/// Where an exchange was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Client,
    Server,
    Both,
}

/// What is to be found of an exchange.
struct Expected {
    name: &'static str,
    wire: Wire,
    /// The kind of the first finding; any of them.
    kinds: &'static [&'static str],
    /// Where it is not known from one side: what may be said there.
    unknown: &'static [(Door, &'static [&'static str])],
    /// All that it takes, ms, where that is known.
    takes_ms: Option<(f64, f64)>,
}

fn expected(name: &'static str, wire: Wire) -> Expected {
    Expected {
        name,
        wire,
        kinds: expected_kinds(name),
        unknown: &[],
        takes_ms: None,
    }
}

const SMALL: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn answer(bytes: usize) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
    answer.extend(vec![b'x'; bytes]);
    answer
}

fn opened(delay_ms: u64) -> Wire {
    let mut wire = Wire::new(delay_ms * MS);
    wire.opens();
    wire
}

fn slow_server() -> Expected {
    let mut wire = opened(20);
    (0..3).for_each(|at| wire.asks(&format!("/slow/{at}"), 150 * MS, SMALL));
    wire.closes(Side::Client);
    Expected {
        takes_ms: Some((440.0, 460.0)),
        ..expected("slow server", wire)
    }
}

fn slow_reader() -> Expected {
    let mut wire = opened(5);
    wire.requests("/w");
    wire.now += MS;
    let all = answer(60_000);
    // What the client has room for, and then nothing for 2 s.
    wire.bursts(Side::Server, &all[..20 * SEGMENT], 100);
    let full = wire.now + wire.delay;
    wire.has_room_at(full, 0);
    wire.has_room_at(full + 2000 * MS, 64_000);
    wire.now = full + 2000 * MS + wire.delay;
    wire.bursts(Side::Server, &all[20 * SEGMENT..], 100);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    Expected {
        takes_ms: Some((1900.0, 2050.0)),
        ..expected("slow client reader", wire)
    }
}

fn distance() -> Expected {
    let mut wire = opened(60);
    (0..6).for_each(|at| wire.asks(&format!("/{at}"), MS, SMALL));
    wire.closes(Side::Client);
    expected("distance", wire)
}

/// Ten segments of which one is lost, and sent again so much later.
fn loss(
    name: &'static str,
    lost: usize,
    again_ms: u64,
    unknown: &'static [(Door, &'static [&'static str])],
) -> Expected {
    let mut wire = opened(20);
    wire.requests("/l");
    wire.now += MS;
    let all = answer(9 * SEGMENT);
    let mut again = None;
    for (at, part) in all.chunks(SEGMENT).enumerate() {
        let flags = Flags {
            is_lost: at == lost,
            ..Flags::default()
        };
        let sequence = wire.says_at(wire.now, Side::Server, part, flags);
        if at == lost {
            again = Some((wire.now, sequence, part));
        }
        wire.now += 100;
    }
    let (at, sequence, part) = again.unwrap();
    wire.again_at(
        at + again_ms * MS,
        Side::Server,
        sequence,
        part,
        Flags::default(),
    );
    wire.now = at + again_ms * MS + wire.delay + MS;
    wire.closes(Side::Client);
    Expected {
        unknown,
        ..expected(name, wire)
    }
}

fn small_window() -> Expected {
    let mut wire = Wire::new(20 * MS);
    wire.room = 6 * SEGMENT / 128 * 128;
    wire.opens();
    wire.requests("/s");
    wire.now += MS;
    let all = answer(150_000);
    // A window each round trip.
    for part in all.chunks(5 * SEGMENT) {
        let begun = wire.now;
        wire.bursts(Side::Server, part, 20);
        wire.now = begun + 2 * wire.delay + 120;
    }
    wire.closes(Side::Client);
    expected("small window", wire)
}

fn nagle() -> Expected {
    let mut wire = opened(2);
    for at in 0..4 {
        wire.requests(&format!("/n/{at}"));
        wire.now += MS;
        // The head alone; its acknowledgement is delayed by 40 ms, and lets the rest go.
        let silent = Flags {
            is_silent: true,
            ..Flags::default()
        };
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n";
        wire.says_at(wire.now, Side::Server, head, silent);
        wire.now += wire.delay + 40 * MS;
        wire.says_at(wire.now, Side::Client, b"", Flags::default());
        wire.now += wire.delay + 50;
        wire.says_at(wire.now, Side::Server, &[b'y'; 30], Flags::default());
        wire.now += wire.delay + MS;
    }
    wire.closes(Side::Client);
    Expected {
        takes_ms: Some((160.0, 185.0)),
        ..expected("Nagle", wire)
    }
}

const RESET: Flags = Flags {
    syn: false,
    fin: false,
    reset: true,
    is_lost: false,
    is_silent: true,
};

fn refused() -> Expected {
    let mut wire = Wire::new(5 * MS);
    let syn = Flags {
        syn: true,
        is_silent: true,
        ..Flags::default()
    };
    wire.says_at(wire.now, Side::Client, b"", syn);
    wire.now += wire.delay + 20;
    wire.says_at(wire.now, Side::Server, b"", RESET);
    expected("refused", wire)
}

fn reset() -> Expected {
    let mut wire = opened(10);
    wire.asks("/a", MS, SMALL);
    wire.requests("/b");
    wire.now += 30 * MS;
    wire.says_at(wire.now, Side::Server, b"", RESET);
    expected("reset", wire)
}

fn cut_off() -> Expected {
    let mut wire = opened(10);
    wire.asks("/a", MS, SMALL);
    wire.requests("/b");
    wire.now += MS;
    let part = &answer(50_000)[..6 * SEGMENT];
    wire.bursts(Side::Server, part, 50);
    wire.now += 20 * MS;
    wire.closes(Side::Server);
    expected("cut off", wire)
}

fn errors() -> Expected {
    let mut wire = opened(10);
    let error = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    (0..3).for_each(|at| wire.asks(&format!("/{at}"), MS, if at == 1 { error } else { SMALL }));
    wire.closes(Side::Client);
    expected("5xx", wire)
}

/// 1 MB at 20 Mbit/s: a segment each 600 us.
fn upload() -> Expected {
    let mut wire = opened(5);
    let mut all = b"POST /up HTTP/1.1\r\nHost: web\r\nContent-Length: 1000000\r\n\r\n".to_vec();
    all.extend(vec![b'z'; 1_000_000]);
    wire.bursts(Side::Client, &all, 600);
    wire.now += wire.delay + MS;
    wire.bursts(Side::Server, SMALL, 10);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    expected("large upload", wire)
}

/// Ten segments at first, then the rest of 30 kB when they are acknowledged: there is room for 64 kB all the time.
fn first_window() -> Expected {
    let mut wire = opened(10);
    let mut all = b"POST /up HTTP/1.1\r\nHost: web\r\nContent-Length: 30000\r\n\r\n".to_vec();
    all.extend(vec![b'z'; 30_000]);
    let begun = wire.now;
    wire.bursts(Side::Client, &all[..10 * SEGMENT], 10);
    wire.now = begun + 2 * wire.delay + 40;
    wire.bursts(Side::Client, &all[10 * SEGMENT..], 10);
    wire.now += wire.delay + MS;
    wire.bursts(Side::Server, SMALL, 10);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    expected("first window", wire)
}

/// A server that has no more than 68 kB under way in each round trip of 60 ms, which leave at 100 Mbit/s, although there is room for more.
fn small_send_buffer() -> Expected {
    let mut wire = Wire::new(30 * MS);
    wire.room = 1 << 22;
    wire.opens();
    wire.requests("/big");
    wire.now += MS;
    let all = answer(1_000_000);
    let (mut rest, mut window) = (all.as_slice(), 10);
    while !rest.is_empty() {
        let begun = wire.now;
        let (part, behind) = rest.split_at(rest.len().min(window * SEGMENT));
        wire.bursts(Side::Server, part, 116);
        wire.now = begun + 2 * wire.delay + 40;
        (rest, window) = (behind, (2 * window).min(47));
    }
    wire.closes(Side::Client);
    expected("small send buffer", wire)
}

fn idle_close() -> Expected {
    let mut wire = opened(10);
    wire.asks("/a", MS, SMALL);
    wire.now += 5000 * MS;
    // Both at once: the server gives the idle connection up, and the client asks.
    let fin = Flags {
        fin: true,
        ..Flags::default()
    };
    wire.says_at(wire.now, Side::Server, b"", fin);
    wire.requests("/b");
    wire.says_at(wire.now, Side::Server, b"", RESET);
    expected("idle close", wire)
}

/// The end of a request is lost and sent again after 250 ms.
fn lost_request() -> Expected {
    let mut wire = opened(20);
    let mut all = b"POST /up HTTP/1.1\r\nHost: web\r\nContent-Length: 4000\r\n\r\n".to_vec();
    all.extend(vec![b'z'; 4000]);
    let (first, last) = all.split_at(2 * SEGMENT);
    wire.bursts(Side::Client, first, 50);
    let lost = Flags {
        is_lost: true,
        ..Flags::default()
    };
    let (at, sequence) = (wire.now, wire.says_at(wire.now, Side::Client, last, lost));
    wire.again_at(
        at + 250 * MS,
        Side::Client,
        sequence,
        last,
        Flags::default(),
    );
    wire.now = at + 250 * MS + wire.delay + MS;
    wire.bursts(Side::Server, SMALL, 10);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    Expected {
        unknown: &[(Door::Server, &["client_pauses"])],
        ..expected("loss of a request's end", wire)
    }
}

fn server_pause() -> Expected {
    let mut wire = opened(20);
    wire.requests("/p");
    wire.now += MS;
    let all = answer(20_000);
    wire.bursts(Side::Server, &all[..5 * SEGMENT], 50);
    wire.now += 400 * MS;
    wire.bursts(Side::Server, &all[5 * SEGMENT..], 50);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    Expected {
        unknown: &[(Door::Client, &["server_takes"])],
        ..expected("pause within an answer", wire)
    }
}

fn connection_each() -> Expected {
    let mut wire = Wire::new(20 * MS);
    for at in 0..5 {
        wire.opens();
        wire.asks(&format!("/{at}"), MS, SMALL);
        wire.closes(Side::Client);
    }
    // How long the set-up takes its client is not seen at the server: nothing is alleged there.
    Expected {
        unknown: &[(Door::Server, &["healthy"])],
        ..expected("connection for each", wire)
    }
}

fn far_once() -> Expected {
    let mut wire = opened(60);
    wire.asks("/once", MS, SMALL);
    wire.closes(Side::Client);
    expected("far and once", wire)
}

/// A client that sends the rest of its request a second behind its beginning.
fn late_upload(name: &'static str, first: &[u8], rest: &[u8]) -> Expected {
    let mut wire = opened(10);
    wire.bursts(Side::Client, first, 50);
    wire.now += 1000 * MS;
    wire.bursts(Side::Client, rest, 50);
    wire.now += wire.delay + MS;
    wire.bursts(Side::Server, SMALL, 10);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    Expected {
        unknown: &[(Door::Server, &["client_pauses"])],
        takes_ms: Some((950.0, 1010.0)),
        ..expected(name, wire)
    }
}

fn client_pause() -> Expected {
    let mut all = b"POST /up HTTP/1.1\r\nHost: web\r\nContent-Length: 8000\r\n\r\n".to_vec();
    all.extend(vec![b'z'; 8000]);
    let (first, rest) = all.split_at(3 * SEGMENT);
    late_upload("pause within an upload", first, rest)
}

const ASKS: &[u8] =
    b"PUT /up HTTP/1.1\r\nHost: web\r\nExpect: 100-continue\r\nContent-Length: 4000\r\n\r\n";

/// A client that asks whether it may send, and a server that says so late.
fn late_permission() -> Expected {
    let mut wire = opened(10);
    wire.bursts(Side::Client, ASKS, 50);
    wire.now += wire.delay + 800 * MS;
    wire.bursts(Side::Server, b"HTTP/1.1 100 Continue\r\n\r\n", 10);
    wire.now += wire.delay + 50;
    wire.bursts(Side::Client, &[b'z'; 4000], 50);
    wire.now += wire.delay + MS;
    wire.bursts(Side::Server, SMALL, 10);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    // The wait begins when the head has left, or a round trip later, when that is acknowledged.
    Expected {
        takes_ms: Some((760.0, 815.0)),
        ..expected("late 100 Continue", wire)
    }
}

/// A client that asks whether it may send, has no answer, and sends after a second.
fn no_permission() -> Expected {
    late_upload("no 100 Continue", ASKS, &[b'z'; 4000])
}

/// A keep-alive connection on which one of many requests waits for a server that collects garbage.
fn one_of_many() -> Expected {
    let mut wire = opened(2);
    for at in 0..20 {
        let takes = if at == 9 { 800 * MS } else { 2 * MS };
        wire.asks(&format!("/g/{at}"), takes, SMALL);
        wire.now += 10 * MS;
    }
    wire.closes(Side::Client);
    Expected {
        takes_ms: Some((800.0, 845.0)),
        ..expected("one of many", wire)
    }
}

/// The client shuts its direction down behind its request; the answer comes all the same.
fn half_closed() -> Expected {
    let mut wire = opened(10);
    wire.requests("/h");
    let fin = Flags {
        fin: true,
        ..Flags::default()
    };
    let begun = wire.now;
    wire.says_at(begun - wire.delay + 20, Side::Client, b"", fin);
    wire.now = begun + 150 * MS;
    wire.bursts(Side::Server, &answer(3000), 20);
    wire.says_at(wire.now, Side::Server, b"", fin);
    Expected {
        takes_ms: Some((140.0, 155.0)),
        ..expected("half-closed", wire)
    }
}

fn exchanges() -> Vec<Expected> {
    vec![
        slow_server(),
        slow_reader(),
        distance(),
        loss("loss early", 2, 45, &[]),
        // Its client sees nothing for a while, and nothing behind what is missing.
        loss("loss late", 9, 240, &[(Door::Client, &["server_takes"])]),
        small_window(),
        nagle(),
        refused(),
        reset(),
        cut_off(),
        errors(),
        upload(),
        first_window(),
        small_send_buffer(),
        idle_close(),
        lost_request(),
        server_pause(),
        connection_each(),
        far_once(),
        client_pause(),
        late_permission(),
        no_permission(),
        one_of_many(),
        half_closed(),
    ]
}

/// A run of captures.
fn import(captures: &[(&str, &[u8])], hosts: &[&str]) -> LoadedRun {
    try_import(captures, hosts).unwrap()
}

/// The run of captures; an error if they are refused.
fn try_import(captures: &[(&str, &[u8])], hosts: &[&str]) -> Result<LoadedRun, Error> {
    let place = tempfile::tempdir().unwrap();
    let mut request = ImportRequest {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..ImportRequest::default()
    };
    for (name, bytes) in captures {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        request.logs.push(path);
    }
    let (root, started) = (place.path().join("runs"), SystemTime::now());
    let run = RunDirectory::create(&root, "doors", started, RunFileAccess::default()).unwrap();
    let ending = ImportEnding::by(&Arc::new(AtomicBool::new(false)));
    import_logs(run.path(), &request, started, &ending)?;
    let path = run.path().to_owned();
    run.finish(&[], true, None).unwrap();
    Ok(LoadedRun::whatever(&path, usize::MAX).unwrap())
}

/// What is found in captures, and who takes most by the table of requests.
fn look(captures: &[(&str, &[u8])], hosts: &[&str]) -> (Vec<Finding>, String) {
    let loaded = import(captures, hosts);
    let named = find_named_requests(&loaded.input());
    let taker = named.first().map(|named| named.most_of_it.clone());
    (loaded.findings(), taker.unwrap_or_default())
}

#[test]
fn every_door_shows_the_same_cause_or_says_that_it_is_not_known() {
    let mut wrong = Vec::new();
    for one in exchanges() {
        let [client, server] = one.wire.captures();
        for door in [Door::Client, Door::Server, Door::Both] {
            let captures: &[(&str, &[u8])] = match door {
                Door::Client => &[("client.pcap", &client)],
                Door::Server => &[("server.pcap", &server)],
                Door::Both => &[("client.pcap", &client), ("server.pcap", &server)],
            };
            let (found, taker) = look(captures, &[]);
            let kind = found.first().map_or("nothing", |first| first.kind);
            let said = found.first().map_or("", |first| first.sentence.as_str());
            let mut unknown = one.unknown.iter().filter(|(at, _)| *at == door);
            // What is not known is not said with certainty.
            let is_unsure = found.first().is_some_and(|first| first.confidence < 0.8);
            let is_right = one.kinds.contains(&kind)
                || is_unsure && unknown.any(|(_, kinds)| kinds.contains(&kind));
            let takes = found.first().and_then(|first| first.takes.clone());
            let is_amount_right = match (one.takes_ms, takes) {
                (Some((least, most)), Some(takes)) if one.kinds.contains(&kind) => {
                    (least..=most).contains(&(takes.total_s * 1e3))
                }
                _ => true,
            };
            let verdict = if is_right && is_amount_right {
                ""
            } else {
                "WRONG "
            };
            println!("{verdict}{} {door:?}: {kind}: {said} [{taker}]", one.name);
            if !(is_right && is_amount_right) {
                wrong.push(format!("{} {door:?}: {kind}: {said}", one.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A path that carries a segment in 8 ms, a round trip of 60 ms away.
#[test]
fn a_slow_path_is_no_pausing_server_where_its_client_alone_is_seen() {
    let mut wire = opened(30);
    wire.requests("/big");
    wire.now += MS;
    wire.bursts(Side::Server, &answer(300_000), 8_000);
    wire.now += wire.delay;
    wire.closes(Side::Client);
    let [client, _] = wire.captures();
    let (found, _) = look(&[("client.pcap", &client)], &[]);
    assert_eq!(found[0].kind, "request_rate", "{:?}", found[0]);
}

/// A connection that is upgraded to WebSocket, and messages both ways.
fn messages() -> Wire {
    let mut wire = opened(5);
    let upgrade = b"GET /echo HTTP/1.1\r\nHost: web\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    wire.bursts(Side::Client, upgrade, 0);
    wire.now += wire.delay + MS;
    wire.bursts(
        Side::Server,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        0,
    );
    for _ in 0..20 {
        wire.now += wire.delay + 50 * MS;
        wire.bursts(Side::Client, b"\x81\x83\0\0\0\0one", 0);
        wire.now += wire.delay + 300;
        wire.bursts(Side::Server, b"\x81\x03one", 0);
    }
    wire.now += wire.delay;
    wire.closes(Side::Client);
    wire
}

#[test]
fn messages_that_nobody_answers_have_arrived_where_two_captures_show_it() {
    let [client, server] = messages().captures();
    let captures: &[(&str, &[u8])] = &[("client.pcap", &client), ("server.pcap", &server)];
    let loaded = import(captures, &[]);
    let lines = loaded.input().lifelines;
    assert!(lines.lines.len() >= 41, "{}", lines.lines.len());
    for line in &lines.lines {
        let passages = lines.passages_of(line);
        assert!(
            passages.is_sorted_by_key(|passage| passage.at_ns),
            "{passages:?}"
        );
        assert_eq!(line.outcome, LifelineOutcome::Complete, "{line:?}");
    }
    let doubts: Vec<&String> = (loaded.index.hosts.values())
        .flat_map(|host| &host.notes)
        .filter(|note| note.contains("answered before"))
        .collect();
    assert!(doubts.is_empty(), "{doubts:?}");
}

#[test]
fn a_host_is_called_as_its_addresses_are() {
    let [client, server] = slow_server().wire.captures();
    let taker = |captures: &[(&str, &[u8])], hosts: &[&str]| look(captures, hosts).1;
    let of_client: &[(&str, &[u8])] = &[("client.pcap", &client)];
    assert_eq!(taker(of_client, &[]), "10.9.0.2");
    for hosts in ["web=10.9.0.2", "web=10.9.0.7,10.9.0.2,fd00::2"] {
        assert_eq!(taker(of_client, &[hosts]), "web");
        assert_eq!(taker(&[("server.pcap", &server)], &[hosts]), "web");
        let both: &[(&str, &[u8])] = &[("client.pcap", &client), ("server.pcap", &server)];
        assert_eq!(taker(both, &[hosts]), "web");
    }
    assert_eq!(taker(of_client, &["web=10.9.0.3"]), "10.9.0.2");
}
