//! Conversations with MySQL as scripts.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use crate::conversation::Dissector;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Mysql>(script)
}

/// A connection after its login: what is found from exchange 2 on.
fn after_login(bits: u64, script: DialogueScript<'_>) -> Vec<String> {
    let (greeting, login, done) = (greeting(bits), login(bits), packet(2, DONE));
    let opening = [
        ('<', greeting.as_slice()),
        ('>', login.as_slice()),
        ('<', done.as_slice()),
    ];
    let script: Vec<(char, &[u8])> = opening.into_iter().chain(script.iter().copied()).collect();
    dissect_lines(&script).into_iter().skip(9).collect()
}

/// What exchanges are called and how they are answered.
fn names(bits: u64, script: DialogueScript<'_>) -> Vec<String> {
    names_of(after_login(bits, script))
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

fn packets(first: u8, bodies: &[&[u8]]) -> Vec<u8> {
    (first..)
        .zip(bodies)
        .flat_map(|(number, body)| packet(number, body))
        .collect()
}

fn command(command: u8, text: &[u8]) -> Vec<u8> {
    packet(0, &[&[command], text].concat())
}

fn greeting(bits: u64) -> Vec<u8> {
    let low = (bits as u16).to_le_bytes();
    let high = ((bits >> 16) as u16).to_le_bytes();
    packet(
        0,
        &[
            b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0".as_slice(),
            &low,
            &[255, 2, 0],
            &high,
            &[21],
            &[0; 10],
            &[7; 13],
        ]
        .concat(),
    )
}

fn login(bits: u64) -> Vec<u8> {
    let bits = (bits as u32).to_le_bytes();
    packet(
        1,
        &[
            &bits,
            &[0, 0, 0, 1, 255][..],
            &[0; 23],
            b"app\0\x04salt",
            b"shop\0",
        ]
        .concat(),
    )
}

const OLD: u64 = PROTOCOL_41 | WITH_DATABASE | LONG_PASSWORD;
const NEW: u64 = OLD | NO_EOF;
const DONE: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const COLUMN: &[u8] = b"\x03def\x04shop\x04item";
const END: &[u8] = &[0xfe, 0, 0, 2, 0];
const MORE: &[u8] = &[0xfe, 0, 0, 10, 0];
const NO_TABLE: &[u8] = b"\xff\x7a\x04#42S02no";

#[test]
fn a_login_and_a_query() {
    let rows = packets(1, &[&[1], COLUMN, END, b"\x01a", b"\x01b", END]);
    let script: DialogueScript<'_> = &[
        ('<', &greeting(OLD)),
        ('>', &login(OLD)),
        ('<', &packet(2, b"\xfemysql_native_password\0salt\0")),
        ('>', &packet(3, &[9; 20])),
        ('<', &packet(4, DONE)),
        ('>', &command(QUERY, b"SELECT id\n  FROM item")),
        ('<', &rows),
        ('>', &command(QUIT, b"")),
    ];
    let (back, there) = (greeting(OLD).len(), login(OLD).len());
    let (after, asked) = (back + 32 + 11, there + 24);
    assert_eq!(
        dissect_lines(script),
        [
            "0 response begins < 0 (one way)".to_owned(),
            "0 response is greeting 8.0.36".to_owned(),
            format!("0 response ends < {back}"),
            "1 request begins > 0 (handshake)".to_owned(),
            "1 request is login app@shop".to_owned(),
            format!("1 request ends > {there}"),
            format!("1 response begins < {back} (handshake)"),
            "1 response is OK".to_owned(),
            format!("1 response ends < {after}"),
            format!("2 request begins > {asked}"),
            "2 request is SELECT id FROM item".to_owned(),
            format!("2 request ends > {}", asked + 26),
            format!("2 response begins < {after}"),
            "2 response is 2 rows".to_owned(),
            format!("2 response ends < {}", after + rows.len()),
            format!("3 request begins > {} (one way)", asked + 26),
            "3 request is QUIT".to_owned(),
            format!("3 request ends > {}", asked + 31),
        ]
    );
}

#[test]
fn a_result_without_a_packet_behind_its_columns() {
    let script: DialogueScript<'_> = &[
        ('>', &command(QUERY, b"SELECT 1")),
        (
            '<',
            &packets(
                1,
                &[
                    &[2],
                    COLUMN,
                    COLUMN,
                    b"\x01a\x01b",
                    &[0xfe, 0, 0, 2, 0, 0, 0],
                ],
            ),
        ),
        ('>', &command(QUERY, b"SELECT x")),
        ('<', &packets(1, &[NO_TABLE])),
        ('>', &command(QUERY, b"SELECT y")),
        (
            '<',
            &packets(1, &[&[1], COLUMN, b"\x01a", b"\xff\x25\x05#70100no"]),
        ),
        ('>', &command(0x0e, b"")),
        ('<', &packets(1, &[DONE])),
    ];
    let dissected = names(NEW, script);
    let answers: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("response"))
        .collect();
    assert_eq!(
        answers,
        [
            "2 response is 1 row",
            "3 response is ERROR 1146 (42S02)",
            "4 response is ERROR 1317 (70100)",
            "5 response is OK"
        ]
    );
}

#[test]
fn several_results_are_one_answer() {
    let script: DialogueScript<'_> = &[
        ('>', &command(QUERY, b"CALL both()")),
        (
            '<',
            &packets(
                1,
                &[
                    &[1],
                    COLUMN,
                    END,
                    b"\x01a",
                    MORE,
                    &[1],
                    COLUMN,
                    END,
                    MORE,
                    &[0, 0, 0, 2, 0, 0, 0],
                ],
            ),
        ),
        ('>', &command(QUERY, b"UPDATE a; UPDATE b")),
        ('<', &packets(1, &[&[0, 1, 0, 10, 0, 0, 0], DONE])),
    ];
    let wanted = [
        "2 request is CALL both()",
        "2 response is OK",
        "3 request is UPDATE a; UPDATE b",
        "3 response is OK",
    ];
    assert_eq!(names(OLD, script), wanted);
}

#[test]
fn prepared_statements_are_called_by_their_text() {
    let prepare = command(PREPARE, b"SELECT ?");
    let prepared = &[0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0][..];
    let execute = command(EXECUTE, &[7, 0, 0, 0, 0, 1, 0, 0, 0]);
    for (bits, answer) in [
        (OLD, packets(1, &[prepared, COLUMN, END, COLUMN, END])),
        (NEW, packets(1, &[prepared, COLUMN, COLUMN])),
    ] {
        let columns = if bits == OLD {
            packets(1, &[&[1], COLUMN, END])
        } else {
            packets(1, &[&[1], COLUMN])
        };
        let script: DialogueScript<'_> = &[
            ('>', &prepare),
            ('<', &answer),
            ('>', &execute),
            (
                '<',
                &[columns, packet(4, &[0, 0, 1, b'a']), packet(5, END)].concat(),
            ),
            (
                '>',
                &[command(CLOSE, &[7, 0, 0, 0]), execute.clone()].concat(),
            ),
            ('<', &packet(1, b"\xff\xdb\x04#HY000no")),
        ];
        assert_eq!(
            names(bits, script),
            [
                "2 request is PREPARE SELECT ?",
                "2 response is OK",
                "3 request is SELECT ?",
                "3 response is 1 row",
                "4 request is CLOSE",
                "5 request is statement 7",
                "5 response is ERROR 1243 (HY000)",
            ]
        );
    }
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[
                command(QUERY, b"INSERT 1"),
                command(QUERY, b"INSERT 2"),
                command(0x0e, b""),
            ]
            .concat(),
        ),
        (
            '<',
            &[packet(1, DONE), packet(1, NO_TABLE), packet(1, DONE)].concat(),
        ),
    ];
    let dissected = names(OLD, script);
    assert_eq!(
        dissected[3..],
        [
            "2 response is OK",
            "3 response is ERROR 1146 (42S02)",
            "4 response is OK"
        ]
    );
}

#[test]
fn rows_left_for_a_cursor_and_a_file_of_the_client() {
    let script: DialogueScript<'_> = &[
        ('>', &command(EXECUTE, &[7, 0, 0, 0, 1, 1, 0, 0, 0])),
        ('<', &packets(1, &[&[1], COLUMN, &[0xfe, 0, 0, 66, 0]])),
        ('>', &command(0x1c, &[7, 0, 0, 0, 9, 0, 0, 0])),
        ('<', &packets(1, &[&[0, 0, 1, b'a'], END])),
        ('>', &command(QUERY, b"LOAD DATA LOCAL")),
        ('<', &packets(1, &[b"\xfb/a/file"])),
        ('>', &[packet(0, b"1,2"), packet(1, b"")].concat()),
        ('<', &packets(4, &[DONE])),
        ('>', &command(0x0e, b"")),
        ('<', &packets(1, &[DONE])),
    ];
    let dissected = names(OLD, script);
    let answers: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("response"))
        .collect();
    assert_eq!(
        answers,
        [
            "2 response is OK",
            "3 response is 1 row",
            "4 response is OK",
            "5 response is OK"
        ]
    );
    assert!(
        dissected.contains(&"5 request is PING".to_owned()),
        "{dissected:?}"
    );
}

#[test]
fn columns_may_be_left_out_where_both_sides_say_so() {
    let bits = NEW | MAY_LACK_COLUMNS | ATTRIBUTES;
    let script: DialogueScript<'_> = &[
        ('>', &command(QUERY, b"\0\x01SELECT 1")),
        ('<', &packets(1, &[&[1, 0], b"\x01a", END])),
        (
            '>',
            &command(QUERY, b"\x01\x01\0\x01\xfe\0\x01a\x01bSELECT 1"),
        ),
        ('<', &packets(1, &[&[1, 1], COLUMN, b"\x01a", END])),
    ];
    assert_eq!(
        names(bits, script),
        [
            "2 request is SELECT 1",
            "2 response is 1 row",
            "3 request is query with attributes",
            "3 response is 1 row"
        ]
    );
}

#[test]
fn what_is_sent_in_several_packets_is_one_message() {
    let (mut mysql, mut found) = logged_in();
    let (there, back) = (login(OLD).len() as u64, greeting(OLD).len() as u64 + 11);
    // A query and a row of 2^24 bytes, of which only the beginnings were captured.
    mysql.bytes(
        EventStreamDirection::There,
        there,
        b"\xff\xff\xff\0\x03SELECT 1",
        &mut found,
    );
    mysql.unseen(
        EventStreamDirection::There,
        there + 13,
        0xff_ffff - 9,
        &mut found,
    );
    mysql.bytes(
        EventStreamDirection::There,
        there + 4 + 0xff_ffff,
        b"\x02\0\0\x01aa",
        &mut found,
    );
    assert!(
        matches!(found.last(), Some(DissectorEvent::Ends { exchange: 2, role: ExchangeRole::Request, at, .. }) if *at == there + 10 + 0xff_ffff)
    );
    mysql.bytes(
        EventStreamDirection::Back,
        back,
        &packets(1, &[&[1], COLUMN, END]),
        &mut found,
    );
    let back = back + packets(1, &[&[1], COLUMN, END]).len() as u64;
    mysql.bytes(
        EventStreamDirection::Back,
        back,
        b"\xff\xff\xff\x04\xfe\0\0\0\x01\0\0\0\0",
        &mut found,
    );
    mysql.unseen(
        EventStreamDirection::Back,
        back + 13,
        0xff_ffff - 9,
        &mut found,
    );
    mysql.bytes(
        EventStreamDirection::Back,
        back + 4 + 0xff_ffff,
        &[packet(5, &[0xfe, 1]), packet(6, END)].concat(),
        &mut found,
    );
    assert!(
        found.contains(&DissectorEvent::Named {
            exchange: 2,
            role: ExchangeRole::Response,
            name: RedactedName::count(1, " row")
        }),
        "{found:?}"
    );
}

/// What is kept of the name of a command, of which so many bytes are seen.
fn kept(command: &[u8], seen: usize) -> String {
    let (mut mysql, mut found) = logged_in();
    let (at, seen) = (login(OLD).len() as u64, &command[..seen]);
    mysql.bytes(EventStreamDirection::There, at, seen, &mut found);
    mysql.unseen(
        EventStreamDirection::There,
        at + seen.len() as u64,
        (command.len() - seen.len()) as u64,
        &mut found,
    );
    let name = |found: &DissectorEvent| match found {
        DissectorEvent::Named { name, .. } => Some(name.kept().to_owned()),
        _ => None,
    };
    found.iter().rev().find_map(name).unwrap()
}

#[test]
fn a_statement_that_was_cut_keeps_what_is_before_its_literal() {
    let whole = command(QUERY, b"SELECT a, 'x");
    assert_eq!(kept(&whole, whole.len()), "SELECT …", "it is whole");
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(2 * KEEP));
    for (kind, before) in [(QUERY, ""), (PREPARE, "PREPARE ")] {
        let long = command(kind, long.as_bytes());
        assert_eq!(
            kept(&long, long.len()),
            format!("{before}INSERT INTO t VALUES (?…")
        );
    }
    let with_hole = command(QUERY, b"SELECT a FROM t WHERE b = 'x' AND c = 'y'");
    assert_eq!(
        kept(&with_hole, 33),
        "SELECT a FROM t WHERE b = ?…",
        "bytes of it were not seen"
    );
}

fn logged_in() -> (Mysql, Vec<DissectorEvent>) {
    let (mut mysql, mut found) = (Mysql::default(), Vec::new());
    mysql.bytes(EventStreamDirection::Back, 0, &greeting(OLD), &mut found);
    mysql.bytes(EventStreamDirection::There, 0, &login(OLD), &mut found);
    mysql.bytes(
        EventStreamDirection::Back,
        greeting(OLD).len() as u64,
        &packet(2, DONE),
        &mut found,
    );
    (mysql, found)
}

#[test]
fn an_answer_of_unknown_length_is_whole_when_the_next_command_begins() {
    let (mut mysql, mut found) = logged_in();
    let (there, back) = (login(OLD).len() as u64, greeting(OLD).len() as u64 + 11);
    mysql.bytes(
        EventStreamDirection::There,
        there,
        &command(QUERY, b"SELECT 1"),
        &mut found,
    );
    // The first packet was not seen but for its length.
    mysql.bytes(EventStreamDirection::Back, back, &[7, 0, 0, 1], &mut found);
    mysql.unseen(EventStreamDirection::Back, back + 4, 7, &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Begins {
                exchange: 2,
                role: ExchangeRole::Response,
                ..
            })
        ),
        "{found:?}"
    );
    mysql.bytes(
        EventStreamDirection::There,
        there + 13,
        &command(0x0e, b""),
        &mut found,
    );
    assert!(found.contains(&DissectorEvent::Ends {
        exchange: 2,
        role: ExchangeRole::Response,
        side: EventStreamDirection::Back,
        at: back + 11
    }));
    mysql.bytes(
        EventStreamDirection::Back,
        back + 11,
        &packet(1, DONE),
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
    // A length that was not seen makes void; the next command is known again.
    mysql.bytes(
        EventStreamDirection::There,
        there + 18,
        &command(0x0e, b""),
        &mut found,
    );
    mysql.unseen(EventStreamDirection::Back, back + 22, 100, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 4, .. })),
        "{found:?}"
    );
    mysql.bytes(
        EventStreamDirection::There,
        there + 23,
        &command(0x0e, b""),
        &mut found,
    );
    mysql.bytes(
        EventStreamDirection::Back,
        back + 122,
        &packet(1, DONE),
        &mut found,
    );
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 5,
                role: ExchangeRole::Response,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn what_is_secured_or_compressed_goes_by_turns() {
    let bits = OLD | TLS;
    let request = packet(1, &[&(bits as u32).to_le_bytes()[..], &[0; 28]].concat());
    let hello = [
        &[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3][..],
        &[7; 32],
        &[0, 0, 2, 0x13, 1, 1, 0],
    ]
    .concat();
    let script: DialogueScript<'_> = &[('<', &greeting(bits)), ('>', &request), ('>', &hello)];
    assert_eq!(
        dissect_lines(script)[3..],
        [
            "1 request begins > 0 (one way)",
            "1 request is SSLRequest",
            "1 request ends > 36",
            "2 request begins > 36 (handshake)",
            "2 request ends > 86",
            "2 request is TLS handshake",
        ]
    );
    let mut mysql = Mysql::default();
    run_script(&mut mysql, script);
    assert_eq!(mysql.protocol(), "MySQL over TLS, alternating");
    let script: DialogueScript<'_> = &[
        ('<', &greeting(OLD | 32)),
        ('>', &login(OLD | 32)),
        ('<', &packet(2, DONE)),
        ('>', b"compressed"),
        ('<', b"so is this"),
    ];
    let mut mysql = Mysql::default();
    let dissected = run_script(&mut mysql, script);
    assert!(
        dissected
            .last()
            .is_some_and(|line| line.starts_with("2 response begins")),
        "{dissected:?}"
    );
    assert_eq!(
        (mysql.protocol(), mysql.is_exact()),
        ("MySQL, compressed, alternating", false)
    );
}

#[test]
fn a_refused_login_and_the_end_of_a_connection() {
    let script: DialogueScript<'_> = &[
        ('<', &greeting(OLD)),
        ('>', &login(OLD)),
        ('<', &packet(2, b"\xff\x15\x04#28000no")),
        ('<', b""),
    ];
    assert_eq!(dissect_lines(script)[7], "1 response is ERROR 1045 (28000)");
    let idle: DialogueScript<'_> = &[('<', &packet(0, b"\xff\xbf\x0f#HY000timeout")), ('<', b"")];
    assert_eq!(
        after_login(OLD, idle)[1],
        "2 response is ERROR 4031 (HY000)"
    );
}

#[test]
fn it_is_recognised_by_its_greeting() {
    let verdict = |there: &[u8], back: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back,
            port: 1,
        })
    };
    let greeting = greeting(OLD);
    assert_eq!(verdict(b"", &greeting), ProtocolVerdict::Yes);
    for length in 0..6 {
        assert_eq!(
            verdict(b"", &greeting[..length]),
            ProtocolVerdict::Perhaps,
            "{length}"
        );
    }
    for (there, back) in [
        ("G", &greeting[..]),
        ("", b"220 ready"),
        ("", b"SSH-2.0"),
        ("", b"\x05\0\0\0\x0a8"),
    ] {
        assert_eq!(
            verdict(there.as_bytes(), back),
            ProtocolVerdict::No,
            "{back:?}"
        );
    }
}

const WORDS: &[&[u8]] = &[
    b"\x09\0\0\0\x03SELECT 1",
    b"\x09\0\0\0\x16SELECT ?",
    b"\x0a\0\0\0\x17\x07\0\0\0\0\x01\0\0\0",
    b"\x01\0\0\0\x0e",
    b"\x01\0\0\0\x99",
    b"\x01\0\0\0\x12",
    b"\x05\0\0\0\x19\x07\0\0\0",
    b"\x07\0\0\x01\0\0\0\x02\0\0\0",
    b"\x05\0\0\x03\xfe\0\0\x02\0",
    b"\x05\0\0\x03\xfe\0\0\x0a\0",
    b"\x01\0\0\x01\x01",
    b"\x09\0\0\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x0c\0\0\x01\0\x07\0\0\0\xff\xff\xff\xff\0\0\0",
    b"\x05\0\0\x02\x01abcd",
    b"\xff\xff\xff\x02",
    b"\x09\0\0\x02\xff\x7a\x04#42S02",
    b"\x03\0\0\x02\xfb/a",
    b"\0\0\0\x03",
];

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(mut moves in test_hostile_input(WORDS), bits in prop::option::of(prop::sample::select(&[OLD, NEW, OLD | 32][..]))) {
        if let Some(bits) = bits {
            moves.splice(0..0, [(true, 9, greeting(bits)), (false, 9, login(bits)), (true, 9, packet(2, DONE))]);
        }
        let mut mysql = Mysql::default();
        prop_assert_eq!(is_unharmed_by(&mut mysql, &moves), Ok(()));
        prop_assert!(mysql.waiting.len() <= crate::conversation::MOST_WAITING + 1);
        prop_assert!(mysql.dialogue.held().iter().all(|held| *held <= KEEP));
    }
}
