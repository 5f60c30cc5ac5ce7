//! An operation of a protocol and what it is about: a key of a cache, a subject or topic of messages, a collection. The operation is a
//! word of the protocol; what it is about is kept in parts as keys of Redis are, without those that look like tokens.

use crate::name::{RedactedName, printable};
use crate::redis::{BLOCKS, redact_key, redact_parts};
use crate::{LEFT_OUT, LONGEST_NAME, secret_words};

/// Letters of a word that may be a command.
const LONGEST_COMMAND: usize = 40;

/// An operation at a key, which is kept as one of Redis is.
#[must_use]
pub fn redact_at_key(operation: &'static str, key: &[u8]) -> RedactedName {
    join(operation, &redact_key(key), &printable(key))
}

/// An operation at a subject, a topic, an exchange: names in parts between points, slashes and the like.
#[must_use]
pub fn redact_at_subject(operation: &'static str, subject: &[u8]) -> RedactedName {
    let kept = redact_parts(subject, &['.', ':', '/', '|', ',']);
    join(operation, &kept, &printable(subject))
}

/// A command that the protocol spells, and the identifier that it is about.
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
    RedactedName::of(kept.kept(), whole.kept())
}

/// The same operation, which waits for something that others do.
#[must_use]
pub fn blocking(name: &RedactedName) -> RedactedName {
    let behind = |text: &str| {
        let end = text.floor_char_boundary(LONGEST_NAME - BLOCKS.len());
        format!("{}{BLOCKS}", &text[..end])
    };
    RedactedName::of(&behind(name.kept()), &behind(name.whole()))
}

/// An error that a server says in words of its own, which are kept if they are among the known ones.
#[must_use]
pub fn redact_error(text: &[u8], known: &[&'static str]) -> RedactedName {
    let whole = printable(text);
    let kept = known.iter().find(|known| whole.starts_with(**known));
    let kept = kept.map_or_else(|| LEFT_OUT.to_string(), |known| (*known).to_owned());
    RedactedName::of(&format!("ERROR {kept}"), &format!("ERROR {whole}"))
}

fn join(operation: &str, kept: &str, whole: &str) -> RedactedName {
    let text = |of: &str| match of.is_empty() {
        true => operation.to_owned(),
        false => format!("{operation} {of}"),
    };
    RedactedName::of(
        &text(kept),
        &text(if whole.is_empty() { kept } else { whole }),
    )
}
