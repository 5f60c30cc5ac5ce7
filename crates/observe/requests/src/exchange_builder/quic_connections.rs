//! The open QUIC connections, found by their two ends or by the connection IDs that are used to write to an end.

use super::connection_key::RequestConnectionKey;
use crate::quic_connection::{QuicAccount, QuicConnection};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::{BTreeSet, HashMap};

/// The open QUIC connections, and the totals of those that are over.
#[derive(Debug, Default)]
pub(super) struct QuicConnections {
    pub(super) connections: HashMap<RequestConnectionKey, TrackedConnection>,
    /// The keys of connections after an end has migrated, and the keys under which they are kept.
    pub(super) moved: HashMap<RequestConnectionKey, RequestConnectionKey>,
    /// By connection ID: the connection, and the end that is written to with it.
    pub(super) by_id: HashMap<Vec<u8>, (RequestConnectionKey, EventStreamDirection)>,
    /// The lengths of all connection IDs, bytes: a short header does not say how long its ID is.
    pub(super) lengths: BTreeSet<usize>,
    /// Totals of connections that are over and not taken yet.
    pub(super) accounts: Vec<QuicAccount>,
    /// Connections that could not be decrypted, as their secrets are not known.
    pub(super) sealed: u64,
    /// Packets that could not be decrypted although the secrets are known.
    pub(super) unopened: u64,
    /// Connections of which only one side's packets were seen.
    pub(super) one_way: u64,
}

/// An open QUIC connection, and the connection IDs of both its ends.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    pub(super) connection: QuicConnection,
    pub(super) ids: Vec<Vec<u8>>,
}
