//! Conversations with MongoDB as scripts, by its wire protocol and the specification of BSON.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<MongoDb>(script)
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

fn document(fields: &[Vec<u8>]) -> Vec<u8> {
    let body = fields.concat();
    [&(body.len() as u32 + 5).to_le_bytes()[..], &body, &[0]].concat()
}

fn field(kind: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[kind][..], name.as_bytes(), &[0], value].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    field(
        2,
        name,
        &[
            &(value.len() as u32 + 1).to_le_bytes()[..],
            value.as_bytes(),
            &[0],
        ]
        .concat(),
    )
}

fn int(name: &str, value: u32) -> Vec<u8> {
    field(16, name, &value.to_le_bytes())
}

fn ok(value: f64) -> Vec<u8> {
    field(1, "ok", &value.to_le_bytes())
}

fn packet(number: u32, answers: u32, operation: u32, body: &[u8]) -> Vec<u8> {
    let numbers = [HEAD as u32 + body.len() as u32, number, answers, operation];
    [numbers.map(u32::to_le_bytes).concat(), body.to_vec()].concat()
}

fn message(number: u32, answers: u32, flags: u32, fields: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        &flags.to_le_bytes()[..],
        &[0],
        &document(fields),
        if flags & 1 == 1 { &[7; 4] } else { &[] },
    ]
    .concat();
    packet(number, answers, 2013, &body)
}

#[test]
fn a_command_and_its_answer() {
    let find = message(7, 0, 1, &[text("find", "orders"), text("$db", "shop")]);
    let answer = message(90, 7, 0, &[field(3, "cursor", &document(&[])), ok(1.0)]);
    assert_eq!(
        dissect_lines(&[('>', &find), ('<', &answer)]),
        [
            "0 request begins > 0".to_owned(),
            "0 request is find orders".to_owned(),
            format!("0 request ends > {}", find.len()),
            "0 response begins < 0".to_owned(),
            "0 response is OK".to_owned(),
            format!("0 response ends < {}", answer.len()),
        ]
    );
}

#[test]
fn answers_come_in_any_order_and_failures_have_codes() {
    let errors = document(&[field(
        3,
        "0",
        &document(&[int("index", 0), int("code", 11000)]),
    )]);
    let asked = [
        message(1, 0, 0, &[text("insert", "orders")]),
        message(2, 0, 2, &[text("insert", "log")]),
        message(
            3,
            0,
            0,
            &[
                field(18, "getMore", &[9; 8]),
                text("collection", "events"),
                int("maxTimeMS", 9),
            ],
        ),
        message(4, 0, 0, &[text("createUser", "bob")]),
        packet(
            5,
            0,
            2004,
            &[
                &[0; 4][..],
                b"admin.$cmd\0",
                &[0; 8],
                &document(&[int("isMaster", 1)]),
            ]
            .concat(),
        ),
    ];
    let answered = [
        message(93, 3, 0, &[ok(0.0), text("errmsg", "no"), int("code", 43)]),
        message(
            91,
            1,
            0,
            &[int("n", 0), field(4, "writeErrors", &errors), ok(1.0)],
        ),
        packet(95, 5, 1, &[&[0; 20][..], &document(&[ok(1.0)])].concat()),
    ];
    assert_eq!(
        names(&[('>', &asked.concat()), ('<', &answered.concat())]),
        [
            "0 request is insert orders",
            "1 request is insert log",
            "2 request is getMore events, blocking",
            "3 request is createUser",
            "4 request is isMaster",
            "2 response is ERROR 43",
            "0 response is ERROR 11000",
            "4 response is OK",
        ]
    );
}

#[test]
fn further_answers_of_an_exhausted_cursor_are_pushes() {
    let ask = message(
        1,
        0,
        1 << 16,
        &[int("hello", 1), int("maxAwaitTimeMS", 10_000)],
    );
    let answers = [
        message(50, 1, 2, &[ok(1.0)]),
        message(51, 50, 2, &[ok(1.0)]),
        message(52, 51, 0, &[ok(1.0)]),
    ];
    assert_eq!(
        names(&[('>', &ask), ('<', &answers.concat())]),
        [
            "0 request is hello, blocking",
            "0 response is OK",
            "1 response is OK",
            "2 response is OK"
        ]
    );
}

#[test]
fn of_what_is_compressed_the_readable_is_named() {
    let inner = [&[0; 5][..], &document(&[text("find", "orders")])].concat();
    let literal = [
        &[inner.len() as u8, 60 << 2, inner.len() as u8 - 1][..],
        &inner,
    ]
    .concat();
    let compressed = |number: u32, compressor: u8, body: &[u8]| {
        packet(
            number,
            0,
            2012,
            &[
                &2013_u32.to_le_bytes()[..],
                &(inner.len() as u32).to_le_bytes(),
                &[compressor],
                body,
            ]
            .concat(),
        )
    };
    let asked = [
        compressed(1, 0, &inner),
        compressed(2, 1, &literal),
        compressed(3, 3, b"\x28\xb5\x2f\xfd..."),
    ];
    assert_eq!(
        names(&[('>', &asked.concat())]),
        [
            "0 request is find orders",
            "1 request is find orders",
            "2 request is compressed command"
        ]
    );
}

#[test]
fn what_waits_beyond_the_bound_is_counted_and_a_side_is_found_again() {
    use crate::conversation::Dissector;
    let ask = |number: u32| message(number, 0, 0, &[int("ping", 1)]);
    let many: Vec<u8> = (0..=4096).flat_map(ask).collect();
    assert_eq!(
        run_script(&mut MongoDb::default(), &[('>', &many)])
            .last()
            .map(String::as_str),
        Some("left out: 1 waiting")
    );
    let (mut mongo, mut found) = (MongoDb::default(), Vec::new());
    mongo.unseen(EventStreamDirection::There, 0, 5, &mut found);
    mongo.bytes(EventStreamDirection::There, 5, &ask(1), &mut found);
    mongo.bytes(
        EventStreamDirection::Back,
        0,
        &message(9, 1, 0, &[ok(1.0)]),
        &mut found,
    );
    assert_eq!(found.len(), 6);
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"\x24\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x0f\0\0\0\x10ping\0\x01\0\0\0\0\0",
        b"\x26\0\0\0\x09\0\0\0\x01\0\0\0\xdd\x07\0\0\x02\0\0\0\0\x11\0\0\0\x01ok\0\0\0\0\0\0\0\0\0\0\0",
        b"\x1a\0\0\0\x01\0\0\0\0\0\0\0\xdc\x07\0\0\xdd\x07\0\0\xff\0\0\0\x01\xf0", b"\xff\xff\xff\xff\x01\0\0\0\0\0\0\0\xdd\x07\0\0",
        b"\x18\0\0\0\x01\0\0\0\0\0\0\0\xd4\x07\0\0abcdefgh",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut MongoDb::default(), &moves), Ok(()));
    }
}
