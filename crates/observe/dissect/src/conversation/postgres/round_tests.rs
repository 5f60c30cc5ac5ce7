//! Statements that are prepared, described, bound and executed in several round trips, or many in one.

use super::super::script_testing::DialogueScript;
use super::tests::{
    BOUND, EXECUTE, FLUSH, PARSED, READY, SYNC, after_login, bind, complete, error, message, names,
    parse,
};

fn describe(statement: &str) -> Vec<u8> {
    message(b'D', format!("S{statement}\0").as_bytes())
}

fn close(statement: &str) -> Vec<u8> {
    message(b'C', format!("S{statement}\0").as_bytes())
}

fn execute(portal: &str, rows: u8) -> Vec<u8> {
    let body = [portal.as_bytes(), &[0, 0, 0, 0, rows]].concat();
    message(b'E', &body)
}

fn bind_portal(portal: &str, statement: &str) -> Vec<u8> {
    message(
        b'B',
        format!("{portal}\0{statement}\0\0\0\0\0\0\0").as_bytes(),
    )
}

/// The description of a statement: of its parameters, and of its rows.
fn described() -> Vec<u8> {
    [message(b't', &[0; 2]), message(b'T', &[0; 9])].concat()
}

/// Names, reasons, and which exchanges go on.
fn said(script: DialogueScript<'_>) -> Vec<String> {
    let of_interest = |line: &String| {
        [" is ", "void", "goes on"]
            .iter()
            .any(|word| line.contains(word))
    };
    after_login(script)
        .into_iter()
        .filter(of_interest)
        .collect()
}

#[test]
fn three_round_trips_of_one_statement_go_on() {
    // pg8000: each message with its Flush, and a Sync behind each step.
    let script: DialogueScript<'_> = &[
        ('>', &[&parse("", "SELECT $1")[..], FLUSH, SYNC].concat()),
        ('<', &[PARSED, READY].concat()),
        ('>', &[&describe("")[..], FLUSH, SYNC].concat()),
        ('<', &[&described()[..], READY].concat()),
        ('>', &[&bind("")[..], FLUSH, EXECUTE, FLUSH, SYNC].concat()),
        ('<', &[BOUND, &complete("SELECT 1"), READY].concat()),
    ];
    assert_eq!(
        said(script),
        [
            "1 request is SELECT $1",
            "1 request is PREPARE SELECT $1",
            "2 goes on with 1",
            "1 response is OK",
            "2 response is OK",
            "3 goes on with 2",
            "4 goes on with 3",
            "3 response is OK",
            "4 response is OK",
            "5 goes on with 4",
            "5 request is SELECT $1",
            "6 goes on with 5",
            "7 goes on with 6",
            "5 response is OK",
            "6 response is SELECT 1",
            "7 response is OK",
        ]
    );
}

#[test]
fn a_statement_is_closed_with_its_request() {
    // Go's lib/pq: prepared, executed, closed.
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[&parse("1", "SELECT 7")[..], &describe("1"), SYNC].concat(),
        ),
        ('<', &[PARSED, &described(), READY].concat()),
        ('>', &[&bind("1")[..], EXECUTE, SYNC].concat()),
        ('<', &[BOUND, &complete("SELECT 1"), READY].concat()),
        ('>', &[&close("1")[..], SYNC].concat()),
        ('<', &[&message(b'3', b"")[..], READY].concat()),
    ];
    assert_eq!(
        said(script),
        [
            "1 request is SELECT ?",
            "1 request is PREPARE SELECT ?",
            "1 response is OK",
            "2 goes on with 1",
            "2 request is SELECT ?",
            "2 response is SELECT 1",
            "3 goes on with 2",
            "3 response is OK",
        ]
        .map(|line| line.replace("SELECT ?", "SELECT 7"))
    );
}

#[test]
fn a_statement_that_was_kept_is_a_request_each_time() {
    let again = [&bind("s")[..], EXECUTE, SYNC].concat();
    let answer = [BOUND, &complete("SELECT 1"), READY].concat();
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[&parse("s", "SELECT $1")[..], &describe("s"), SYNC].concat(),
        ),
        ('<', &[PARSED, &described(), READY].concat()),
        ('>', &again),
        ('<', &answer),
        ('>', &again),
        ('<', &answer),
        ('>', &[&describe("other")[..], SYNC].concat()),
        ('<', &[&error("26000")[..], READY].concat()),
    ];
    let lines = said(script);
    let joined: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("goes on"))
        .collect();
    assert_eq!(joined, ["2 goes on with 1"], "{lines:?}");
    assert!(
        lines.contains(&"3 request is SELECT $1".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn statements_of_one_sync_are_exchanges_of_their_own() {
    let one = |text: &str| [&parse("", text)[..], &bind(""), EXECUTE].concat();
    let done = |tag: &str| [PARSED, BOUND, &complete(tag)].concat();
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[&one("BEGIN")[..], &one("UPDATE a"), &one("COMMIT"), SYNC].concat(),
        ),
        (
            '<',
            &[
                &done("BEGIN")[..],
                &done("UPDATE 1"),
                &done("COMMIT"),
                READY,
            ]
            .concat(),
        ),
    ];
    let expected = [
        "1 request is BEGIN",
        "2 request is UPDATE a",
        "3 request is COMMIT",
        "1 response is BEGIN",
        "2 response is UPDATE 1",
        "3 response is COMMIT",
    ];
    assert_eq!(said(script), expected);
    let ask = one("BEGIN").len() as u64;
    let lines = after_login(script);
    for line in [
        format!("1 request ends > {}", 32 + ask),
        format!("2 request begins > {}", 32 + ask),
    ] {
        assert!(lines.contains(&line), "{line} of {lines:?}");
    }
}

#[test]
fn behind_a_failure_the_rest_of_a_sync_is_void() {
    let one = |text: &str| [&parse("", text)[..], &bind(""), EXECUTE].concat();
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[
                &one("UPDATE a")[..],
                &one("UPDATE b"),
                &one("UPDATE c"),
                SYNC,
            ]
            .concat(),
        ),
        ('<', &[PARSED, BOUND, &error("23505"), READY].concat()),
        ('>', &[&one("SELECT 1")[..], SYNC].concat()),
        ('<', &[PARSED, BOUND, &complete("SELECT 1"), READY].concat()),
    ];
    assert_eq!(
        names(script),
        [
            "1 request is UPDATE a",
            "2 request is UPDATE b",
            "3 request is UPDATE c",
            "1 response is ERROR 23505",
            "2 void: the server skipped it",
            "3 void: the server skipped it",
            "4 request is SELECT 1",
            "4 response is SELECT 1",
        ]
    );
}

#[test]
fn rows_that_are_fetched_later_are_called_by_their_statement() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[
                &parse("", "SELECT a")[..],
                &bind_portal("c1", ""),
                &execute("c1", 50),
                SYNC,
            ]
            .concat(),
        ),
        (
            '<',
            &[PARSED, BOUND, &message(b's', b""), b"Z\0\0\0\x05T"].concat(),
        ),
        ('>', &[&execute("c1", 50)[..], SYNC].concat()),
        ('<', &[&complete("SELECT 3")[..], READY].concat()),
    ];
    assert_eq!(
        said(script),
        [
            "1 request is SELECT a",
            "1 response is OK",
            "2 request is FETCH SELECT a",
            "2 response is SELECT 3",
        ]
    );
}

#[test]
fn what_was_flushed_and_failed_is_answered_by_its_failure() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &[&parse("", "SELEC")[..], FLUSH, &bind(""), EXECUTE, SYNC].concat(),
        ),
        ('<', &[&error("42601")[..], READY].concat()),
    ];
    assert_eq!(
        said(script),
        [
            "1 request is SELEC",
            "1 request is PREPARE SELEC",
            "2 goes on with 1",
            "2 request is SELEC",
            "1 response is ERROR 42601",
            "2 response is OK",
        ]
    );
}
