//! Decides what a run keeps of foreign texts: names of requests without values, secrets and personal data. Every text of a foreign
//! request that is kept is made here, so this is the one place to review and to test.
//!
//! All functions keep only what they know to be harmless (by lists of what is kept, not of what is dropped), and stop with `…` where they
//! do not understand what follows. They take any bytes, look at no more than [`LONGEST_TEXT`] of them, and take time proportional to
//! that. A text of [`LONGEST_TEXT`] bytes or more counts as cut off.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`name`] | a redacted name, with the whole one beside it for `--keep-contents` |
//! | [`secret_words`] | which words look like tokens, ids or personal addresses |
//! | [`http`] | request targets and URLs |
//! | [`sql`] | SQL statements of PostgreSQL, MySQL and unknown servers |
//! | [`redis`] | Redis commands, their keys and their responses |
//! | [`operation`] | an operation of a protocol and its object: a key, a subject, a topic, a collection |
//! | [`attribute`] | attributes of spans, by their keys |
//! | [`foreign_names`] | names of spans, events and services of unknown kind |
//! | [`qlog`] | fields in the logs of QUIC stacks |

pub mod attribute;
pub mod foreign_names;
pub mod http;
pub mod name;
pub mod operation;
pub mod qlog;
pub mod redis;
pub mod secret_words;
pub mod sql;

pub use name::{RedactedName, printable};

/// The longest name in bytes; a longer one is cut.
pub const LONGEST_NAME: usize = 256;
/// The most bytes of a text that are looked at; a text of this length counts as cut off.
pub const LONGEST_TEXT: usize = 4096;
/// Stands for something that was dropped, or for the rest.
pub const LEFT_OUT: char = '…';

/// The bytes of a text that are looked at, and whether it may continue.
fn bounded(text: &[u8]) -> (&[u8], bool) {
    (
        &text[..text.len().min(LONGEST_TEXT)],
        text.len() >= LONGEST_TEXT,
    )
}
