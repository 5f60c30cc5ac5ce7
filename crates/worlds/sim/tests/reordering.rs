//! Packets that overtake one another: what is only late is soon waited for (RFC 8985, section 6.2).

mod common;

use common::run;

/// Mbit/s of a transfer over a link of that rate and delay, with a jitter up to so much, with that seed.
fn mbit_s(link: &str, jitter_ms: u32, seed: u32) -> f64 {
    let outcome = run(&format!(
        "seed {seed}; network n {{ host a, b; link a - b {link} jitter uniform(0, {jitter_ms} ms) reordering queue 500 packets; }} \
         1 timelimit 5 from a to b bulk_put 16 KiB over tcp(congestion = cubic) across n;"
    ));
    let record = &outcome.records[0];
    record.data_bytes() as f64 * 8e3 / record.elapsed_ns as f64
}

#[test]
fn packets_that_overtake_one_another_cost_a_tcp_little() {
    // The kernel makes 45.8, 9.2 and 18.4 Mbit/s.
    let links = [
        ("50 Mbit/s 20 ms", 42.0),
        ("10 Mbit/s 20 ms", 8.4),
        ("20 Mbit/s 10 ms", 16.8),
    ];
    for (link, least) in links {
        for seed in 1..=3 {
            let got = mbit_s(link, 20, seed);
            println!("{link}, seed {seed}: {got:.2} Mbit/s");
            assert!(got > least, "{link}, seed {seed}: {got} Mbit/s");
        }
    }
}
