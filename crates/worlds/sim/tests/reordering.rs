//! Packets that overtake one another: what is only late is soon waited for (RFC 8985, section 6.2).

mod common;

use common::run;

#[test]
fn packets_that_overtake_one_another_cost_a_tcp_little() {
    let network = "network n { host a, b; link a - b 50 Mbit/s 20 ms jitter uniform(0, 20 ms) reordering queue 500 packets; } ";
    let part = "1 timelimit 5 from a to b bulk_put 16 KiB over tcp(congestion = cubic) across n;";
    for seed in ["seed 1 ", "seed 2 ", "seed 3 "] {
        let outcome = run(&format!("{seed}{network}{part}"));
        let record = &outcome.records[0];
        let mbit_s = record.data_bytes() as f64 * 8e3 / record.elapsed_ns as f64;
        println!("{seed}: {mbit_s} Mbit/s");
        assert!(mbit_s > 40.0, "{seed}: {mbit_s} Mbit/s");
    }
}
