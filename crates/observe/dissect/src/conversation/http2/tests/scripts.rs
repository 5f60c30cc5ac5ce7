//! Whole conversations, of which every byte was seen, however they are cut.

use super::*;
use crate::conversation::script_testing::run_script;

fn simple() -> Spoken {
    spoken(vec![
        ('>', get(1, "/item/7")),
        ('<', frame(4, 1, 0, &[])),
        ('>', frame(4, 1, 0, &[])),
        ('<', head(1, 0, &[(":status", "200")])),
        ('<', frame(8, 0, 0, &[0, 0, 1, 0])),
        ('<', data(1, 0, b"hello")),
        ('<', data(1, LAST, b"")),
        ('>', head(3, 0, &[(":method", "POST"), (":path", "/x")])),
        ('>', data(3, LAST, b"abc")),
        ('<', head(3, LAST, &[(":status", "404")])),
    ])
}

#[test]
fn a_request_and_its_response() {
    assert_eq!(
        dissect_lines(&simple()),
        [
            "0 request begins > 33",
            "0 request is GET /item/7",
            "0 request ends > 84",
            "0 response begins < 18",
            "0 response is 200",
            "0 response ends < 76",
            "1 request begins > 93",
            "1 request is POST /x",
            "1 request ends > 138",
            "1 response begins < 76",
            "1 response is 404",
            "1 response ends < 98",
        ]
    );
}

fn interleaved() -> Spoken {
    spoken(vec![
        ('>', get(1, "/slow")),
        ('>', get(3, "/fast")),
        ('<', head(3, 0, &[("+:status", "200")])),
        ('<', frame(1, WHOLE, 1, &[0xbe])),
        ('<', data(1, 0, b"some")),
        ('<', data(3, LAST, b"all")),
        ('<', frame(6, 0, 0, &[7; 8])),
        ('<', data(1, LAST, b"rest")),
    ])
}

#[test]
fn two_streams_are_distinguished() {
    assert_eq!(
        dissect_lines(&interleaved()),
        [
            "0 request begins > 33",
            "0 request is GET /slow",
            "0 request ends > 82",
            "1 request begins > 82",
            "1 request is GET /fast",
            "1 request ends > 131",
            "1 response begins < 9",
            "1 response is 200",
            "0 response begins < 31",
            "0 response is 200",
            "1 response ends < 66",
            "0 response ends < 96",
        ]
    );
}

fn unary() -> Spoken {
    spoken(vec![
        ('>', call(1, 0)),
        ('>', data(1, LAST, &message("apple"))),
        (
            '<',
            head(
                1,
                0,
                &[(":status", "200"), ("content-type", "application/grpc")],
            ),
        ),
        ('<', data(1, 0, &message("ok"))),
        (
            '<',
            head(1, LAST, &[("grpc-status", "0"), ("grpc-message", "")]),
        ),
    ])
}

#[test]
fn a_call_of_grpc_ends_with_its_status() {
    assert_eq!(
        dissect_lines(&unary()),
        [
            "0 request begins > 33",
            "0 request is /shop.Cart/Add",
            "0 request ends > 134",
            "0 response begins < 9",
            "0 part < 78",
            "0 response is grpc-status 0",
            "0 response ends < 117",
        ]
    );
    let mut http = Http2::default();
    assert_eq!(http.protocol(), "HTTP/2");
    let all = unary();
    run_script(
        &mut http,
        &all.iter()
            .map(|(side, bytes)| (*side, bytes.as_slice()))
            .collect::<Vec<_>>(),
    );
    assert_eq!(http.protocol(), "gRPC");
    assert!(http.streams.is_empty());
}

fn streaming() -> Spoken {
    let (one, two, three) = (message("one"), message("two"), message("three"));
    spoken(vec![
        ('>', call(1, 0)),
        ('>', data(1, LAST, &message("all"))),
        (
            '<',
            head(
                1,
                0,
                &[(":status", "200"), ("content-type", "application/grpc")],
            ),
        ),
        ('<', data(1, 0, &[&one[..], &two[..6]].concat())),
        ('<', data(1, 0, &[&two[6..], &three[..]].concat())),
        ('<', head(1, LAST, &[("grpc-status", "13")])),
    ])
}

#[test]
fn messages_of_a_stream_are_parts() {
    let dissected = dissect_lines(&streaming());
    assert_eq!(
        dissected[3..],
        [
            "0 response begins < 9",
            "0 part < 79",
            "0 part < 96",
            "0 part < 106",
            "0 response is grpc-status 13",
            "0 response ends < 131",
        ]
    );
}

#[test]
fn a_call_that_fails_at_once_has_only_trailers_and_one_that_no_server_of_grpc_answers_a_status() {
    let dissected = dissect_lines(&spoken(vec![
        ('>', call(1, LAST)),
        (
            '<',
            head(
                1,
                LAST,
                &[
                    (":status", "200"),
                    ("content-type", "application/grpc"),
                    ("grpc-status", "12"),
                ],
            ),
        ),
        ('>', call(3, LAST)),
        ('<', head(3, LAST, &[(":status", "503")])),
        ('>', call(5, LAST)),
        ('<', head(5, 0, &[(":status", "502")])),
        ('<', data(5, LAST, b"no")),
    ]));
    let is: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("response is"))
        .collect();
    assert_eq!(is, ["0 response is grpc-status 12", "1 response is 503"]);
}

#[test]
fn interim_responses_begin_a_response_and_trailers_end_it() {
    let dissected = dissect_lines(&spoken(vec![
        ('>', head(1, 0, &[(":method", "PUT"), (":path", "/a")])),
        ('<', head(1, 0, &[(":status", "100")])),
        ('>', data(1, 0, b"x")),
        ('>', head(1, LAST, &[("checksum", "7")])),
        ('<', head(1, 0, &[(":status", "103")])),
        ('<', head(1, 0, &[(":status", "200")])),
        ('<', data(1, 0, b"y")),
        ('<', head(1, LAST, &[("checksum", "8")])),
    ]));
    assert_eq!(
        dissected,
        [
            "0 request begins > 33",
            "0 request is PUT /a",
            "0 response begins < 9",
            "0 request ends > 96",
            "0 response is 200",
            "0 response ends < 106",
        ]
    );
}

fn split() -> Spoken {
    let fields = block(&[(":method", "GET"), (":path", "/long"), ("+cookie", "many")]);
    let priority = [0x80, 0, 0, 0, 16];
    spoken(vec![
        (
            '>',
            frame(
                1,
                LAST | 0x28,
                1,
                &[&[3][..], &priority, &fields[..9], &[0; 3]].concat(),
            ),
        ),
        ('>', frame(9, 0, 1, &fields[9..20])),
        ('>', frame(9, WHOLE, 1, &fields[20..])),
        (
            '<',
            frame(1, WHOLE | 8, 1, &[&[1][..], &[0x88], &[0]].concat()),
        ),
        (
            '<',
            frame(0, LAST | 8, 1, &[&[2][..], b"abc", &[0, 0]].concat()),
        ),
    ])
}

#[test]
fn a_head_in_several_frames_with_padding_and_priority() {
    assert_eq!(
        dissect_lines(&split()),
        [
            "0 request begins > 33",
            "0 request is GET /long",
            "0 request ends > 108",
            "0 response begins < 9",
            "0 response is 200",
            "0 response ends < 36",
        ]
    );
}

fn pushed() -> Spoken {
    let promise = [
        &[0, 0, 0, 2][..],
        &block(&[(":method", "GET"), (":path", "/style")]),
    ]
    .concat();
    spoken(vec![
        ('>', get(1, "/")),
        ('<', frame(5, WHOLE, 1, &promise)),
        ('<', head(1, LAST, &[(":status", "200")])),
        ('<', head(2, 0, &[(":status", "203")])),
        ('<', data(2, LAST, b"a{}")),
    ])
}

#[test]
fn a_push_is_one_way_from_its_promise_on() {
    let dissected = dissect_lines(&pushed());
    assert_eq!(
        dissected[3..],
        [
            "1 response begins < 9 (one way)",
            "1 request is GET /style",
            "0 response begins < 49",
            "0 response is 200",
            "0 response ends < 71",
            "1 response is 203",
            "1 response ends < 105",
        ]
    );
}

fn cut_short() -> Spoken {
    spoken(vec![
        ('>', head(1, 0, &[(":method", "PUT"), (":path", "/1")])),
        ('>', get(3, "/3")),
        ('>', get(5, "/5")),
        ('>', get(7, "/7")),
        ('<', head(5, 0, &[(":status", "200")])),
        ('>', frame(3, 0, 1, &[0, 0, 0, 8])),
        ('<', frame(3, 0, 3, &[0, 0, 0, 7])),
        ('>', frame(3, 0, 5, &[0, 0, 0, 8])),
        ('<', data(5, LAST, b"late")),
        ('<', frame(7, 0, 0, &[0; 8])),
        ('<', vec![]),
        ('>', get(9, "/9")),
    ])
}

#[test]
fn resets_and_ends_say_what_is_missing() {
    let voids: Vec<String> = dissect_lines(&cut_short())
        .into_iter()
        .filter(|line| line.contains("void"))
        .collect();
    assert_eq!(
        voids,
        [
            "0 void: its stream was reset in the middle of its request",
            "1 void: its stream was reset before its response",
            "2 void: its stream was reset in the middle of its response",
            "3 void: the connection ended before its response",
            "4 void: the connection ended before its response",
        ]
    );
}

/// Those above.
pub(crate) fn conversations() -> Vec<Spoken> {
    vec![
        simple(),
        interleaved(),
        unary(),
        streaming(),
        split(),
        pushed(),
        cut_short(),
    ]
}

#[test]
fn a_request_says_which_trace_it_is_made_for() {
    const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fields = [(":method", "GET"), (":path", "/"), ("traceparent", CONTEXT)];
    let lines = dissect_lines(&spoken(vec![('>', head(1, LAST, &fields))]));
    assert!(lines.contains(&format!("0 is in {CONTEXT}")), "{lines:?}");
}
