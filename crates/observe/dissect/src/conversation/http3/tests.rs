//! Streams of HTTP/3 as a client and a server say them.

use super::*;
use crate::conversation::http2::hpack::tests::hex;

const THERE: EventStreamDirection = EventStreamDirection::There;
const BACK: EventStreamDirection = EventStreamDirection::Back;

fn words(found: &[DissectorEvent]) -> Vec<String> {
    let word = |found: &DissectorEvent| match found {
        DissectorEvent::Begins { exchange, role, .. } => format!("{exchange} {role:?} begins"),
        DissectorEvent::Named {
            exchange,
            role,
            name,
        } => format!("{exchange} {role:?} {name:?}"),
        DissectorEvent::Ends {
            exchange, role, at, ..
        } => format!("{exchange} {role:?} ends {at}"),
        other => format!("{other:?}"),
    };
    found.iter().map(word).collect()
}

/// `GET /a` by static fields and a literal path, `200` with three bytes.
const REQUEST: &str = "01070000d151022f61";
const RESPONSE: &str = "01030000d90003616263";

#[test]
fn a_request_is_a_stream_of_its_own_in_whatever_pieces() {
    for piece in 1..12 {
        let (mut http, mut found) = (Http3::default(), Vec::new());
        for stream in [0, 4] {
            for bytes in hex(REQUEST).chunks(piece) {
                http.bytes(THERE, stream, bytes, &mut found);
            }
            http.end(THERE, stream, 9, &mut found);
        }
        for stream in [4, 0] {
            for bytes in hex(RESPONSE).chunks(piece) {
                http.bytes(BACK, stream, bytes, &mut found);
            }
            http.end(BACK, stream, 10, &mut found);
        }
        let each = |exchange: u64| {
            [
                format!("{exchange} Request begins"),
                format!("{exchange} Request \"GET /a\""),
                format!("{exchange} Request ends 9"),
            ]
        };
        let answer = |exchange: u64| {
            [
                format!("{exchange} Response begins"),
                format!("{exchange} Response \"200\""),
                format!("{exchange} Response ends 10"),
            ]
        };
        let all = [each(0), each(1), answer(1), answer(0)].concat();
        assert_eq!(words(&found), all, "in pieces of {piece} bytes");
        assert!(http.streams.is_empty());
    }
}

#[test]
fn a_block_waits_for_the_fields_that_it_refers_to() {
    let (mut http, mut found) = (Http3::default(), Vec::new());
    // The server lets a table of 220 bytes be; then a request refers to two fields that are not there.
    http.bytes(BACK, 3, &hex("0004030140dc"), &mut found);
    http.bytes(THERE, 0, &hex("010503811011d1"), &mut found);
    http.end(THERE, 0, 7, &mut found);
    assert_eq!(words(&found), ["0 Request begins", "0 Request ends 7"]);
    found.clear();
    let instructions = "023fbd01c00f7777772e6578616d706c652e636f6dc10c2f73616d706c652f70617468";
    http.bytes(THERE, 2, &hex(instructions), &mut found);
    assert_eq!(words(&found), ["0 Request \"GET /sample/path\""]);
}

#[test]
fn what_was_not_seen_leaves_a_request_without_a_name_and_a_lost_one_without_an_end() {
    let (mut http, mut found) = (Http3::default(), Vec::new());
    http.unseen(THERE, 0, 9, &mut found);
    http.end(THERE, 0, 9, &mut found);
    http.bytes(BACK, 0, &hex("01030000d90005"), &mut found);
    http.unseen(BACK, 0, 5, &mut found);
    http.end(BACK, 0, 12, &mut found);
    let all = [
        "0 Request begins",
        "0 Request ends 9",
        "0 Response begins",
        "0 Response \"200\"",
        "0 Response ends 12",
    ];
    assert_eq!(words(&found), all);
    found.clear();
    http.bytes(THERE, 4, &hex(REQUEST), &mut found);
    http.end(THERE, 4, 9, &mut found);
    http.close(&mut found);
    assert_eq!(
        found.last(),
        Some(&DissectorEvent::Void {
            exchange: 1,
            why: ENDED_BEFORE
        })
    );
}
