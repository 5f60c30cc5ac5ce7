//! Round trips of connections that carry a call each, across an emulated network: early data saves one of each connection but the first.

use crate::support::{Place, number, skip};

/// One way 10 ms, and bytes that take no time worth counting.
const NETWORK: &str = "network far { host a, b; link a - b 1 Gbit/s 10 ms; }";
const ROUND_TRIP_S: f64 = 0.02;
/// Runs, and the connections of each.
const RUNS: u64 = 3;
const CONNECTIONS: u64 = 5;

/// What opening a connection and a call on it take over a stack, in round trips, and how many connections began with early data in all. Both
/// times are the least of all connections, so that no busy processor is part of them.
fn round_trips(place: &Place, over: &str) -> (f64, u64) {
    let text = format!(
        "{NETWORK}
        procedure calls() {{
            initiator {{ StartMeasurement; repeat count {{ ConnectRequest; RPCCall(unit, unit); DisconnectRequest; }} StopMeasurement; }}
            responder {{ repeat count {{ AwaitConnectIndication; RPCAwaitCallInd(unit); RPCReturn(unit); AwaitDisconnectIndication; }} }}
        }}
        {RUNS} from a to b calls 100*{CONNECTIONS} over {over} across far;"
    );
    let json = place
        .stackline(&["run", "--json", "-e", &text, "--in", "emulated"])
        .json();
    let row = &json["measurements"][0];
    let early = &row["initiator"]["counts"]["handshakes_early"];
    let least = number(row, "/connect_s/min") + number(row, "/response_s/min");
    (least / ROUND_TRIP_S, early.as_u64().unwrap_or(0))
}

#[test]
fn early_data_saves_a_round_trip_of_each_connection_but_the_first() {
    let place = Place::new();
    let tried = place.stackline(&["net", "exec", "-e", NETWORK, "a", "--", "true"]);
    if tried.status.code() == Some(3) {
        skip(&tried.err);
        return;
    }
    // TCP's handshake, that of TLS, the call; QUIC has one handshake.
    for (stack, options, trips) in [
        ("tls", "resume", 3.0),
        ("http1", "tls, resume", 3.0),
        ("quic", "resume", 2.0),
    ] {
        let [whole, early] = ["", ", early_data"]
            .map(|early| round_trips(&place, &format!("{stack}({options}{early})")));
        assert!(
            (trips..trips + 1.0).contains(&whole.0) && whole.1 == 0,
            "{stack}: {whole:?}"
        );
        // All but the first of each run.
        assert!(
            (trips - 1.0..trips).contains(&early.0) && early.1 == RUNS * (CONNECTIONS - 1),
            "{stack}: {early:?}"
        );
    }
}

#[test]
fn a_client_that_resumes_disconnects_without_a_round_trip() {
    let place = Place::new();
    let tried = place.stackline(&["net", "exec", "-e", NETWORK, "a", "--", "true"]);
    if tried.status.code() == Some(3) {
        skip(&tried.err);
        return;
    }
    let text =
        format!("{NETWORK} 3 from a to b connect_disconnect 0*10 over tls(resume) across far;");
    let json = place
        .stackline(&["run", "--json", "-e", &text, "--in", "emulated"])
        .json();
    // TCP's handshake and that of TLS.
    let trips = number(&json, "/measurements/0/connect_s/min") / ROUND_TRIP_S;
    assert!((2.0..3.0).contains(&trips), "{trips}");
}

#[test]
fn early_data_has_to_resume_a_session_of_tls_1_3() {
    let place = Place::new();
    for (over, cause, hint) in [
        (
            "tls(early_data)",
            "the option `early_data` has no effect without `resume`",
            "write `resume` too",
        ),
        (
            "tls(resume, early_data, version = tls12)",
            "tls takes either early_data or version = tls12, not both",
            "keep one of them",
        ),
        (
            "quic(early_data)",
            "the option `early_data` has no effect without `resume`",
            "write `resume` too",
        ),
        (
            "quic(resume, early_data, streams = 2)",
            "quic takes either early_data or streams, not both",
            "keep one of them",
        ),
    ] {
        let text = format!("1 rr 32*10 over {over} in live;");
        place
            .stackline(&["check", "-e", &text])
            .mistakes(&[cause])
            .hints(hint);
    }
    for (over, option) in [
        ("tls(resume, early_data)", "early_data"),
        ("quic(migrate = 1 s)", "migrate"),
    ] {
        let text = format!("{NETWORK} 1 from a to b rr 32*10 over {over} across far in simulated;");
        place
            .stackline(&["check", "-e", &text])
            .mistakes(&[option])
            .hints("its options: ");
    }
}
