//! This end of a QUIC connection.

use super::counts::QuicCounts;
use super::settings::QuicSettings;
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd;
use crate::stacks::contract::connection_vanished;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use quinn::{Connection, ConnectionError, VarInt, ZeroRttAccepted};
use stackline_core::run_record::TransportRecord;
use stackline_core::units;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time;

/// The error code of CONNECTION_CLOSE at an ordinary end.
pub(super) const OVER: VarInt = VarInt::from_u32(0);
/// How long to let packets come before the clock starts, in round trips.
const QUIET_ROUND_TRIPS: u32 = 2;

/// A connection and what drives it.
pub(crate) struct QuicEnd {
    pub(crate) runtime: EndpointRuntime,
    pub(crate) connection: Connection,
    pub(super) settings: QuicSettings,
    /// Whether the connection begins with a stream on which the initiator introduces itself.
    pub(super) introduces: bool,
    flags: Arc<LiveCancelFlags>,
    /// How the connection is shared; `None` where the pair has it alone.
    place: Option<SharedPlace>,
    /// Whether the pair has left the connection.
    left: Cell<bool>,
    /// Bytes of data that were received, by all pairs of the connection.
    received: Arc<AtomicU64>,
    counts: Arc<QuicCounts>,
    /// Tells an initiator whether its early data is accepted, until that is known and counted.
    early: Cell<Option<ZeroRttAccepted>>,
    /// The address of a responder's peer, where it may change.
    far: Cell<Option<SocketAddr>>,
}

impl QuicEnd {
    pub(crate) fn new(
        runtime: &EndpointRuntime,
        connection: Connection,
        settings: &QuicSettings,
        introduces: bool,
        flags: &Arc<LiveCancelFlags>,
    ) -> Self {
        Self {
            runtime: runtime.clone(),
            connection,
            settings: settings.clone(),
            introduces,
            flags: Arc::clone(flags),
            place: None,
            left: Cell::new(false),
            received: Arc::default(),
            counts: Arc::default(),
            early: Cell::new(None),
            far: Cell::new(None),
        }
    }

    /// The end of an initiator, whose handshake goes on if it has offered early data.
    pub(super) fn offering(
        mut self,
        counts: &Arc<QuicCounts>,
        early: Option<ZeroRttAccepted>,
    ) -> Self {
        self.counts = Arc::clone(counts);
        self.early = Cell::new(early);
        self
    }

    /// The end of a responder, which counts how often its peer's address changes where it may.
    pub(super) fn watching(mut self, counts: &Arc<QuicCounts>) -> Self {
        self.counts = Arc::clone(counts);
        let migrates = self.settings.migrates();
        self.far
            .set(migrates.then(|| self.connection.remote_address()));
        self
    }

    /// Whether early data was offered, and it is not known what became of it.
    pub(super) fn offers_early_data(&self) -> bool {
        let early = self.early.take();
        let offers = early.is_some();
        self.early.set(early);
        offers
    }

    /// Waits until it is known whether the early data was accepted, and counts it. Returns whether it was rejected.
    ///
    /// # Errors
    /// When the connection is lost, or the job was ended.
    pub(super) fn await_rejection(&self) -> Result<bool> {
        let Some(early) = self.early.take() else {
            return Ok(false);
        };
        let accepted = self.run(early)?;
        if let Some(reason) = self.connection.close_reason().filter(|_| !accepted) {
            return Err(self.failure("QUIC's handshake", &as_io(&reason)));
        }
        self.counts.add_early(accepted);
        Ok(!accepted)
    }

    /// The end of a pair that shares the connection: it introduces itself on its stream, and the last to leave closes.
    pub(super) fn sharing(mut self, place: SharedPlace, received: &Arc<AtomicU64>) -> Self {
        self.introduces = true;
        self.place = Some(place);
        self.received = Arc::clone(received);
        self
    }

    /// The end of one of several clients on a connection to a server of others: the last of these `users` to leave closes it.
    pub(crate) fn among(
        mut self,
        member: u16,
        users: &Arc<AtomicU64>,
        received: &Arc<AtomicU64>,
    ) -> Self {
        self.place = Some(SharedPlace {
            member,
            users: ConnectionUsers::Counted(Arc::clone(users)),
        });
        self.received = Arc::clone(received);
        self
    }

    /// Drives everything until `future` is ready.
    ///
    /// # Errors
    /// When the job was ended.
    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output> {
        let done = self.runtime.run(&self.flags, future);
        if self.far.get().is_some() {
            self.note_address();
        }
        done
    }

    #[cold]
    fn note_address(&self) {
        let now = Some(self.connection.remote_address());
        if self.far.replace(now) != now {
            self.counts.add_migration();
        }
    }

    /// Counts bytes of data that were received.
    pub(crate) fn count(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Closes the connection, if no other pair uses it: what was not acknowledged is not sent again.
    pub(crate) fn close(&self) {
        if let Some(closer) = self.leave() {
            closer.close();
        }
        self.runtime.push();
    }

    /// Leaves the connection. Returns what closes it, unless the pair has left before.
    pub(super) fn leave(&self) -> Option<QuicCloser> {
        if self.left.replace(true) {
            return None;
        }
        Some(QuicCloser {
            connection: self.connection.clone(),
            users: self.place.as_ref().map(|place| place.users.clone()),
        })
    }

    /// The number of the pair in its group; `None` where it has the connection alone.
    pub(super) fn member(&self) -> Option<u16> {
        self.place.as_ref().map(|place| place.member)
    }
}

/// The place of a pair on a connection that others use too.
#[derive(Clone)]
pub(super) struct SharedPlace {
    /// Its number in its group.
    pub(super) member: u16,
    pub(super) users: ConnectionUsers,
}

/// Who uses a connection, and so who closes it.
#[derive(Clone)]
pub(super) enum ConnectionUsers {
    /// So many pairs of this side: the last to leave closes it.
    Counted(Arc<AtomicU64>),
    /// Those of the other side, which closes it.
    Theirs,
}

/// Closes a connection that a pair has left.
pub(super) struct QuicCloser {
    connection: Connection,
    /// `None` where the pair had it alone.
    users: Option<ConnectionUsers>,
}

impl QuicCloser {
    pub(super) fn close(self) {
        let closes = match &self.users {
            None => true,
            Some(ConnectionUsers::Counted(users)) => users.fetch_sub(1, Ordering::AcqRel) == 1,
            Some(ConnectionUsers::Theirs) => false,
        };
        if closes {
            self.connection.close(OVER, b"");
        }
    }
}

/// The error of a lost connection as one of a socket.
pub(super) fn as_io(error: &ConnectionError) -> io::Error {
    match error {
        ConnectionError::TimedOut => io::ErrorKind::TimedOut.into(),
        ConnectionError::ApplicationClosed(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed => io::ErrorKind::ConnectionReset.into(),
        error => io::Error::other(error.to_string()),
    }
}

impl ChannelEnd for QuicEnd {
    fn failure(&self, what: &str, error: &io::Error) -> Error {
        match error.kind() {
            _ if self.flags.ended() => Error::interrupted(),
            io::ErrorKind::TimedOut => {
                let timeout = units::format_time(self.settings.timeout());
                Error::measurement(format!("the peer was silent for {timeout}"))
                    .hint("the path is down; for longer outages: the option `timeout = 2 min`")
            }
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                connection_vanished("while data was in flight")
            }
            _ => error::io_error(what, error),
        }
    }

    fn settle(&self) -> Result<()> {
        let rest = self.connection.rtt() * QUIET_ROUND_TRIPS + Duration::from_millis(1);
        self.run(async { time::sleep(rest).await })
    }

    fn transport(&self) -> Option<TransportRecord> {
        if self.member().is_some_and(|member| member > 0) {
            // The first pair of the group reports their connection.
            return None;
        }
        let path = self.connection.stats().path;
        let mtu = u64::from(path.current_mtu);
        Some(TransportRecord {
            retransmits: path.lost_packets,
            rtt_s: path.rtt.as_secs_f64(),
            cwnd_segments: Some(path.cwnd / mtu.max(1)),
            mss_bytes: mtu,
            bytes_received: self.received.load(Ordering::Relaxed),
            ..TransportRecord::default()
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.settings.in_force();
        let mtu = self.connection.stats().path.current_mtu;
        settings.insert("mtu".into(), format!("{mtu} B"));
        settings
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
}
