//! Stop-and-wait, sliding window and blast in virtual time: what they carry, their options, what they report.

mod common;
use common::{
    WAN, close, every_application_type, on_the_link, refused, response, run, runs, throughput,
};
use stackline_core::run_record::SideRecord;
use std::fmt::Write as _;

const ALL: [&str; 6] = [
    "saw",
    "window",
    "blast(full, size = 16 KiB)",
    "blast(full_nak)",
    "blast(partial)",
    "blast(selective)",
];
const LOSSY: &str = "network wan { host a, b; link a - b 10 Mbit/s 2 ms loss 0.5% jitter uniform(0, 2 ms) reordering duplicate 2%; }\n";
/// Headers on the wire: IPv4, UDP and the protocol's own.
const HEADERS: f64 = 60.0;

#[test]
fn every_application_type_runs_over_each_whatever_the_link_does() {
    every_application_type(&[WAN, LOSSY], &ALL);
}

#[test]
fn stop_and_wait_takes_a_round_trip_a_packet() {
    let outcome = run(&format!(
        "{WAN}1 from a to b bulk_put 1440*100 over saw across wan;"
    ));
    let each = on_the_link(1440.0 + HEADERS) + on_the_link(HEADERS) + 0.020;
    close(
        outcome.records[0].elapsed_ns as f64 / 1e9,
        100.0 * each,
        1e-9,
    );
}

#[test]
fn a_response_takes_two_delays_and_two_packets() {
    for stack in ALL {
        let outcome = run(&format!(
            "{WAN}1 from a to b rr 32, 1000*50 over {stack} across wan;"
        ));
        let packets = on_the_link(32.0 + HEADERS) + on_the_link(1000.0 + HEADERS);
        // The acknowledgement of the request goes before its response, that of the response before the next request.
        let answers = on_the_link(HEADERS) * 99.0 / 50.0;
        close(
            response(&outcome.records[0]),
            0.020 + packets + answers,
            1e-6,
        );
    }
}

#[test]
fn the_first_blast_is_paced_by_the_round_trip_of_the_set_up() {
    let near = "network wan { host a, b; link a - b 10 Mbit/s 5 ms; }\n";
    let packets = 65_536.0_f64 / 1440.0;
    for stack in ["blast(full)", "blast(selective)"] {
        let outcome = run(&format!(
            "{near}1 from a to b bulk_put 65536*1 over {stack} across wan;"
        ));
        let elapsed = outcome.records[0].elapsed_ns as f64 / 1e9;
        let on_the_wire = packets * on_the_link(1440.0 + HEADERS) + 0.010;
        // Ten packets each 10 ms are what the link carries; by an assumed 100 ms the last of 46 leaves after 370 ms.
        assert!(
            (on_the_wire..1.2 * on_the_wire).contains(&elapsed),
            "{elapsed}"
        );
    }
}

#[test]
fn connecting_and_disconnecting_take_a_round_trip_each() {
    let near = "network wan { host a, b; link a - b 10 Mbit/s 5 ms; }\n";
    let outcome = run(&format!(
        "{near}1 from a to b connect_disconnect 0*50 over saw across wan;"
    ));
    let bytes = 2.0 * (HEADERS + 56.0) + 2.0 * HEADERS;
    close(
        outcome.records[0].connects.sum as f64 / 50e9,
        0.020 + on_the_link(bytes),
        1e-6,
    );
}

#[test]
fn blasts_and_an_open_window_fill_the_link() {
    for stack in [
        "window(pacing = off)",
        "blast(pacing = off)",
        "blast(partial, pacing = off)",
    ] {
        for what in ["bulk_get", "bulk_put"] {
            let outcome = run(&format!(
                "{WAN}1 from a to b {what} 10000*1000 over {stack} across wan;"
            ));
            let (got, best) = (throughput(&outcome.records[0]), 10e6 * 1440.0 / 1500.0);
            assert!(got < best && got > 0.9 * best, "{what} over {stack}: {got}");
        }
    }
    // Blasts of 45 packets, each waited for.
    let outcome = run(&format!(
        "{WAN}1 from a to b bulk_put 64800*10 over blast(full, pacing = off) across wan;"
    ));
    let each = on_the_link(45.0 * 1500.0) + on_the_link(HEADERS) + 0.020;
    close(
        outcome.records[0].elapsed_ns as f64 / 1e9,
        10.0 * each,
        1e-9,
    );
}

/// The SUN with its 3-Com interface (Zwaenepoel 1985): copying takes 1.35 ms for 1024 bytes, 0.16 ms for the 60 of an answer.
const SUN: &str = "network wan { host a, b { copy 90 us per packet, 1.23 us per byte; buffer 2 frames; single_buffered; \
    busy_waiting; } link a - b 10 Mbit/s 0; }\n";

#[test]
fn hosts_that_copy_take_the_papers_times() {
    let copy = |bytes: f64| 90e-6 + 1.23e-6 * bytes;
    let (c, ca, t, ta) = (
        copy(1024.0),
        copy(HEADERS),
        on_the_link(1024.0),
        on_the_link(HEADERS),
    );
    for (stack, n, expected) in [
        ("saw", 10.0, 10.0 * (2.0 * c + 2.0 * ca + t + ta)),
        ("window(pacing = off)", 64.0, 64.0 * (c + ca + t) + c + ta),
        (
            "blast(full, size = 64 KiB, pacing = off)",
            64.0,
            64.0 * (c + t) + c + 2.0 * ca + ta,
        ),
    ] {
        // The paper's conditions: an interval longer than all of it.
        let stack = stack
            .replace("(", "(packet = 964, interval = 1 s, ")
            .replace("saw", "saw(packet = 964)");
        for sun in [
            SUN.to_string(),
            SUN.replace("single_buffered;", "")
                .replace("busy_waiting;", ""),
        ] {
            let outcome = run(&format!(
                "{sun}1 from a to b bulk_put 964*{n} over {stack} across wan;"
            ));
            let got = outcome.records[0].elapsed_ns as f64 / 1e9;
            match sun == SUN {
                true => close(got, expected, 1e-6),
                // Two buffers, and a processor that has time for answers: copying alone accounts for the time.
                false if stack.starts_with("blast") => {
                    close(got, 64.0 * c + t + c + 2.0 * ca + ta, 1e-6)
                }
                false => assert!(
                    got < expected * 1.000_001,
                    "{stack}: {got} against {expected}"
                ),
            }
        }
    }
}

#[test]
fn an_adaptive_interval_begins_when_the_host_has_copied_a_packet() {
    let put = |options: &str| {
        let outcome = run(&format!(
            "{SUN}1 from a to b bulk_put 964*64 over blast(full, size = 64 KiB, packet = 964{options}) across wan;"
        ));
        let record = outcome.records[0].clone();
        let again = record
            .initiator
            .transport
            .map_or(0, |(_, stop)| stop.retransmits);
        (record.elapsed_ns as f64 / 1e9, again)
    };
    let (fixed, adaptive) = (put(", interval = 1 s"), put(""));
    // The first round trip was an answer's, whose copies are short: a few packets leave again before the blast is answered, and not all 64.
    assert!(fixed.1 == 0 && adaptive.1 <= 6, "{adaptive:?}");
    close(adaptive.0, fixed.0, 0.1);
}

#[test]
fn what_is_lost_is_sent_again_by_strategy() {
    let lossy = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms loss 1%; link b -> a 10 Mbit/s 1 ms; }\n";
    let again = |stack: &str| {
        let text = format!("{lossy}1 from a to b bulk_put 64800*40 over {stack} across wan;");
        let record = run(&text).records.remove(0);
        let (before, after) = record.initiator.transport.expect("a report");
        assert_eq!(after.bytes_acked, Some(40 * 64_800));
        assert_eq!(before.retransmits, 0);
        after.retransmits
    };
    let [full, full_nak, partial, selective, window] = [
        "blast(full)",
        "blast(full_nak)",
        "blast(partial)",
        "blast(selective)",
        "window",
    ]
    .map(again);
    // 1800 packets, of which one in a hundred is lost and perhaps a packet that requests an answer is repeated with it.
    assert!(
        (10..60).contains(&selective) && (10..60).contains(&window),
        "{selective} {window}"
    );
    assert!(
        selective < partial && partial < full_nak,
        "{selective} {partial} {full_nak}"
    );
    assert!(full > 200 && full_nak > 200, "{full} {full_nak}");
}

#[test]
fn silence_that_means_no_is_not_taken_for_a_dead_peer() {
    // Three of four blasts lose something, and with full retransmission nobody says so.
    let lossy = "network wan { host a, b; link a -> b 10 Mbit/s 0.1 ms loss 3%; link b -> a 10 Mbit/s 0.1 ms; }\n";
    for outcome in runs(&format!(
        "{lossy}6 from a to b bulk_put 64800*4 over blast(full) across wan;"
    ))
    .expect("it ends")
    {
        assert_eq!(outcome.records[0].data_bytes(), 4 * 64_800);
    }
}

#[test]
fn a_time_limit_ends_a_run_and_its_stream() {
    for stack in ALL.map(|stack| stack.replace("selective", "selective, pacing = off")) {
        for what in [
            "bulk_put 10000*100000",
            "bulk_get 10000*100000",
            "rr 32*100000",
            "connect_disconnect 0*100000",
        ] {
            let text = format!("{WAN}1 timelimit 1 from a to b {what} over {stack} across wan;");
            let record = run(&text).records.remove(0);
            assert!(record.limited, "{what} over {stack}");
            let seconds = record.elapsed_ns as f64 / 1e9;
            assert!(
                (0.99..1.4).contains(&seconds),
                "{what} over {stack}: {seconds}"
            );
        }
    }
}

#[test]
fn loads_replicas_and_other_stacks_go_beside_it() {
    for stack in ["saw", "blast"] {
        let text = format!(
            "{WAN}1 background across wan: from a to b rr 32*20 over {stack} | 3 from a to b bulk_put 10000*5 over {stack};"
        );
        let loaded = run(&text);
        assert_eq!(loaded.records[0].calls.n(), 20);
        assert!(
            loaded.records[1].responder.received_bytes > 50_000,
            "the load of {stack} goes on"
        );
    }
    let all = ALL
        .map(|stack| format!("from a to b bulk_get 10000*20 over {stack}"))
        .join(" | ");
    let outcome = run(&format!(
        "{LOSSY}1 parallel across wan: {all} | from a to b bulk_get 10000*20 over tcp;"
    ));
    assert!(
        outcome.records.len() == 7
            && outcome
                .records
                .iter()
                .all(|record| record.data_bytes() == 200_000)
    );
    let many = run(&format!(
        "{WAN}1 total over blast across wan: 1000 from a to b bulk_put 5000*2;"
    ));
    assert_eq!(many.records[0].responder.received_bytes, 10_000_000);
}

#[test]
fn a_host_with_little_room_does_not_drop_its_own_packets() {
    let narrow = "network wan { host a, b; link a - b 10 Mbit/s 10 ms queue 8 KiB; }\n";
    for stack in ["window", "blast(pacing = off)"] {
        let outcome = run(&format!(
            "{narrow}1 from a to b bulk_put 10000*100 over {stack} across wan;"
        ));
        assert_eq!(
            outcome.ports.iter().map(|port| port.dropped()).sum::<u64>(),
            0,
            "{stack}"
        );
        assert_eq!(
            outcome.records[0]
                .initiator
                .transport
                .expect("a report")
                .1
                .retransmits,
            0,
            "{stack}"
        );
    }
}

#[test]
fn a_receiver_that_is_busy_is_waited_for() {
    let busy = "procedure busy { initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); } \
        StopMeasurement; DisconnectRequest; } responder { AwaitConnectIndication; Delay(constant(30 s)); \
        repeat count { AwaitDataIndication(unit); } AwaitDisconnectIndication; } }\n";
    let outcome = run(&format!(
        "{busy}{WAN}1 from a to b busy 10000*100 over blast(buffer = 64 KiB) across wan;"
    ));
    let seconds = outcome.records[0].elapsed_ns as f64 / 1e9;
    // It queries now and then whether it may go on, so the peer is not taken for dead.
    assert!((30.0..33.0).contains(&seconds), "{seconds}");
    assert_eq!(outcome.records[0].responder.received_bytes, 1_000_000);
    assert!(
        outcome.records[0].initiator.notes.is_empty(),
        "what was sent is confirmed"
    );
}

#[test]
fn settings_in_force_are_reported() {
    let text = format!(
        "{WAN}1 from a to b bulk_put 1000*10 over blast(partial, size = 32 KiB, flight = 2, sealed) across wan;"
    );
    let record = run(&text).records.remove(0);
    for side in [&record.initiator, &record.responder] {
        let setting = |name: &str| side.settings.get(name).map(String::as_str);
        assert_eq!(
            [setting("strategy"), setting("flight"), setting("sealed")],
            [Some("partial"), Some("2"), Some("on")]
        );
        assert_eq!(
            [setting("packet"), setting("interval")],
            [Some("1416 B"), Some("adaptive")],
            "{:?}",
            side.settings
        );
    }
    assert!(record.absent.contains_key("transport.cwnd_segments"));
    assert!(!record.absent.contains_key("transport.bytes_acked"));
    let (_, transport) = record.initiator.transport.expect("a report");
    // The packets of a blast leave together, and the last one requests an answer.
    assert!((0.020..0.032).contains(&transport.rtt_s), "{transport:?}");
    // What a seal adds, a packet and its answer.
    let time = |stack: &str| {
        run(&format!(
            "{WAN}1 from a to b bulk_put 1000*10 over {stack} across wan;"
        ))
        .records[0]
            .elapsed_ns
    };
    let apart = time("saw(packet = 1000, sealed)") - time("saw(packet = 1000)");
    assert_eq!(apart, 10 * 2 * 24 * 800);
    assert_eq!(time("blast(checked)"), time("blast"));
}

#[test]
fn fixed_intervals_are_the_papers() {
    // The second data packet is lost, and requested again 100 ms after it left.
    let lossy = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms loss every 3; link b -> a 10 Mbit/s 1 ms; }\n";
    let text = |network: &str| {
        format!("{network}1 from a to b bulk_put 1440*3 over saw(interval = 100 ms) across wan;")
    };
    let without = run(&text(&lossy.replace(" loss every 3", "")));
    let with = run(&text(lossy));
    assert_eq!(
        with.records[0].elapsed_ns - without.records[0].elapsed_ns,
        100_000_000
    );
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    for (stack, cause) in [
        (
            "blast(full, partial)",
            "blast takes either full or partial, not both",
        ),
        (
            "window(packet = 9000)",
            "`window` sends packets of 9060 bytes, too large for the path from a to b (MTU 1500)",
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
        "{dead}1 from a to b rr 32*10 over blast(patience = 2 s) across wan;"
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
    let text = |seed: u32, stack: &str| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2% jitter exponential(1 ms); }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b bulk_get exponential(5000)*100 over {stack} across wan;"
        )
    };
    for stack in ["saw", "window", "blast"] {
        let digests = |seed| {
            runs(&text(seed, stack))
                .expect("it ends")
                .iter()
                .map(|o| o.digest)
                .collect::<Vec<_>>()
        };
        assert_eq!(digests(1), digests(1));
        assert_ne!(digests(1)[0], digests(1)[1]);
        assert_ne!(digests(1), digests(2));
    }
}

/// Under the paper's conditions, fixed intervals and no pace, pinned to the last digit; `UPDATE_GOLDEN=1` writes them anew.
#[test]
fn the_same_text_gives_the_same_to_the_last_digit() {
    let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 1%; }\n";
    let mut table = String::new();
    for (network, name) in [(WAN, "clean"), (lossy, "1% loss")] {
        for what in [
            "bulk_get 10000*50",
            "bulk_put 10000*50",
            "rr 32*50",
            "connect_disconnect 0*20",
        ] {
            for stack in ALL {
                let (stack, options) = stack
                    .trim_end_matches(')')
                    .split_once('(')
                    .unwrap_or((stack, ""));
                let stack = format!("{stack}(interval = 0.2, {options})").replace(", )", ")");
                let outcome = run(&format!(
                    "{network}1 from a to b {what} over {stack} across wan;"
                ));
                let record = &outcome.records[0];
                let again =
                    |side: &SideRecord| side.transport.map_or(0, |(_, after)| after.retransmits);
                let _ = writeln!(
                    table,
                    "{name:<8} {stack:<42} {what:<24} {:>11} ns  {:>7} B  {:>3} calls  {:>3} packets again",
                    record.elapsed_ns,
                    record.data_bytes(),
                    record.calls.n() + record.connects.n(),
                    again(&record.initiator) + again(&record.responder),
                );
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/blast.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &table).expect("the tests are written to");
    }
    let pinned = std::fs::read_to_string(path).expect("the pinned results");
    assert!(
        table == pinned,
        "the results are others than those in blast.txt:\n{table}"
    );
}
