//! Pairs that share a connection: over QUIC their streams are independent in losses, over HTTP/2 a lost segment holds up all of them.

mod common;
use common::{WAN, refused, run, runs};
use stackline_sim::SimRunOutcome;

const LOSSY: &str = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2%; }\n";

/// A run of that many pairs of calls.
fn calls(network: &str, stack: &str, pairs: u32, times: u32) -> SimRunOutcome {
    let outcome = run(&format!(
        "{network}1 total over {stack} across wan: {pairs} from a to b rr 32*{times};"
    ));
    let n = u64::from(pairs * times);
    assert_eq!(outcome.records[0].calls.n(), n, "{stack}");
    outcome
}

#[test]
fn pairs_that_share_a_connection_shake_hands_once() {
    // A handshake takes the initiator more than 2,400 bytes: its first packet, and the one that acknowledges the responder's, are padded.
    let bytes = |stack: &str, pairs| calls(WAN, stack, pairs, 1).ports[0].bytes;
    let one = bytes("quic", 1);
    assert!(bytes("quic(streams = 8)", 8) < 3 * one);
    assert!(bytes("quic", 8) > 7 * one);
    // Three connections for ten pairs.
    let three = bytes("quic(streams = 4)", 10);
    assert!((3 * one..5 * one).contains(&three), "{three} of {one}");
}

#[test]
fn one_stream_is_what_no_option_is() {
    for stack in ["quic", "quic(crypto = null)"] {
        let with = |streams: &str| {
            let options = match stack {
                "quic" => format!("quic({streams})"),
                _ => format!("quic(crypto = null, {streams})"),
            };
            calls(LOSSY, &options, 3, 20).digest
        };
        assert_eq!(calls(LOSSY, stack, 3, 20).digest, with("streams = 1"));
        assert_ne!(with("streams = 1"), with("streams = 3"));
    }
}

#[test]
fn a_lost_packet_holds_up_one_stream_of_quic_and_all_of_http2() {
    // Calls of 8 pairs at moments of their own: a call that lost nothing takes a round trip unless it waits for another's lost packet.
    let waited = |stack: &str| {
        let outcome = run(&format!(
            "{LOSSY}1 total over {stack} across wan: 8 from a to b rr 32*200 exponential(20 ms);"
        ));
        let calls = &outcome.records[0].calls;
        assert_eq!(calls.n(), 1600, "{stack}");
        let lost: u64 = outcome.ports.iter().map(|port| port.dropped()).sum();
        // What calls took beyond a round trip and their bytes.
        let usual_ns = 21_000_000 * calls.n();
        (lost, calls.sum.saturating_sub(usual_ns) as f64 / 1e9)
    };
    let (lost_quic, quic) = waited("quic(streams = 8)");
    let (lost_http2, http2) = waited("http2(streams = 8)");
    assert!(lost_quic > 20 && lost_http2 > 20);
    // A lost packet delays its own call over both, and over HTTP/2 those that come before it is sent again.
    assert!(
        1.5 * quic < http2,
        "waited {quic} s with {lost_quic} lost packets over QUIC, {http2} s with {lost_http2} over HTTP/2"
    );
}

#[test]
fn what_a_shared_connection_lost_is_counted_once() {
    for stack in ["quic(streams = 8)", "http2(streams = 8)"] {
        let outcome = calls(LOSSY, stack, 8, 200);
        let lost: u64 = outcome.ports.iter().map(|port| port.dropped()).sum();
        let record = &outcome.records[0];
        let sides = [&record.initiator, &record.responder];
        let again = sides.map(|side| {
            let (start, stop) = side.transport.unwrap();
            stop.retransmits - start.retransmits
        });
        // A lost acknowledgement is not retransmitted, and what was only late may be.
        let again: u64 = again.iter().sum();
        assert!(
            (lost / 4..2 * lost).contains(&again),
            "{stack}: {again} of {lost}"
        );
    }
}

#[test]
fn every_application_type_runs_on_shared_connections() {
    for network in [WAN, LOSSY] {
        for what in [
            "bulk_put 5000*20",
            "bulk_get 5000*20",
            "stream 500*40 uniform(0, 5 ms)",
            "rr 32, 3000*40",
            "connect_disconnect 0*20",
        ] {
            let outcome = run(&format!(
                "{network}1 total over quic(streams = 3) across wan: 7 from a to b {what};"
            ));
            let record = &outcome.records[0];
            assert!(!record.limited, "{what}");
            let bytes = match what.split(' ').next() {
                Some("bulk_put" | "bulk_get") => 7 * 100_000,
                Some("stream") => 7 * 20_000,
                _ => continue,
            };
            assert_eq!(record.data_bytes(), bytes, "{what}");
        }
    }
}

#[test]
fn a_time_limit_ends_all_pairs() {
    for what in [
        "rr 32*100000",
        "bulk_put 10000*100000",
        "bulk_get 10000*100000",
        "connect_disconnect 0*100000",
    ] {
        let outcome = run(&format!(
            "{WAN}1 timelimit 1 total over quic(streams = 3) across wan: 4 from a to b {what};"
        ));
        assert!(outcome.records[0].limited, "{what}");
    }
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        format!(
            "seed {seed};\n{LOSSY}2 total over quic(streams = 4) across wan: 6 from a to b rr exponential(5000)*50;"
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
fn more_streams_than_the_option_takes_are_refused() {
    let error = refused(&format!(
        "{WAN}1 from a to b rr 32*10 over quic(streams = 0) across wan;"
    ));
    assert!(error.message.contains("at least 1"), "{error}");
}
