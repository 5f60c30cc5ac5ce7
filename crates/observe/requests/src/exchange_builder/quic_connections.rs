//! All connections of QUIC that go on, by their ends and by the ids that these are written to with.

use super::connection_key::RequestConnectionKey;
use crate::quic_connection::{QuicAccount, QuicConnection};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::{BTreeSet, HashMap};

/// All connections of QUIC.
#[derive(Debug, Default)]
pub(super) struct QuicConnections {
    pub(super) connections: HashMap<RequestConnectionKey, TrackedConnection>,
    /// Where ends have moved to, and the connection that this is.
    pub(super) moved: HashMap<RequestConnectionKey, RequestConnectionKey>,
    /// Who may be written to with an id: the end of which connection.
    pub(super) by_id: HashMap<Vec<u8>, (RequestConnectionKey, EventStreamDirection)>,
    /// How long ids are.
    pub(super) lengths: BTreeSet<usize>,
    pub(super) accounts: Vec<QuicAccount>,
    pub(super) sealed: u64,
    pub(super) unopened: u64,
    pub(super) one_way: u64,
}

/// One of them, and the ids that its ends may be written to with.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    pub(super) connection: QuicConnection,
    pub(super) ids: Vec<Vec<u8>>,
}
