//! Slots for connections at a master or a disk server. Strangers (whose greeting is not complete), readers, and peers that proved the key
//! have separate slots, so that a peer with the key is admitted however many strangers and readers connect.

use crate::connection;
use stackline_blocks::limits;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The limits on connections of each kind.
#[derive(Clone, Copy, Debug)]
pub struct BlockConnectionLimits {
    /// Connections whose greeting is not complete; when there are more, the oldest is closed.
    pub strangers: usize,
    /// Read-only connections; when there are more, the longest-idle one is closed.
    pub readers: usize,
    /// Connections that have proven the key; further ones are refused.
    pub trusted: usize,
}

impl Default for BlockConnectionLimits {
    fn default() -> Self {
        Self {
            strangers: limits::MOST_STRANGERS,
            readers: limits::MOST_READERS,
            trusted: limits::MOST_TRUSTED,
        }
    }
}

impl BlockConnectionLimits {
    /// The limit on threads for all connections: two per connection, and some for connections that are ending.
    pub(crate) const fn threads(&self) -> usize {
        2 * (self.strangers + self.readers + self.trusted) + 64
    }
}

/// The shortest time between two notes that a connection is active: more often is not worth the cost.
const TOUCH: Duration = Duration::from_millis(500);

/// The slots of one master or server.
#[derive(Debug)]
pub(crate) struct BlockConnectionSlots {
    limits: BlockConnectionLimits,
    strangers: Arc<ConnectionSlotPool>,
    readers: Arc<ConnectionSlotPool>,
    trusted: Arc<ConnectionSlotPool>,
    /// The name in messages, for instance `the master`.
    name: String,
}

impl BlockConnectionSlots {
    pub(crate) fn new(name: String, limits: BlockConnectionLimits) -> Self {
        let (strangers, readers, trusted) = (
            ConnectionSlotPool::new(limits.strangers),
            ConnectionSlotPool::new(limits.readers),
            ConnectionSlotPool::new(limits.trusted),
        );
        Self {
            limits,
            strangers,
            readers,
            trusted,
            name,
        }
    }

    /// The slots for connections that have just come.
    pub(crate) const fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.strangers
    }

    /// The function that closes a new connection when it has to give way.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn end_of_stranger(
        &self,
        stream: &TcpStream,
    ) -> io::Result<impl FnOnce() + Send + use<>> {
        let words = format!(
            "{} has {} unauthenticated connections: the oldest was closed",
            self.name, self.limits.strangers
        );
        let stream = stream.try_clone()?;
        Ok(move || connection::send_away(&stream, &words))
    }

    /// A slot for a connection whose greeting is complete, or the reason why there is none.
    pub(crate) fn known(
        &self,
        role: BlockPeerRole,
        stream: &TcpStream,
    ) -> Result<KnownConnectionSlot, String> {
        let place = if role.proves() {
            let words = || {
                format!(
                    "{} has reached its limit of {} loaders and servers",
                    self.name, self.limits.trusted
                )
            };
            self.trusted.enter().ok_or_else(words)?
        } else {
            let words = format!(
                "{} has reached its limit of {} readers; the longest-idle one was disconnected",
                self.name, self.limits.readers
            );
            let stream = stream.try_clone().map_err(|error| error.to_string())?;
            self.readers
                .enter_or_replace(move || connection::send_away(&stream, &words))
        };
        Ok(KnownConnectionSlot {
            place,
            touched: Instant::now(),
        })
    }
}

/// The slot of a connection whose greeting is complete.
pub(crate) struct KnownConnectionSlot {
    place: ConnectionSlot,
    touched: Instant,
}

impl KnownConnectionSlot {
    /// Notes that the connection is active.
    pub(crate) fn touch(&mut self) {
        if self.touched.elapsed() >= TOUCH {
            self.touched = Instant::now();
            self.place.touch();
        }
    }
}
