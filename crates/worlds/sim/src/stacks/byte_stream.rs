//! What a stack has to offer so that its connections are byte streams (`stream`): pairs, and the ends of connections.

use crate::error::Result;
use crate::run_state::SimRunState;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Bytes(usize),
    Nothing,
    /// The peer has closed its half.
    End,
    /// The connection was reset or given up.
    Broken,
}

/// Which connections begin with an introduction.
#[derive(Debug)]
pub(crate) struct Introductions {
    /// Every one, else only the first.
    every: bool,
    /// Whether one was asked for and one accepted, introduction and all.
    pub(super) dialled: Cell<bool>,
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

    /// Whether connections carry data units, so that the introduction goes with the first of them.
    pub(super) const fn carry_data(&self) -> bool {
        self.every
    }

    /// Whether the next connection asked for has one.
    pub(super) fn of_next_dialled(&self) -> bool {
        !self.dialled.replace(true) || self.every
    }

    /// Whether the next connection accepted has one.
    pub(super) const fn of_next_accepted(&self) -> bool {
        !self.accepted.get() || self.every
    }
}

/// What a pair of endpoints has between them, where that is byte streams.
pub(crate) trait SimStreamPair {
    /// One end of a connection.
    type End: StreamEnd;

    fn introductions(&self) -> &Introductions;
    /// Asks for the next connection.
    ///
    /// # Errors
    /// An [`Error`](crate::error::Error) when the stack takes none.
    fn dial(&self, shared: &Rc<SimRunState>) -> Result<Self::End>;
    /// Takes the next connection that came about.
    fn accept(&self) -> Option<Self::End>;
}

/// One end of a byte stream, as the application sees it.
pub(crate) trait StreamEnd {
    /// Whether the connection came about; nothing while that is not known.
    fn answered(&self) -> Option<bool>;
    /// Puts so many bytes into the send buffer as there is room for; `None` when the connection is broken.
    fn send(&self, bytes: usize, shared: &SimRunState) -> Option<usize>;
    /// Takes at most so many bytes out of the receive buffer.
    fn receive(&self, most: usize, shared: &SimRunState) -> Got;
    /// Why the network broke it, where it is known.
    fn broken_by(&self) -> Option<&'static str> {
        None
    }
    /// Why nothing has answered it, where the network says so.
    fn unanswered_because(&self) -> Option<&'static str> {
        None
    }
    /// Closes the own half.
    fn close(&self, shared: &SimRunState);
    /// The application lets go of it.
    fn abandon(&self, shared: &SimRunState);
    /// What is held back for company goes on at once.
    fn push(&self, shared: &SimRunState);
    fn transport(&self, now: Instant) -> TransportRecord;
    fn settings(&self, now: Instant) -> BTreeMap<String, String>;
    /// Things worth a flag when it ends.
    fn notes(&self, _now: Instant) -> Vec<String> {
        Vec::new()
    }
}
