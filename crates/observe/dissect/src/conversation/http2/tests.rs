//! Conversations in HTTP/2 and gRPC as scripts.

mod bounded;
mod recognition;
mod scripts;
mod unseen;

use super::super::script_testing::lines_however_cut;
use super::*;
pub(crate) use scripts::conversations;

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

fn call(stream: u32, flags: u8) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":path", "/shop.Cart/Add"),
        ("content-type", "application/grpc+proto"),
    ];
    head(stream, flags, &fields)
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
