//! Converts errors of message passing, and of reading or writing a job's data, to errors of the run.

use crate::error::{self, Error};
use crate::stacks::contract::connection_vanished;
use stackline_transfer::ikp;
use std::io;

pub(super) fn read_failure(error: &io::Error) -> Error {
    error::io_error("reading the source", error)
}

pub(super) fn write_failure(error: &io::Error) -> Error {
    error::io_error("writing the destination", error)
}

/// Converts an error of message passing to an error of the run.
pub(super) fn from_transfer(error: ikp::IkpTransferError) -> Error {
    match error {
        ikp::IkpTransferError::Nobody | ikp::IkpTransferError::Gone => connection_vanished("while a message was in flight"),
        ikp::IkpTransferError::Interrupted => Error::interrupted(),
        ikp::IkpTransferError::Packet { .. } => Error::input(error.to_string()),
        ikp::IkpTransferError::Io(what, error) => error::io_error(what, &error),
        ikp::IkpTransferError::Silent(patience) => Error::measurement(format!("nothing arrived from the peer for {patience}"))
            .hint("the peer's procedure was busy elsewhere for that long (raise the option `patience`), or the path is down"),
        error => Error::measurement(error.to_string()),
    }
}
