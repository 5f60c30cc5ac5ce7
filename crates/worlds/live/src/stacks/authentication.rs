//! Decides which accepted connections belong to the run: those that begin with the 16-byte token, with so many bytes of a protocol and
//! then the token, or that show it in a dialogue of a protocol. Other connections are closed.
//!
//! Several connections can show their tokens at the same time, so that a stranger who sends nothing delays nobody.

use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self, Result};
use crate::readiness;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{SockAddr, Socket};
use stackline_core::time as core;
use stackline_events::scope;
use stackline_guard::secret::is_same;
use stackline_os::stream_socket::{self as socket, RecvFlags};
use stackline_proto::datagram::DatagramToken;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a connection may take to show the token. The token comes with the first bytes that it sends, and with a thousand connections
/// on busy processors that takes a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most connections that may be waiting to show the token; one more closes the oldest.
const AT_ONCE: usize = 64;
/// Most bytes that a connection shows: those of a protocol, and the token.
const MOST_SHOWN: usize = 32;

/// How a connection shows the token, and what it has said so far.
pub(super) trait TokenDialogue {
    /// What this end says first on a connection, where the protocol has its server begin.
    fn greet(&mut self, socket: &Socket) {
        let _ = socket;
    }
    /// Reads what the connection has sent and answers it, without blocking.
    fn inspect(&mut self, socket: &Socket, token: &DatagramToken) -> ShownAuthentication;
    /// How many bytes were received.
    fn received(&self) -> usize;
}

/// The token stands in the first bytes.
pub(super) struct TokenBytes {
    /// How many bytes of a protocol come before it, at most 16.
    before: usize,
    shown: [u8; MOST_SHOWN],
    /// How many bytes of `shown` were received.
    have: usize,
}

impl TokenBytes {
    /// Behind so many bytes of a protocol, at most 16.
    pub(super) const fn behind(before: usize) -> Self {
        Self {
            before,
            shown: [0; MOST_SHOWN],
            have: 0,
        }
    }

    /// What was read, the token included.
    pub(super) fn shown(&self) -> &[u8] {
        &self.shown[..self.have]
    }
}

impl TokenDialogue for TokenBytes {
    /// No byte after the token is read.
    fn inspect(&mut self, socket: &Socket, token: &DatagramToken) -> ShownAuthentication {
        let all = self.before + token.len();
        let room = &mut self.shown[self.have..all];
        match socket::receive(socket.as_fd(), room, RecvFlags::DONTWAIT) {
            Ok(0) => ShownAuthentication::Stranger,
            Ok(n) => {
                self.have += n;
                if self.have < all {
                    ShownAuthentication::Part
                } else if is_same(&self.shown[self.before..all], token) {
                    ShownAuthentication::All
                } else {
                    ShownAuthentication::Stranger
                }
            }
            Err(error) => ShownAuthentication::after(&error),
        }
    }

    fn received(&self) -> usize {
        self.have
    }
}

/// A connection that has shown the token.
pub(super) struct ProvenConnection<D = TokenBytes> {
    pub(super) socket: Socket,
    pub(super) from: SockAddr,
    /// What it has said.
    pub(super) dialogue: D,
}

/// A connection that has not shown its whole token.
struct Newcomer<D> {
    connection: ProvenConnection<D>,
    /// When it is given up.
    until: Instant,
}

/// What a connection has shown so far.
pub(super) enum ShownAuthentication {
    /// Only a part of a token, or nothing yet.
    Part,
    /// The token.
    All,
    /// Something else, or it has closed.
    Stranger,
}

impl ShownAuthentication {
    /// After a call that moved nothing.
    pub(super) fn after(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Self::Part,
            _ => Self::Stranger,
        }
    }
}

/// The accepted connections that have not shown the token yet, in order of arrival.
pub(super) struct Newcomers<D = TokenBytes>(Vec<Newcomer<D>>);

impl<D> Default for Newcomers<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D: TokenDialogue> Newcomers<D> {
    /// Waits for the next connection that shows the token; `dialogue` begins with each of them.
    pub(super) fn accept(
        &mut self,
        listener: &Socket,
        token: &DatagramToken,
        dialogue: impl Fn() -> D,
        buffers: &LiveThreadBuffers,
    ) -> Result<ProvenConnection<D>> {
        loop {
            // Without newcomers, `accept` itself blocks until a connection comes. On a thread of several endpoints the listener is
            // non-blocking, and the reactor waits for all of them.
            let comes =
                readiness::is_here() || self.0.is_empty() || wait(listener, &self.0, buffers)?;
            let came = if comes {
                accept(listener, buffers)?
            } else {
                None
            };
            let nobody = came.is_none();
            if let Some((socket, from)) = came {
                readiness::watch(socket.as_fd())?;
                if self.0.len() == AT_ONCE {
                    self.0.remove(0);
                }
                let until = Instant::now() + PATIENCE;
                let mut dialogue = dialogue();
                dialogue.greet(&socket);
                let connection = ProvenConnection {
                    socket,
                    from,
                    dialogue,
                };
                self.0.push(Newcomer { connection, until });
            }
            if let Some(proven) = self.proven(token) {
                scope::begin_byte_count();
                scope::add_received_bytes(proven.dialogue.received());
                return Ok(proven);
            }
            if nobody && readiness::is_here() {
                wait_for_a_connection(self.patience(), buffers)?;
            }
        }
    }

    /// When the first newcomer's time is over; `None` without newcomers.
    fn patience(&self) -> Option<core::Instant> {
        let left = self
            .0
            .iter()
            .map(|newcomer| newcomer.until.saturating_duration_since(Instant::now()))
            .min()?;
        Some(clock::now() + core::Duration::from_seconds(left.as_secs_f64()))
    }

    /// Removes the oldest newcomer. In a procedure without data, where later connections send no token, it may be the next connection.
    pub(super) fn next(&mut self) -> Option<(Socket, SockAddr)> {
        (!self.0.is_empty())
            .then(|| self.0.remove(0))
            .map(|newcomer| (newcomer.connection.socket, newcomer.connection.from))
    }

    /// Reads from all newcomers and removes the one that has shown the token. Closes those that came before it, showed something else or
    /// took too long.
    fn proven(&mut self, token: &DatagramToken) -> Option<ProvenConnection<D>> {
        let mut index = 0;
        while let Some(newcomer) = self.0.get_mut(index) {
            let connection = &mut newcomer.connection;
            match connection.dialogue.inspect(&connection.socket, token) {
                ShownAuthentication::All => {
                    self.0.drain(..index);
                    return Some(self.0.remove(0).connection);
                }
                ShownAuthentication::Part if Instant::now() < newcomer.until => index += 1,
                _ => drop(self.0.remove(index)),
            }
        }
        None
    }
}

/// Waits until a connection arrives, a newcomer sends something, or a newcomer's time is over. Returns whether a connection can be
/// accepted.
fn wait<D>(
    listener: &Socket,
    newcomers: &[Newcomer<D>],
    buffers: &LiveThreadBuffers,
) -> Result<bool> {
    let newcomer_sockets = newcomers.iter().map(|n| &n.connection.socket);
    let sockets = std::iter::once(listener).chain(newcomer_sockets);
    let mut watched: Vec<PollFd> = sockets
        .map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN))
        .collect();
    let first = newcomers
        .iter()
        .map(|n| n.until.saturating_duration_since(Instant::now()))
        .min();
    // `poll` counts whole milliseconds: rounded up, because a wait that ended too early would have to be repeated.
    let patience = first.map(|time| time + Duration::from_millis(1));
    let timeout = patience.map_or(PollTimeout::NONE, |p| {
        PollTimeout::try_from(p).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut watched, timeout) {
        Ok(_) => Ok(watched[0].any().unwrap_or(false)),
        Err(Errno::EINTR) => buffers.flags.interrupted().map(|()| false),
        Err(error) => Err(error::io_error("poll", &error.into())),
    }
}

/// Lets the other endpoints of the thread run until a socket of this endpoint has an event, or until a moment.
pub(super) fn wait_for_a_connection(
    until: Option<core::Instant>,
    buffers: &LiveThreadBuffers,
) -> Result<()> {
    readiness::wait_for_socket(until);
    buffers.flags.interrupted()
}

/// Accepts one connection; `None` if there is none, the peer aborted it, or a signal came.
fn accept(listener: &Socket, buffers: &LiveThreadBuffers) -> Result<Option<(Socket, SockAddr)>> {
    match listener.accept() {
        Ok(accepted) => Ok(Some(accepted)),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => {
            buffers.flags.interrupted().map(|()| None)
        }
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::ConnectionAborted | io::ErrorKind::WouldBlock
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error::io_error("accept", &error)),
    }
}
