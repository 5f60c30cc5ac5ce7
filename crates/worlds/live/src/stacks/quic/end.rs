//! This end of a QUIC connection.

use super::runtime::QuicRuntime;
use super::settings::QuicSettings;
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd;
use crate::stacks::contract::connection_vanished;
use quinn::{Connection, ConnectionError, VarInt};
use stackline_core::run_record::TransportRecord;
use stackline_core::units;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time;

/// The error code of CONNECTION_CLOSE at an ordinary end.
pub(super) const OVER: VarInt = VarInt::from_u32(0);
/// How long to let packets come before the clock starts, in round trips.
const QUIET_ROUND_TRIPS: u32 = 2;

/// A connection and what drives it.
pub(crate) struct QuicEnd {
    pub(crate) runtime: QuicRuntime,
    pub(crate) connection: Connection,
    pub(super) settings: QuicSettings,
    /// Whether the connection begins with a stream on which the initiator introduces itself.
    pub(super) introduces: bool,
    flags: Arc<LiveCancelFlags>,
    /// Bytes of data that were received.
    received: Cell<u64>,
}

impl QuicEnd {
    pub(crate) fn new(
        runtime: &QuicRuntime,
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
            received: Cell::new(0),
        }
    }

    /// Drives everything until `future` is ready.
    ///
    /// # Errors
    /// When the job was ended.
    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output> {
        self.runtime.run(&self.flags, future)
    }

    /// Counts bytes of data that were received.
    pub(crate) fn count(&self, bytes: u64) {
        self.received.set(self.received.get() + bytes);
    }

    /// Closes the connection: what was not acknowledged is not sent again.
    pub(crate) fn close(&self) {
        self.connection.close(OVER, b"");
        self.runtime.push();
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
        let path = self.connection.stats().path;
        let mtu = u64::from(path.current_mtu);
        Some(TransportRecord {
            retransmits: path.lost_packets,
            rtt_s: path.rtt.as_secs_f64(),
            cwnd_segments: Some(path.cwnd / mtu.max(1)),
            mss_bytes: mtu,
            bytes_received: self.received.get(),
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
