//! One beyond each bound of this crate: it is counted, and has words; what just fills it is not. Each bound has its case, here or
//! where what reaches it is private; a test of the command holds the list of cases against the list of bounds.

use super::{Bound, LeftOut};
use crate::connections::{CaptureConnections, StreamRegistry};
use crate::conversation::DissectorEvent;
use crate::conversation::connection::Conversation;
use crate::conversation::tls::session_secrets::Secrets;
use crate::frame_locator::FrameLocator;
use crate::pcapng::CaptureReader;
use crate::segment::DissectedSegment;
use stackline_events::unit_ids::EventStreamDirection::{self, Back, There};
use std::collections::BTreeMap;

/// What of a conversation was left out.
fn said(script: &[(EventStreamDirection, Vec<u8>)]) -> LeftOut {
    let (mut conversation, mut found, mut at) = (Conversation::new(80), Vec::new(), [0; 2]);
    for (side, bytes) in script {
        conversation.segment(
            *side,
            at[*side as usize],
            bytes,
            bytes.len() as u64,
            &mut found,
        );
        at[*side as usize] += bytes.len() as u64;
    }
    counted(&found)
}

fn counted(found: &[DissectorEvent]) -> LeftOut {
    let mut left_out = LeftOut::default();
    for found in found {
        if let DissectorEvent::LeftOut(bound, count) = found {
            left_out.add(*bound, *count);
        }
    }
    left_out
}

fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\n{lines}\r\n").into_bytes()
}

/// A section, and blocks behind it; what was left out of them.
fn capture(blocks: &[u8]) -> LeftOut {
    let mut bytes = vec![
        0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
    ];
    bytes.extend([0xff; 8]);
    bytes.extend([28, 0, 0, 0]);
    bytes.extend(blocks);
    let mut reader = CaptureReader::open(&bytes[..]).unwrap();
    while reader.step(|_| ()).is_ok() {}
    reader.left_out().clone()
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

fn interface(name: usize) -> Vec<u8> {
    let padded = name.next_multiple_of(4);
    let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0, 2, 0];
    body.extend((name as u16).to_le_bytes());
    body.extend(vec![b'x'; name]);
    body.resize(12 + padded, 0);
    body.extend([0; 4]);
    block(1, &body)
}

#[test]
fn files_of_packets() {
    // What is read of a block is doubled until it is there: room for one of the most bytes is there always.
    Bound::Block.assert_reported(|bytes| {
        // It is noticed when the room for it was doubled as often as it may be.
        let body = if bytes > Bound::Block.most() {
            2 * bytes
        } else {
            bytes / 2
        };
        capture(&block(99, &vec![0; body]))
    });
    Bound::Interfaces.assert_reported(|count| capture(&interface(4).repeat(count)));
    Bound::InterfaceName.assert_reported(|letters| capture(&interface(letters)));
}

fn segment(port: usize, sequence: u32, bytes: u64, syn: bool) -> DissectedSegment {
    let from = std::net::SocketAddr::from(([10, 0, (port >> 16) as u8, 1], port as u16));
    DissectedSegment {
        ends: (from, "10.1.0.2:80".parse().unwrap()),
        sequence,
        bytes,
        syn,
        fin: false,
        reset: false,
        acknowledged: None,
        window: 0,
        selectively_acknowledged: None,
        window_scale: None,
        largest_segment: None,
        ttl: 64,
        length: 40 + bytes,
    }
}

fn located(segments: impl Iterator<Item = DissectedSegment>) -> LeftOut {
    let (mut connections, mut known) = (
        CaptureConnections::default(),
        StreamRegistry::new(BTreeMap::new(), 0),
    );
    for segment in segments {
        let _ = connections.locate(&mut known, &segment);
    }
    let mut left_out = connections.left_out().clone();
    left_out.merge(known.left_out());
    left_out
}

#[test]
fn streams_of_a_capture() {
    Bound::Streams
        .assert_reported(|count| located((0..count).map(|port| segment(port, 1, 1, false))));
    Bound::Begun
        .assert_reported(|count| located((0..count).map(|at| segment(1, at as u32 * 16, 0, true))));
    Bound::Ranges.assert_reported(|count| {
        located((0..count).map(|at| segment(1, 1 + at as u32 * 16, 8, false)))
    });
    let datagram = |at: usize| {
        let mut packet = vec![
            0x45,
            0,
            0,
            28,
            0,
            0,
            0,
            0,
            64,
            17,
            0,
            0,
            10,
            (at >> 16) as u8,
            0,
            1,
            10,
            0,
            0,
            2,
        ];
        packet.extend((at as u16).to_be_bytes());
        packet.extend([0, 80, 0, 8, 0, 0]);
        packet
    };
    Bound::Flows.assert_reported(|count| {
        let mut frames = FrameLocator::learning();
        for at in 0..count {
            let _ = frames.range(&datagram(at), 1);
        }
        frames.left_out().clone()
    });
}

#[test]
fn heads_and_lines() {
    // A head and the empty line behind it.
    Bound::Head.assert_reported(|bytes| {
        said(&[(There, get(&format!("A: {}\r\n", "x".repeat(bytes - 23))))])
    });
    Bound::HeaderLines.assert_reported(|count| said(&[(There, get(&"A: b\r\n".repeat(count)))]));
    Bound::ChunkLine.assert_reported(|bytes| {
        let head = get("Transfer-Encoding: chunked\r\n");
        said(&[(There, [head, vec![b'5'; bytes]].concat())])
    });
    // What is within a block of HTTP/2 is a size for the table: 5 bits of ones, and the rest in bits of seven.
    Bound::HeaderTable.assert_reported(|size| {
        let rest = size - 31;
        let block = [
            0x3f,
            rest as u8 | 0x80,
            (rest >> 7) as u8 | 0x80,
            (rest >> 14) as u8,
        ];
        said(&[(There, http2(&[frame(1, &block)]))])
    });
    Bound::Line.assert_reported(|bytes| {
        said(&[
            (There, ping()),
            (Back, [&b"+"[..], &vec![b'x'; bytes - 1], b"\r\n"].concat()),
        ])
    });
    // The value itself is one level.
    Bound::Depth
        .assert_reported(|deep| said(&[(There, ping()), (Back, b"*1\r\n".repeat(deep - 1))]));
    let block = Bound::Head.most() / 2;
    let blocks = |last: usize| {
        http2(&[
            frame_of(1, 0, 1, &vec![0; block]),
            frame_of(9, 0, 1, &vec![0; last]),
        ])
    };
    Bound::Head.assert_reported(|bytes| said(&[(There, blocks(bytes - block))]));
    let hello = |bytes: usize| {
        let message = [&[1, 0, 0xff, 0xff][..], &vec![0; bytes - 4]].concat();
        let records = message
            .chunks(8000)
            .map(|part| [&[22, 3, 1, (part.len() >> 8) as u8, part.len() as u8], part].concat());
        records.collect::<Vec<_>>().concat()
    };
    Bound::Head.assert_reported(|bytes| said(&[(There, hello(bytes))]));
}

#[test]
fn what_lies_behind_a_hole() {
    // What holding takes counts too.
    let held = Bound::BehindHole.most() / 2 - 64;
    Bound::BehindHole.assert_reported(|bytes| {
        let (mut conversation, mut found) = (Conversation::new(80), Vec::new());
        for (at, length) in [(1, held), (1 + held, bytes - held - 128)] {
            conversation.segment(
                There,
                at as u64,
                &vec![0; length],
                length as u64,
                &mut found,
            );
        }
        counted(&found)
    });
}

fn ping() -> Vec<u8> {
    b"*1\r\n$4\r\nPING\r\n".to_vec()
}

fn frame_of(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    [
        &(body.len() as u32).to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
        body,
    ]
    .concat()
}

fn frame(stream: u32, block: &[u8]) -> Vec<u8> {
    frame_of(1, 4, stream, block)
}

fn http2(frames: &[Vec<u8>]) -> Vec<u8> {
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frames.concat(),
    ]
    .concat()
}

fn typed(mark: u8, body: &[u8]) -> Vec<u8> {
    [&[mark][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// A connection to PostgreSQL after its login.
fn postgres() -> Vec<(EventStreamDirection, Vec<u8>)> {
    let startup = b"\0\0\0\x12\0\x03\0\0user\0app\0\0".to_vec();
    vec![
        (There, startup),
        (Back, [typed(b'R', &[0; 4]), typed(b'Z', b"I")].concat()),
    ]
}

/// One to MySQL.
fn mysql() -> Vec<(EventStreamDirection, Vec<u8>)> {
    let packet = |number: u8, body: &[u8]| {
        [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
    };
    let greeting = [
        &b"\x0a8.0.36\0"[..],
        &[0; 13],
        &[0xff, 0x82],
        &[0; 3],
        &[0, 0],
        &[0; 30],
    ]
    .concat();
    let login = [&[0x00, 0x82, 0, 0][..], &[0; 28], b"app\0\0"].concat();
    vec![
        (Back, packet(0, &greeting)),
        (There, packet(1, &login)),
        (Back, packet(2, &[0, 0, 0, 2, 0, 0, 0])),
    ]
}

fn question(id: usize) -> Vec<u8> {
    [
        &[0, 19][..],
        &(id as u16).to_be_bytes(),
        b"\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    ]
    .concat()
}

#[test]
fn requests_that_wait() {
    let after = |mut script: Vec<(EventStreamDirection, Vec<u8>)>, asked: Vec<u8>| {
        script.push((There, asked));
        said(&script)
    };
    Bound::Waiting.assert_reported(|count| said(&[(There, get("").repeat(count))]));
    Bound::Waiting.assert_reported(|count| said(&[(There, ping().repeat(count))]));
    Bound::Waiting
        .assert_reported(|count| after(postgres(), typed(b'Q', b"SELECT 1\0").repeat(count)));
    Bound::Waiting.assert_reported(|count| after(mysql(), b"\x01\0\0\0\x0e".repeat(count)));
    Bound::Waiting
        .assert_reported(|count| said(&[(There, (0..count).flat_map(question).collect())]));
    Bound::Waiting.assert_reported(|count| {
        let frames: Vec<Vec<u8>> = (0..count as u32)
            .map(|at| frame(2 * at + 1, &[0x82]))
            .collect();
        said(&[(There, http2(&frames))])
    });
}

#[test]
fn what_is_remembered_of_a_connection() {
    Bound::Statements.assert_reported(|count| {
        let parse = |at: usize| typed(b'P', format!("s{at}\0SELECT 1\0\0\0").as_bytes());
        let mut script = postgres();
        script.push((There, (0..count).flat_map(parse).collect()));
        said(&script)
    });
    Bound::Pointers.assert_reported(|count| {
        // Each pointer leads to the next one, the last to an empty name.
        let chain = (0..count).flat_map(|at| {
            let behind = if at == 0 {
                12 + 2 + 4
            } else {
                12 + 4 + 2 * (at + 1)
            };
            let bytes = [0xc0, behind as u8];
            if at == 0 {
                [&bytes[..], &[0, 1, 0, 1]].concat()
            } else {
                bytes.to_vec()
            }
        });
        let body = [
            &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..],
            &chain.collect::<Vec<u8>>(),
            &[0, 0],
        ]
        .concat();
        let message = [&(body.len() as u16).to_be_bytes()[..], &body].concat();
        said(&[(There, question(1)), (There, message)])
    });
    Bound::Sessions.assert_reported(|count| {
        let line = |at: usize| format!("CLIENT_RANDOM {at:064x} 0102\n");
        let secrets = Secrets::default();
        secrets.learn(&(0..count).map(line).collect::<String>());
        let mut left_out = LeftOut::default();
        left_out.add(Bound::Sessions, secrets.left_out());
        left_out
    });
}
