//! Random walks over conversations, and over mutated ones.

use super::http2::tests::{Spoken, conversations};
use proptest::prelude::*;
use stackline_walks::conversation::fuzz_conversation;

/// The steps that say it.
fn steps(spoken: &Spoken) -> Vec<u8> {
    let mut steps = vec![0];
    for (side, bytes) in spoken {
        let side = u8::from(*side == '<');
        for bytes in bytes.chunks(255) {
            steps.extend([side, bytes.len() as u8]);
            steps.extend(bytes);
        }
        if bytes.is_empty() {
            steps.extend([side | 7 << 1, 0]);
        }
    }
    steps
}

fn http1() -> Spoken {
    [
        ('>', "POST /1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n\r\n"),
        (
            '<',
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        ('<', "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n"),
        ('<', ""),
    ]
    .map(|(side, text)| (side, text.as_bytes().to_vec()))
    .to_vec()
}

/// One of each protocol of records: what is asked first.
fn others() -> Vec<Spoken> {
    let whole = |script: &[(char, &[u8])]| -> Spoken {
        script
            .iter()
            .map(|(side, bytes)| (*side, bytes.to_vec()))
            .collect()
    };
    vec![
        whole(&[
            ('>', b"set k 0 0 2\r\nhi\r\nget k\r\nmg k v\r\n"),
            ('<', b"STORED\r\nVALUE k 0 2\r\nhi\r\nEND\r\nVA 2\r\nhi\r\n"),
        ]),
        whole(&[
            ('<', b"INFO {}\r\n"),
            ('>', b"CONNECT {}\r\nPING\r\nPUB a i.1 2\r\nhi\r\n"),
            ('<', b"PONG\r\nMSG b 1 2\r\nhi\r\nMSG i.1 1 2\r\nhi\r\n"),
        ]),
        whole(&[
            ('>', b"\x24\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x0f\0\0\0\x10ping\0\x01\0\0\0\0\0"),
            (
                '<',
                b"\x26\0\0\0\x09\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0\0\0\0\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0",
            ),
        ]),
        whole(&[
            ('>', b"\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03app"),
            ('<', b"\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0"),
        ]),
        whole(&[
            ('>', b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01a"),
            ('<', b"\x20\x02\0\0"),
            ('>', b"\x32\x08\0\x03a/c\0\x01x\xc0\0"),
            ('<', b"\x40\x02\0\x01\x30\x06\0\x03n/mx\xd0\0"),
        ]),
        whole(&[
            ('>', b"AMQP\0\0\x09\x01\x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce"),
            ('<', b"\x01\0\x01\0\0\0\x08\0\x14\0\x0b\0\0\0\0\xce"),
            (
                '>',
                b"\x01\0\x01\0\0\0\x09\0\x3c\0\x28\0\0\0\0\0\xce\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x01\0\0\xce\x03\0\x01\0\0\0\x01a\xce",
            ),
        ]),
        whole(&[
            ('>', b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
            ('<', b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n\x81\x03abc"),
            ('>', b"\x01\x81maskx\x89\x80mask\x80\x81masky"),
        ]),
    ]
}

/// All that are known to be right.
fn all() -> Vec<Vec<u8>> {
    conversations()
        .iter()
        .chain([&http1()])
        .chain(&others())
        .map(steps)
        .collect()
}

#[test]
fn messages_of_right_conversations_end() {
    let ended: Vec<usize> = all().iter().map(|steps| fuzz_conversation(steps)).collect();
    assert_eq!(ended, [4, 4, 2, 2, 2, 3, 4, 4, 6, 7, 2, 2, 7, 4, 5]);
}

/// What the fuzz target begins with, and what it found.
#[test]
fn the_stored_corpus_is_played() {
    let corpus =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/conversation");
    let files: Vec<_> = std::fs::read_dir(corpus).unwrap().flatten().collect();
    assert!(files.len() >= 9);
    for file in files {
        fuzz_conversation(&std::fs::read(file.path()).unwrap());
    }
}

/// At a place: a bit is another one, a byte is left out, one is put in, a step is put in.
type Change = (usize, u8, u8, u8);

fn change(steps: &mut Vec<u8>, (place, how, first, second): Change) {
    let place = place % steps.len();
    match how % 4 {
        0 => steps[place] ^= 1 << (first & 7),
        1 if steps.len() > 1 => drop(steps.remove(place)),
        2 => steps.insert(place, first),
        _ => drop(steps.splice(place..place, [first, second])),
    }
}

proptest! {
    #[test]
    fn any_conversation_is_harmless(bytes in prop::collection::vec(0_u8.., 0..2000)) {
        fuzz_conversation(&bytes);
    }

    #[test]
    fn any_frames_are_harmless(
        frames in prop::collection::vec((0_u8..2, 0_u8..10, 0_u8.., 0_u8..6, prop::collection::vec(0_u8.., 0..40)), 0..60),
    ) {
        let mut steps = vec![1];
        for (side, kind, flags, stream, payload) in frames {
            steps.extend([side, 9 + payload.len() as u8, 0, 0, payload.len() as u8, kind, flags & 0x2d, 0, 0, 0, stream]);
            steps.extend(payload);
        }
        fuzz_conversation(&steps);
    }

    #[test]
    fn right_conversations_that_were_changed_are_harmless(
        which in 0_usize..15,
        changes in prop::collection::vec((0_usize..2000, 0_u8.., 0_u8.., 0_u8..), 1..6),
    ) {
        let mut steps = all().swap_remove(which);
        for one in changes {
            change(&mut steps, one);
        }
        fuzz_conversation(&steps);
    }
}
