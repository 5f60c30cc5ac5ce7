//! What an error of message passing, or of a job's data, means for the run.

use crate::error::{self, Error};
use crate::stacks::contract::vanished;
use stackline_transfer::ikp;
use std::io;

pub(super) fn reading(error: &io::Error) -> Error {
    error::io("reading the source", error)
}

pub(super) fn writing(error: &io::Error) -> Error {
    error::io("writing the destination", error)
}

/// What an error of message passing means for the run.
pub(super) fn from_transfer(error: ikp::Error) -> Error {
    match error {
        ikp::Error::Nobody | ikp::Error::Gone => vanished("while a message was on its way"),
        ikp::Error::Interrupted => Error::interrupted(),
        ikp::Error::Packet { .. } => Error::input(error.to_string()),
        ikp::Error::Io(what, error) => error::io(what, &error),
        ikp::Error::Silent(patience) => Error::measurement(format!("nothing arrived from the peer for {patience}"))
            .hint("its procedure was busy elsewhere for so long (raise the option `patience`), or the path is gone"),
        error => Error::measurement(error.to_string()),
    }
}
