//! The streams of a connection: one for each use of it by a pair.

use super::connection::SimQuicEnd;
use crate::run_state::SimRunState;
use crate::stacks::byte_stream::{Got, StreamEnd};
use quinn_proto::StreamId;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A stream at one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimQuicStream {
    pub(super) id: Option<StreamId>,
    /// The peer has ended its half, and all of it was read.
    pub(super) ended: bool,
    /// The own half has ended, and the peer has acknowledged that.
    pub(super) finished: bool,
    /// The application has abandoned it.
    pub(super) orphan: bool,
    /// The application waits for room in the send buffer.
    pub(super) wants_room: bool,
}

/// Whose stream is whose, on one connection: the use of the connection by the stream's number. Both ends know it from the order in which
/// initiators use their connection.
#[derive(Clone, Debug, Default)]
pub(super) struct SimQuicStreamOwners(Rc<RefCell<BTreeMap<u64, u32>>>);

impl SimQuicStreamOwners {
    pub(super) fn insert(&self, id: StreamId, number: u32) {
        self.0.borrow_mut().insert(id.index(), number);
    }

    pub(super) fn number_of(&self, id: StreamId) -> Option<u32> {
        self.0.borrow().get(&id.index()).copied()
    }
}

/// What an end knows of the pairs that share its connection.
#[derive(Clone, Debug)]
pub(super) struct SimQuicSharing {
    pub(super) sharers: Rc<[u32]>,
    pub(super) owners: SimQuicStreamOwners,
}

/// A pair's use of a connection: its stream at one end.
#[derive(Debug)]
pub(crate) struct SimQuicStreamEnd {
    pub(super) end: Rc<SimQuicEnd>,
    /// The number of the use.
    pub(super) number: u32,
}

impl StreamEnd for SimQuicStreamEnd {
    fn answered(&self) -> Option<bool> {
        self.end.answered()
    }

    fn is_of_quic(&self) -> bool {
        true
    }

    fn send(&self, bytes: usize, shared: &SimRunState) -> Option<usize> {
        self.end.send(self.number, bytes, shared)
    }

    fn receive(&self, most: usize, shared: &SimRunState) -> Got {
        self.end.receive(self.number, most, shared)
    }

    fn close(&self, shared: &SimRunState) {
        self.end.close(self.number, shared);
    }

    fn abandon(&self, shared: &SimRunState) {
        self.end.abandon(self.number, shared);
    }

    fn push(&self, shared: &SimRunState) {
        self.end.touch(shared);
    }

    fn transport(&self, now: Instant) -> Option<TransportRecord> {
        (self.number == 0).then(|| self.end.transport(now))
    }

    fn settings(&self, _: Instant) -> BTreeMap<String, String> {
        self.end.settings()
    }
}
