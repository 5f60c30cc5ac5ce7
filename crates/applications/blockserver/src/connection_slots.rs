//! Places of connections at a master or a disk server: strangers, readers and those who hold the key have places of their own, so however
//! many strangers and readers come, who proves the key gets one.

use crate::connection;
use stackline_blocks::limits;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many connections of each kind there may be.
#[derive(Clone, Copy, Debug)]
pub struct BlockConnectionLimits {
    /// Those that have not said who they are; the oldest gives way.
    pub strangers: usize,
    /// Those that only read; the idlest gives way.
    pub readers: usize,
    /// Those that have proven the key; one more is refused.
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
    /// Threads that all connections may have: two each of those that are known, and some that are just ending.
    pub(crate) const fn threads(&self) -> usize {
        2 * (self.strangers + self.readers + self.trusted) + 64
    }
}

/// That a connection does something is noted at most this often, so that it costs nothing.
const TOUCH: Duration = Duration::from_millis(500);

/// The places of one master or server.
#[derive(Debug)]
pub(crate) struct BlockConnectionSlots {
    limits: BlockConnectionLimits,
    strangers: Arc<ConnectionSlotPool>,
    readers: Arc<ConnectionSlotPool>,
    trusted: Arc<ConnectionSlotPool>,
    /// What it is, in words: `the master`.
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

    /// Those of connections that have just come.
    pub(crate) const fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.strangers
    }

    /// What ends a connection that has just come and has to give way.
    ///
    /// # Errors
    /// What the system says.
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

    /// A place for a connection that has said who it is, or why it gets none.
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

/// The place of a connection that is known.
pub(crate) struct KnownConnectionSlot {
    place: ConnectionSlot,
    touched: Instant,
}

impl KnownConnectionSlot {
    /// The connection did something: others are idler now.
    pub(crate) fn touch(&mut self) {
        if self.touched.elapsed() >= TOUCH {
            self.touched = Instant::now();
            self.place.touch();
        }
    }
}
