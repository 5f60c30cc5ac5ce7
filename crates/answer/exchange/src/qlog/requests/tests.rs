//! Requests of logs of one end and of both, and those without an answer.

use super::*;
use crate::qlog::read;

/// A log of an end: events of packets and frames, at times in ms.
fn log(side: &str, events: &[String]) -> String {
    format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"name":"web-{side}","type":"{side}"}},
        "common_fields":{{"ODCID":"abc","reference_time":0}},"events":[{}]}}]}}"#,
        events.join(",")
    )
}

fn packet(ms: u64, name: &str, kind: &str, frames: &str) -> String {
    format!(
        r#"{{"time":{ms},"name":"transport:{name}","data":{{"header":{{"packet_type":"{kind}"}},"frames":[{frames}]}}}}"#
    )
}

fn stream(id: u64, offset: u64, length: u64, is_last: bool) -> String {
    format!(
        r#"{{"frame_type":"stream","stream_id":{id},"offset":{offset},"length":{length},"fin":{is_last}}}"#
    )
}

fn headers(ms: u64, name: &str, id: u64, headers: &[(&str, &str)]) -> String {
    let headers = headers
        .iter()
        .map(|(name, value)| format!(r#"{{"name":"{name}","value":"{value}"}}"#));
    let headers = headers.collect::<Vec<_>>().join(",");
    format!(
        r#"{{"time":{ms},"name":"http3:{name}","data":{{"stream_id":{id},"frame":{{"frame_type":"headers","headers":[{headers}]}}}}}}"#
    )
}

fn client() -> String {
    let get = [(":method", "GET"), (":path", "/slow/17?token=SECRET")];
    log(
        "client",
        &[
            packet(0, "packet_sent", "initial", ""),
            packet(20, "packet_received", "handshake", ""),
            headers(21, "frame_created", 0, &get),
            packet(21, "packet_sent", "1RTT", &stream(0, 0, 100, true)),
            packet(75, "packet_received", "1RTT", &stream(0, 1000, 500, true)),
            packet(80, "packet_received", "1RTT", &stream(0, 0, 1000, false)),
            headers(80, "frame_parsed", 0, &[(":status", "200")]),
        ],
    )
}

fn server() -> String {
    log(
        "server",
        &[
            packet(10, "packet_received", "initial", ""),
            packet(31, "packet_received", "1RTT", &stream(0, 0, 100, true)),
            packet(64, "packet_sent", "1RTT", &stream(0, 0, 1000, false)),
            packet(65, "packet_sent", "1RTT", &stream(0, 1000, 500, true)),
            packet(70, "packet_sent", "1RTT", &stream(0, 0, 1000, false)),
        ],
    )
}

fn found(logs: &[String]) -> Vec<Exchange> {
    let connections = logs
        .iter()
        .flat_map(|log| read(log.as_bytes(), None, false).unwrap().connections)
        .collect();
    let ends = [0, 1].map(|host| ExchangeEnd {
        host: Some(host),
        address: SocketAddr::new(stand_in(QlogSide::Client), 0),
    });
    let joined = join_ends(connections);
    let each = (0..).zip(&joined);
    each.flat_map(|(flow, connection)| exchanges_of(connection, flow, &ends))
        .collect()
}

const MS: u64 = 1_000_000;

#[test]
fn the_client_s_log_has_its_request_by_name() {
    let [request] = &found(&[client()])[..] else {
        panic!("one request");
    };
    assert_eq!(request.name.kept(), "GET /slow/17?token=…");
    assert_eq!(request.status.kept(), "200");
    assert_eq!(request.protocol, "HTTP/3");
    assert_eq!(request.handshake, Some((0, 21 * MS)));
    assert_eq!(request.request.left, Some((21 * MS, 21 * MS)));
    assert_eq!(request.request.arrived, None);
    // What came too early is there when the rest is.
    let response = request.response.as_ref().unwrap();
    assert_eq!(response.arrived, Some((80 * MS, 80 * MS)));
    assert_eq!((response.end, request.void), (1500, None));
}

#[test]
fn logs_of_both_ends_are_one_request_with_the_way_between() {
    for logs in [[client(), server()], [server(), client()]] {
        let [request] = &found(&logs)[..] else {
            panic!("one request");
        };
        assert_eq!(request.request.left, Some((21 * MS, 21 * MS)));
        assert_eq!(request.request.arrived, Some((31 * MS, 31 * MS)));
        let response = request.response.as_ref().unwrap();
        assert_eq!(response.left, Some((64 * MS, 65 * MS)));
        assert_eq!((response.again, response.again_ns), (1, 6 * MS));
        assert_eq!(request.handshake, Some((0, 21 * MS)));
    }
}

#[test]
fn what_is_not_answered_has_its_reason() {
    let asked = packet(1, "packet_sent", "1RTT", &stream(0, 0, 100, true));
    let part = packet(9, "packet_received", "1RTT", &stream(0, 0, 700, false));
    let reset = r#"{"frame_type":"reset_stream","stream_id":0}"#;
    let close = r#"{"frame_type":"connection_close"}"#;
    let void = |events: &[String]| {
        let [request] = &found(&[log("client", events)])[..] else {
            panic!("one request");
        };
        (request.void, request.gave_up)
    };
    let [asked, part] = [&asked, &part].map(String::clone);
    assert_eq!(void(std::slice::from_ref(&asked)), (Some(UNANSWERED), None));
    assert_eq!(void(&[asked.clone(), part]), (Some(CUT_OFF), None));
    let reset = packet(12, "packet_received", "1RTT", reset);
    let gave_up = Some(12 * MS);
    assert_eq!(void(&[asked.clone(), reset]), (Some(RESET_BEFORE), gave_up));
    let close = packet(12, "packet_received", "1RTT", close);
    assert_eq!(void(&[asked, close]), (Some(SERVER_CLOSED), gave_up));
}

/// A packet with a number, as [`packet`].
fn numbered(ms: u64, number: u64, frames: &str) -> String {
    let sent = packet(ms, "packet_sent", "1RTT", frames);
    let number = format!(r#""packet_type":"1RTT","packet_number":{number}"#);
    sent.replace(r#""packet_type":"1RTT""#, &number)
}

fn acknowledged(ms: u64, up_to: u64) -> String {
    let frame = format!(r#"{{"frame_type":"ack","acked_ranges":[[0,{up_to}]]}}"#);
    packet(ms, "packet_received", "1RTT", &frame)
}

#[test]
fn a_client_that_sends_nothing_while_nothing_hinders_it_pauses() {
    let upload = log(
        "client",
        &[
            numbered(0, 1, &stream(0, 0, 1000, false)),
            acknowledged(20, 1),
            numbered(320, 2, &stream(0, 1000, 1000, false)),
            // What follows while packets are in flight is no pause.
            numbered(330, 3, &stream(0, 2000, 1000, false)),
            acknowledged(350, 3),
            numbered(450, 4, &stream(0, 3000, 1000, true)),
            acknowledged(470, 4),
            packet(480, "packet_received", "1RTT", &stream(0, 0, 500, true)),
        ],
    );
    let [request] = &found(&[upload])[..] else {
        panic!("one request");
    };
    assert_eq!(request.request.paused_ns, 400 * MS);
    // The time between two requests belongs to neither.
    let two = log(
        "client",
        &[
            numbered(0, 1, &stream(0, 0, 1000, true)),
            acknowledged(20, 1),
            numbered(320, 2, &stream(4, 0, 1000, true)),
            acknowledged(340, 2),
        ],
    );
    let paused: Vec<u64> = found(&[two])
        .iter()
        .map(|one| one.request.paused_ns)
        .collect();
    assert_eq!(paused, [0, 0]);
}

#[test]
fn streams_in_one_direction_and_numbers_beyond_all_bounds_are_no_requests() {
    let huge = packet(1, "packet_sent", "1RTT", &stream(0, u64::MAX, 5, true));
    let one_way = packet(2, "packet_sent", "1RTT", &stream(2, 0, 5, true));
    let found = found(&[log("client", &[huge, one_way])]);
    assert_eq!(found, []);
}

#[test]
fn where_a_log_never_says_which_frame_is_the_last_all_that_came_is_the_answer() {
    let without = |text: String| {
        text.replace(r#","fin":true"#, "")
            .replace(r#","fin":false"#, "")
    };
    let [request] = &found(&[without(client())])[..] else {
        panic!("one request");
    };
    assert_eq!((request.void, request.end_ns()), (None, Some(80 * MS)));
}

#[test]
fn an_answer_that_left_and_did_not_come_is_cut_off() {
    let asked = packet(1, "packet_sent", "1RTT", &stream(0, 0, 100, true));
    let part = packet(9, "packet_received", "1RTT", &stream(0, 0, 700, false));
    for logs in [
        [log("client", &[asked.clone(), part.clone()]), server()],
        [server(), log("client", &[asked.clone(), part.clone()])],
    ] {
        assert_eq!(found(&logs)[0].void, Some(CUT_OFF));
    }
}

#[test]
fn a_stream_of_headers_alone_has_no_moment_and_is_no_request() {
    let get = [(":method", "GET"), (":path", "/")];
    assert_eq!(
        found(&[log("client", &[headers(1, "frame_created", 0, &get)])]),
        []
    );
}
