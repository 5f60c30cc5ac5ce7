//! HTTP/1.1 over TCP in virtual time, alone and over TLS.

mod common;
use common::{WAN, every_application_type, refused, run, runs};

/// 10 Mbit/s and 10 ms one way: a byte takes 800 ns.
const BYTE_NS: u64 = 800;
const DELAY_NS: u64 = 10_000_000;
/// IPv4 and TCP with timestamps.
const HEADERS: u64 = 20 + 20 + 12;

const fn packet_ns(bytes: u64) -> u64 {
    (HEADERS + bytes) * BYTE_NS + DELAY_NS
}

fn request(bytes: u64) -> u64 {
    format!("POST /call HTTP/1.1\r\nhost: stackline\r\ncontent-length: {bytes}\r\n\r\n").len()
        as u64
        + bytes
}

fn answer(bytes: u64) -> u64 {
    let date = "Mon, 30 Nov 2026 10:59:16 GMT";
    format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\ndate: {date}\r\n\r\n").len() as u64
        + bytes
}

#[test]
fn a_call_costs_its_bytes_and_two_heads() {
    for (stack, record) in [
        ("http1", 0),
        ("http1(tls)", 22),
        ("http1(tls, version = tls12)", 29),
    ] {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32, 1000*100 over {stack} across wan;"
        ));
        let expected = packet_ns(request(32) + record) + packet_ns(answer(1000) + record);
        assert_eq!(outcome.records[0].calls.sum, 100 * expected, "{stack}");
    }
}

#[test]
fn connecting_takes_what_tcp_takes_and_with_tls_what_tls_takes() {
    let connect = |stack: &str| {
        let outcome = run(&format!(
            "{WAN}1 from a to b connect_disconnect 0*20 over {stack} across wan;"
        ));
        outcome.records[0].connects.sum as f64 / 20e9
    };
    assert!((connect("http1") - connect("tcp")).abs() < 1e-6);
    // The protocol's name within TLS takes 15 bytes in each hello.
    assert!((connect("http1(tls)") - connect("tls")).abs() < 40e-6);
}

#[test]
fn a_bulk_transfer_is_one_exchange_in_chunks() {
    let bytes = |what: &str, stack: &str| {
        let outcome = run(&format!(
            "{WAN}1 from a to b {what} 1000*100 over {stack} across wan;"
        ));
        let record = &outcome.records[0];
        assert_eq!(record.data_bytes(), 100_000);
        let (sender, receiver) = match what {
            "bulk_put" => (&record.initiator, &record.responder),
            _ => (&record.responder, &record.initiator),
        };
        assert_eq!(receiver.received_bytes, 100_000);
        let (start, stop) = sender.transport.expect("a report of TCP");
        stop.bytes_acked.unwrap() - start.bytes_acked.unwrap()
    };
    let head = "POST /put HTTP/1.1\r\nhost: stackline\r\ntransfer-encoding: chunked\r\n\r\n".len();
    let chunks = 100 * ("3e8\r\n".len() + 1000 + 2) + "0\r\n\r\n".len();
    assert_eq!(bytes("bulk_put", "http1"), (head + chunks) as u64);
}

#[test]
fn every_application_type_runs_with_and_without_losses() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
    every_application_type(
        &[WAN, lossy],
        &["http1", "http1(tls)", "http1(tls, resume)"],
    );
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2%; }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b rr exponential(5000)*50 over http1 across wan;"
        )
    };
    let digests = |seed| {
        let outcomes = runs(&text(seed)).unwrap();
        outcomes
            .iter()
            .map(|outcome| outcome.digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1), digests(2));
}

#[test]
fn a_time_limit_ends_every_type() {
    for what in [
        "bulk_put 10000*100000",
        "bulk_get 10000*100000",
        "rr 32*100000",
        "stream 500*100000 constant(1 ms)",
        "connect_disconnect 0*100000",
    ] {
        let record = run(&format!(
            "{WAN}1 timelimit 1 from a to b {what} over http1 across wan;"
        ))
        .records
        .remove(0);
        assert!(record.limited, "{what}");
    }
}

#[test]
fn what_needs_tls_is_refused_without_it() {
    let error = refused(&format!(
        "{WAN}1 from a to b rr 32*10 over http1(version = tls12) across wan;"
    ));
    assert!(error.message.contains("tls"), "{error}");
}
