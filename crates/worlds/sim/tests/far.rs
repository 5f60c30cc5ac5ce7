//! Blasts on a path far beyond a local network, alone and beside a TCP connection.

mod common;
use common::{run, throughput};

/// Of what a link carries, what can be data: 1440 of 1500 bytes.
const DATA: f64 = 1440.0 / 1500.0;

/// Two pairs of hosts across one link of so many Mbit/s, with a round trip of 20 ms and room for one of them in its queue.
fn network(mbit_s: u32, loss: &str) -> String {
    let queue = 2500 * mbit_s;
    format!(
        "network wan {{ host a, b, c, d; switch x; switch y; link x - y {mbit_s} Mbit/s 10 ms loss {loss} queue {queue} bytes; \
         link a - x 1 Gbit/s 0; link c - x 1 Gbit/s 0; link y - b 1 Gbit/s 0; link y - d 1 Gbit/s 0; }}\n"
    )
}

#[test]
fn a_blast_fills_a_far_path_that_loses_a_packet_in_a_thousand() {
    let wan = network(500, "0.1%");
    let outcome = run(&format!(
        "{wan}1 timelimit 4 from a to b bulk_put 1048576*100000 over blast across wan;"
    ));
    let record = &outcome.records[0];
    let share = throughput(record) / (500e6 * DATA);
    let (_, transport) = record.initiator.transport.expect("a report");
    let redundant = transport.retransmits as f64 * 1440.0 / record.data_bytes() as f64;
    println!(
        "{share:.3} of the link, {:.2}% sent twice, round trip {:.1} ms",
        100.0 * redundant,
        1e3 * transport.rtt_s
    );
    // Four seconds, of which it takes the first half to find out how much the path carries.
    assert!(share > 0.8 && redundant < 0.02, "{share} {redundant}");
    // Hardly anything is sent again that was not lost.
    assert!(
        transport.retransmits < outcome.ports[0].dropped() * 11 / 10 + 10,
        "{transport:?} {:?}",
        outcome.ports[0]
    );
}

#[test]
fn a_tcp_connection_beside_it_is_not_starved() {
    for (loss, least) in [("0%", [0.1, 0.34]), ("0.1%", [0.3, 0.1])] {
        let wan = network(100, loss);
        let part =
            |hosts: &str, stack: &str| format!("from {hosts} bulk_put 1048576*100000 over {stack}");
        let both = [part("a to b", "blast"), part("c to d", "tcp")].join(" | ");
        let outcome = run(&format!("{wan}1 timelimit 10 parallel across wan: {both};"));
        let shares = [0, 1].map(|at| throughput(&outcome.records[at]) / (100e6 * DATA));
        println!(
            "loss {loss}: blast {:.2}, tcp {:.2} of the link",
            shares[0], shares[1]
        );
        assert!(
            shares[0] > least[0] && shares[1] > least[1],
            "{shares:?} with {loss} of loss"
        );
    }
}
