//! Messages of DNS, and what is none.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, test_hostile_input,
};
use super::*;
use crate::conversation::Dissector;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Dns>(script)
}

/// A message with one question.
fn message(id: u8, bits: [u8; 2], name: &[u8], kind: u8) -> Vec<u8> {
    [
        &[0, id],
        &bits[..],
        &[0, 1, 0, 0, 0, 0, 0, 0],
        name,
        &[0, kind, 0, 1],
    ]
    .concat()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

const QUESTION: [u8; 2] = [1, 0];
const ANSWER: [u8; 2] = [0x81, 0x80];
const NO_NAME: [u8; 2] = [0x81, 0x83];
const WWW: &[u8] = b"\x03www\x07example\x03org\0";

#[test]
fn a_datagram_says_its_question() {
    let question = parse_message(&message(7, QUESTION, WWW, 28)).unwrap();
    let wanted = DnsMessage {
        id: 7,
        response: false,
        question: "www.example.org".into(),
        kind: 28,
        code: 0,
    };
    assert_eq!(
        (question.name().kept(), &question),
        ("AAAA www.example.org", &wanted)
    );
    let answer = parse_message(&message(7, NO_NAME, WWW, 28)).unwrap();
    assert_eq!((answer.response, answer.name().kept()), (true, "NXDOMAIN"));
    assert_eq!(
        parse_message(&message(7, QUESTION, b"\0", 2))
            .unwrap()
            .name()
            .kept(),
        "NS ."
    );
    // A name may go on elsewhere in the message: behind its type and class stands `org`.
    let elsewhere = [
        message(7, ANSWER, b"\x03www\xc0\x16", 1),
        b"\x03org\0".to_vec(),
    ]
    .concat();
    assert_eq!(parse_message(&elsewhere).unwrap().question, "www.org");
}

#[test]
fn what_is_no_dns_is_none() {
    let whole = message(7, QUESTION, WWW, 1);
    for length in 0..whole.len() {
        assert_eq!(parse_message(&whole[..length]), None, "{length}");
    }
    // A name that points to itself, a longer one than may be, a mark that is none.
    for name in [
        b"\xc0\x0c".as_slice(),
        &[b"\x3f".as_slice(), &[b'a'; 63]].concat().repeat(5),
        b"\x80abc\0",
    ] {
        assert_eq!(parse_message(&message(7, QUESTION, name, 1)), None);
    }
    assert_eq!(parse_message(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
    assert_eq!(parse_message(&message(7, [0x78, 0], WWW, 1)), None);
}

#[test]
fn responses_on_a_connection_come_in_any_order() {
    let (one, other) = (
        framed(&message(1, QUESTION, WWW, 1)),
        framed(&message(2, QUESTION, WWW, 28)),
    );
    let answers = [
        framed(&message(2, NO_NAME, WWW, 28)),
        framed(&message(1, ANSWER, b"\x03WWW\x07example\x03org\0", 1)),
    ];
    let script: DialogueScript<'_> = &[('>', &[one, other].concat()), ('<', &answers.concat())];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0",
            "0 request is A www.example.org",
            "0 request ends > 35",
            "1 request begins > 35",
            "1 request is AAAA www.example.org",
            "1 request ends > 70",
            "1 response begins < 0",
            "1 response is NXDOMAIN",
            "1 response ends < 35",
            "0 response begins < 35",
            "0 response is NOERROR",
            "0 response ends < 70",
        ]
    );
}

#[test]
fn a_response_to_another_question_answers_nothing() {
    let script: DialogueScript<'_> = &[
        ('>', &framed(&message(1, QUESTION, WWW, 1))),
        ('<', &framed(&message(1, ANSWER, b"\x03web\0", 1))),
        ('<', &framed(&message(9, ANSWER, WWW, 1))),
        ('<', &framed(&message(1, [0x81, 0x82], WWW, 1))),
    ];
    assert_eq!(
        dissect_lines(script)[3..],
        [
            "0 response begins < 58",
            "0 response is SERVFAIL",
            "0 response ends < 93"
        ]
    );
}

#[test]
fn a_transfer_has_several_responses() {
    let more = framed(&[0, 1, 0x80, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
    let script: DialogueScript<'_> = &[
        ('>', &framed(&message(1, QUESTION, WWW, 252))),
        ('<', &framed(&message(1, ANSWER, WWW, 252))),
        ('<', &more),
        ('<', b""),
    ];
    assert_eq!(
        dissect_lines(script)[3..],
        [
            "0 response begins < 0",
            "0 response is NOERROR",
            "0 part < 35",
            "0 part < 49",
            "0 response ends < 49"
        ]
    );
}

#[test]
fn what_was_not_seen_of_messages_does_no_harm() {
    let (mut dns, mut found) = (Dns::default(), Vec::new());
    dns.bytes(
        EventStreamDirection::There,
        0,
        &framed(&message(1, QUESTION, WWW, 1)),
        &mut found,
    );
    let answer = framed(&[message(1, ANSWER, WWW, 1), vec![0; 400]].concat());
    dns.bytes(EventStreamDirection::Back, 0, &answer[..40], &mut found);
    dns.unseen(EventStreamDirection::Back, 40, 395, &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 0,
                role: ExchangeRole::Response,
                at: 435,
                ..
            })
        ),
        "{found:?}"
    );
    // A question that was cut off is not known; the next one is.
    dns.bytes(
        EventStreamDirection::There,
        35,
        &framed(&message(2, QUESTION, WWW, 1))[..20],
        &mut found,
    );
    dns.unseen(EventStreamDirection::There, 55, 15, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 1, .. })),
        "{found:?}"
    );
    dns.bytes(
        EventStreamDirection::There,
        70,
        &framed(&message(3, QUESTION, WWW, 1)),
        &mut found,
    );
    dns.bytes(
        EventStreamDirection::Back,
        435,
        &framed(&message(3, ANSWER, WWW, 1)),
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
    // Without a length nothing more is.
    dns.bytes(
        EventStreamDirection::There,
        105,
        &framed(&message(4, QUESTION, WWW, 1)),
        &mut found,
    );
    dns.unseen(EventStreamDirection::Back, 470, 1, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 3, .. })),
        "{found:?}"
    );
}

#[test]
fn it_is_recognised_by_a_question() {
    let verdict = |there: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back: &[],
            port: 53,
        })
    };
    let question = framed(&message(7, QUESTION, WWW, 1));
    assert_eq!(verdict(&question), ProtocolVerdict::Yes);
    for length in 0..question.len() {
        assert_eq!(
            verdict(&question[..length]),
            ProtocolVerdict::Perhaps,
            "{length}"
        );
    }
    for bytes in [
        &b"GET / HTTP/1.1"[..],
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"\x16\x03\x01",
        &framed(&message(7, ANSWER, WWW, 1)),
    ] {
        assert_eq!(verdict(bytes), ProtocolVerdict::No, "{bytes:?}");
    }
}

const WORDS: &[&[u8]] = &[
    b"\0\x13\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    b"\0\x13\0\x01\x81\x80\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    b"\0\x13\0\x02\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\xfc\0\x01",
    b"\0\x0c\0\x02\x80\0\0\0\0\x01\0\0\0\0",
    b"\0\x14\0\x01\x01\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\0\x01\0\x01",
    b"\x01\x00\0\x01\x81\x80",
];

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(moves in test_hostile_input(WORDS)) {
        let mut dns = Dns::default();
        prop_assert_eq!(is_unharmed_by(&mut dns, &moves), Ok(()));
        prop_assert!(dns.waiting.len() <= MOST_WAITING);
        prop_assert!(dns.dialogue.held().iter().all(|held| *held <= 2 + KEEP));
    }

    #[test]
    fn hostile_datagrams_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..80), from in 0_usize..20) {
        let known = message(7, ANSWER, WWW, 1);
        let mixed = [&known[..from.min(known.len())], &bytes].concat();
        for bytes in [bytes, mixed] {
            if let Some(message) = parse_message(&bytes) {
                prop_assert!(message.question.len() <= LONGEST);
            }
        }
    }
}
