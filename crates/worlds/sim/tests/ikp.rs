//! V's message passing in virtual time: what it carries, its options, what it reports.

mod common;
use common::{WAN, close, every_application_type, on_the_link, refused, response, run, runs};

const ALL: [&str; 6] = [
    "ikp",
    "ikp(duplicates = allowed)",
    "ikp(full, size = 8 KiB)",
    "ikp(full_nak, packet = 500)",
    "ikp(selective, flight = 4, size = 4 KiB)",
    "ikp(interval = 0.2, duplicates = allowed)",
];
const LOSSY: &str = "network wan { host a, b; link a - b 10 Mbit/s 2 ms loss 2% jitter uniform(0, 2 ms) reordering duplicate 5%; }\n";
/// Headers on the wire: IPv4, UDP and the protocol's own. And what a message says.
const HEADERS: f64 = 60.0;
const MESSAGE: f64 = 9.0;

#[test]
fn every_application_type_runs_over_it_whatever_the_link_does() {
    every_application_type(&[WAN, LOSSY], &ALL);
}

#[test]
fn a_small_call_is_two_delays_and_two_packets() {
    let outcome = run(&format!(
        "{WAN}1 from a to b rr 32, 1000*50 over ikp across wan;"
    ));
    let packets = on_the_link(HEADERS + MESSAGE + 32.0) + on_the_link(HEADERS + 1000.0);
    close(response(&outcome.records[0]), 0.020 + packets, 1e-6);
}

#[test]
fn a_data_unit_of_a_packet_travels_with_the_reply() {
    let outcome = run(&format!(
        "{WAN}1 from a to b bulk_get 1024*100 over ikp across wan;"
    ));
    let each = on_the_link(HEADERS + MESSAGE) + on_the_link(HEADERS + 1024.0) + 0.020;
    close(
        outcome.records[0].elapsed_ns as f64 / 1e9,
        100.0 * each,
        1e-9,
    );
}

#[test]
fn a_page_is_moved_by_a_blast_and_replied_to() {
    let outcome = run(&format!(
        "{WAN}1 from a to b bulk_get 65536*10 over ikp across wan;"
    ));
    let send = on_the_link(HEADERS + MESSAGE);
    let blast = 64.0 * on_the_link(HEADERS + 1024.0);
    let each = send + blast + 2.0 * on_the_link(HEADERS) + 0.040;
    close(
        outcome.records[0].elapsed_ns as f64 / 1e9,
        10.0 * each,
        1e-9,
    );
}

#[test]
fn who_is_moving_its_data_asks_for_no_reply() {
    for what in ["bulk_put", "bulk_get"] {
        let outcome = run(&format!(
            "{WAN}1 from a to b {what} 200000*10 over ikp across wan;"
        ));
        let transport = outcome.records[0]
            .initiator
            .transport
            .map(|(_, after)| after.retransmits);
        assert_eq!(transport, Some(0), "{what}");
    }
}

#[test]
fn connecting_and_disconnecting_are_a_message_each() {
    let near = "network wan { host a, b; link a - b 10 Mbit/s 5 ms; }\n";
    let outcome = run(&format!(
        "{near}1 from a to b connect_disconnect 0*50 over ikp across wan;"
    ));
    let bytes = 4.0 * HEADERS + 2.0 * MESSAGE + 16.0;
    close(
        outcome.records[0].connects.sum as f64 / 50e9,
        0.020 + on_the_link(bytes),
        1e-6,
    );
}

#[test]
fn a_time_limit_ends_it_cleanly() {
    for what in [
        "bulk_get 1000*1000000",
        "bulk_put 1000*1000000",
        "rr 32*1000000",
        "stream 500*1000000 constant(1 ms)",
    ] {
        for stack in ALL {
            let text = format!("{LOSSY}1 timelimit 2 from a to b {what} over {stack} across wan;");
            let record = run(&text).records.remove(0);
            assert!(
                record.limited && record.elapsed_ns < 5_000_000_000,
                "{what} over {stack}: {record:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    for (stack, cause) in [
        (
            "ikp(full, partial)",
            "ikp takes either full or partial, not both",
        ),
        (
            "ikp(packet = 9000)",
            "`ikp` sends packets of 9092 bytes, too large for the path from a to b (MTU 1500)",
        ),
    ] {
        let failure = refused(&format!(
            "{WAN}1 from a to b bulk_put 1000*10 over {stack} across wan;"
        ));
        assert!(failure.message.contains(cause), "{failure}");
        assert!(failure.hint.is_some());
    }
    let dead = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms; link b -> a 10 Mbit/s 1 ms loss every 1; }\n";
    let failure = refused(&format!(
        "{dead}1 from a to b rr 32*10 over ikp(patience = 2 s) across wan;"
    ));
    assert!(
        failure
            .message
            .ends_with("the peer has been silent for 2.00 s"),
        "{failure}"
    );
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2% jitter exponential(1 ms); }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b bulk_get exponential(5000)*100 over ikp across wan;"
        )
    };
    let digests = |seed| {
        runs(&text(seed))
            .expect("it ends")
            .iter()
            .map(|o| o.digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1)[0], digests(1)[1]);
    assert_ne!(digests(1), digests(2));
}
