//! QUIC in virtual time: what it carries, its options, what it reports.

mod common;
use common::{WAN, refused, response, run, runs, throughput};

const LOSSY: &str = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";

#[test]
fn bulk_data_fills_the_link_both_ways() {
    for what in ["bulk_get", "bulk_put"] {
        let outcome = run(&format!(
            "{WAN}1 from a to b {what} 10000*1000 over quic across wan;"
        ));
        let record = &outcome.records[0];
        assert_eq!(record.data_bytes(), 10_000_000);
        let got = throughput(record);
        assert!(got > 0.85 * 10e6 && got < 10e6, "{what}: {got}");
    }
}

#[test]
fn a_response_takes_two_delays_and_two_packets() {
    let outcome = run(&format!(
        "{WAN}1 from a to b rr 32, 1000*200 over quic across wan;"
    ));
    assert_eq!(outcome.records[0].calls.n(), 200);
    // 1 B of flags, 8 B of id, 1 to 4 B of number, 16 B of tag, a few of the stream's frame; IPv4 and UDP.
    let got = response(&outcome.records[0]);
    let paper = |headers: f64| 0.020 + (1032.0 + 2.0 * headers) * 8.0 / 10e6;
    assert!(
        (paper(28.0 + 26.0)..paper(28.0 + 46.0)).contains(&got),
        "{got}"
    );
}

#[test]
fn a_connection_takes_a_round_trip() {
    let outcome = run(&format!(
        "{WAN}1 from a to b connect_disconnect 0*50 over quic across wan;"
    ));
    let record = &outcome.records[0];
    assert_eq!(record.connects.n(), 50);
    let got = record.connects.sum as f64 / 50e9;
    assert!((0.020..0.026).contains(&got), "{got}");
}

#[test]
fn what_a_link_loses_is_sent_again() {
    for what in [
        "bulk_get 10000*200",
        "bulk_put 10000*200",
        "rr 32*200",
        "connect_disconnect 0*30",
    ] {
        let outcome = run(&format!(
            "{LOSSY}1 from a to b {what} over quic across wan;"
        ));
        let record = &outcome.records[0];
        if what.starts_with("bulk") {
            assert_eq!(record.data_bytes(), 2_000_000, "{what}");
            let sender = if what.starts_with("bulk_get") {
                &record.responder
            } else {
                &record.initiator
            };
            assert!(
                sender.transport.unwrap().1.retransmits > 5,
                "{:?}",
                sender.transport
            );
        }
        assert!(
            outcome.ports[0].dropped() + outcome.ports[1].dropped() > 0,
            "{what}"
        );
    }
}

#[test]
fn connections_are_accepted_in_their_order_whatever_is_lost() {
    for link in [
        "loss 20%",
        "jitter uniform(0, 5 ms) reordering duplicate 20% loss 5%",
    ] {
        let network = format!("network wan {{ host a, b; link a - b 10 Mbit/s 10 ms {link}; }}\n");
        for outcome in runs(&format!(
            "{network}3 from a to b connect_disconnect 0*30 over quic across wan;"
        ))
        .unwrap()
        {
            assert_eq!(outcome.records[0].connects.n(), 30, "{link}");
        }
    }
}

#[test]
fn a_time_limit_ends_a_run_and_its_stream() {
    for what in [
        "bulk_put 10000*100000",
        "bulk_get 10000*100000",
        "rr 32*100000",
        "connect_disconnect 0*100000",
    ] {
        let text = format!(
            "{WAN}1 timelimit 1 from a to b {what} over quic(send_buffer = 64 KiB) across wan;"
        );
        let record = run(&text).records.remove(0);
        assert!(record.limited, "{what}");
        let seconds = record.elapsed_ns as f64 / 1e9;
        assert!((0.99..1.2).contains(&seconds), "{what}: {seconds}");
    }
}

#[test]
fn one_seed_one_digest_whatever_the_cryptography_draws() {
    let text = |seed: u32, option: &str| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2% jitter exponential(1 ms); }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b bulk_get exponential(5000)*100 over quic{option} across wan;"
        )
    };
    let digests = |text: &str| {
        runs(text)
            .unwrap()
            .iter()
            .map(|outcome| outcome.digest)
            .collect::<Vec<_>>()
    };
    for option in ["", "(congestion = reno)", "(crypto = null)"] {
        let one = digests(&text(1, option));
        assert_eq!(one, digests(&text(1, option)), "{option}");
        assert_ne!(one[0], one[1]);
        assert_ne!(one, digests(&text(2, option)));
    }
}

#[test]
fn null_cryptography_sends_the_same_packets() {
    for what in ["bulk_put 10000*100", "rr 32*20", "connect_disconnect 0*20"] {
        let [real, null] = ["", "(crypto = null)"].map(|option| {
            run(&format!(
                "{LOSSY}1 from a to b {what} over quic{option} across wan;"
            ))
        });
        assert_eq!(
            real.digest, null.digest,
            "{what}: {:?} and {:?}",
            real.ports, null.ports
        );
    }
}

#[test]
fn pairs_share_the_link() {
    let wide = "network wan { host a, b; link a - b 1 Gbit/s 10 ms; }\n";
    let text = format!(
        "{wide}1 total over quic(crypto = null) across wan: 200 from a to b bulk_put 5000*20;"
    );
    let outcome = run(&text);
    assert_eq!(
        (
            outcome.records[0].replicas,
            outcome.records[0].responder.received_bytes
        ),
        (200, 20_000_000)
    );
    let text = format!(
        "{wide}1 parallel across wan: 3 from a to b rr 32*50 over quic | from b to a bulk_put 10000*20 over tcp;"
    );
    let outcome = run(&text);
    assert_eq!(outcome.records[0].calls.n(), 150);
}

#[test]
fn a_window_bounds_what_is_in_flight() {
    let outcome = run("network far { host a, b; link a - b 1 Gbit/s 50 ms; }\n\
         1 from a to b bulk_put 100000*100 over quic(receive_buffer = 64 KiB) across far;");
    // 64 KiB each round trip of 100 ms; credit comes back in parts.
    let expected = 65_536.0 * 8.0 / 0.1;
    let got = throughput(&outcome.records[0]);
    assert!(
        (0.8..1.05).contains(&(got / expected)),
        "{got}, expected {expected}"
    );
}

/// Shares of the measured time that a put of `data` over a path of 100 Mbit/s and a round trip of 100 ms was busy, and held
/// up by the receiver's window and by its own buffer.
fn held_up(data: &str, options: &str) -> [f64; 3] {
    let outcome = run(&format!(
        "network far {{ host a, b; link a - b 100 Mbit/s 50 ms; }}\n1 from a to b bulk_put {data} over quic{options} across far;"
    ));
    let record = &outcome.records[0];
    let (start, stop) = record.initiator.transport.expect("a report of QUIC");
    let elapsed = record.elapsed_ns as f64 / 1e9;
    let times = [
        (start.busy_s, stop.busy_s),
        (
            start.receive_window_limited_s,
            stop.receive_window_limited_s,
        ),
        (start.send_buffer_limited_s, stop.send_buffer_limited_s),
    ];
    times.map(|(start, stop)| (stop.expect("a report") - start.expect("a report")) / elapsed)
}

#[test]
fn it_says_what_held_it_up() {
    // A small window leaves everything it lets go on its way, and so does a small buffer.
    let [busy, window, buffer] = held_up("20000*100", "(receive_buffer = 64 KiB)");
    assert!(
        busy > 0.9 && window > 0.85 && buffer == 0.0,
        "{busy} {window} {buffer}"
    );
    let [busy, window, buffer] = held_up("20000*100", "(send_buffer = 64 KiB)");
    assert!(
        busy > 0.9 && window == 0.0 && buffer > 0.85,
        "{busy} {window} {buffer}"
    );
    // A congestion window that still grows, and one that fills the path.
    let [busy, window, buffer] = held_up("20000*50", "(send_buffer = 128 MiB)");
    assert!(
        busy > 0.9 && window < 0.05 && buffer == 0.0,
        "{busy} {window} {buffer}"
    );
    let [busy, window, buffer] = held_up(
        "100000*200",
        "(receive_buffer = 128 MiB, send_buffer = 128 MiB)",
    );
    assert!(
        busy > 0.9 && window == 0.0 && buffer == 0.0,
        "{busy} {window} {buffer}"
    );
}

#[test]
fn without_data_it_is_not_busy() {
    let outcome = run(&format!(
        "{WAN}1 from a to b stream 500*20 constant(500 ms) over quic across wan;"
    ));
    let (start, stop) = outcome.records[0].initiator.transport.unwrap();
    let busy = (stop.busy_s.unwrap() - start.busy_s.unwrap())
        / (outcome.records[0].elapsed_ns as f64 / 1e9);
    assert!((0.02..0.2).contains(&busy), "{busy}");
}

#[test]
fn it_says_what_it_used_and_what_it_cannot_know() {
    let options = "congestion = reno, crypto = null, initial_window = 20000, timeout = 5 s";
    let outcome = run(&format!(
        "{WAN}1 from a to b bulk_put 10000*100 over quic({options}) across wan;"
    ));
    let record = &outcome.records[0];
    let settings = &record.initiator.settings;
    let said =
        ["congestion", "crypto", "initial_window", "timeout"].map(|name| settings[name].as_str());
    assert_eq!(said, ["reno", "null", "20000 B", "5.00 s"]);
    let (_, transport) = record.initiator.transport.unwrap();
    assert!(
        transport.rtt_s > 0.02 && transport.cwnd_segments > Some(10),
        "{transport:?}"
    );
    // The search ends below Ethernet's 1472.
    assert!(
        (1400..=1452).contains(&transport.mss_bytes),
        "{transport:?}"
    );
    assert_eq!(
        record.responder.transport.unwrap().1.bytes_received,
        1_000_017,
        "units, introduction, start"
    );
    assert!(
        record.absent.contains_key("transport.bytes_acked") && transport.bytes_acked.is_none(),
        "{record:?}"
    );
}

#[test]
fn packets_fit_the_path() {
    let large = "network wan { host a, b; link a - b 100 Mbit/s 1 ms mtu 9000; }\n";
    let outcome = run(&format!(
        "{large}1 from a to b bulk_put 10000*100 over quic(mtu = 8900) across wan;"
    ));
    assert_eq!(outcome.records[0].initiator.settings["mtu"], "8900 B");
    assert!(outcome.ports[0].packets < 200, "{:?}", outcome.ports[0]);
    let narrow = "network wan { host a, b; switch s; link a - s 10 Mbit/s 1 ms; link s - b 10 Mbit/s 1 ms mtu 1300; }\n";
    let outcome = run(&format!(
        "{narrow}1 from a to b bulk_put 10000*100 over quic across wan;"
    ));
    let mtu = outcome.records[0].initiator.transport.unwrap().1.mss_bytes;
    assert!((1200..=1272).contains(&mtu), "{mtu}");
    let narrower = narrow.replace("1300", "1200");
    let failure = refused(&format!(
        "{narrower}1 from a to b bulk_put 10000*10 over quic across wan;"
    ));
    assert!(
        failure.message.contains("too large for the path"),
        "{failure}"
    );
    assert!(failure.hint.is_some());
}

#[test]
fn marks_slow_it_down_without_a_loss() {
    let network = |queue: &str| {
        format!(
            "network wan {{ host a, b; switch s {{ queue {queue}; }} link a - s 100 Mbit/s 5 ms; link s - b 10 Mbit/s 5 ms; }}\n"
        )
    };
    let transfer = "1 from a to b bulk_put 10000*500 over quic across wan;";
    let marked = run(&format!("{}{transfer}", network("1 MiB codel ecn")));
    assert!(
        marked.ports.iter().map(|port| port.marked).sum::<u64>() > 0,
        "{:?}",
        marked.ports
    );
    assert_eq!(
        marked.records[0].initiator.transport.unwrap().1.retransmits,
        0
    );
    let dropped = run(&format!("{}{transfer}", network("1 MiB codel")));
    assert!(
        dropped.records[0]
            .initiator
            .transport
            .unwrap()
            .1
            .retransmits
            > 0
    );
}

#[test]
fn a_peer_that_nothing_reaches_is_given_up() {
    let dead = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms loss 100%; link b -> a 10 Mbit/s 1 ms; }\n";
    let failure = refused(&format!(
        "{dead}1 from a to b rr 32*10 over quic across wan;"
    ));
    assert_eq!(
        failure.message,
        "initiator on a: a connection request was not answered"
    );
    assert!(failure.hint.is_some());
}

#[test]
fn silence_for_longer_than_the_timeout_ends_a_connection() {
    let text = |timeout: &str| {
        format!(
            "{WAN}1 from a to b rr 32*3 constant(2 s) over quic(timeout = {timeout}) across wan;"
        )
    };
    assert_eq!(run(&text("5 s")).records[0].calls.n(), 3);
    assert_eq!(run(&text("0 s")).records[0].calls.n(), 3);
    let failure = refused(&text("1 s"));
    assert!(
        failure.message.contains("closed the connection"),
        "{failure}"
    );
}
