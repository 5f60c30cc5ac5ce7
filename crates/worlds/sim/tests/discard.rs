//! Datagrams that nobody answers, in virtual time.

mod common;
use common::run;
use stackline_core::run_record::RunRecord;

fn over(link: &str, what: &str) -> RunRecord {
    let network = format!("network wan {{ host a, b; link a - b 10 Mbit/s 1 ms {link}; }}");
    run(&format!("{network}\n1 from a to b {what} across wan;"))
        .records
        .remove(0)
}

#[test]
fn nothing_travels_but_the_data() {
    let outcome = run("network wan { host a, b; link a - b 10 Mbit/s 1 ms; }\n\
        1 from a to b bulk_put 972*1000 over discard across wan;");
    assert_eq!(
        (outcome.ports[0].packets, outcome.ports[1].packets),
        (1000, 0)
    );
    let record = &outcome.records[0];
    // Datagrams of 1000 bytes at 10 Mbit/s, until the last has left.
    assert_eq!(record.elapsed_ns, 800_000_000);
    assert_eq!(
        (record.responder.received_units, record.responder.lost),
        (1000, Some(0))
    );
    assert!(
        record.initiator.notes[0].starts_with("not confirmed"),
        "{record:?}"
    );
}

#[test]
fn exactly_what_the_link_lost_is_counted() {
    let record = over("loss every 100", "bulk_put 1000*1000 over discard");
    assert_eq!(
        (record.responder.received_units, record.responder.lost),
        (990, Some(10))
    );
    assert_eq!(record.responder.received_bytes, 990_000);
}

#[test]
fn duplicates_and_late_ones_are_distinguished() {
    let record = over(
        "jitter uniform(0, 5 ms) reordering duplicate 10%",
        "bulk_put 1000*1000 over discard",
    )
    .responder;
    assert_eq!((record.received_units, record.lost), (1000, Some(0)));
    assert!(
        (50..150).contains(&record.duplicated.unwrap()),
        "{record:?}"
    );
    assert!(record.reordered.unwrap() > 100, "{record:?}");
}

#[test]
fn what_is_missing_counts_as_lost_after_the_patience() {
    let procedure = "procedure often { initiator { StartMeasurement; repeat count { ConnectRequest; repeat 1 { DataRequest(unit); } \
        DisconnectRequest; } StopMeasurement; } responder { repeat count { AwaitConnectIndication; \
        repeat 1 { AwaitDataIndication(unit); } AwaitDisconnectIndication; } } }";
    let network = "network wan { host a, b; link a - b 10 Mbit/s 1 ms loss every 5; }";
    let outcome = run(&format!(
        "{procedure}\n{network}\n1 from a to b often 972*20 over discard(patience = 2 s) across wan;"
    ));
    let record = &outcome.records[0];
    assert_eq!(
        (record.responder.received_units, record.responder.lost),
        (16, Some(4))
    );
    // A unit takes 1.8 ms; three times the next connection waits until the one before is given up.
    assert_eq!(record.elapsed_ns, 16 * 1_800_000 + 3 * 2_000_000_000);
}

#[test]
fn a_time_limit_ends_the_stream() {
    let network = "network wan { host a, b; link a - b 10 Mbit/s 1 ms; }";
    let record = &run(&format!(
        "{network}\n1 timelimit 0.5 from a to b bulk_put 972 over discard across wan;"
    ))
    .records[0];
    assert!(
        (600..=800).contains(&record.responder.received_units),
        "{record:?}"
    );
    assert_eq!(record.responder.lost, Some(0));
}
