//! The binary protocol of memcached: packets with a head of 24 bytes, which has the length of the rest.

use super::super::records::{Extent, RecordFieldReader};
use super::super::{LONGEST_NAME, RedactedName};
use crate::conversation::opening::ProtocolVerdict;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::operation;

/// The first byte of a request.
pub(super) const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;
const HEAD: usize = 24;
/// The most bytes of a packet that are held: its head, extras and key.
const KEEP: usize = HEAD + LONGEST_NAME;
const STAT: u8 = 0x10;
/// Commands by their opcode; opcodes without a name are unused.
const COMMANDS: [&str; 0x23] = [
    "get",
    "set",
    "add",
    "replace",
    "delete",
    "increment",
    "decrement",
    "quit",
    "flush",
    "get",
    "noop",
    "version",
    "get",
    "get",
    "append",
    "prepend",
    "stat",
    "set",
    "add",
    "replace",
    "delete",
    "increment",
    "decrement",
    "quit",
    "flush",
    "append",
    "prepend",
    "verbosity",
    "touch",
    "gat",
    "gat",
    "",
    "sasl list",
    "sasl auth",
    "sasl step",
];
/// Quiet commands, which the server answers only in some cases (a failure, a hit).
const QUIET: [u8; 13] = [
    0x07, 0x09, 0x0d, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
];
/// Another quiet command: `gatq`.
const ALSO_QUIET: u8 = 0x1e;

/// Whether the bytes are the head of a request with a known opcode, whose key and extras fit into its body.
pub(super) fn recognise(bytes: &[u8]) -> ProtocolVerdict {
    let is_known = |number: &u8| {
        COMMANDS
            .get(usize::from(*number))
            .is_some_and(|name| !name.is_empty())
    };
    // The data type and the partition, which clients leave 0.
    let zeros = [bytes.get(5), bytes.get(6), bytes.get(7)];
    if bytes.get(1).is_some_and(|number| !is_known(number))
        || zeros.into_iter().flatten().any(|byte| *byte != 0)
    {
        return ProtocolVerdict::No;
    }
    match extent(EventStreamDirection::There, bytes) {
        Extent::More => ProtocolVerdict::Perhaps,
        Extent::Wrong => ProtocolVerdict::No,
        Extent::Record { .. } => ProtocolVerdict::Yes,
    }
}

/// The length of the packet that begins with these bytes.
pub(super) fn extent(side: EventStreamDirection, head: &[u8]) -> Extent {
    let magic = if side == EventStreamDirection::There {
        REQUEST
    } else {
        RESPONSE
    };
    if head.first().is_some_and(|first| *first != magic) {
        return Extent::Wrong;
    }
    let Some(head) = head.get(..HEAD) else {
        return Extent::More;
    };
    let mut lengths = RecordFieldReader(&head[8..]);
    let body = lengths.number(4).unwrap_or(0);
    if key_of(head).is_none_or(|(from, length)| from + length > HEAD + body) {
        return Extent::Wrong;
    }
    Extent::Record {
        length: (HEAD + body) as u64,
        keep: KEEP,
    }
}

/// The offset and the length of the key.
fn key_of(held: &[u8]) -> Option<(usize, usize)> {
    let length = u16::from_be_bytes([*held.get(2)?, *held.get(3)?]);
    Some((HEAD + usize::from(*held.get(4)?), usize::from(length)))
}

/// Whether a command is always answered; for a response, whether the command it answers is.
pub(super) fn is_answered(held: &[u8]) -> bool {
    let number = held.get(1).copied().unwrap_or(0);
    number == 0x07 || number != ALSO_QUIET && !QUIET.contains(&number)
}

/// Whether another response to the same command follows.
pub(super) fn goes_on(held: &[u8]) -> bool {
    let is_key = key_of(held).is_some_and(|(_, length)| length > 0);
    held.get(1) == Some(&STAT) && is_key
}

/// The name of a request.
pub(super) fn name(held: &[u8]) -> RedactedName {
    let number = held.get(1).copied().unwrap_or(u8::MAX);
    let command = COMMANDS
        .get(usize::from(number))
        .copied()
        .filter(|name| !name.is_empty())
        .unwrap_or("command");
    let key = key_of(held)
        .and_then(|(from, length)| held.get(from..)?.get(..length.min(held.len() - from)));
    let is_secret = command.starts_with("sasl");
    operation::redact_at_key(command, key.filter(|_| !is_secret).unwrap_or_default())
}

/// The status field of a response.
pub(super) fn status(held: &[u8]) -> RedactedName {
    match RecordFieldReader(held.get(6..).unwrap_or_default()).number(2) {
        Some(0) => RedactedName::fixed("OK"),
        Some(1) => RedactedName::fixed("NOT_FOUND"),
        Some(2) => RedactedName::fixed("EXISTS"),
        Some(5) => RedactedName::fixed("NOT_STORED"),
        Some(0x21) => RedactedName::fixed("continue"),
        Some(number) => RedactedName::number("ERROR ", number as u64),
        None => RedactedName::fixed("text"),
    }
}
