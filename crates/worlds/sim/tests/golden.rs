//! Results in virtual time, against what a sheet of paper says, and pinned to the last digit.

mod common;
use common::{WAN, close, on_the_link, response, run, throughput};
use std::fmt::Write as _;

#[test]
fn a_response_takes_two_delays_and_two_packets() {
    for (stack, headers) in [("tcp", 52.0), ("udp", 28.0)] {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32, 1000*200 over {stack} across wan;"
        ));
        let expected = 0.020 + on_the_link(32.0 + headers) + on_the_link(1000.0 + headers);
        close(response(&outcome.records[0]), expected, 1e-6);
        assert_eq!(outcome.records[0].calls.n(), 200);
    }
}

#[test]
fn a_connection_takes_a_round_trip() {
    let outcome = run(&format!(
        "{WAN}1 from a to b connect_disconnect 0*50 over tcp across wan;"
    ));
    let record = &outcome.records[0];
    // SYN and SYN-ACK have 20 bytes of options; the FIN that follows nobody waits for.
    close(
        record.connects.sum as f64 / 50e9,
        0.020 + 2.0 * on_the_link(60.0),
        0.002,
    );
    assert_eq!(record.connects.n(), 50);
}

#[test]
fn bulk_data_fills_the_link() {
    for what in ["bulk_get", "bulk_put"] {
        let tcp = run(&format!(
            "{WAN}1 from a to b {what} 10000*1000 over tcp across wan;"
        ));
        // 1448 of 1500 bytes are data; slow start costs less than half a second of 8.
        let goodput = 10e6 * 1448.0 / 1500.0;
        let got = throughput(&tcp.records[0]);
        assert!(got < goodput && got > 0.95 * goodput, "{got}");
        assert_eq!(tcp.records[0].data_bytes(), 10_000_000);
        let udp = run(&format!(
            "{WAN}1 from a to b {what} 1000*1000 over udp across wan;"
        ));
        let time = 1000.0 * on_the_link(1028.0) + if what == "bulk_get" { 0.020 } else { 0.040 };
        close(udp.records[0].elapsed_ns as f64 / 1e9, time, 0.002);
    }
}

#[test]
fn a_lossy_link_leaves_what_the_square_root_says() {
    let lossy = "network wan { host a, b; link a -> b 100 Mbit/s 10 ms loss 0.1%; link b -> a 100 Mbit/s 10 ms; }\n";
    let text =
        format!("{lossy}1 from a to b bulk_put 100000*500 over tcp(congestion = reno) across wan;");
    let outcome = run(&text);
    // Mathis, Semke, Mahdavi and Ott (1997), with an acknowledgement for every second segment.
    let expected = 1448.0 * 8.0 / 0.020 * (3.0_f64 / (4.0 * 0.001)).sqrt();
    let got = throughput(&outcome.records[0]);
    assert!(
        (0.4..1.6).contains(&(got / expected)),
        "{got}, the formula says {expected}"
    );
    let (_, transport) = outcome.records[0].initiator.transport.unwrap();
    close(transport.retransmits as f64, 0.001 * 50e6 / 1448.0, 0.7);
}

#[test]
fn the_same_text_gives_the_same_to_the_last_digit() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
    let mut table = String::new();
    for (network, name) in [(WAN, "clean"), (lossy, "1% loss")] {
        for what in [
            "bulk_get 10000*100",
            "bulk_put 10000*100",
            "rr 32*100",
            "connect_disconnect 0*20",
        ] {
            for stack in ["tcp", "udp", "quic"] {
                let units = if stack == "udp" {
                    what.replace("10000*100", "1000*1000")
                } else {
                    what.to_string()
                };
                let outcome = run(&format!(
                    "{network}1 from a to b {units} over {stack} across wan;"
                ));
                let record = &outcome.records[0];
                let _ = writeln!(
                    table,
                    "{name:<8} {stack:<4} {units:<24} {:>11} ns  {:>7} B  {:>3} calls  lost {:?} {:?}",
                    record.elapsed_ns,
                    record.data_bytes(),
                    record.calls.n() + record.connects.n(),
                    record.initiator.lost,
                    record.responder.lost,
                );
            }
        }
    }
    let pinned = include_str!("golden.txt");
    assert!(
        table == pinned,
        "the results are others than those in golden.txt:\n{table}"
    );
}
