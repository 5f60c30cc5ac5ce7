//! Conversations in HTTP/1 as scripts.

use super::super::script_testing::{DialogueScript, lines_however_cut, run_script};
use super::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Http1>(script)
}

#[test]
fn a_request_and_its_response_by_length() {
    let script: DialogueScript<'_> = &[
        ('>', b"GET /item/7?q=1 HTTP/1.1\r\nHost: a\r\n\r\n"),
        ('<', b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ('>', b"POST /x HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc"),
        ('<', b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0",
            "0 request is GET /item/7?q=1",
            "0 request ends > 37",
            "0 response begins < 0",
            "0 response is 200",
            "0 response ends < 43",
            "1 request begins > 37",
            "1 request is POST /x",
            "1 request ends > 79",
            "1 response begins < 43",
            "1 response is 404",
            "1 response ends < 88",
        ]
    );
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let script: DialogueScript<'_> = &[
        ('>', b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
        (
            '<',
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            '<',
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
        ),
    ];
    let dissected = dissect_lines(script);
    assert!(
        dissected.contains(&"0 response ends < 60".into()),
        "{dissected:?}"
    );
    assert_eq!(
        dissected[dissected.len() - 3..],
        [
            "1 response begins < 60",
            "1 response is 304",
            "1 response ends < 109"
        ]
    );
}

#[test]
fn interim_responses_head_and_bodies_until_the_end() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            b"PUT /a HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
        ),
        ('<', b"HTTP/1.1 100 Continue\r\n\r\n"),
        ('>', b"x"),
        ('<', b"HTTP/1.1 204 No Content\r\n\r\n"),
        ('>', b"HEAD /b HTTP/1.1\r\n\r\n"),
        ('<', b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        ('>', b"GET /c HTTP/1.0\r\n\r\n"),
        ('<', b"HTTP/1.0 200 OK\r\n\r\nall of it"),
        ('<', b""),
    ];
    let ends: Vec<String> = dissect_lines(script)
        .into_iter()
        .filter(|line| line.contains("ends <"))
        .collect();
    assert_eq!(
        ends,
        [
            "0 response ends < 52",
            "1 response ends < 93",
            "2 response ends < 121"
        ]
    );
}

#[test]
fn events_of_a_stream_are_parts() {
    let script: DialogueScript<'_> = &[
        ('>', b"GET /events HTTP/1.1\r\n\r\n"),
        ('<', b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ('<', b"9\r\ndata: 1\n\n\r\n"),
        ('<', b"9\r\ndata: 2\n\n\r\n"),
    ];
    let parts: Vec<String> = dissect_lines(script)
        .into_iter()
        .filter(|line| line.contains("part"))
        .collect();
    assert_eq!(parts, ["0 part < 92", "0 part < 106"]);
}

#[test]
fn an_upgraded_connection_goes_by_turns() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        ),
        ('<', b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ('>', b"\x81\x05hello"),
        ('<', b"\x81\x05there"),
    ];
    let mut dissector = Http1::default();
    let dissected = run_script(&mut dissector, script);
    assert_eq!(
        dissected[dissected.len() - 2..],
        ["1 request ends > 68", "1 response begins < 36"]
    );
    assert!(!dissector.is_exact());
}

#[test]
fn what_was_not_seen_within_a_body_does_no_harm_and_within_a_head_makes_void() {
    let mut http = Http1::default();
    let mut found = Vec::new();
    http.bytes(
        EventStreamDirection::There,
        0,
        b"GET /1 HTTP/1.1\r\n\r\n",
        &mut found,
    );
    http.bytes(
        EventStreamDirection::Back,
        0,
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab",
        &mut found,
    );
    http.unseen(EventStreamDirection::Back, 42, 98, &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 0,
                at: 140,
                ..
            })
        ),
        "{found:?}"
    );
    http.bytes(
        EventStreamDirection::There,
        19,
        b"GET /2 HTTP/1.1\r\n\r\n",
        &mut found,
    );
    http.unseen(EventStreamDirection::Back, 140, 20, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 1, .. })),
        "{found:?}"
    );
    // From the next head on it is known again.
    http.bytes(
        EventStreamDirection::There,
        38,
        b"GET /3 HTTP/1.1\r\n\r\n",
        &mut found,
    );
    http.bytes(
        EventStreamDirection::Back,
        160,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        &mut found,
    );
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 2,
                role: ExchangeRole::Response,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn what_is_whole_stays_so_and_what_is_void_ends_no_more() {
    let mut http = Http1::default();
    let mut found = Vec::new();
    http.bytes(
        EventStreamDirection::There,
        0,
        b"GET /1 HTTP/1.1\r\n\r\n",
        &mut found,
    );
    http.bytes(
        EventStreamDirection::Back,
        0,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        &mut found,
    );
    found.clear();
    http.unseen(EventStreamDirection::There, 19, 10, &mut found);
    assert_eq!(found, []);
    http.bytes(
        EventStreamDirection::There,
        29,
        b"PUT /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\na",
        &mut found,
    );
    http.unseen(EventStreamDirection::Back, 27, 10, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 1, .. })),
        "{found:?}"
    );
    found.clear();
    http.bytes(EventStreamDirection::There, 68, b"bc", &mut found);
    assert_eq!(found, []);
}

#[test]
fn what_is_no_http_and_endless_heads_are_void() {
    let mut http = Http1::default();
    let mut found = Vec::new();
    http.bytes(
        EventStreamDirection::There,
        0,
        b"GET /1 HTTP/1.1\r\n",
        &mut found,
    );
    for at in 0..40_u64 {
        http.bytes(
            EventStreamDirection::There,
            17 + at * 1000,
            &[b'a'; 1000],
            &mut found,
        );
    }
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 0, .. })),
        "{found:?}"
    );
    assert!(http.sides[0].held.len() <= LONGEST_HEAD + 1);
}

#[test]
fn an_upgrade_to_http2_is_answered_in_it() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            b"GET /a HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        ),
        (
            '<',
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        ),
        ('>', b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ('>', b"\0\0\0\x04\0\0\0\0\0"),
        (
            '<',
            b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x02\0\x01\0\0\0\x01ok",
        ),
        ('>', b"\0\0\x02\x01\x05\0\0\0\x03\x82\x84"),
        ('<', b"\0\0\x01\x01\x05\0\0\0\x03\x8d"),
    ];
    let mut dissector = Http1::default();
    assert_eq!(run_script(&mut dissector, script), dissect_lines(script));
    assert_eq!(dissector.protocol(), "HTTP/2");
    assert_eq!(
        dissect_lines(script)[2..],
        [
            "0 request ends > 54",
            "0 response begins < 0",
            "0 response is 200",
            "0 response ends < 71",
            "1 request begins > 87",
            "1 request is GET /",
            "1 request ends > 98",
            "1 response begins < 71",
            "1 response is 404",
            "1 response ends < 81",
        ]
    );
}

#[test]
fn a_request_says_which_trace_it_is_made_for() {
    const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let in_traces = |headers: &str| {
        let head = format!("GET / HTTP/1.1\r\n{headers}\r\n");
        let lines = dissect_lines(&[('>', head.as_bytes())]);
        let said: Vec<String> = lines
            .into_iter()
            .filter(|line| line.contains(" is in "))
            .collect();
        said
    };
    let said = vec![format!("0 is in {CONTEXT}")];
    for name in ["traceparent", "Traceparent", "TRACEPARENT"] {
        assert_eq!(
            in_traces(&format!("Host: a\r\n{name}:  {CONTEXT} \r\n")),
            said
        );
    }
    let header = format!("traceparent: {CONTEXT}\r\n");
    // Of two nobody knows which counts; what is not one is nothing.
    for headers in [
        &header.repeat(2),
        "traceparent: 00-0-0-00\r\n",
        "traceparent: SECRET\r\n",
        &header.replace("traceparent", "tracestate"),
    ] {
        assert_eq!(in_traces(headers), Vec::<String>::new(), "{headers}");
    }
}
