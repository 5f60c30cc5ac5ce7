//! The interface of stacks whose connections are byte streams (used by `stream`): pairs, and the ends of connections.

use crate::error::Result;
use crate::run_state::SimRunState;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes(usize),
    Nothing,
    /// The peer has closed its half.
    End,
    /// The connection was reset or given up.
    Broken,
}

/// Decides which connections begin with an introduction (16 bytes, the token of the live world).
#[derive(Debug)]
pub(crate) struct Introductions {
    /// Every connection has one; otherwise only the first.
    every: bool,
    /// A connection was opened.
    pub(super) dialled: Cell<bool>,
    /// A connection was accepted, with its introduction.
    pub(super) accepted: Cell<bool>,
}

impl Introductions {
    pub(super) const fn new(every: bool) -> Self {
        Self {
            every,
            dialled: Cell::new(false),
            accepted: Cell::new(false),
        }
    }

    /// Whether connections carry data units, so that the introduction is sent with the first unit.
    pub(super) const fn carry_data(&self) -> bool {
        self.every
    }

    /// Whether the next connection that is opened has an introduction.
    pub(super) fn of_next_dialled(&self) -> bool {
        !self.dialled.replace(true) || self.every
    }

    /// Whether the next connection that is accepted has an introduction.
    pub(super) const fn of_next_accepted(&self) -> bool {
        !self.accepted.get() || self.every
    }
}

/// The connections of a pair of endpoints, which are byte streams.
pub(crate) trait SimStreamPair {
    /// One end of a connection.
    type End: StreamEnd;

    fn introductions(&self) -> &Introductions;
    /// Whether the initiator may open the next connection now.
    fn may_dial(&self) -> bool {
        true
    }
    /// Opens the next connection.
    ///
    /// # Errors
    /// An [`Error`](crate::error::Error) when the stack cannot open one.
    fn dial(&self, shared: &Rc<SimRunState>) -> Result<Self::End>;
    /// Takes the next connection that was established and not accepted yet.
    fn accept(&self) -> Option<Self::End>;
}

/// One end of a byte stream, as the application sees it.
pub(crate) trait StreamEnd {
    /// Whether the connection was established or refused; `None` while that is not known.
    fn answered(&self) -> Option<bool>;
    /// Writes as many of `bytes` as the send buffer has room for; `None` when the connection is broken.
    fn send(&self, bytes: usize, shared: &SimRunState) -> Option<usize>;
    /// Reads at most `most` bytes from the receive buffer.
    fn receive(&self, most: usize, shared: &SimRunState) -> Got;
    /// Why the network broke the connection, if that is known.
    fn broken_by(&self) -> Option<&'static str> {
        None
    }
    /// Why nobody has answered the connection request, if the network says so.
    fn unanswered_because(&self) -> Option<&'static str> {
        None
    }
    /// Whether everything that was written has gone into the transport's send buffer; `None` when the connection is broken.
    fn is_handed_over(&self, _shared: &SimRunState) -> Option<bool> {
        Some(true)
    }
    /// Whether positions in the transport's stream are those of the data.
    fn shows_positions(&self) -> bool {
        true
    }
    /// How many bytes of the transport's stream were written, where they are not those of the data: of records or frames that contain it.
    fn framed_bytes(&self) -> Option<u64> {
        None
    }
    /// Whether the transport opens connections with a handshake of QUIC.
    fn is_of_quic(&self) -> bool {
        false
    }
    /// Whether somebody keeps an initiator's end that disconnects, so that nothing unread resets the connection.
    fn is_kept(&self) -> bool {
        false
    }
    /// Closes the own half of the connection.
    fn close(&self, shared: &SimRunState);
    /// The application gives up the end.
    fn abandon(&self, shared: &SimRunState);
    /// Sends data at once that is held back to be combined with more (Nagle).
    fn push(&self, shared: &SimRunState);
    /// What its connection reports; `None` where another end reports it, of those that share the connection.
    fn transport(&self, now: Instant) -> Option<TransportRecord>;
    fn settings(&self, now: Instant) -> BTreeMap<String, String>;
    /// Notes about the connection, shown as flags of the result.
    fn notes(&self, _now: Instant) -> Vec<String> {
        Vec::new()
    }
}
