//! The error type of this crate, which is `core`'s, and an error that several stacks report.

pub use stackline_core::error::{Error, Result};

/// The error for a peer that closed or reset the connection at a wrong moment (`when`).
pub(crate) fn connection_vanished(when: &str) -> Error {
    Error::measurement(format!("the peer closed the connection {when}"))
        .hint("the peer ended early, because of its `timeout` option or because the two sides of the procedure disagree")
}
