//! Statements that take several round trips over a path whose times are known: one request each.

use super::tests::{MS, Path, parts};
use super::*;
use crate::time_account::ExchangePhase;

fn message(mark: u8, body: &[u8]) -> Vec<u8> {
    [&[mark][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn parse() -> Vec<u8> {
    [message(b'P', b"s\0SELECT $1\0\0\0"), sync()].concat()
}

fn parsed() -> Vec<u8> {
    [message(b'1', b""), ready()].concat()
}

fn execute() -> Vec<u8> {
    let bind = message(b'B', b"\0s\0\0\0\0\0\0\0");
    [bind, message(b'E', b"\0\0\0\0\0"), sync()].concat()
}

fn executed() -> Vec<u8> {
    [message(b'2', b""), message(b'C', b"SELECT 1\0"), ready()].concat()
}

/// Connected and logged in at 30 ms.
fn logged_in() -> Path {
    let mut path = Path::new();
    path.connect(0);
    let body = b"\0\x03\0\0user\0app\0\0";
    let hello = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
    path.send(10, 0, &hello, "");
    path.send(16, 1, &[message(b'R', &[0; 4]), ready()].concat(), "");
    path
}

fn calls(path: Path) -> Vec<Exchange> {
    let mut done = path.finish();
    done.retain(|one| one.kind == ExchangeKind::Call);
    done
}

#[test]
fn round_trips_of_one_statement_add_up_to_one_request() {
    let mut path = logged_in();
    path.send(30, 0, &parse(), "");
    path.send(38, 1, &parsed(), "");
    path.send(45, 0, &execute(), "");
    path.send(57, 1, &executed(), "");
    let done = calls(path);
    assert_eq!(done.len(), 1, "{done:?}");
    let one = &done[0];
    assert_eq!(
        (one.name.kept(), one.status.kept()),
        ("SELECT $1", "SELECT 1")
    );
    assert_eq!(one.rounds().count(), 2);
    let own: Vec<(ExchangePhase, i64)> = parts(one)
        .into_iter()
        .filter(|(part, _)| *part > ExchangePhase::Handshake)
        .collect();
    // The client thinks before it asks at all, and between both round trips.
    assert_eq!(
        own,
        [
            (ExchangePhase::Client, 9 + 2),
            (ExchangePhase::There, 5 + 5),
            (ExchangePhase::Work, 3 + 7),
            (ExchangePhase::Back, 5 + 5)
        ]
    );
}

#[test]
fn what_is_sent_without_waiting_is_one_round_trip() {
    let mut path = logged_in();
    path.send(30, 0, &parse(), "");
    path.send(31, 0, &execute(), "");
    path.send(40, 1, &[parsed(), executed()].concat(), "");
    let done = calls(path);
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0].rounds().count(), 1);
    assert_eq!(done[0].end_ns(), Some(45 * MS));
}

#[test]
fn a_statement_that_was_prepared_long_before_is_a_request_of_its_own() {
    let mut path = logged_in();
    path.send(30, 0, &parse(), "");
    path.send(38, 1, &parsed(), "");
    path.send(700, 0, &execute(), "");
    path.send(710, 1, &executed(), "");
    let names: Vec<String> = calls(path)
        .iter()
        .map(|one| one.name.kept().to_owned())
        .collect();
    assert_eq!(names, ["PREPARE SELECT $1", "SELECT $1"]);
}

#[test]
fn an_answer_that_does_not_come_in_a_later_round_trip_is_none() {
    let mut path = logged_in();
    path.send(30, 0, &parse(), "");
    path.send(38, 1, &parsed(), "");
    path.send(45, 0, &execute(), "");
    path.send(95, 0, b"", "F");
    let done = calls(path);
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(
        done[0].void.is_some() && done[0].gave_up.is_some(),
        "{done:?}"
    );
}
