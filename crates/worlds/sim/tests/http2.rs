//! HTTP/2 over TCP in virtual time: frames, windows, and pairs that share a connection.

mod common;
use common::{WAN, close, every_application_type, refused, run, runs, throughput};
use stackline_net::DropReason;
use stackline_sim::SimRunOutcome;

/// 10 Mbit/s and 10 ms one way: a byte takes 800 ns.
const BYTE_NS: u64 = 800;
const DELAY_NS: u64 = 10_000_000;
/// IPv4 and TCP with timestamps.
const HEADERS: u64 = 20 + 20 + 12;
/// The head of a frame.
const FRAME: u64 = 9;

const fn packet_ns(bytes: u64) -> u64 {
    (HEADERS + bytes) * BYTE_NS + DELAY_NS
}

#[test]
fn a_call_costs_its_bytes_and_four_frames() {
    for (stack, record) in [("http2", 0), ("http2(tls)", 22)] {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32, 1000*20 over {stack} across wan;"
        ));
        // Method, scheme, authority, path and length; status, date and length (RFC 7541).
        let request = 2 * FRAME + 1 + 1 + 1 + 6 + 5 + 32;
        let answer = 2 * FRAME + 1 + 1 + 6 + 1000;
        // The head of a request is written before its body, as hyper's client does.
        let second = (HEADERS + record) * BYTE_NS;
        let usual = packet_ns(request + record) + second + packet_ns(answer + record);
        // The authority comes once.
        let times = &outcome.records[0].calls;
        assert_eq!(times.n(), 20, "{stack}");
        let authority = 8 * BYTE_NS;
        // Each second of virtual time has its date.
        let dates = times.sum - 20 * usual - authority;
        assert!(dates.is_multiple_of(BYTE_NS), "{stack}: {dates}");
        assert!(
            (20..=2 * 26).contains(&(dates / BYTE_NS)),
            "{stack}: {dates}"
        );
    }
}

#[test]
fn the_window_of_a_stream_bounds_its_throughput() {
    let far = "network far { host a, b; link a - b 1 Gbit/s 50 ms; }\n";
    let outcome = run(&format!(
        "{far}1 from a to b bulk_put 16 KiB*200 over http2(window = 65536 B, receive_buffer = 4 MiB, send_buffer = 4 MiB) across far;"
    ));
    // New room is offered when a third was taken, so that a window goes round in each round trip of 100 ms.
    close(throughput(&outcome.records[0]), 65_536.0 * 8.0 / 0.1, 0.05);
    let (start, stop) = outcome.records[0].initiator.transport.unwrap();
    let waited = stop.receive_window_limited_s.unwrap() - start.receive_window_limited_s.unwrap();
    let elapsed = outcome.records[0].elapsed_ns as f64 / 1e9;
    assert!(waited > 0.8 * elapsed, "{waited} of {elapsed}");
}

#[test]
fn streams_share_the_window_of_their_connection() {
    let far = "network far { host a, b; link a - b 1 Gbit/s 50 ms; }\n";
    let total = |options: &str| {
        let outcome = run(&format!(
            "{far}1 total over http2(streams = 4, {options}) across far: 4 from a to b bulk_put 16 KiB*100;"
        ));
        throughput(&outcome.records[0])
    };
    let window = 65_536.0 * 8.0 / 0.1;
    close(
        total("window = 1 MiB, connection_window = 65536 B"),
        window,
        0.1,
    );
    close(
        total("window = 65536 B, connection_window = 1 MiB"),
        4.0 * window,
        0.2,
    );
}

#[test]
fn every_application_type_runs_with_and_without_losses() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
    every_application_type(
        &[WAN, lossy],
        &[
            "http2",
            "http2(tls)",
            "http2(window = 1000 B, connection_window = 65535 B)",
        ],
    );
}

/// A run of 8 pairs of calls.
fn calls(network: &str, stack: &str, pairs: u32, times: u32) -> SimRunOutcome {
    let outcome = run(&format!(
        "{network}1 total over {stack} across wan: {pairs} from a to b rr 3000*{times};"
    ));
    assert_eq!(
        outcome.records[0].calls.n(),
        u64::from(pairs * times),
        "{stack}"
    );
    outcome
}

#[test]
fn consecutive_pairs_share_a_connection() {
    // Handshakes of TCP and SETTINGS once, and calls that leave at the same moment share segments.
    let packets = |stack: &str, pairs| calls(WAN, stack, pairs, 10).ports[0].packets;
    let (alone, shared) = (packets("http2", 8), packets("http2(streams = 8)", 8));
    assert!(shared < alone, "{shared} and {alone}");
    for pairs in [1, 3, 8, 10] {
        calls(WAN, "http2(streams = 4)", pairs, 10);
        calls(WAN, "http2(streams = 4, tls)", pairs, 10);
    }
}

#[test]
fn one_stream_is_what_no_option_is() {
    let digest = |stack: &str| calls(WAN, stack, 3, 10).digest;
    assert_eq!(digest("http2"), digest("http2(streams = 1)"));
    assert_ne!(digest("http2"), digest("http2(streams = 3)"));
}

#[test]
fn pairs_that_share_a_connection_may_leave_and_come_back() {
    for what in [
        "connect_disconnect 0*20",
        "bulk_put 5000*20",
        "bulk_get 5000*20",
        "stream 500*40 uniform(0, 5 ms)",
    ] {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
        for network in [WAN, lossy] {
            let outcome = run(&format!(
                "{network}1 total over http2(streams = 3) across wan: 7 from a to b {what};"
            ));
            assert!(!outcome.records[0].limited, "{what}");
        }
    }
    for what in [
        "rr 32*100000",
        "bulk_put 10000*100000",
        "connect_disconnect 0*100000",
    ] {
        let outcome = run(&format!(
            "{WAN}1 timelimit 1 total over http2(streams = 3) across wan: 4 from a to b {what};"
        ));
        assert!(outcome.records[0].limited, "{what}");
    }
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2%; }";
        format!(
            "seed {seed};\n{lossy}\n2 total over http2(streams = 4, tls, resume) across wan: 6 from a to b rr exponential(5000)*50;"
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
fn more_streams_than_the_protocols_ends_offer_are_refused() {
    let error = refused(&format!(
        "{WAN}1 from a to b rr 32*10 over http2(streams = 129) across wan;"
    ));
    assert!(error.message.contains("128"), "{error}");
}

#[test]
fn data_and_selective_acknowledgements_fit_the_path_together() {
    // Several calls are under way on one connection, so that data segments of one end acknowledge what the other one misses.
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 3%; }\n";
    let outcome = calls(lossy, "http2(streams = 4)", 4, 200);
    let lost = DropReason::Lost as usize;
    for port in &outcome.ports {
        assert!(port.drops[lost] > 0, "{port:?}");
        assert_eq!(port.dropped(), port.drops[lost], "{port:?}");
    }
}
