//! What the versions of HTTP have in common: the exchanges that carry the operations of the language, and the bytes of data units as the
//! libraries take them.

use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Error, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use stackline_endpoint::BulkDirection;

/// What an exchange carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpExchangeKind {
    /// A request and a response.
    Call,
    /// Data units in the response's body.
    Get,
    /// Data units in the request's body.
    Put,
    /// Data units in both bodies.
    Stream,
    /// Nothing: its request lasts as long as a pair is on a connection that several pairs share.
    Join,
}

impl HttpExchangeKind {
    pub(super) const ALL: [Self; 5] = [Self::Call, Self::Get, Self::Put, Self::Stream, Self::Join];

    /// The path in the request.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Call => "/call",
            Self::Get => "/get",
            Self::Put => "/put",
            Self::Stream => "/stream",
            Self::Join => "/join",
        }
    }
}

impl From<BulkDirection> for HttpExchangeKind {
    fn from(direction: BulkDirection) -> Self {
        match direction {
            BulkDirection::Get => Self::Get,
            BulkDirection::Put => Self::Put,
        }
    }
}

/// The field by which a request names its pair, where several pairs share a connection.
pub(super) const PAIR_FIELD: HeaderName = HeaderName::from_static("pair");

/// The pair that a request names, by its number in the group.
pub(super) fn named_pair(headers: &HeaderMap) -> Option<usize> {
    headers.get(PAIR_FIELD)?.to_str().ok()?.parse().ok()
}

/// The units that are sent, as shared bytes: from memory always the same ones, which are not copied again.
#[derive(Default)]
pub(super) struct SharedUnits(Bytes);

impl SharedUnits {
    /// The next unit of the source.
    pub(super) fn next(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<Bytes> {
        if buffers.repeats() && self.0.len() >= bytes {
            return Ok(self.0.slice(..bytes));
        }
        let unit = buffers.source.outgoing(bytes);
        let unit = unit.map_err(|e| error::io_error("reading the source", &e))?;
        let shared = Bytes::copy_from_slice(unit);
        if buffers.repeats() {
            self.0 = shared.clone();
        }
        Ok(shared)
    }
}

/// The error of an operation of the other side; the roles of a procedure never call it.
pub(super) fn of_the_other_side() -> Error {
    Error::input("HTTP has this operation at the other side of a connection only")
}
