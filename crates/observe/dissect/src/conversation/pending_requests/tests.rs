//! Long pipelines of every protocol: each answer goes to its own request, and what is left out is counted.

use crate::conversation::connection::Conversation;
use crate::conversation::{DissectorEvent, ExchangeRole};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection::{self, Back, There};
use std::collections::{BTreeMap, BTreeSet};

/// What each side of a connection says.
struct Talk {
    conversation: Conversation,
    found: Vec<DissectorEvent>,
    at: [u64; 2],
}

impl Talk {
    fn new(before: &[(EventStreamDirection, Vec<u8>)]) -> Self {
        let mut talk = Self {
            conversation: Conversation::new(80),
            found: Vec::new(),
            at: [0; 2],
        };
        before
            .iter()
            .for_each(|(side, bytes)| talk.say(*side, bytes));
        talk
    }

    fn say(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        for bytes in bytes.chunks(1400) {
            self.conversation.segment(
                side,
                self.at[side as usize],
                bytes,
                bytes.len() as u64,
                &mut self.found,
            );
            self.at[side as usize] += bytes.len() as u64;
        }
    }

    /// Exchanges that were answered, with what; how many were left out.
    fn outcome(&self) -> (BTreeMap<u64, String>, u64) {
        let (mut names, mut ended, mut void, mut left_out) =
            (BTreeMap::new(), BTreeSet::new(), BTreeSet::new(), 0);
        for found in &self.found {
            match found {
                DissectorEvent::Named {
                    exchange,
                    role: ExchangeRole::Response,
                    name,
                } => {
                    names.insert(*exchange, name.whole().to_string());
                }
                DissectorEvent::Ends {
                    exchange,
                    role: ExchangeRole::Response,
                    ..
                } => assert!(ended.insert(*exchange)),
                DissectorEvent::Void { exchange, .. } => assert!(void.insert(*exchange)),
                DissectorEvent::LeftOut(Bound::Waiting, count) => left_out += count,
                _ => {}
            }
        }
        assert!(void.is_disjoint(&ended), "what is void is not answered");
        assert_eq!(
            void.len() as u64,
            left_out,
            "what is left out is reported, without its answer"
        );
        names.retain(|exchange, _| ended.contains(exchange));
        (names, left_out)
    }
}

const PIPELINED: usize = 20_000;
const THEN: usize = 1000;

/// So many at once, all answered, and then one by one: `answer` has another status where its request is left out.
fn stays_in_step(
    before: &[(EventStreamDirection, Vec<u8>)],
    request: impl Fn(usize) -> Vec<u8>,
    answer: impl Fn(usize, bool) -> Vec<u8>,
    is_left_out: impl Fn(usize) -> bool,
) {
    let mut talk = Talk::new(before);
    // Of a login and such.
    let first = talk.outcome().0.len();
    let asked: Vec<u8> = (0..PIPELINED).flat_map(&request).collect();
    talk.say(There, &asked);
    let answers: Vec<u8> = (0..PIPELINED)
        .flat_map(|number| answer(number, is_left_out(number)))
        .collect();
    talk.say(Back, &answers);
    for number in PIPELINED..PIPELINED + THEN {
        talk.say(There, &request(number));
        talk.say(Back, &answer(number, false));
    }
    let (answered, left_out) = talk.outcome();
    let of_these: BTreeMap<u64, &String> = answered
        .iter()
        .filter(|(at, _)| **at >= first as u64)
        .map(|(at, name)| (*at - first as u64, name))
        .collect();
    assert_eq!(left_out as usize, PIPELINED - Bound::Waiting.most());
    assert_eq!(of_these.len() + left_out as usize, PIPELINED + THEN);
    assert!((PIPELINED..PIPELINED + THEN).all(|number| of_these.contains_key(&(number as u64))));
    let names: BTreeSet<&String> = of_these.into_values().collect();
    assert_eq!(
        names.len(),
        1,
        "each answer is that of its request: {names:?}"
    );
}

fn beyond(number: usize) -> bool {
    (Bound::Waiting.most()..PIPELINED).contains(&number)
}

fn typed(mark: u8, body: &[u8]) -> Vec<u8> {
    [&[mark][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    [
        &(body.len() as u32).to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
        body,
    ]
    .concat()
}

#[test]
fn resp() {
    let set =
        |number: usize| format!("*3\r\n$3\r\nSET\r\n$6\r\n{number:06}\r\n$1\r\nx\r\n").into_bytes();
    stays_in_step(
        &[],
        set,
        |_, left_out| {
            if left_out {
                b"-ERR no\r\n".to_vec()
            } else {
                b"+OK\r\n".to_vec()
            }
        },
        beyond,
    );
}

#[test]
fn postgres() {
    let startup = b"\0\0\0\x12\0\x03\0\0user\0app\0\0".to_vec();
    let login = [
        (There, startup),
        (Back, [typed(b'R', &[0; 4]), typed(b'Z', b"I")].concat()),
    ];
    let answer = |_: usize, left_out: bool| {
        let says = if left_out {
            typed(b'E', b"SERROR\0C42P01\0\0")
        } else {
            typed(b'C', b"SELECT 1\0")
        };
        [says, typed(b'Z', b"I")].concat()
    };
    stays_in_step(&login, |_| typed(b'Q', b"SELECT 1\0"), answer, beyond);
    // Extended queries: an error, too, ends with its Sync.
    let extended = |_: usize| {
        let parts = [
            (b'P', &b"\0SELECT 1\0\0\0"[..]),
            (b'B', b"\0\0\0\0\0\0\0\0"),
            (b'E', b"\0\0\0\0\0"),
            (b'S', b""),
        ];
        parts.map(|(mark, body)| typed(mark, body)).concat()
    };
    let answer = |_: usize, left_out: bool| {
        let complete = [
            typed(b'1', b""),
            typed(b'2', b""),
            typed(b'C', b"SELECT 1\0"),
        ]
        .concat();
        let says = if left_out {
            typed(b'E', b"SERROR\0C42P01\0\0")
        } else {
            complete
        };
        [says, typed(b'Z', b"I")].concat()
    };
    stays_in_step(&login, extended, answer, beyond);
}

#[test]
fn mysql() {
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
    let fine = packet(2, &[0, 0, 0, 2, 0, 0, 0]);
    let before = [
        (Back, packet(0, &greeting)),
        (There, packet(1, &login)),
        (Back, fine),
    ];
    let answer = |_: usize, left_out: bool| {
        packet(
            1,
            if left_out {
                b"\xff\x19\x04#28000no"
            } else {
                &[0, 0, 0, 2, 0, 0, 0]
            },
        )
    };
    stays_in_step(&before, |_| packet(0, b"\x03DO 1"), answer, beyond);
}

#[test]
fn http1() {
    let answer = |_: usize, left_out: bool| {
        let status = if left_out { "404 Not Found" } else { "200 OK" };
        format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok").into_bytes()
    };
    stays_in_step(&[], |_| b"GET / HTTP/1.1\r\n\r\n".to_vec(), answer, beyond);
    let post = |_: usize| b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_vec();
    stays_in_step(&[], post, answer, beyond);
    // Answers to HEAD have no body.
    let method = |number: usize| {
        if number.is_multiple_of(2) {
            "GET"
        } else {
            "HEAD"
        }
    };
    let request = |number: usize| format!("{} / HTTP/1.1\r\n\r\n", method(number)).into_bytes();
    let answers = |number: usize, left_out: bool| {
        let whole = answer(number, left_out);
        whole[..whole.len() - 2 * (number % 2)].to_vec()
    };
    stays_in_step(&[], request, answers, beyond);
}

#[test]
fn http2() {
    let preface = [(There, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec())];
    let request = |number: usize| frame(1, 5, 2 * number as u32 + 1, &[0x82]);
    let answer = |number: usize, left_out: bool| {
        frame(
            1,
            5,
            2 * number as u32 + 1,
            &[if left_out { 0x8d } else { 0x88 }],
        )
    };
    stays_in_step(&preface, request, answer, beyond);
}

#[test]
fn dns() {
    let message = |number: usize, flags: [u8; 2]| {
        let body = [
            &(number as u16).to_be_bytes()[..],
            &flags,
            b"\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
        ]
        .concat();
        [&(body.len() as u16).to_be_bytes()[..], &body].concat()
    };
    let answer =
        |number: usize, left_out: bool| message(number, [0x81, if left_out { 0x83 } else { 0x80 }]);
    // Answers come in any order, so that the oldest questions give way.
    let oldest = |number: usize| number < PIPELINED - Bound::Waiting.most();
    stays_in_step(&[], |number| message(number, [1, 0]), answer, oldest);
}

#[test]
fn of_requests_too_unlike_to_keep_in_step_each_is_counted() {
    let mut talk = Talk::new(&[]);
    let sent = 100_000;
    for at in 0..sent {
        let method = if at % 2 == 0 { "GET" } else { "HEAD" };
        talk.say(There, format!("{method} / HTTP/1.1\r\n\r\n").as_bytes());
    }
    for _ in 0..sent {
        talk.say(Back, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    let (answered, left_out) = talk.outcome();
    assert_eq!((answered.len(), left_out), (0, sent));
}
