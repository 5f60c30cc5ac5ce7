//! Conversations in HTTP/2 and gRPC as scripts.

use super::super::script_testing::{lines_however_cut, run_script};
use super::*;

/// What each side says in turn.
pub(crate) type Spoken = Vec<(char, Vec<u8>)>;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields that are sent as they are; those that begin with `+` are in the table from then on.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(if name.starts_with('+') { 0x40 } else { 0 });
        for text in [name.trim_start_matches('+'), value] {
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    block
}

const LAST: u8 = 1;
const WHOLE: u8 = 4;

fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, flags | WHOLE, stream, &block(fields))
}

fn data(stream: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, bytes)
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    head(
        stream,
        LAST,
        &[(":method", "GET"), (":scheme", "http"), (":path", path)],
    )
}

/// A message of gRPC.
fn message(text: &str) -> Vec<u8> {
    [&[0, 0, 0, 0, text.len() as u8], text.as_bytes()].concat()
}

/// The preface and the settings of both sides: 33 bytes of the initiator, 9 of the responder.
fn opening() -> Spoken {
    vec![
        ('>', [PREFACE, &frame(4, 0, 0, &[])].concat()),
        ('<', frame(4, 0, 0, &[])),
    ]
}

fn spoken(spoken: Spoken) -> Spoken {
    let mut all = opening();
    all.extend(spoken);
    all
}

/// What is found in it, however it is cut.
fn dissect_lines(all: &Spoken) -> Vec<String> {
    let script: Vec<(char, &[u8])> = all
        .iter()
        .map(|(side, bytes)| (*side, bytes.as_slice()))
        .collect();
    lines_however_cut::<Http2>(&script)
}

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

fn call(stream: u32, flags: u8) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":path", "/shop.Cart/Add"),
        ("content-type", "application/grpc+proto"),
    ];
    head(stream, flags, &fields)
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

/// One dissector, and the offsets of both sides.
#[derive(Default)]
struct Fed {
    http: Http2,
    at: [u64; 2],
    found: Vec<DissectorEvent>,
}

impl Fed {
    fn opened() -> Self {
        let mut fed = Self::default();
        opening()
            .iter()
            .for_each(|(side, bytes)| fed.bytes(*side, bytes));
        fed
    }

    fn bytes(&mut self, side: char, bytes: &[u8]) {
        let side = if side == '>' {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        self.http
            .bytes(side, self.at[side as usize], bytes, &mut self.found);
        self.at[side as usize] += bytes.len() as u64;
    }

    fn unseen(&mut self, side: char, count: u64) {
        let side = if side == '>' {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        self.http
            .unseen(side, self.at[side as usize], count, &mut self.found);
        self.at[side as usize] += count;
    }

    /// What was found since it was last asked for.
    fn dissect_lines(&mut self) -> Vec<String> {
        self.found
            .drain(..)
            .map(|found| super::super::script_testing::describe_event(&found))
            .collect()
    }
}

#[test]
fn data_that_was_not_seen_does_no_harm() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/big"));
    fed.bytes('<', &head(1, 0, &[(":status", "200")]));
    fed.bytes('<', &frame(0, 0, 1, &[7; 1000])[..20]);
    fed.unseen('<', 500);
    fed.unseen('<', 489);
    fed.bytes('<', &data(1, LAST, b"end"));
    assert_eq!(
        fed.dissect_lines()[3..],
        [
            "0 response begins < 9",
            "0 response is 200",
            "0 response ends < 1052"
        ]
    );
    // The end of a stream in a frame whose last bytes were cut, and one of a length that nobody would hold.
    fed.bytes('>', &get(3, "/huge"));
    fed.bytes('<', &head(3, 0, &[(":status", "200")]));
    fed.bytes('<', &[0xff, 0xff, 0xff, 0, LAST, 0, 0, 0, 3]);
    fed.unseen('<', 0xff_ffff);
    assert_eq!(
        fed.dissect_lines().last().unwrap(),
        "1 response ends < 16778298"
    );
}

#[test]
fn what_curl_and_a_server_in_python_really_said() {
    let there = "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000012040000000000000300000064000402000000000200000000
        00000408000000000001ff000100002301050000000182048360f51786418b089d5c0b8170dc0bc0781f7a8825b650c3abbcf2e153032a
        2f2a000000040100000000";
    let back = "00002a04000000000000010000100000020000000000040000ffff000500004000000800000000000300000064000600010000
        00000004010000000000000a010400000001887681f35c840880007f002ee00001000000016161";
    let mut fed = Fed::default();
    fed.bytes('>', &hpack::tests::hex(there));
    fed.bytes('<', &hpack::tests::hex(back));
    fed.unseen('<', 11_998);
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 64",
            "0 request is GET /one",
            "0 request ends > 108",
            "0 response begins < 60",
            "0 response is 200",
            "0 response ends < 12088",
        ]
    );
}

#[test]
fn messages_of_a_call_are_known_as_long_as_their_lengths_are() {
    let mut fed = Fed::opened();
    fed.bytes('>', &call(1, LAST));
    fed.bytes('<', &head(1, 0, &[(":status", "200")]));
    let messages = [message("abcdefgh"), message("x"), message("y")].concat();
    fed.bytes('<', &data(1, 0, &messages)[..15]);
    fed.unseen('<', 7);
    fed.bytes('<', &messages[13..19]);
    assert_eq!(fed.dissect_lines()[4..], ["0 part < 53", "0 part < 59"]);
    fed.unseen('<', 3);
    fed.bytes('<', &messages[22..]);
    fed.bytes('<', &data(1, 0, &message("z")));
    fed.bytes('<', &head(1, LAST, &[("grpc-status", "0")]));
    assert_eq!(
        fed.dissect_lines(),
        ["0 response is grpc-status 0", "0 response ends < 104"]
    );
}

#[test]
fn fields_that_were_not_seen_leave_later_names_of_their_side_unknown() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1")[..20]);
    fed.unseen('>', get(1, "/1").len() as u64 - 20);
    fed.bytes('>', &get(3, "/3"));
    fed.bytes('<', &head(1, LAST, &[(":status", "200")]));
    fed.bytes('<', &head(3, LAST, &[(":status", "404")]));
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 33",
            "0 request ends > 79",
            "1 request begins > 79",
            "1 request ends > 125",
            "0 response begins < 9",
            "0 response is 200",
            "0 response ends < 31",
            "1 response begins < 31",
            "1 response is 404",
            "1 response ends < 53",
        ]
    );
}

#[test]
fn a_head_that_is_too_long_has_no_name() {
    let mut fed = Fed::opened();
    fed.bytes('>', &frame(1, LAST, 1, &[0; 10_000]));
    fed.bytes('>', &frame(9, 0, 1, &[0; 10_000]));
    assert!(fed.http.held() < 2 * LONGEST_HEAD);
    fed.bytes('>', &frame(9, WHOLE, 1, &[0; 10_000]));
    fed.bytes('>', &get(3, "/3"));
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 33",
            "left out: 1 head",
            "0 request ends > 30060",
            "1 request begins > 30060",
            "1 request ends > 30106"
        ]
    );
}

#[test]
fn a_gap_between_frames_loses_its_side() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1"));
    fed.bytes('<', &data(0, 0, b"")[..4]);
    fed.unseen('<', 100);
    fed.bytes('<', &head(1, LAST, &[(":status", "200")]));
    fed.bytes('>', &get(3, "/3"));
    assert_eq!(
        fed.dissect_lines()[3..],
        [
            "0 void: some bytes of its connection's frames were not captured",
            "1 request begins > 79",
            "1 request is GET /3",
            "1 request ends > 125",
            "1 void: some bytes of its connection's frames were not captured",
        ]
    );
    fed.unseen('>', 1);
    fed.bytes('>', &get(5, "/5"));
    assert!(fed.dissect_lines().is_empty());
}

#[test]
fn what_is_not_http2_is_void() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1"));
    fed.bytes('<', b"HTTP/1.1 400 Bad Request\r\n\r\n");
    fed.bytes('<', &frame(9, 0, 1, &[]));
    assert_eq!(
        fed.dissect_lines().len(),
        3,
        "its first bytes are a frame of a kind that nobody knows, of 4.7 million bytes"
    );
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1"));
    fed.bytes('<', &data(1, 0, b"early"));
    fed.bytes('>', &get(3, "/3"));
    fed.bytes('<', &frame(9, 0, 3, &[]));
    let voids: Vec<String> = fed
        .dissect_lines()
        .into_iter()
        .filter(|line| line.contains("void"))
        .collect();
    assert_eq!(
        voids,
        [
            "0 void: its data arrived before its header",
            "1 void: its connection's frames are not HTTP/2"
        ]
    );
}

#[test]
fn streams_that_wait_are_bounded() {
    let mut fed = Fed::opened();
    for number in 0..MOST_WAITING as u32 + 10 {
        fed.bytes('>', &get(2 * number + 1, "/"));
    }
    assert_eq!(fed.http.streams.len(), MOST_WAITING);
    let voids = fed
        .dissect_lines()
        .into_iter()
        .filter(|line| line.contains("void"))
        .count();
    assert_eq!(voids, 10);
}

#[test]
fn streams_beyond_the_bound_lose_their_answers_and_not_their_names() {
    let mut fed = Fed::opened();
    let most = MOST_WAITING as u32;
    (0..most).for_each(|number| fed.bytes('>', &get(2 * number + 1, "/")));
    fed.dissect_lines();
    let ask = |kind: u8, flags: u8, stream: u32, bytes: &[u8]| frame(kind, flags, stream, bytes);
    let fields = block(&[(":method", "POST"), (":path", "/with/a/body")]);
    let first = 2 * most + 1;
    fed.bytes('>', &get(first, "/alone"));
    // A head in two frames and a body behind it.
    fed.bytes('>', &ask(1, 0, first + 2, &fields[..9]));
    fed.bytes('>', &ask(9, WHOLE, first + 2, &fields[9..]));
    fed.bytes('>', &data(first + 2, LAST, b"body"));
    fed.bytes('<', &head(first, LAST, &[(":status", "200")]));
    let promise = [
        &[0, 0, 0, 2][..],
        &block(&[(":method", "GET"), (":path", "/pushed")]),
    ]
    .concat();
    fed.bytes('<', &ask(5, WHOLE, 1, &promise));
    let dissected = fed.dissect_lines();
    let said: Vec<&str> = dissected
        .iter()
        .filter(|line| {
            [" is ", "void", " response "]
                .iter()
                .any(|w| line.contains(w))
        })
        .map(|l| &l[..])
        .collect();
    let void = "void: more than 4,096 requests were waiting on its connection";
    let [alone, body, pushed] = [most, most + 1, most + 2];
    let begins = said
        .iter()
        .position(|line| line.contains("response begins"))
        .unwrap();
    assert_eq!(
        [&said[..begins], &said[begins + 1..]].concat(),
        [
            format!("{alone} request is GET /alone"),
            format!("{alone} {void}"),
            format!("{body} request is POST /with/a/body"),
            format!("{body} {void}"),
            format!("{pushed} request is GET /pushed"),
            format!("{pushed} {void}"),
        ]
    );
    let mut fed = Fed::opened();
    (0..most).for_each(|number| fed.bytes('>', &get(2 * number + 1, "/")));
    fed.dissect_lines();
    fed.bytes('>', &get(first, "/never/whole")[..20]);
    fed.http
        .end(EventStreamDirection::There, fed.at[0], &mut fed.found);
    assert_eq!(
        fed.dissect_lines()
            .iter()
            .filter(|line| line.starts_with(&format!("{most} void")))
            .count(),
        1,
        "it is not lost"
    );
}

#[test]
fn a_connection_is_recognised_by_its_preface_even_when_the_responder_speaks_first() {
    let settings = frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]);
    let verdict = |there: &[u8], back: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back,
            port: 80,
        })
    };
    assert_eq!(verdict(PREFACE, b""), ProtocolVerdict::Yes);
    assert_eq!(verdict(&PREFACE[..5], b""), ProtocolVerdict::Perhaps);
    assert_eq!(verdict(b"", &settings), ProtocolVerdict::Perhaps);
    assert_eq!(verdict(&PREFACE[..5], &settings), ProtocolVerdict::Yes);
    assert_eq!(verdict(b"PROPFIND /", b""), ProtocolVerdict::No);
    assert_eq!(verdict(b"", b"220 ready"), ProtocolVerdict::No);
}

#[test]
fn a_request_says_which_trace_it_is_made_for() {
    const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fields = [(":method", "GET"), (":path", "/"), ("traceparent", CONTEXT)];
    let lines = dissect_lines(&spoken(vec![('>', head(1, LAST, &fields))]));
    assert!(lines.contains(&format!("0 is in {CONTEXT}")), "{lines:?}");
}
