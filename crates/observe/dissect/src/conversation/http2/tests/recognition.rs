//! What is HTTP/2, by its first bytes and by its frames, and what is not.

use super::*;

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
