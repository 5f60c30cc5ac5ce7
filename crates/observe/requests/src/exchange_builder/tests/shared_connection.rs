//! Requests that share a connection of HTTP/2, which are answered in any order.

use super::*;

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let head = [&length.to_be_bytes()[1..], &[kind, flags, 0, 0, 0, stream]].concat();
    [&head, payload].concat()
}

/// `GET /` (RFC 7541, Appendix A).
fn asks(stream: u8) -> Vec<u8> {
    frame(1, 5, stream, &[0x82, 0x84, 0x86])
}

/// `200` with two bytes.
fn answers(stream: u8) -> Vec<u8> {
    [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, b"ok")].concat()
}

#[test]
fn the_set_up_belongs_to_what_was_asked_first_even_if_it_is_answered_last() {
    let mut path = Path::new();
    path.connect(0);
    let begin = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &frame(4, 0, 0, b"")[..],
        &asks(1),
    ]
    .concat();
    path.send(15, 0, &begin, "");
    path.send(215, 0, &asks(3), "");
    path.send(230, 1, &[frame(4, 0, 0, b""), answers(3)].concat(), "");
    let quick = path.builder.advance(1_000 * MS);
    path.send(1_200, 1, &answers(1), "");
    let slow = path.finish();
    let set_up = |all: &[Exchange]| -> Vec<_> {
        let calls = all.iter().filter(|one| one.name.kept() == "GET /");
        calls.map(|one| (one.number, one.connect)).collect()
    };
    assert_eq!(set_up(&quick), [(1, None)]);
    assert_eq!(set_up(&slow), [(0, Some((0, 10 * MS)))]);
}
