//! The TCP socket of a connection to a far end: connecting, calls with a limit on the server's silence, and what the kernel says of it.

use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::ip;
use crate::stacks::tcp_record::{is_in_transit, read_tcp_record};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 16;

/// Every address that `host:port` resolves to, up to [`MOST_ADDRESSES`].
pub(super) fn resolve(address: &str) -> Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|e| Error::environment(format!("cannot resolve the address {address}: {e}")))?
        .take(MOST_ADDRESSES)
        .collect();
    if found.is_empty() {
        return Err(Error::environment(format!(
            "the address {address} resolves to nothing"
        )));
    }
    Ok(found)
}

/// A connected socket.
pub(super) struct FarEndSocket {
    socket: Socket,
    server: SocketAddr,
    stack: Stack,
    flags: Arc<LiveCancelFlags>,
    /// Bytes sent and received on the present connection.
    sent: u64,
    received: u64,
    /// How many connections the server has closed that were replaced.
    replaced: u64,
}

impl FarEndSocket {
    /// Connects to the first server that answers, which is then the only one.
    pub(super) fn connect(
        stack: &Stack,
        servers: &mut Vec<SocketAddr>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        let mut failed = None;
        for server in servers.iter().copied() {
            match connected(stack, server, flags) {
                Ok(socket) => {
                    *servers = vec![server];
                    scope::begin_byte_count();
                    return Ok(Self::new(socket, server, stack.clone(), Arc::clone(flags)));
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::input("there is no server to connect to")))
    }

    fn new(socket: Socket, server: SocketAddr, stack: Stack, flags: Arc<LiveCancelFlags>) -> Self {
        Self {
            socket,
            server,
            stack,
            flags,
            sent: 0,
            received: 0,
            replaced: 0,
        }
    }

    /// Any connected socket; the server's address is one at which nothing listens.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn over(socket: Socket, stack: Stack) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self::new(socket, nowhere, stack, Arc::default())
    }

    /// Replaces the connection, which the server has closed after an answer.
    pub(super) fn reconnect(&mut self) -> Result<()> {
        self.socket = connected(&self.stack, self.server, &self.flags)?;
        scope::begin_byte_count();
        (self.sent, self.received) = (0, 0);
        self.replaced += 1;
        Ok(())
    }

    /// Sends both, one behind the other, in one system call if the kernel takes them at once.
    pub(super) fn send_two(&mut self, first: &[u8], second: &[u8]) -> Result<()> {
        let both = first.len() + second.len();
        let sent = loop {
            let fd = self.socket.as_fd();
            match scope::sending(both, || socket::send_two(fd, first, second)) {
                Ok(sent) => break sent,
                Err(error) => self.failed("send", &error)?,
            }
        };
        self.sent += sent as u64;
        let of_first = sent.min(first.len());
        self.send(&first[of_first..])?;
        self.send(&second[sent - of_first..])
    }

    /// Sends all of it.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let fd = self.socket.as_fd();
            match scope::sending(bytes.len(), || socket::send(fd, bytes, SendFlags::empty())) {
                Ok(sent) => {
                    self.sent += sent as u64;
                    bytes = &bytes[sent..];
                }
                Err(error) => self.failed("send", &error)?,
            }
        }
        Ok(())
    }

    /// Receives into `room`; 0 when the server has ended its stream.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<usize> {
        loop {
            let fd = self.socket.as_fd();
            match scope::receiving(room.len(), || socket::receive(fd, room, RecvFlags::empty())) {
                Ok(got) => {
                    self.received += got as u64;
                    return Ok(got);
                }
                Err(error) => self.failed("recv", &error)?,
            }
        }
    }

    /// Says that nothing more is sent.
    pub(super) fn end_sending(&self) -> Result<()> {
        self.socket
            .shutdown(Shutdown::Write)
            .map_err(|e| error::io_error("shutdown", &e))
    }

    /// Handles a call that moved nothing.
    fn failed(&self, what: &str, error: &io::Error) -> Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted => self.flags.interrupted(),
            io::ErrorKind::WouldBlock => Err(self.silent()),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Err(Error::measurement(
                format!("the server at {} reset the connection", self.server),
            )),
            _ => Err(error::io_error(what, error)),
        }
    }

    fn silent(&self) -> Error {
        let seconds = timeout(&self.stack).as_secs_f64();
        let time = stackline_core::units::format_time(seconds);
        let (server, what) = (
            self.server,
            if is_in_transit(self.socket.as_fd()) {
                "has not even acknowledged what was sent"
            } else {
                "received everything and does not answer"
            },
        );
        Error::measurement(format!("the server at {server} {what} for {time}")).hint(format!(
            "for a slower server: `over {}(timeout = 2 min)`",
            self.stack.name
        ))
    }

    pub(super) const fn server(&self) -> SocketAddr {
        self.server
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        read_tcp_record(self.socket.as_fd()).ok()
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from([("server".to_string(), self.server.to_string())]);
        if let Ok(name) = self.socket.tcp_congestion() {
            let name = String::from_utf8_lossy(&name);
            settings.insert("congestion".into(), name.trim_end_matches('\0').into());
        }
        settings
    }

    pub(super) const fn places(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    pub(super) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.socket.local_addr().ok()?.as_socket()?, self.server))
    }

    pub(super) fn notes(&self) -> Vec<String> {
        match self.replaced {
            0 => Vec::new(),
            _ => vec![
                "the server closes the connection after answers: calls include connecting again"
                    .to_string(),
            ],
        }
    }
}

/// The option `timeout`.
fn timeout(stack: &Stack) -> Duration {
    let written = stack.seconds("timeout").filter(|seconds| *seconds > 0.0);
    written.map_or(super::PATIENCE, Duration::from_secs_f64)
}

/// A connected socket with the options of the stack.
fn connected(stack: &Stack, server: SocketAddr, flags: &LiveCancelFlags) -> Result<Socket> {
    let shown = server.to_string();
    let socket = Socket::new(
        Domain::for_address(server),
        Type::STREAM,
        Some(Protocol::TCP),
    )
    .map_err(|e| ip::socket_unavailable(&stack.name, &e))?;
    let refused = |option: &str, e: &io::Error| {
        Error::environment(format!(
            "the option {option} of {} was refused: {e}",
            stack.name
        ))
    };
    if let Some(bytes) = stack.number("send_buffer") {
        socket
            .set_send_buffer_size(bytes as usize)
            .map_err(|e| refused("send_buffer", &e))?;
    }
    if let Some(bytes) = stack.number("receive_buffer") {
        socket
            .set_recv_buffer_size(bytes as usize)
            .map_err(|e| refused("receive_buffer", &e))?;
    }
    socket
        .set_tcp_nodelay(!stack.flag("nagle"))
        .map_err(|e| error::io_error("TCP_NODELAY", &e))?;
    socket
        .set_write_timeout(Some(ip::PATIENCE))
        .map_err(|e| error::io_error("SO_SNDTIMEO", &e))?;
    while let Err(error) = socket.connect(&server.into()) {
        match error.raw_os_error() {
            Some(libc::EINTR) => flags.interrupted()?,
            Some(libc::EISCONN) => break,
            Some(libc::EINPROGRESS | libc::EALREADY) => {
                return Err(ip::unreachable(&shown, &io::ErrorKind::TimedOut.into()));
            }
            _ => return Err(ip::unreachable(&shown, &error)),
        }
    }
    let patience = Some(timeout(stack));
    socket
        .set_write_timeout(patience)
        .and_then(|()| socket.set_read_timeout(patience))
        .map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
    Ok(socket)
}
