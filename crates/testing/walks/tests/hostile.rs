//! Packets that no honest peer sends, mixed into what two honest ones do.
//!
//! `STACKLINE_SCHEDULES=1000000 cargo test --release -p stackline-walks hostile` walks more of it.

use proptest::prelude::*;
use rand_core::Rng;
use stackline_core::random::Seed;
use stackline_walks::blast::packets;

/// Random bytes, of which the first one is as given in the bits of `fixed`.
fn walks(name: &str, fixed: u8, value: u8) {
    let cases = std::env::var("STACKLINE_SCHEDULES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(150);
    for number in 0..cases {
        let mut draw = Seed::root(11).child(name).index(number).generator();
        let length = 20 + draw.next_u64() % 400;
        let mut bytes: Vec<u8> = (0..length).map(|_| draw.next_u64() as u8).collect();
        bytes[0] = bytes[0] & !fixed | value;
        if std::panic::catch_unwind(|| packets(&bytes)).is_err() {
            panic!("{name} {number}: {bytes:?}");
        }
    }
}

#[test]
fn hostile_strangers_change_nothing() {
    walks("strangers", 64, 64);
}

#[test]
fn hostile_peers_break_nothing() {
    walks("peers", 64, 0);
}

#[test]
fn hostile_packets_in_an_open_connection_break_nothing() {
    walks("open", 64 | 128, 128);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn hostile_exchanges_keep_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        stackline_walks::ikp::packets(&bytes);
    }

    #[test]
    fn hostile_streams_of_quic_keep_the_invariants(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..16_u8], 0..300)) {
        stackline_walks::quic::fuzz_quic(&bytes);
    }

    #[test]
    fn hostile_peers_of_file_transfer_keep_the_invariants(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..4_u8], 0..300)) {
        let _ = stackline_walks::ftam::fuzz_ftam(&bytes);
    }

    #[test]
    fn hostile_lines_of_ftp_keep_the_invariants(
        lines in prop::collection::vec((0..9_usize, "[ -~]{0,20}|[0-9,|():.]{0,20}"), 0..10),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        const BEGUN: [&str; 9] = ["", "EPRT |1|", "EPRT |2|", "PORT 1,2,3,4,", "227 1,2,", "229 (|||", "220-", "USER ", "STOR"];
        let lines = lines.iter().map(|(begun, rest)| format!("{}{rest}\r\n", BEGUN[*begun]));
        let all: Vec<u8> = lines.flat_map(String::into_bytes).chain(bytes).collect();
        let _ = stackline_walks::ftp::fuzz_ftp(&all);
    }
}
