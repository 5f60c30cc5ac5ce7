//! Conversations with PostgreSQL as scripts.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, test_hostile_input,
};
use super::messages::KEEP;
use super::*;
use crate::conversation::Dissector;
use proptest::prelude::*;
use stackline_redact::sql;

pub(super) fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Postgres>(script)
}

/// A connection after its login: what is found from exchange 1 on.
pub(super) fn after_login(script: DialogueScript<'_>) -> Vec<String> {
    let (hello, ready) = (startup(), [message(b'R', &[0; 4]), READY.to_vec()].concat());
    let script: Vec<(char, &[u8])> = [('>', hello.as_slice()), ('<', ready.as_slice())]
        .into_iter()
        .chain(script.iter().copied())
        .collect();
    dissect_lines(&script).into_iter().skip(6).collect()
}

/// What exchanges are called and how they are answered.
pub(super) fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(after_login(script))
}

pub(super) fn message(mark: u8, body: &[u8]) -> Vec<u8> {
    [&[mark][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0app\0database\0shop\0\0";
    [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

pub(super) fn parse(statement: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{statement}\0{text}\0\0\0").as_bytes())
}

pub(super) fn bind(statement: &str) -> Vec<u8> {
    message(b'B', format!("\0{statement}\0\0\0\0\0\0\0").as_bytes())
}

pub(super) fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

pub(super) fn error(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes())
}

pub(super) const READY: &[u8] = b"Z\0\0\0\x05I";
pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";
pub(super) const FLUSH: &[u8] = b"H\0\0\0\x04";
pub(super) const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
pub(super) const PARSED: &[u8] = b"1\0\0\0\x04";
pub(super) const BOUND: &[u8] = b"2\0\0\0\x04";

#[test]
fn a_login_and_a_simple_query() {
    let script: DialogueScript<'_> = &[
        ('>', &startup()),
        ('<', &message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4])),
        ('>', &message(b'p', b"md5abc\0")),
        (
            '<',
            &[
                message(b'R', &[0; 4]),
                message(b'S', b"a\0b\0"),
                message(b'K', &[0; 8]),
                READY.to_vec(),
            ]
            .concat(),
        ),
        ('>', &query("SELECT id\n  FROM item")),
        (
            '<',
            &[
                message(b'T', &[0; 20]),
                message(b'D', &[7; 300]),
                complete("SELECT 1"),
                READY.to_vec(),
            ]
            .concat(),
        ),
        ('>', b"X\0\0\0\x04"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0 (handshake)",
            "0 request is login app@shop",
            "0 request ends > 32",
            "0 response begins < 0 (handshake)",
            "0 response is OK",
            "0 response ends < 50",
            "1 request begins > 44",
            "1 request is SELECT id FROM item",
            "1 request ends > 71",
            "1 response begins < 50",
            "1 response is SELECT 1",
            "1 response ends < 400",
            "2 request begins > 71 (one way)",
            "2 request is Terminate",
            "2 request ends > 76",
        ]
    );
}

#[test]
fn a_refused_login() {
    let script: DialogueScript<'_> = &[
        ('>', &startup()),
        ('<', &message(b'E', b"SFATAL\0VFATAL\0C28P01\0Mno\0\0")),
        ('<', b""),
    ];
    assert_eq!(
        dissect_lines(script)[3..],
        [
            "0 response begins < 0 (handshake)",
            "0 response is FATAL 28P01",
            "0 response ends < 31"
        ]
    );
}

#[test]
fn extended_queries_go_from_their_first_message_to_their_sync() {
    let ask = [
        parse("s1", "SELECT $1"),
        bind("s1"),
        DESCRIBE.to_vec(),
        EXECUTE.to_vec(),
        SYNC.to_vec(),
    ]
    .concat();
    let answer = [
        PARSED.to_vec(),
        BOUND.to_vec(),
        message(b'T', &[0; 9]),
        message(b'D', &[1; 9]),
        complete("SELECT 1"),
        READY.to_vec(),
    ]
    .concat();
    let again = [bind("s1"), EXECUTE.to_vec(), SYNC.to_vec()].concat();
    let script: DialogueScript<'_> = &[
        ('>', &ask),
        ('<', &answer),
        ('>', &again),
        ('<', &[BOUND, &error("22012"), READY].concat()),
    ];
    let (there, back) = (32, 15);
    assert_eq!(
        after_login(script),
        [
            format!("1 request begins > {there}"),
            "1 request is SELECT $1".to_owned(),
            format!("1 request ends > {}", there + ask.len()),
            format!("1 response begins < {back}"),
            "1 response is SELECT 1".to_owned(),
            format!("1 response ends < {}", back + answer.len()),
            format!("2 request begins > {}", there + ask.len()),
            "2 request is SELECT $1".to_owned(),
            format!("2 request ends > {}", there + ask.len() + again.len()),
            format!("2 response begins < {}", back + answer.len()),
            "2 response is ERROR 22012".to_owned(),
            format!(
                "2 response ends < {}",
                back + answer.len() + 5 + error("22012").len() + 6
            ),
        ]
    );
}

#[test]
fn pipelined_queries_are_answered_in_their_order() {
    let ask = |text: &str| [parse("", text), bind(""), EXECUTE.to_vec(), SYNC.to_vec()].concat();
    let answer = |tag: &str| {
        [
            PARSED.to_vec(),
            BOUND.to_vec(),
            complete(tag),
            READY.to_vec(),
        ]
        .concat()
    };
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[ask("INSERT INTO a"), ask("DELETE FROM b"), query("COMMIT")].concat(),
        ),
        (
            '<',
            &[
                answer("INSERT 0 1"),
                error("42P01"),
                READY.to_vec(),
                complete("COMMIT"),
                READY.to_vec(),
            ]
            .concat(),
        ),
    ];
    assert_eq!(
        names(script),
        [
            "1 request is INSERT INTO a",
            "2 request is DELETE FROM b",
            "3 request is COMMIT",
            "1 response is INSERT 0 1",
            "2 response is ERROR 42P01",
            "3 response is COMMIT",
        ]
    );
}

#[test]
fn what_is_flushed_is_answered_before_the_sync() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[&parse("s", "SELECT 1")[..], DESCRIBE, FLUSH].concat(),
        ),
        (
            '<',
            &[PARSED, &message(b't', &[0; 2]), &message(b'T', &[0; 9])].concat(),
        ),
        ('>', &[&bind("s")[..], EXECUTE, SYNC].concat()),
        ('<', &[BOUND, &complete("SELECT 1"), READY].concat()),
    ];
    // ParameterDescription completes nothing by itself.
    let lines = after_login(script);
    assert!(
        lines.contains(&"1 response ends < 41".to_owned()),
        "{lines:?}"
    );
    assert_eq!(
        names(script).last().map(String::as_str),
        Some("2 response is SELECT 1")
    );
}

#[test]
fn what_follows_an_error_up_to_the_sync_is_skipped() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[
                &parse("", "SELEC 1")[..],
                FLUSH,
                &parse("", "SELECT 2"),
                FLUSH,
            ]
            .concat(),
        ),
        ('<', &error("42601")),
        ('>', SYNC),
        ('<', READY),
        ('>', &query("")),
        ('<', &[message(b'I', b""), READY.to_vec()].concat()),
    ];
    assert_eq!(
        names(script),
        [
            "1 request is SELEC 1",
            "1 request is PREPARE SELEC 1",
            "2 request is SELECT 2",
            "2 request is PREPARE SELECT 2",
            "1 response is ERROR 42601",
            "2 void: the server skipped it",
            "3 response is OK",
            "4 request is empty query",
            "4 response is empty",
        ]
    );
}

#[test]
fn copied_data_belong_to_their_query() {
    let data = [
        message(b'd', b"1\tone\n"),
        message(b'd', b"2\ttwo\n"),
        message(b'c', b""),
    ]
    .concat();
    let script: DialogueScript<'_> = &[
        ('>', &query("COPY a FROM STDIN")),
        ('<', &message(b'G', &[0; 3])),
        ('>', &data),
        ('<', &[complete("COPY 2"), READY.to_vec()].concat()),
        (
            '>',
            &[
                &parse("", "COPY a FROM STDIN")[..],
                &bind(""),
                EXECUTE,
                SYNC,
            ]
            .concat(),
        ),
        ('<', &[PARSED, BOUND, &message(b'G', &[0; 3])].concat()),
        ('>', &[&data[..], SYNC].concat()),
        ('<', &[complete("COPY 2"), READY.to_vec()].concat()),
        ('>', &query("COPY a TO STDOUT")),
        (
            '<',
            &[
                message(b'H', &[0; 3]),
                data.clone(),
                complete("COPY 2"),
                READY.to_vec(),
            ]
            .concat(),
        ),
    ];
    let wanted = [1, 2, 3].map(|number| format!("{number} response is COPY 2"));
    assert_eq!(
        names(script)
            .into_iter()
            .filter(|line| line.contains("response"))
            .collect::<Vec<_>>(),
        wanted
    );
}

#[test]
fn notices_and_notifications_answer_nothing() {
    let script: DialogueScript<'_> = &[
        ('<', &message(b'A', b"\0\0\0\x07jobs\0new\0")),
        ('>', &query("VACUUM")),
        ('<', &message(b'N', b"SNOTICE\0\0")),
        ('<', &[complete("VACUUM"), READY.to_vec()].concat()),
        ('<', &message(b'E', b"SFATAL\0VFATAL\0C57P01\0\0")),
    ];
    assert_eq!(
        after_login(script),
        [
            "1 response begins < 15 (one way)",
            "1 response is notification jobs",
            "1 response ends < 33",
            "2 request begins > 32",
            "2 request is VACUUM",
            "2 request ends > 44",
            "2 response begins < 47",
            "2 response is VACUUM",
            "2 response ends < 65",
            "3 response begins < 65 (one way)",
            "3 response is FATAL 57P01",
            "3 response ends < 92",
        ]
    );
}

#[test]
fn a_secured_connection_goes_on_in_tls() {
    let request = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let hello = [
        &[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3][..],
        &[7; 32],
        &[0, 0, 2, 0x13, 1, 1, 0],
    ]
    .concat();
    let script: DialogueScript<'_> = &[
        ('>', request),
        ('<', b"S"),
        ('>', &hello),
        ('<', &[21, 3, 3, 0, 2, 2, 40]),
    ];
    let dissected = dissect_lines(script);
    assert_eq!(
        dissected[1..],
        [
            "0 request is SSLRequest",
            "0 request ends > 8",
            "0 response begins < 0 (handshake)",
            "0 response is S",
            "0 response ends < 1",
            "1 request begins > 8 (handshake)",
            "1 request ends > 58",
            "1 request is TLS handshake",
            "1 response begins < 1 (handshake)",
            "1 response is alert 40",
            "1 response ends < 8",
        ]
    );
    let refused: DialogueScript<'_> =
        &[('>', request), ('<', b"N"), ('>', &startup()), ('<', READY)];
    assert_eq!(
        dissect_lines(refused).last().map(String::as_str),
        Some("1 response ends < 7")
    );
    let cancel: DialogueScript<'_> = &[
        ('>', b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x09"),
        ('>', b""),
        ('<', b""),
    ];
    assert_eq!(dissect_lines(cancel)[1], "0 request is CancelRequest");
}

#[test]
fn what_was_not_seen_of_messages_does_no_harm() {
    let (mut postgres, mut found) = (Postgres::default(), Vec::new());
    postgres.bytes(EventStreamDirection::There, 0, &startup(), &mut found);
    postgres.bytes(EventStreamDirection::Back, 0, READY, &mut found);
    // A query of 5000 bytes and a row of 9000, of which little was captured.
    postgres.bytes(
        EventStreamDirection::There,
        32,
        b"Q\0\0\x13\x87SELECT 1",
        &mut found,
    );
    postgres.unseen(EventStreamDirection::There, 45, 4987, &mut found);
    assert!(found.contains(&DissectorEvent::Named {
        exchange: 1,
        role: ExchangeRole::Request,
        name: sql::redact_beginning(Dialect::Postgres(Backslash::Unknown), b"SELECT 1")
    }));
    postgres.bytes(
        EventStreamDirection::Back,
        6,
        b"D\0\0\x23\x27row",
        &mut found,
    );
    postgres.unseen(EventStreamDirection::Back, 14, 8992, &mut found);
    postgres.bytes(EventStreamDirection::Back, 9006, READY, &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 1,
                at: 9012,
                ..
            })
        ),
        "{found:?}"
    );
    // A row of which the head was not seen makes void; the next query is known again.
    postgres.bytes(
        EventStreamDirection::There,
        5032,
        &query("SELECT 2"),
        &mut found,
    );
    postgres.unseen(EventStreamDirection::Back, 9012, 100, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 2, .. })),
        "{found:?}"
    );
    postgres.bytes(EventStreamDirection::Back, 9112, b"anything", &mut found);
    postgres.bytes(
        EventStreamDirection::There,
        5046,
        &query("SELECT 3"),
        &mut found,
    );
    postgres.bytes(
        EventStreamDirection::Back,
        9120,
        &[complete("SELECT 1"), READY.to_vec()].concat(),
        &mut found,
    );
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 3,
                role: ExchangeRole::Response,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn a_statement_that_was_cut_keeps_what_is_before_its_literal() {
    let kept = |message: &[u8]| {
        let (mut postgres, mut found) = (Postgres::default(), Vec::new());
        postgres.bytes(EventStreamDirection::There, 0, &startup(), &mut found);
        postgres.bytes(EventStreamDirection::Back, 0, READY, &mut found);
        found.clear();
        postgres.bytes(
            EventStreamDirection::There,
            32,
            &[message, SYNC].concat(),
            &mut found,
        );
        let name = |found: &DissectorEvent| match found {
            DissectorEvent::Named { name, .. } => Some(name.kept().to_owned()),
            _ => None,
        };
        found.iter().find_map(name).unwrap()
    };
    assert_eq!(kept(&query("SELECT a, 'x")), "SELECT …", "it is whole");
    assert_eq!(kept(&parse("s", "SELECT a, 'x")), "SELECT …", "it is whole");
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(2 * KEEP));
    for message in [query(&long), parse("s", &long)] {
        assert_eq!(kept(&message), "INSERT INTO t VALUES (?…");
    }
}

#[test]
fn it_is_recognised_by_its_first_message() {
    let verdict = |there: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back: &[],
            port: 1,
        })
    };
    assert_eq!(verdict(&startup()), ProtocolVerdict::Yes);
    for length in 0..8 {
        assert_eq!(
            verdict(&startup()[..length]),
            ProtocolVerdict::Perhaps,
            "{length}"
        );
        assert_eq!(
            verdict(&b"\0\0\0\x08\x04\xd2\x16\x2f"[..length]),
            ProtocolVerdict::Perhaps,
            "{length}"
        );
    }
    assert_eq!(verdict(b"\0\0\0\x08\x04\xd2\x16\x2f"), ProtocolVerdict::Yes);
    for bytes in [
        &b"GET / HTTP/1.1"[..],
        b"\0\0\0\x08\0\x02\0\0",
        b"\0\0\0\x08\x04\xd3",
        b"\0\x1d\xab\xcd\x01\0\0\x01",
        b"\x16\x03",
    ] {
        assert_eq!(verdict(bytes), ProtocolVerdict::No, "{bytes:?}");
    }
}

#[test]
fn texts_of_statements_are_bounded() {
    let (mut postgres, mut found) = (Postgres::default(), Vec::new());
    postgres.bytes(EventStreamDirection::There, 0, &startup(), &mut found);
    let mut at = 32;
    for number in 0..2000 {
        let message = parse(&format!("s{number}"), "SELECT");
        postgres.bytes(EventStreamDirection::There, at, &message, &mut found);
        at += message.len() as u64;
    }
    assert!(postgres.texts.len() <= 512);
    assert_eq!(postgres.texts.name_of(b"s7").kept(), "SELECT");
    assert_eq!(postgres.texts.name_of(b"s1999").kept(), "statement s1999");
}

const WORDS: &[&[u8]] = &[
    b"\0\0\0\x0e\0\x03\0\0user\0\0",
    b"\0\0\0\x08\x04\xd2\x16\x2f",
    b"Q\0\0\0\x06a\0",
    b"P\0\0\0\x09s\0t\0\0",
    b"B\0\0\0\x07\0s\0",
    EXECUTE,
    SYNC,
    FLUSH,
    READY,
    PARSED,
    BOUND,
    b"C\0\0\0\x06a\0",
    b"E\0\0\0\x08Ca\0\0",
    b"G\0\0\0\x04",
    b"N",
    b"S",
    b"D\0\0\0\x40",
    b"A\0\0\0\x04",
    b"E\0\0\0\x04",
    b"X\0\0\0\x04",
];

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(mut moves in test_hostile_input(WORDS), logged_in in any::<bool>()) {
        if logged_in {
            moves.splice(0..0, [(false, 9, startup()), (true, 9, READY.to_vec())]);
        }
        let mut postgres = Postgres::default();
        prop_assert_eq!(is_unharmed_by(&mut postgres, &moves), Ok(()));
        prop_assert!(postgres.waiting.len() <= crate::conversation::MOST_WAITING + 1);
        prop_assert!(postgres.dialogue.held().iter().all(|held| *held <= KEEP));
    }
}
