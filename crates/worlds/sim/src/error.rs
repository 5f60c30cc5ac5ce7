//! The error of this crate, which is `core`'s, and the one that several stacks have.

pub use stackline_core::error::{Error, Result};

/// The peer closed or reset the connection at a wrong moment.
pub(crate) fn connection_vanished(when: &str) -> Error {
    Error::measurement(format!("the peer closed the connection {when}"))
        .hint("the peer ended early, because of its `timeout` option or because the two sides of the procedure disagree")
}
