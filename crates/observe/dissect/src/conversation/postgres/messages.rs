//! Reads PostgreSQL messages: their length, and the fields of those that matter.

use super::super::records::{Extent, RecordFieldReader};
use super::super::{LONGEST_NAME, RedactedName};
use super::PostgresPhase;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::sql::{self, Dialect, answer};

/// The length of a message's head in bytes: type and length.
pub(super) const HEAD: usize = 5;
/// The most bytes of a message that are held.
pub(super) const KEEP: usize = HEAD + 6 * LONGEST_NAME;
/// The longest message in bytes (`PQ_LARGE_MESSAGE_LIMIT`).
const LONGEST: usize = 0x3fff_ffff;
/// The longest first message in bytes (`MAX_STARTUP_PACKET_LENGTH`).
pub(super) const LONGEST_FIRST: usize = 10_000;
/// Types of the client's messages.
const OF_CLIENT: &[u8] = b"BCDEFHPQSXcdfp";
/// Types of the server's messages.
const OF_SERVER: &[u8] = b"123ACDEGHIKNRSTVWZcdnstv";

/// The name of a login: user and database.
pub(super) fn read_login(parameters: &[u8]) -> RedactedName {
    let mut fields = RecordFieldReader(parameters);
    let (mut user, mut database) = (&[][..], None);
    while !fields.0.is_empty() {
        match (fields.text(), fields.text()) {
            (b"user", value) => user = value,
            (b"database", value) => database = Some(value),
            _ => {}
        }
    }
    // The database defaults to the user's name.
    answer::login(user, database.unwrap_or(user), database.is_some())
}

/// The status in an ErrorResponse, such as `ERROR 42P01`.
pub(super) fn read_error(body: &[u8]) -> RedactedName {
    let mut fields = RecordFieldReader(body);
    let (mut severity, mut code) = (&b"ERROR"[..], &[][..]);
    while let Some(field) = fields.number(1).filter(|field| *field != 0) {
        match (u8::try_from(field), fields.text()) {
            (Ok(b'V'), value) => severity = value,
            (Ok(b'C'), value) => code = value,
            _ => {}
        }
    }
    answer::postgres_error(severity, code)
}

/// The redacted text of a statement. It ends with a zero byte; without one, its end was not captured or not held.
pub(super) fn read_statement(fields: &mut RecordFieldReader<'_>, dialect: Dialect) -> RedactedName {
    let is_whole = fields.0.contains(&0);
    let text = fields.text();
    if is_whole {
        sql::redact_statement(dialect, text)
    } else {
        sql::redact_beginning(dialect, text)
    }
}

/// The length of the message that begins with these bytes.
pub(super) fn extent(side: EventStreamDirection, phase: PostgresPhase, head: &[u8]) -> Extent {
    let (types, marks) = match (side, phase) {
        (EventStreamDirection::There, PostgresPhase::Typed) => (OF_CLIENT, 1),
        (EventStreamDirection::There, _) => (&[][..], 0),
        (EventStreamDirection::Back, PostgresPhase::Asked) if b"SNG".contains(&head[0]) => {
            return Extent::Record { length: 1, keep: 1 };
        }
        (EventStreamDirection::Back, _) => (OF_SERVER, 1),
    };
    if marks > 0 && !types.contains(&head[0]) {
        return Extent::Wrong;
    }
    let Some(length) = RecordFieldReader(&head[marks..]).number(4) else {
        return Extent::More;
    };
    let most = if marks == 0 { LONGEST_FIRST } else { LONGEST };
    let keep = match (side, head[0]) {
        (EventStreamDirection::There, b'B' | b'C' | b'D' | b'E' | b'P' | b'Q')
        | (EventStreamDirection::Back, b'A' | b'C' | b'E' | b'S' | b'Z') => KEEP,
        _ if marks == 0 => KEEP,
        _ => HEAD,
    };
    match length {
        _ if marks == 0 && length < 8 => Extent::Wrong,
        4.. if length <= most => Extent::Record {
            length: (marks + length) as u64,
            keep,
        },
        _ => Extent::Wrong,
    }
}
