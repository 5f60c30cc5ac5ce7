//! How parts go together, time limits, delays and paces, clocks, and what is refused.

mod common;
use common::{WAN, refused, run, runs, runs_within};
use stackline_core::time::Duration;
use stackline_sim::SimRunLimits;

#[test]
fn parallel_parts_share_the_link() {
    let text = format!(
        "{WAN}1 parallel over tcp across wan: from a to b bulk_put 10000*200 | from a to b bulk_put 10000*200;"
    );
    let outcome = run(&text);
    assert_eq!(outcome.records.len(), 2);
    // Both begin at once; the one that is done first leaves the whole link to the other.
    let longest = outcome
        .records
        .iter()
        .map(|record| record.elapsed_ns)
        .max()
        .unwrap();
    let together = 2.0 * 2e6 * 8.0 / (longest as f64 / 1e9);
    assert!((9e6..9.66e6).contains(&together), "{together}");
}

#[test]
fn replicas_are_summed() {
    let outcome = run(
        &format!("{WAN}1 across wan: 4 from a to b bulk_put 10000*50 over tcp;")
            .replace("across wan: ", "total over tcp across wan: ")
            .replace(" over tcp;", ";"),
    );
    let record = &outcome.records[0];
    assert_eq!(
        (record.replicas, record.responder.received_bytes),
        (4, 2_000_000)
    );
    assert!(record.span_ns >= record.elapsed_ns);
}

#[test]
fn a_load_runs_before_and_until_the_measured_part_is_done() {
    let alone = run(&format!("{WAN}1 from a to b rr 32*20 over tcp across wan;"));
    let text = format!(
        "{WAN}1 background over tcp across wan: from a to b rr 32*20 | from a to b bulk_put 10000*5;"
    );
    let loaded = run(&text);
    assert_eq!(loaded.records[0].calls.n(), 20);
    assert!(
        loaded.records[0].calls.sum > 2 * alone.records[0].calls.sum,
        "requests wait behind the load"
    );
    assert!(
        loaded.records[1].responder.received_bytes > 50_000,
        "the load goes on"
    );
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
            "{WAN}1 timelimit 1 from a to b {what} over tcp(send_buffer = 64 KiB) across wan;"
        );
        let record = run(&text).records.remove(0);
        assert!(record.limited, "{what}");
        let seconds = record.elapsed_ns as f64 / 1e9;
        assert!((0.99..1.3).contains(&seconds), "{what}: {seconds}");
    }
    let record = run(&format!(
        "{WAN}1 timelimit 1 from a to b bulk_put 1000*100000 over udp across wan;"
    ))
    .records
    .remove(0);
    assert!(
        record.limited && record.responder.lost == Some(0),
        "{record:?}"
    );
}

#[test]
fn a_pace_keeps_its_moments_and_a_delay_adds_up() {
    let paced = run(&format!(
        "{WAN}1 from a to b rr 32*10 constant(50 ms) over udp across wan;"
    ));
    let record = &paced.records[0];
    // The tenth request leaves at 500 ms and is answered 20.096 ms later.
    assert_eq!(record.elapsed_ns, 500_000_000 + 20_096_000);
    assert_eq!(record.lateness.min_max, Some((0, 0)));
    let late = run(&format!(
        "{WAN}1 from a to b rr 32*10 constant(5 ms) over udp across wan;"
    ));
    // It cannot keep up: the last one counts from when it should have begun.
    assert_eq!(
        late.records[0].calls.min_max.unwrap().1,
        10 * 20_096_000 - 9 * 5_000_000
    );
    let served = run(&format!(
        "{WAN}1 from a to b rr 32*10 constant(0) constant(3 ms) over udp across wan;"
    ));
    assert_eq!(served.records[0].elapsed_ns, 10 * (20_096_000 + 3_000_000));
}

#[test]
fn a_fast_clock_reads_more_and_changes_nothing() {
    let text = |clock: &str| {
        format!(
            "network wan {{ host a {{ {clock} }} host b; link a - b 10 Mbit/s 10 ms; }}\n1 from a to b rr 32*100 over tcp across wan;"
        )
    };
    let (right, fast) = (
        run(&text("")),
        run(&text("clock fast 1000 ppm; clock behind 1 s;")),
    );
    assert_eq!(right.digest, fast.digest);
    let share = fast.records[0].elapsed_ns as f64 / right.records[0].elapsed_ns as f64;
    assert!((share - 1.001).abs() < 1e-6, "{share}");
    let back = run(&text("clock behind 1 s at 1 s;"));
    assert_eq!(back.digest, right.digest);
    assert!(back.records[0].elapsed_ns + 900_000_000 < right.records[0].elapsed_ns + 1_000_000_000);
}

#[test]
fn one_seed_one_digest() {
    let text = |seed: u32| {
        let lossy = "network wan { host a, b; link a - b 10 Mbit/s 10 ms loss 2% jitter exponential(1 ms); }";
        format!(
            "seed {seed};\n{lossy}\n2 from a to b bulk_get exponential(5000)*100 over tcp across wan;"
        )
    };
    let digests = |seed| {
        runs(&text(seed))
            .unwrap()
            .iter()
            .map(|o| o.digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1)[0], digests(1)[1]);
    assert_ne!(digests(1), digests(2));
}

#[test]
fn thousands_of_pairs_run_at_once() {
    let wide = "network wan { host a, b; link a - b 1 Gbit/s 10 ms; }\n";
    let outcome = run(&format!(
        "{wide}1 total over udp across wan: 3000 from a to b rr 32*3;"
    ));
    assert_eq!(outcome.records[0].calls.n(), 9000);
    let outcome = run(&format!(
        "{wide}1 total over tcp across wan: 1000 from a to b bulk_put 5000*2;"
    ));
    assert_eq!(outcome.records[0].responder.received_bytes, 10_000_000);
}

#[test]
fn endpoints_that_wait_for_each_other_are_refused() {
    let stuck = "procedure stuck { initiator { ConnectRequest; StartMeasurement; AwaitDataIndication(unit); \
        StopMeasurement; DisconnectRequest; } responder { AwaitConnectIndication; Delay(constant(1 ms)); \
        DataRequest(unit); AwaitDisconnectIndication; } }\n";
    let dead = "network wan { host a, b; link a -> b 10 Mbit/s 1 ms; link b -> a 10 Mbit/s 1 ms loss every 2; }\n";
    let failure = refused(&format!(
        "{stuck}{dead}1 from a to b stuck 100 over udp across wan;"
    ));
    assert!(
        failure.message.starts_with("the run is deadlocked at 0.0"),
        "{failure}"
    );
    assert!(
        failure
            .message
            .contains("the initiator on a is waiting for a data unit"),
        "{failure}"
    );
    assert!(failure.hint.is_some());
}

#[test]
fn what_is_not_simulated_is_refused_with_a_hint() {
    for (text, cause) in [
        (
            "1 from a to b bulk_put 10*10 over tcp on cpu 1 across wan;",
            "no cores",
        ),
        (
            "1 from a to b bulk_put 10*10 < virtual memory over tcp across wan;",
            "virtual memory",
        ),
        (
            "1 priority background over tcp across wan: from a to b rr 32*5 | from a to b rr 32*5;",
            "no priorities",
        ),
        (
            "1 from a to a rr 32*5 over tcp across wan;",
            "send to itself",
        ),
    ] {
        let failure = refused(&format!("{WAN}{text}"));
        assert!(failure.message.contains(cause), "{failure}");
        assert!(failure.hint.is_some());
    }
    let endless = "network wan { host a, b; link a - b unlimited 10 ms; }\n";
    let text =
        format!("{endless}1 timelimit 1 from a to b bulk_put 1000*100000000 over udp across wan;");
    let few = SimRunLimits {
        steps_an_instant: 10_000,
        ..SimRunLimits::default()
    };
    let failure = runs_within(&text, few).unwrap_err();
    assert!(
        failure.message.starts_with("virtual time is stuck"),
        "{failure}"
    );
}

#[test]
fn a_run_that_does_not_end_is_given_up() {
    let short = SimRunLimits {
        virtual_time: Duration(1_000_000_000),
        ..SimRunLimits::default()
    };
    let failure = runs_within(
        &format!("{WAN}1 from a to b rr 32*100 over tcp across wan;"),
        short,
    )
    .unwrap_err();
    assert!(
        failure
            .message
            .starts_with("the run did not end within 1.00 s of virtual time: "),
        "{failure}"
    );
    assert!(
        failure
            .message
            .contains("the initiator on a is waiting for data units"),
        "{failure}"
    );
}

#[test]
fn what_lies_between_connecting_and_disconnecting_is_no_part_of_either() {
    let procedure = "procedure held(t) { initiator { StartMeasurement; repeat count { ConnectRequest; Delay(t); DisconnectRequest; } \
        StopMeasurement; } responder { repeat count { AwaitConnectIndication; AwaitDisconnectIndication; } } }\n";
    let held = run(&format!(
        "{procedure}{WAN}1 from a to b held 0*20 constant(1 s) over tcp across wan;"
    ))
    .records
    .remove(0);
    let plain = run(&format!(
        "{WAN}1 from a to b connect_disconnect 0*20 over tcp across wan;"
    ))
    .records
    .remove(0);
    assert!(held.elapsed_ns > 20_000_000_000);
    // The handshake alone, 20.096 ms; of connections one behind the other, a FIN may stand before the next SYN on the link.
    assert_eq!(
        (held.connects.n(), held.connects.sum),
        (20, 20 * 20_096_000)
    );
    assert!(plain.connects.sum - held.connects.sum < 1_000_000);
}

#[test]
fn a_call_confirms_what_was_sent_before_it() {
    let notes = |steps: &str, mirrored: &str| {
        let procedure = format!(
            "procedure p {{ initiator {{ ConnectRequest; StartMeasurement; repeat count {{ {steps} }} StopMeasurement; DisconnectRequest; }} \
             responder {{ AwaitConnectIndication; repeat count {{ {mirrored} }} AwaitDisconnectIndication; }} }}\n"
        );
        run(&format!(
            "{procedure}{WAN}1 from a to b p 100*5 over tcp across wan;"
        ))
        .records
        .remove(0)
        .initiator
        .notes
    };
    let (send, take) = ("DataRequest(100);", "AwaitDataIndication(100);");
    let (call, answer) = ("RPCCall(10, 10);", "RPCAwaitCallInd(10); RPCReturn(10);");
    let confirmed = notes(&format!("{send} {call}"), &format!("{take} {answer}"));
    assert!(confirmed.is_empty(), "{confirmed:?}");
    let open = notes(&format!("{call} {send}"), &format!("{answer} {take}"));
    assert!(
        open.iter().any(|note| note.starts_with("not confirmed")),
        "{open:?}"
    );
}

#[test]
fn a_pace_begins_when_the_data_may_begin() {
    for stack in ["udp", "tcp(nodelay)", "quic"] {
        let text =
            format!("{WAN}1 from a to b stream 100*5 constant(1 ms) over {stack} across wan;");
        let late = run(&text).records.remove(0).lateness;
        assert!(
            late.n() == 5 && late.min_max.is_some_and(|(_, most)| most < 1_000),
            "{stack} {late:?}"
        );
    }
}

/// 300 units of 1000 B before the clock, 500 within it, 200 behind it.
fn timed_in_the_middle(
    within: &str,
    there: &str,
    over: &str,
    link: &str,
) -> stackline_core::run_record::RunRecord {
    let outside = |times: u32, operation: &str| format!("repeat {times} {{ {operation}(1000); }}");
    let initiator = format!(
        "{} StartMeasurement; {within} StopMeasurement; {}",
        outside(300, "DataRequest"),
        outside(200, "DataRequest")
    );
    let responder = format!(
        "{} {there} {}",
        outside(300, "AwaitDataIndication"),
        outside(200, "AwaitDataIndication")
    );
    let procedure = format!(
        "procedure p {{ initiator {{ ConnectRequest; {initiator} DisconnectRequest; }} \
         responder {{ AwaitConnectIndication; {responder} AwaitDisconnectIndication; }} }}\n"
    );
    let network = format!("network wan {{ host a, b; link a - b 10 Mbit/s 10 ms {link}; }}\n");
    run(&format!(
        "{network}{procedure}1 from a to b p {over} across wan;"
    ))
    .records
    .remove(0)
}

#[test]
fn units_outside_the_clock_count_nowhere() {
    let (put, take) = (
        "StartBulkPut; repeat count { DataRequest; } StopBulkPut;",
        "AwaitStartBulkPut; repeat count { AwaitDataIndication; } AwaitStopBulkPut;",
    );
    let (get, give) = (
        "StartBulkGet; repeat count { AwaitDataIndication; } StopBulkGet;",
        "AwaitStartBulkGet; repeat count { DataRequest; } AwaitStopBulkGet;",
    );
    for over in [
        "1000*500 over tcp",
        "1000*500 over udp",
        "uniform(1000, 1000)*500 over quic",
    ] {
        let record = timed_in_the_middle(put, take, over, "");
        let (sent, came) = (&record.initiator, &record.responder);
        assert_eq!(
            (sent.sent_units, came.received_units, came.received_bytes),
            (500, 500, 500_000),
            "{over}"
        );
        let record = timed_in_the_middle(get, give, over, "");
        assert_eq!(
            (record.responder.sent_units, record.data_bytes()),
            (500, 500_000),
            "{over}"
        );
    }
}

#[test]
fn losses_among_units_outside_the_clock_leave_the_throughput_out() {
    let (put, take) = (
        "StartBulkPut; repeat count { DataRequest; } StopBulkPut;",
        "AwaitStartBulkPut; repeat count { AwaitDataIndication; } AwaitStopBulkPut;",
    );
    let record = timed_in_the_middle(put, take, "1000*500 over udp", "loss every 50").responder;
    assert!(!record.bytes_are_timed(), "{record:?}");
    let whole = timed_in_the_middle(put, take, "1000*500 over udp", "").responder;
    assert!(whole.bytes_are_timed(), "{whole:?}");
}

#[test]
fn a_time_limit_within_the_clock_leaves_what_follows_uncounted() {
    let (calls, answers) = (
        "repeat count { DataRequest; AwaitDataIndication; }",
        "repeat count { AwaitDataIndication; DataRequest; }",
    );
    let record = timed_in_the_middle(calls, answers, "1000 over tcp(nodelay) timelimit 1", "");
    assert!(
        record.limited && record.initiator.received_units > 30,
        "{record:?}"
    );
    assert_eq!(record.initiator.sent_units, record.initiator.received_units);
    assert_eq!(record.responder.received_units, record.initiator.sent_units);
}
