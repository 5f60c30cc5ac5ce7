//! Datagrams in virtual time: losses, fragments, what a receiver misses.

mod common;
use common::{WAN, run};

fn over(link: &str, what: &str) -> stackline_sim::SimRunOutcome {
    run(&format!(
        "network wan {{ host a, b; link a - b 10 Mbit/s 1 ms {link}; }}\n1 from a to b {what} across wan;"
    ))
}

#[test]
fn exactly_what_the_link_lost_is_counted() {
    // HELLO, START and 1000 units go one way before anything is repeated: units 98, 198, ... are lost.
    let outcome = over("loss every 100", "bulk_put 1000*1000 over udp");
    let record = &outcome.records[0];
    let sent = outcome.ports[0].packets + outcome.ports[0].dropped();
    assert!(sent >= 1000, "{sent}");
    assert_eq!(record.responder.lost, Some(10));
    assert_eq!(record.responder.received_units + 10, 1000);
    assert_eq!(record.responder.received_bytes, 990_000);
}

#[test]
fn drawn_sizes_are_large_enough_for_their_numbers() {
    let outcome = over("", "stream exponential(100)*3000 constant(1 ms) over udp");
    let record = &outcome.records[0].responder;
    assert_eq!((record.lost, record.received_units), (Some(0), 3000));
}

#[test]
fn duplicates_and_late_ones_are_distinguished() {
    let outcome = over(
        "jitter uniform(0, 5 ms) reordering duplicate 10%",
        "bulk_put 1000*1000 over udp",
    );
    let record = &outcome.records[0].responder;
    assert_eq!(record.lost, Some(0));
    assert!(
        (50..150).contains(&record.duplicated.unwrap()),
        "{record:?}"
    );
    assert!(record.reordered.unwrap() > 100, "{record:?}");
}

#[test]
fn a_lost_fragment_loses_its_datagram() {
    let whole = over("", "bulk_put 4000*100 over udp");
    assert_eq!(whole.records[0].responder.lost, Some(0));
    // Three fragments a datagram.
    assert!(whole.ports[0].packets >= 300, "{:?}", whole.ports[0]);
    let torn = over("loss every 7", "bulk_put 4000*100 over udp");
    let lost = torn.records[0].responder.lost.unwrap();
    assert!((35..50).contains(&lost), "{lost} of 100");
}

#[test]
fn an_answer_that_does_not_come_is_a_loss() {
    let outcome = over("loss every 10", "rr 100*100 over udp(timeout = 50 ms)");
    let record = &outcome.records[0];
    let lost = record.initiator.lost.unwrap();
    assert!((15..25).contains(&lost), "{lost}");
    assert_eq!(record.calls.n() + lost, 100);
}

#[test]
fn a_duplicated_call_is_one_call() {
    for size in [1, 100] {
        let outcome = over("duplicate 100%", &format!("rr {size}*300 over udp"));
        let record = &outcome.records[0];
        assert_eq!(
            (record.initiator.lost, record.calls.n()),
            (Some(0), 300),
            "{size}"
        );
    }
}

#[test]
fn a_sender_waits_for_its_interface() {
    // 1000 units of 1028 bytes at 10 Mbit/s, however small the buffer.
    for buffer in ["2 KiB", "208 KiB"] {
        let outcome = over(
            "",
            &format!("bulk_put 1000*1000 over udp(send_buffer = {buffer})"),
        );
        let seconds = outcome.records[0].elapsed_ns as f64 / 1e9;
        assert!((0.822..0.830).contains(&seconds), "{seconds}");
        assert_eq!(outcome.records[0].responder.lost, Some(0));
    }
}

#[test]
fn a_receiver_that_does_something_else_misses_what_does_not_fit() {
    let procedure = "procedure sleepy { initiator { ConnectRequest; StartMeasurement; StartBulkPut; \
        repeat count { DataRequest(unit); } StopBulkPut; StopMeasurement; DisconnectRequest; } \
        responder { AwaitConnectIndication; AwaitStartBulkPut; Delay(constant(500 ms)); \
        repeat count { AwaitDataIndication(unit); } AwaitStopBulkPut; AwaitDisconnectIndication; } }\n";
    let text = |buffer: &str| {
        format!(
            "{procedure}{WAN}1 from a to b sleepy 1000*400 over udp(receive_buffer = {buffer}) across wan;"
        )
    };
    assert_eq!(run(&text("1 MiB")).records[0].responder.lost, Some(0));
    assert!(run(&text("100 KiB")).records[0].responder.lost.unwrap() > 200);
}

#[test]
fn what_the_first_link_loses_frees_its_sender_once() {
    // Half of all packets are lost, and still no more of them fit into the link's time.
    let outcome = over(
        "loss every 2",
        "bulk_put 1000*1000 over udp(send_buffer = 4 KiB)",
    );
    let seconds = outcome.records[0].elapsed_ns as f64 / 1e9;
    assert!((0.822..0.90).contains(&seconds), "{seconds}");
    let lost = outcome.records[0].responder.lost.unwrap();
    assert!((480..=520).contains(&lost), "{lost}");
}

#[test]
fn senders_that_fill_their_host_s_queue_together_go_on_in_time() {
    let outcome = run(
        "network wan { host a, b; link a - b 10 Mbit/s 1 ms queue 20 packets; }\n\
         1 timelimit 0.5 total over udp across wan: 4 from a to b bulk_put 1000*1000000;",
    );
    let record = &outcome.records[0];
    // 0.5 s of the link's time, whoever gets it.
    assert!(
        (550..700).contains(&record.responder.received_units),
        "{record:?}"
    );
    assert!(record.responder.lost.unwrap() > 0);
}

#[test]
fn a_connection_over_a_long_path_takes_two_round_trips() {
    let far = "network far { host a, b; link a - b unlimited 300 ms; }\n";
    let outcome = run(&format!(
        "{far}1 from a to b connect_disconnect 1*20 over udp across far in simulated;"
    ));
    let connects = &outcome.records[0].connects;
    // HELLO and BYE are each answered.
    assert_eq!((connects.n(), connects.sum / 20), (20, 1_200_000_000));
}
