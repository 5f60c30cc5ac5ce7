//! Who may go on: a connection proves with the token that it belongs to the run; strangers are closed.
//!
//! Connections prove themselves side by side, so that a stranger who says nothing keeps nobody waiting.

use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self, Result};
use crate::readiness;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{SockAddr, Socket};
use stackline_core::time as core;
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags};
use stackline_proto::datagram::DatagramToken;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a connection may take to prove itself: what it proves comes with the first bytes that it sends, and a thousand on busy processors
/// take a while to send those. Who says nothing keeps nobody waiting.
const PATIENCE: Duration = Duration::from_secs(30);
/// As many may be about it at once; one more pushes the oldest out.
const AT_ONCE: usize = 64;

/// A connection that has not shown all of its token.
struct Newcomer {
    socket: Socket,
    from: SockAddr,
    token: DatagramToken,
    have: usize,
    until: Instant,
}

enum ShownAuthentication {
    /// There is more to come.
    Part,
    All,
    /// Another token, or none.
    Stranger,
}

impl Newcomer {
    /// Takes what it has sent, and nothing after its token.
    fn inspect(&mut self, token: &DatagramToken) -> ShownAuthentication {
        match socket::receive(
            self.socket.as_fd(),
            &mut self.token[self.have..],
            RecvFlags::DONTWAIT,
        ) {
            Ok(0) => ShownAuthentication::Stranger,
            Ok(n) => {
                self.have += n;
                match (self.have == token.len(), self.token == *token) {
                    (false, _) => ShownAuthentication::Part,
                    (true, true) => ShownAuthentication::All,
                    (true, false) => ShownAuthentication::Stranger,
                }
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                ShownAuthentication::Part
            }
            Err(_) => ShownAuthentication::Stranger,
        }
    }
}

/// Connections that came and have not proved themselves.
#[derive(Default)]
pub(super) struct Newcomers(Vec<Newcomer>);

impl Newcomers {
    /// Waits for the next connection that shows the token.
    pub(super) fn accept(
        &mut self,
        listener: &Socket,
        token: &DatagramToken,
        buffers: &LiveThreadBuffers,
    ) -> Result<(Socket, SockAddr)> {
        loop {
            // With nobody else to listen to, accepting is waiting, unless that is done for all endpoints of the thread.
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
                self.0.push(Newcomer {
                    socket,
                    from,
                    token: DatagramToken::default(),
                    have: 0,
                    until,
                });
            }
            if let Some(proven) = self.proven(token) {
                scope::begin_byte_count();
                scope::add_received_bytes(token.len());
                return Ok((proven.socket, proven.from));
            }
            if nobody && readiness::is_here() {
                wait_for_a_connection(self.patience(), buffers)?;
            }
        }
    }

    /// When the first of them has had its time.
    fn patience(&self) -> Option<core::Instant> {
        let left = self
            .0
            .iter()
            .map(|newcomer| newcomer.until.saturating_duration_since(Instant::now()))
            .min()?;
        Some(clock::now() + core::Duration::from_seconds(left.as_secs_f64()))
    }

    /// One that came after the connection that showed the token: in a loop of connections it may be the next of them.
    pub(super) fn next(&mut self) -> Option<(Socket, SockAddr)> {
        (!self.0.is_empty())
            .then(|| self.0.remove(0))
            .map(|newcomer| (newcomer.socket, newcomer.from))
    }

    /// The one that has shown the token. Those before it are strangers, as are those that took too long.
    fn proven(&mut self, token: &DatagramToken) -> Option<Newcomer> {
        let mut index = 0;
        while let Some(newcomer) = self.0.get_mut(index) {
            match newcomer.inspect(token) {
                ShownAuthentication::All => {
                    self.0.drain(..index);
                    return Some(self.0.remove(0));
                }
                ShownAuthentication::Part if Instant::now() < newcomer.until => index += 1,
                _ => drop(self.0.remove(index)),
            }
        }
        None
    }
}

/// Until somebody comes, says something or has had its time; whether somebody comes.
fn wait(listener: &Socket, newcomers: &[Newcomer], buffers: &LiveThreadBuffers) -> Result<bool> {
    let sockets = std::iter::once(listener).chain(newcomers.iter().map(|n| &n.socket));
    let mut watched: Vec<PollFd> = sockets
        .map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN))
        .collect();
    let first = newcomers
        .iter()
        .map(|n| n.until.saturating_duration_since(Instant::now()))
        .min();
    // Rounded up: a wait that ends too early would only be begun again.
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

/// Lets the other endpoints of the thread go on until somebody comes or says something.
pub(super) fn wait_for_a_connection(
    until: Option<core::Instant>,
    buffers: &LiveThreadBuffers,
) -> Result<()> {
    readiness::wait_for_socket(until);
    buffers.flags.interrupted()
}

/// One connection, unless it was given up while it waited.
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
