//! TCP in virtual time: its options, its window, what it reports.

mod common;
use common::{WAN, close, refused, response, run, throughput};

#[test]
fn a_window_bounds_what_is_in_flight() {
    let outcome = run("network far { host a, b; link a - b 1 Gbit/s 50 ms; }\n\
         1 from a to b bulk_put 100000*100 over tcp(receive_buffer = 64 KiB) across far;");
    // What Linux offers of 128 KiB of memory, each round trip of 100 ms.
    let expected = 84_058.0 * 8.0 / 0.1;
    let got = throughput(&outcome.records[0]);
    assert!(
        (0.9..1.01).contains(&(got / expected)),
        "{got}, expected {expected}"
    );
}

#[test]
fn it_says_what_it_used() {
    let outcome = run(&format!(
        "{WAN}1 from a to b rr 32*10 over tcp(congestion = reno, nodelay) across wan;"
    ));
    let settings = &outcome.records[0].initiator.settings;
    assert_eq!(settings["congestion"], "reno");
    assert_eq!(settings["nodelay"], "on");
    assert_eq!(settings["mss"], "1448 B");
    let (_, transport) = outcome.records[0].initiator.transport.unwrap();
    assert!((transport.rtt_s - 0.0202).abs() < 0.0002, "{transport:?}");
}

#[test]
fn nagle_waits_for_the_acknowledgement_and_nodelay_does_not() {
    let stream = |option: &str| {
        let text = format!(
            "{WAN}1 from a to b bulk_put 100*50 constant(1 ms) over tcp{option} across wan;"
        );
        run(&text).ports[0].packets
    };
    let (nagle, nodelay) = (stream(""), stream("(nodelay)"));
    // The first window of ten segments is full before the first acknowledgement: what comes then leaves together.
    assert!(nodelay > 40 && nagle < 20, "{nagle} and {nodelay} packets");
}

#[test]
fn segments_fit_the_narrowest_link() {
    let narrow = "network wan { host a, b; switch s; link a - s 10 Mbit/s 1 ms mtu 9000; link s - b 10 Mbit/s 1 ms mtu 600; }\n";
    let outcome = run(&format!(
        "{narrow}1 from a to b bulk_put 10000*10 over tcp across wan;"
    ));
    assert_eq!(outcome.records[0].initiator.settings["mss"], "548 B");
    assert_eq!(outcome.records[0].responder.received_bytes, 100_000);
}

#[test]
fn a_peer_that_nothing_reaches_is_given_up() {
    let dead = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms loss 100%; link b -> a 10 Mbit/s 1 ms; }\n";
    let failure = refused(&format!(
        "{dead}1 from a to b rr 32*10 over tcp across wan;"
    ));
    assert_eq!(
        failure.message,
        "initiator on a: a connection request was not answered"
    );
    assert!(failure.hint.is_some());
}

#[test]
fn marked_packets_are_not_lost() {
    let transfer = "1 from a to b bulk_put 65536*64 over tcp across n;";
    let through = |queue: &str| {
        let network = "network n { host a, b; router r; link a - r 1 Gbit/s 1 ms; link r - b 10 Mbit/s 20 ms queue";
        let outcome = run(&format!("{network} {queue}; }}\n{transfer}"));
        let (_, transport) = outcome.records[0].initiator.transport.unwrap();
        let marked: u64 = outcome.ports.iter().map(|port| port.marked).sum();
        (
            marked,
            transport.retransmits,
            throughput(&outcome.records[0]),
        )
    };
    let (marking, dropping) = (through("1 MiB codel ecn"), through("1 MiB codel"));
    assert!(marking.0 > 0 && marking.1 == 0, "{marking:?}");
    assert!(dropping.0 == 0 && dropping.1 > 0, "{dropping:?}");
    assert!(
        (0.9..1.1).contains(&(marking.2 / dropping.2)),
        "{marking:?} {dropping:?}"
    );
}

#[test]
fn after_an_outage_it_goes_on_at_once() {
    // A time-out during the outage is found to have been for nothing; what was lost besides is judged by its age, and sent again.
    for queue in ["32 KiB", "64 KiB", "256 KiB"] {
        let outcome = run(&format!(
            "network out {{ host a, b; router r; link a - r 100 Mbit/s 1 ms;
               link r - b schedule(0 s 20 Mbit/s, 3 s 0 bit/s, 4 s 20 Mbit/s) 10 ms queue {queue}; }}
             1 timelimit 9 from a to b bulk_put 16 KiB over tcp across out;"
        ));
        // Eight ninths of the time there is a rate of which 96.5 % are data; the kernel reaches 16.9 to 17.2 Mbit/s.
        let got = throughput(&outcome.records[0]);
        assert!(
            (16.5e6..17.2e6).contains(&got),
            "{got} with a queue of {queue}"
        );
    }
}

#[test]
fn a_lost_request_waits_for_the_least_timeout() {
    let lossy = "network n { host a, b; link a -> b 10 Mbit/s 1 ms loss 20%; link b -> a 10 Mbit/s 1 ms; }\n";
    let mean = |options: &str| {
        let outcome = run(&format!(
            "{lossy}1 from a to b rr 1000*40 over tcp({options}) across n;"
        ));
        outcome.records[0].elapsed_ns as f64 / 1e9
    };
    let (usual, long) = (
        mean("nodelay"),
        mean("nodelay, least_timeout = 5 s, first_timeout = 5 s"),
    );
    let ticks = mean("nodelay, least_timeout = 1 s, timer_tick = 500 ms");
    assert!(long > 5.0 && long > 2.0 * usual, "{usual} and {long}");
    assert!(ticks > usual && ticks < long, "{usual}, {ticks} and {long}");
}

#[test]
fn a_first_window_of_one_needs_more_round_trips() {
    let time = |options: &str| {
        let text =
            format!("{WAN}1 from a to b rr 14000, 10*1 over tcp(nodelay{options}) across wan;");
        response(&run(&text).records[0])
    };
    let (usual, one) = (time(""), time(", first_window = 1"));
    // The introduction opens the window to two, and ten segments need two, four and four: two round trips more of 20 ms, while which
    // four and a half ms of the link were used.
    assert!((0.033..0.04).contains(&(one - usual)), "{usual} and {one}");
}

#[test]
fn fewer_acknowledgements_leave_when_none_is_hurried() {
    let acks = |options: &str| {
        let text = format!("{WAN}1 from a to b bulk_put 1448*16 over tcp({options}) across wan;");
        let outcome = run(&text);
        outcome.ports[1].packets
    };
    let (usual, off) = (acks("quickack = on"), acks("quickack = off"));
    assert!(usual > off + 5, "{usual} and {off}");
}

#[test]
fn recovery_by_duplicates_repairs_everything_later() {
    let lossy = "network n { host a, b; link a -> b 10 Mbit/s 10 ms loss 3%; link b -> a 10 Mbit/s 10 ms; }\n";
    let rate = |options: &str| {
        let outcome = run(&format!(
            "{lossy}1 from a to b bulk_put 10000*200 over tcp({options}) across n;"
        ));
        assert_eq!(outcome.records[0].responder.received_bytes, 2_000_000);
        (
            throughput(&outcome.records[0]),
            outcome.records[0].initiator.settings.clone(),
        )
    };
    let (usual, _) = rate("congestion = reno");
    let (classic, settings) = rate("congestion = reno, recovery = reno");
    let (slow, _) = rate("recovery = reno, least_timeout = 1 s, timer_tick = 500 ms");
    assert!(
        usual > 1.1 * classic && classic > 1.1 * slow,
        "{usual}, {classic}, {slow}"
    );
    assert_eq!(
        (
            settings["recovery"].as_str(),
            settings["congestion"].as_str()
        ),
        ("reno", "reno")
    );
    let both = refused(&format!(
        "{lossy}1 from a to b bulk_put 10000*2 over tcp(recovery = reno, congestion = bbr) across n;"
    ));
    assert_eq!(
        both.message,
        "tcp takes either recovery = reno or congestion = bbr, not both"
    );
}

#[test]
fn a_fixed_timeout_waits_as_long_as_it_says_however_often() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 5 ms loss packets 5, 6, 7; }\n";
    let of = |timeout: &str| {
        let text = format!(
            "{lossy}1 from a to b rr 100*3 over tcp(fixed_timeout = {timeout}) across wan;"
        );
        run(&text).records.remove(0).calls.sum as f64 / 1e9
    };
    // What is lost is a call, and it again: twice or three times the timeout, no longer each time.
    let (short, long) = (of("0.25 s"), of("4 s"));
    let lost = (long - short) / 3.75;
    assert!(
        (lost - lost.round()).abs() < 0.01 && lost.round() >= 2.0,
        "{short} {long}"
    );
}

#[test]
fn packet_buffers_fill_with_small_packets_unless_something_is_done() {
    // A reader of a unit each 10 ms, and a writer of one each 5 ms: the window says 8000 bytes, which are 400 units of 20.
    let network =
        "network wan { host a; host b { work 10 ms per operation; } link a - b 10 Mbit/s 1 ms; }\n";
    let of = |options: &str| {
        let text = format!(
            "{network}1 from a to b bulk_put 20*600 constant(5 ms) over tcp(nodelay, silly_windows, mss = 1012, {options}) across wan;"
        );
        let outcome = run(&text);
        let record = &outcome.records[0];
        assert_eq!(record.responder.received_bytes, 12_000, "{options}");
        let noted = |note: &String| {
            note.strip_prefix("packets dropped because the receiver had no free buffer: ")?
                .parse::<u64>()
                .ok()
        };
        let dropped: u64 = record.responder.notes.iter().filter_map(noted).sum();
        (
            dropped,
            record.initiator.transport.unwrap().1.retransmits,
            record.elapsed_ns as f64 / 1e9,
        )
    };
    let (bytes, packets) = (of("receive_buffer = 8000"), of("packet_buffers = 8"));
    assert!(bytes.0 == 0 && bytes.1 == 0, "{bytes:?}");
    assert!(
        packets.0 > 20 && packets.1 > 20 && packets.2 > 1.03 * bytes.2,
        "{bytes:?} {packets:?}"
    );
    for options in [
        "packet_buffers = 8, compaction",
        "packet_buffers = 8, small_buffers = 400",
        "packet_buffers = 8, expected_packet = 20",
    ] {
        let (dropped, again, seconds) = of(options);
        assert!(
            dropped == 0 && again == 0 && seconds < 1.05 * bytes.2,
            "{options}: {dropped:?} {again} {seconds}"
        );
    }
}

#[test]
fn packet_buffers_of_full_segments_are_a_window_of_bytes() {
    let of = |options: &str| {
        let text = format!(
            "{WAN}1 from a to b bulk_put 10000*100 over tcp(mss = 1012, {options}) across wan;"
        );
        throughput(&run(&text).records[0])
    };
    // Four segments each round trip of 20 ms and what a segment takes at 10 Mbit/s.
    close(of("packet_buffers = 4"), 4.0 * 8000.0 / 0.0209, 0.05);
    assert!(of("packet_buffers = 4, expected_packet = 500") < 0.6 * of("packet_buffers = 4"));
}

#[test]
fn what_means_nothing_without_packet_buffers_is_refused() {
    for option in ["small_buffers = 3", "expected_packet = 20", "compaction"] {
        let refusal = refused(&format!(
            "{WAN}1 from a to b rr 32*10 over tcp({option}) across wan;"
        ));
        let name = option.split(' ').next().unwrap();
        assert_eq!(
            refusal.message,
            format!("the option `{name}` has no effect without `packet_buffers`")
        );
        assert_eq!(
            refusal.hint,
            Some(format!("write `packet_buffers` too, or omit `{name}`"))
        );
    }
    let both = refused(&format!(
        "{WAN}1 from a to b rr 32*10 over tcp(packet_buffers = 3, receive_buffer = 9 kB) across wan;"
    ));
    assert_eq!(
        both.message,
        "tcp takes either receive_buffer or packet_buffers, not both"
    );
}

#[test]
fn few_packet_buffers_and_losses_never_stop_a_transfer() {
    let lossy = "network n { host a; host b { work 1 ms per operation; } link a -> b 10 Mbit/s 5 ms loss 5%; link b -> a 10 Mbit/s 5 ms loss 5%; }\n";
    for buffers in [
        "1",
        "2",
        "3, compaction",
        "8, small_buffers = 4",
        "16, expected_packet = 100, compaction",
    ] {
        for recovery in ["linux", "reno"] {
            let over = format!("tcp(nodelay, recovery = {recovery}, packet_buffers = {buffers})");
            for put in ["bulk_put 3000*60", "bulk_put 40*500 constant(1 ms)"] {
                let record = run(&format!("{lossy}1 from a to b {put} over {over} across n;"))
                    .records
                    .remove(0);
                let whole = if put.contains("3000") {
                    180_000
                } else {
                    20_000
                };
                assert_eq!(
                    (record.responder.received_bytes, record.limited),
                    (whole, false),
                    "{put} {over}"
                );
            }
        }
    }
}
