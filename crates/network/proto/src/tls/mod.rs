//! TLS 1.2 (RFC 5246) and 1.3 (RFC 8446) as rustls speaks them: a pure machine of one end. It counts bytes and ciphers none: what it sends
//! are records with their lengths, which the other end takes when their last byte has come.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`flights`] | the messages of the handshake in their turns, and how long their records are |
//! | [`records`] | what a record adds to the bytes it protects |
//! | [`end`] | one end: what it sends next, and what it learns from a record |

pub mod end;
pub mod flights;
pub mod records;
#[cfg(test)]
mod tests;

pub use end::TlsEnd;
pub use flights::{TlsFlight, TlsTerms};
pub use records::{LARGEST_FRAGMENT, TlsRecord, TlsRecordContent};

use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// RFC 5246: two round trips to connect, one with a resumed session.
    Tls12,
    /// RFC 8446: one round trip to connect.
    Tls13,
}

impl TlsVersion {
    /// The version that the options of a stack ask for.
    #[must_use]
    pub fn from_stack(stack: &Stack) -> Self {
        match stack.word("version") {
            Some("tls12") => Self::Tls12,
            _ => Self::Tls13,
        }
    }
}

/// The options of TLS in every world.
pub const OPTIONS: [OptionTable; 2] = [
    OptionTable::new(
        "version",
        OptionKind::Word(&["tls12", "tls13"]),
        "tls13",
        "tls13: TLS 1.3, one round trip to connect; tls12: TLS 1.2, two",
    ),
    OptionTable::flag(
        "resume",
        "later connections of a pair resume the session of an earlier one (TLS 1.3: of one that has carried data)",
    ),
];

/// Options that have no effect without `tls`, where that is an option.
pub const NEED_TLS: &[(&str, &str)] = &[("version", "tls"), ("resume", "tls")];
