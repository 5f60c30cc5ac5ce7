//! Redacts an operation of a protocol and its object: a key of a cache, a subject or topic of messages, a collection. The operation is a
//! word of the protocol; the object is redacted in parts like Redis keys.

use crate::name::{RedactedName, printable};
use crate::redis::{BLOCKS, redact_key, redact_parts};
use crate::{LEFT_OUT, LONGEST_NAME, secret_words};

/// The longest word, in bytes, that may be a command.
const LONGEST_COMMAND: usize = 40;

/// An operation on a key, which is redacted like a Redis key.
#[must_use]
pub fn redact_at_key(operation: &'static str, key: &[u8]) -> RedactedName {
    join(operation, &redact_key(key), &printable(key))
}

/// An operation on a subject, a topic or an exchange: names whose parts are separated by dots, slashes and the like.
#[must_use]
pub fn redact_at_subject(operation: &'static str, subject: &[u8]) -> RedactedName {
    let kept = redact_parts(subject, &['.', ':', '/', '|', ',']);
    join(operation, &kept, &printable(subject))
}

/// A command as the protocol spells it, and the identifier of its object.
#[must_use]
pub fn redact_named_command(command: &[u8], of: &[u8]) -> RedactedName {
    let is_command = command.len() <= LONGEST_COMMAND
        && !command.is_empty()
        && command.iter().all(u8::is_ascii_alphabetic);
    let whole_command = printable(command);
    let kept_command = if is_command {
        &*whole_command
    } else {
        "command"
    };
    let kept = match of.is_empty() {
        true => String::new(),
        false => secret_words::redact_identifier(of),
    };
    let kept = join(kept_command, &kept, "");
    let whole = join(&whole_command, &printable(of), "");
    RedactedName::new(kept.kept(), whole.kept())
}

/// The same operation, marked as one that waits for others.
#[must_use]
pub fn blocking(name: &RedactedName) -> RedactedName {
    let behind = |text: &str| {
        let end = text.floor_char_boundary(LONGEST_NAME - BLOCKS.len());
        format!("{}{BLOCKS}", &text[..end])
    };
    RedactedName::new(&behind(name.kept()), &behind(name.whole()))
}

/// A server's error text, which is kept if it begins with a known one.
#[must_use]
pub fn redact_error(text: &[u8], known: &[&'static str]) -> RedactedName {
    let whole = printable(text);
    let kept = known.iter().find(|known| whole.starts_with(**known));
    let kept = kept.map_or_else(|| LEFT_OUT.to_string(), |known| (*known).to_owned());
    RedactedName::new(&format!("ERROR {kept}"), &format!("ERROR {whole}"))
}

/// Joins the operation with both forms of its object.
fn join(operation: &str, kept: &str, whole: &str) -> RedactedName {
    let text = |of: &str| match of.is_empty() {
        true => operation.to_owned(),
        false => format!("{operation} {of}"),
    };
    RedactedName::new(
        &text(kept),
        &text(if whole.is_empty() { kept } else { whole }),
    )
}
