//! How connections of TLS and QUIC shake hands: whole, with a resumed session, with early data.

mod common;

use common::run;
use std::collections::BTreeMap;

/// Connections that carry a call each, or data in one direction.
const LOOPS: &str = "
procedure calls() {
  initiator { StartMeasurement; repeat count { ConnectRequest; RPCCall(unit, unit); DisconnectRequest; } StopMeasurement; }
  responder { repeat count { AwaitConnectIndication; RPCAwaitCallInd(unit); RPCReturn(unit); AwaitDisconnectIndication; } }
}
procedure pushes() {
  initiator { StartMeasurement; repeat count { ConnectRequest; DataRequest(unit); DisconnectRequest; } StopMeasurement; }
  responder { repeat count { AwaitConnectIndication; AwaitDataIndication(unit); AwaitDisconnectIndication; } }
}
procedure pulls() {
  initiator { StartMeasurement; repeat count { ConnectRequest; AwaitDataIndication(unit); DisconnectRequest; } StopMeasurement; }
  responder { repeat count { AwaitConnectIndication; DataRequest(unit); AwaitDisconnectIndication; } }
}
";

/// The handshakes that both sides count in five connections.
fn counts(application: &str, over: &str) -> [BTreeMap<String, u64>; 2] {
    run(&format!("{LOOPS} 1 {application}*5 over {over};")).map(|side| side.record.counts)
}

fn of(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let named = all.iter().map(|(name, count)| ((*name).to_owned(), *count));
    named.collect()
}

#[test]
fn handshakes_are_whole_unless_sessions_are_resumed() {
    let full = of(&[("handshakes_full", 5)]);
    let resumed = of(&[("handshakes_full", 1), ("handshakes_resumed", 4)]);
    for (over, expected) in [
        ("tls", &full),
        ("http1(tls)", &full),
        ("tls(resume)", &resumed),
        ("tls(resume, version = tls12)", &resumed),
        ("http1(tls, resume)", &resumed),
        ("http2(tls, resume)", &resumed),
        ("websocket(tls, resume)", &resumed),
        ("grpc(tls, resume)", &resumed),
    ] {
        let seen = counts("calls 100", over);
        assert_eq!(seen, [expected.clone(), expected.clone()], "{over}");
    }
}

#[test]
fn later_connections_begin_with_early_data() {
    let early = of(&[("handshakes_full", 1), ("handshakes_early", 4)]);
    for over in [
        "tls(resume, early_data)",
        "http1(tls, resume, early_data)",
        "http2(tls, resume, early_data)",
        "websocket(tls, resume, early_data)",
        "grpc(tls, resume, early_data)",
    ] {
        let seen = counts("calls 100", over);
        assert_eq!(seen, [early.clone(), early.clone()], "{over}");
    }
}

#[test]
fn what_is_more_than_early_data_follows_the_handshake() {
    for (application, received) in [
        ("calls 200000", [5 * 200_000; 2]),
        ("pushes 200000", [0, 5 * 200_000]),
        ("pushes 16384", [0, 5 * 16_384]),
        ("pulls 200000", [5 * 200_000, 0]),
    ] {
        let text = format!("{LOOPS} 1 {application}*5 over tls(resume, early_data);");
        let sides = run(&text);
        if !application.starts_with("calls") {
            let bytes = [0, 1].map(|side| sides[side].record.received_bytes);
            assert_eq!(bytes, received, "{application}");
        }
        begin_early(sides.map(|side| side.record.counts), application);
    }
}

/// Checks that of five connections all but the first, or the first two, begin early: tickets may come when the next one has begun.
fn begin_early(counts: [BTreeMap<String, u64>; 2], what: &str) {
    let [initiator, responder] = counts;
    assert_eq!(initiator, responder, "{what}");
    let count = |kind: &str| initiator.get(kind).copied().unwrap_or(0);
    let (full, early) = (count("handshakes_full"), count("handshakes_early"));
    assert!(full + early == 5 && early >= 3, "{what}: {initiator:?}");
}

#[test]
fn connections_without_data_send_none_early_and_resume_what_tickets_allow() {
    for over in [
        "tls(resume)",
        "tls(resume, early_data)",
        "http1(tls, resume)",
    ] {
        let sides = run(&format!("1 connect_disconnect 0*20 over {over};"));
        let counts = &sides[0].record.counts;
        let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
        // The tickets of a connection may come when the next one has begun.
        let full = count("handshakes_full");
        assert!((1..=2).contains(&full), "{over}: {counts:?}");
        assert_eq!(full + count("handshakes_resumed"), 20, "{over}");
        assert_eq!(sides[1].record.counts, *counts, "{over}");
    }
}

#[test]
fn quic_counts_its_handshakes_at_the_initiator() {
    for (over, expected) in [
        ("quic", of(&[("handshakes_full", 5)])),
        (
            "quic(resume)",
            of(&[("handshakes_full", 1), ("handshakes_resumed", 4)]),
        ),
        (
            "quic(resume, early_data)",
            of(&[("handshakes_full", 1), ("handshakes_early", 4)]),
        ),
    ] {
        let [initiator, responder] = counts("calls 100", over);
        assert_eq!(initiator, expected, "{over}");
        assert!(responder.is_empty(), "{over}: {responder:?}");
    }
    // Its client may leave before the tickets of a connection that began early come.
    let [initiator, _] = counts("calls 100", "http3(resume, early_data)");
    begin_early([initiator.clone(), initiator], "http3");
}

#[test]
fn early_data_of_quic_is_all_there() {
    for (application, received) in [
        ("pushes 200000", [0, 5 * 200_000]),
        ("pushes 100", [0, 500]),
        ("pulls 200000", [5 * 200_000, 0]),
    ] {
        for over in ["quic(resume, early_data)", "http3(resume, early_data)"] {
            let sides = run(&format!("{LOOPS} 1 {application}*5 over {over};"));
            let bytes = [0, 1].map(|side| sides[side].record.received_bytes);
            assert_eq!(bytes, received, "{application} over {over}");
        }
    }
}

#[test]
fn connections_of_quic_outlive_the_port_of_their_initiator() {
    for application in ["bulk_put 20000*1000000", "bulk_get 20000*1000000"] {
        for stack in ["quic", "http3"] {
            let sides = run(&format!(
                "1 timelimit 0.3 {application} over {stack}(migrate = 20 ms);"
            ));
            let what = format!("{application} over {stack}");
            let [initiator, responder] = sides.each_ref().map(|side| &side.record);
            let sent = [initiator.sent_bytes, responder.sent_bytes];
            assert_eq!(
                sent,
                [responder.received_bytes, initiator.received_bytes],
                "{what}"
            );
            assert!(sent.iter().sum::<u64>() > 0, "{what}");
            for side in [initiator, responder] {
                assert!(side.counts["migrations"] > 1, "{what}: {:?}", side.counts);
            }
        }
    }
}
