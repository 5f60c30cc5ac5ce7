//! An error of the gateway: a status and words.

use super::block_requests::GatewayBlockFailure;
use hyper::StatusCode;
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Blame, Error};

/// An error that is reported to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GatewayFault {
    /// The status of the answer.
    pub(super) status: StatusCode,
    /// The words for the client.
    pub(super) words: String,
}

impl GatewayFault {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
        }
    }

    pub(super) fn not_found(words: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, words)
    }

    pub(super) fn unavailable(words: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, words)
    }

    /// The error for a block that did not come.
    pub(super) fn of_block(set: &str, number: u64, failure: &GatewayBlockFailure) -> Self {
        let (status, why) = match failure {
            GatewayBlockFailure::Why(why) => (status(*why), why.words()),
            GatewayBlockFailure::Words(words) => (StatusCode::SERVICE_UNAVAILABLE, words.as_str()),
            GatewayBlockFailure::Late => (StatusCode::GATEWAY_TIMEOUT, "it did not arrive in time"),
        };
        Self::new(status, format!("block {number} of {set}: {why}"))
    }
}

/// The HTTP status for a reason of the block server.
const fn status(why: Why) -> StatusCode {
    match why {
        Why::NoSet | Why::NoBlock => StatusCode::NOT_FOUND,
        Why::Corrupt | Why::Version | Why::Malformed | Why::Key => StatusCode::BAD_GATEWAY,
        Why::NoServer
        | Why::Disk
        | Why::Foreign
        | Why::Memory
        | Why::Full
        | Why::Busy
        | Why::Limit
        | Why::NoSession => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl From<Error> for GatewayFault {
    fn from(error: Error) -> Self {
        let status = match error.blame {
            Blame::Input => StatusCode::NOT_FOUND,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.message)
    }
}
