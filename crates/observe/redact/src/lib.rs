//! What a run keeps of what programs that are not ours say: names of requests without values, secrets and personal data. Everything
//! that is kept of foreign requests is made here, so this is the one place to read and to test.
//!
//! All functions keep only what they know to be harmless (a list of what is kept, never of what is left out), and give up to `…` from
//! where they do not understand what follows. They take any bytes, look at no more than [`LONGEST_TEXT`] of them, and take time
//! proportional to these. A text of [`LONGEST_TEXT`] bytes counts as cut off.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`name`] | a name that is kept, and beside it the whole one for `--keep-contents` |
//! | [`secret_words`] | which words look like tokens, ids or addresses of people |
//! | [`http`] | targets of requests, URLs |
//! | [`sql`] | statements of PostgreSQL, MySQL and unknown servers |
//! | [`redis`] | commands, their keys and what answers them |
//! | [`operation`] | an operation of a protocol and what it is about: a key, a subject, a topic, a collection |
//! | [`attribute`] | attributes of spans, by their keys |
//! | [`foreign_names`] | names of spans, events and services of unknown kind |
//! | [`qlog`] | fields of what QUIC stacks log of themselves |

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

/// Bytes of a name; a longer one is cut.
pub const LONGEST_NAME: usize = 256;
/// Bytes of a text that are looked at; one of so many bytes counts as cut off.
pub const LONGEST_TEXT: usize = 4096;
/// What stands for something that is left out, or for the rest.
pub const LEFT_OUT: char = '…';

/// The bytes of a text that are looked at, and whether it may go on.
fn bounded(text: &[u8]) -> (&[u8], bool) {
    (
        &text[..text.len().min(LONGEST_TEXT)],
        text.len() >= LONGEST_TEXT,
    )
}
