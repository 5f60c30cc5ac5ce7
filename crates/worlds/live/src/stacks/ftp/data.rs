//! The connection for a file: how either end listens for it or opens it, and whose is taken.
//!
//! One that comes is taken from the host of the control connection alone, and one is opened to that host alone (RFC 2577, 3 and 4).

use super::control::{FtpControl, canonical};
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::{ip, ip_options, tcp};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_os::socket_option::set_option;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long the other end may take to open a connection for a file, or to accept it.
pub(super) const PATIENCE: Duration = ip::PATIENCE;
/// Length of the accept queue: one connection is wanted, and others may come before.
const BACKLOG: i32 = 16;

/// A socket with what the stack's options say, before it listens or connects.
fn prepared(address: SocketAddr, parameters: &LiveConnectParameters) -> Result<Socket> {
    let stack = &parameters.stack;
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
        .map_err(|e| ip::socket_unavailable(&stack.name, &e))?;
    tcp::configure(&socket, stack)?;
    socket
        .set_tcp_nodelay(!stack.flag("nagle"))
        .map_err(|e| error::io_error("TCP_NODELAY", &e))?;
    tcp::keep_alive(&socket, stack);
    Ok(socket)
}

/// What has come to a port where one connection is expected.
pub(super) enum FtpArrival {
    Peer(Socket),
    /// More than one from the peer's host: one of them is another program's, and nothing says which.
    Several,
    Nobody,
}

/// A socket to which the other end is to connect for the next file.
pub(super) struct FtpDataListener {
    socket: Socket,
    address: SocketAddr,
    /// Whose connection is taken.
    peer: IpAddr,
}

impl FtpDataListener {
    /// At this end's address of the control connection, and at any free port.
    pub(super) fn new(control: &FtpControl, parameters: &LiveConnectParameters) -> Result<Self> {
        let failed = |what: &str, e: &io::Error| error::io_error(what, e);
        let mut address = control.local();
        address.set_port(0);
        let socket = prepared(address, parameters)?;
        socket
            .bind(&address.into())
            .map_err(|e| failed("bind", &e))?;
        socket.listen(BACKLOG).map_err(|e| failed("listen", &e))?;
        let bound = socket.local_addr().map_err(|e| failed("getsockname", &e))?;
        Ok(Self {
            socket,
            address: bound.as_socket().unwrap_or(address),
            peer: control.peer().ip(),
        })
    }

    /// Where it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The peer's connection, if it comes in time. Those of other hosts are closed, and so is what comes later.
    pub(super) fn accept(self, flags: &LiveCancelFlags) -> Result<FtpArrival> {
        let Some(socket) = self.accept_one(PATIENCE, flags)? else {
            return Ok(FtpArrival::Nobody);
        };
        match self.accept_one(Duration::ZERO, flags)? {
            None => Ok(FtpArrival::Peer(socket)),
            Some(_) => Ok(FtpArrival::Several),
        }
    }

    /// A connection from the peer's host that comes within that time.
    fn accept_one(&self, patience: Duration, flags: &LiveCancelFlags) -> Result<Option<Socket>> {
        let until = Instant::now() + patience;
        let mut strangers = 0;
        // Those who keep coming from other hosts do not make it longer.
        while (strangers <= BACKLOG || Instant::now() < until) && self.wait(until, flags)? {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let from = from.as_socket().map(|from| canonical(from).ip());
                    if from == Some(self.peer) {
                        return Ok(Some(socket));
                    }
                    strangers += 1;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => flags.interrupted()?,
                    io::ErrorKind::ConnectionAborted => {}
                    _ => return Err(error::io_error("accept", &error)),
                },
            }
        }
        Ok(None)
    }

    /// Waits until a connection can be accepted; false if none can when its time is over.
    fn wait(&self, until: Instant, flags: &LiveCancelFlags) -> Result<bool> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            // `poll` counts whole milliseconds: rounded up, because a wait that ended too early would have to be repeated.
            let whole = left.as_nanos().div_ceil(1_000_000);
            let patience = PollTimeout::try_from(whole).unwrap_or(PollTimeout::MAX);
            match poll(&mut watched, patience) {
                Ok(0) if Instant::now() >= until => return Ok(false),
                Ok(0) => {}
                Ok(_) => return Ok(true),
                Err(Errno::EINTR) => flags.interrupted()?,
                Err(error) => return Err(error::io_error("poll", &error.into())),
            }
        }
    }
}

/// Opens the initiator's connection to a port of the responder's.
pub(super) fn connect_to_responder(
    port: u16,
    control: &FtpControl,
    parameters: &LiveConnectParameters,
    flags: &LiveCancelFlags,
) -> Result<Socket> {
    let mut to = control.peer();
    to.set_port(port);
    let socket = prepared(to, parameters)?;
    ip_options::bind_initiator(&socket, parameters, to.ip())?;
    connect(&socket, to, flags)?.map_err(|error| {
        Error::environment(format!(
            "cannot connect to {to}, where the responder listens for the file: {error}"
        ))
        .hint(
            "a firewall may let the control connection pass alone: open the responder's ports, or have the responder connect with \
             `mode = active`",
        )
    })?;
    Ok(socket)
}

/// Opens the responder's connection to a port of the initiator's, from the address of the control connection. An error of the network's is
/// for the initiator to know.
pub(super) fn connect_to_initiator(
    port: u16,
    control: &FtpControl,
    parameters: &LiveConnectParameters,
    flags: &LiveCancelFlags,
) -> Result<io::Result<Socket>> {
    let mut to = control.peer();
    to.set_port(port);
    let socket = prepared(to, parameters)?;
    let mut from = control.local();
    from.set_port(0);
    // The port is chosen on connecting, where only the pair of addresses has to be free.
    let _ = set_option(
        socket.as_fd(),
        libc::SOL_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1,
    );
    socket
        .bind(&from.into())
        .map_err(|e| error::io_error("bind", &e))?;
    Ok(connect(&socket, to, flags)?.map(|()| socket))
}

/// Connects, within a time.
fn connect(socket: &Socket, to: SocketAddr, flags: &LiveCancelFlags) -> Result<io::Result<()>> {
    let patience = |time| {
        let set = socket.set_write_timeout(time);
        set.map_err(|e| error::io_error("SO_SNDTIMEO", &e))
    };
    patience(Some(PATIENCE))?;
    while let Err(error) = socket.connect(&to.into()) {
        match error.raw_os_error() {
            Some(libc::EINTR) => flags.interrupted()?,
            Some(libc::EISCONN) => break,
            Some(libc::EINPROGRESS | libc::EALREADY) => {
                return Ok(Err(io::ErrorKind::TimedOut.into()));
            }
            _ => return Ok(Err(error)),
        }
    }
    patience(None)?;
    Ok(Ok(()))
}
