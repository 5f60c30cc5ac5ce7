//! The TCP socket of a connection to a far end: connecting, calls with a limit on the server's silence, and what the kernel says of it.

use crate::cancel::LiveCancelFlags;
use crate::error::{self, Blame, Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::server_patience::ServerPatience;
use crate::stacks::tcp_record::read_tcp_record;
use crate::stacks::{ip, ip_options};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use stackline_os::tcp_info::TcpInfo;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 16;

/// Every address that `host:port` resolves to, of the family that is asked for, up to [`MOST_ADDRESSES`].
pub(super) fn resolve(address: &str, stack: &Stack) -> Result<Vec<SocketAddr>> {
    let found: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|e| Error::environment(format!("cannot resolve the address {address}: {e}")))?
        .filter(|found| match stack.word("family") {
            Some("ipv4") => found.is_ipv4(),
            Some("ipv6") => found.is_ipv6(),
            _ => true,
        })
        .take(MOST_ADDRESSES)
        .collect();
    if found.is_empty() {
        let family = match stack.word("family") {
            Some("ipv4") => " of IPv4",
            Some("ipv6") => " of IPv6",
            _ => "",
        };
        return Err(Error::environment(format!(
            "{address} resolves to no address{family}"
        )));
    }
    Ok(found)
}

/// A connected socket.
pub(super) struct FarEndSocket {
    socket: Socket,
    patience: ServerPatience,
    parameters: LiveConnectParameters,
    flags: Arc<LiveCancelFlags>,
    /// Bytes sent and received on the present connection.
    sent: u64,
    received: u64,
    /// How many connections the server has closed that were replaced.
    replaced: u64,
    /// Whether the server has reset the connection.
    was_reset: bool,
}

impl FarEndSocket {
    /// Connects to the first server that answers, which is then the only one.
    pub(super) fn connect(
        parameters: &LiveConnectParameters,
        servers: &mut Vec<SocketAddr>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        let (socket, server) = connect_any(parameters, servers, flags)?;
        let parameters = parameters.clone();
        Ok(Self::new(socket, server, parameters, Arc::clone(flags)))
    }

    fn new(
        socket: Socket,
        server: SocketAddr,
        parameters: LiveConnectParameters,
        flags: Arc<LiveCancelFlags>,
    ) -> Self {
        Self {
            socket,
            patience: ServerPatience::new(&parameters.stack, server),
            parameters,
            flags,
            sent: 0,
            received: 0,
            replaced: 0,
            was_reset: false,
        }
    }

    /// Any connected socket; the server's address is one at which nothing listens.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn over(socket: Socket, parameters: LiveConnectParameters) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self::new(socket, nowhere, parameters, Arc::default())
    }

    /// Replaces the connection, which the server has closed after an answer.
    pub(super) fn reconnect(&mut self) -> Result<()> {
        self.socket = connected(&self.parameters, self.server(), &self.flags)?;
        scope::begin_byte_count();
        (self.sent, self.received, self.was_reset) = (0, 0, false);
        self.replaced += 1;
        Ok(())
    }

    /// Sends both, one behind the other, in one system call if the kernel takes them at once. False if the server takes nothing more: it
    /// may have said why.
    pub(super) fn send_two(&mut self, first: &[u8], second: &[u8]) -> Result<bool> {
        let both = first.len() + second.len();
        let mut waited = Duration::ZERO;
        let sent = loop {
            self.patience.check_limit(&self.flags)?;
            let fd = self.socket.as_fd();
            match scope::sending(both, || socket::send_two(fd, first, second)) {
                Ok(sent) => break sent,
                Err(error) if is_broken(&error) => return Ok(false),
                Err(error) => self.waits("send", &error, &mut waited)?,
            }
        };
        self.sent += sent as u64;
        let of_first = sent.min(first.len());
        Ok(self.send(&first[of_first..])? && self.send(&second[sent - of_first..])?)
    }

    /// Sends all of it. False if the server takes nothing more: it may have said why.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<bool> {
        let mut waited = Duration::ZERO;
        while !bytes.is_empty() {
            self.patience.check_limit(&self.flags)?;
            let fd = self.socket.as_fd();
            match scope::sending(bytes.len(), || socket::send(fd, bytes, SendFlags::empty())) {
                Ok(sent) => {
                    self.sent += sent as u64;
                    bytes = &bytes[sent..];
                    waited = Duration::ZERO;
                }
                Err(error) if is_broken(&error) => return Ok(false),
                Err(error) => self.waits("send", &error, &mut waited)?,
            }
        }
        Ok(true)
    }

    /// Receives into `room`; 0 when the server has ended its stream or reset the connection.
    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<usize> {
        let mut waited = Duration::ZERO;
        loop {
            self.patience.check_limit(&self.flags)?;
            let fd = self.socket.as_fd();
            match scope::receiving(room.len(), || socket::receive(fd, room, RecvFlags::empty())) {
                Ok(got) => {
                    self.received += got as u64;
                    return Ok(got);
                }
                Err(error) if is_broken(&error) => {
                    self.was_reset = true;
                    return Ok(0);
                }
                Err(error) => self.waits("recv", &error, &mut waited)?,
            }
        }
    }

    /// Says that nothing more is sent.
    pub(super) fn end_sending(&self) -> Result<()> {
        self.socket
            .shutdown(Shutdown::Write)
            .map_err(|e| error::io_error("shutdown", &e))
    }

    /// Handles a call that moved nothing; `waited` is how long calls before it have waited in vain.
    fn waits(&self, what: &str, error: &io::Error, waited: &mut Duration) -> Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted => self.flags.interrupted(),
            io::ErrorKind::WouldBlock => {
                *waited += self.patience.slice();
                let is_sending = what == "send";
                self.patience
                    .check_silence(*waited, || self.silence(is_sending))
            }
            _ => Err(error::io_error(what, error)),
        }
    }

    /// What a silent server does instead of answering.
    fn silence(&self, is_sending: bool) -> &'static str {
        if is_sending {
            "does not take what is sent"
        } else if TcpInfo::read(self.socket.as_fd()).is_ok_and(|info| info.unacked > 0) {
            "has not even acknowledged what was sent"
        } else {
            "received everything and does not answer"
        }
    }

    /// How the server left, in words.
    pub(super) const fn left(&self) -> &'static str {
        if self.was_reset { "reset" } else { "closed" }
    }

    pub(super) const fn server(&self) -> SocketAddr {
        self.patience.server()
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        // Of connections that were replaced nothing is known any more.
        let record = read_tcp_record(self.socket.as_fd()).ok();
        record.filter(|_| self.replaced == 0)
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = ip_options::marks(&self.socket);
        settings.insert("server".to_string(), self.server().to_string());
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
        Some((self.socket.local_addr().ok()?.as_socket()?, self.server()))
    }

    pub(super) fn notes(&self) -> Vec<String> {
        notes_of_replacements(self.replaced)
    }
}

/// The remarks on connections that the server has closed and that were replaced.
pub(super) fn notes_of_replacements(replaced: u64) -> Vec<String> {
    match replaced {
        0 => Vec::new(),
        _ => vec![
            "the server closes the connection after answers: calls include connecting again".into(),
        ],
    }
}

/// Connects to the first server that answers, which is then the only one.
pub(super) fn connect_any(
    parameters: &LiveConnectParameters,
    servers: &mut Vec<SocketAddr>,
    flags: &LiveCancelFlags,
) -> Result<(Socket, SocketAddr)> {
    let mut failed = None;
    for server in servers.iter().copied() {
        match connected(parameters, server, flags) {
            Ok(socket) => {
                *servers = vec![server];
                scope::begin_byte_count();
                return Ok((socket, server));
            }
            Err(error) if error.blame == Blame::Interrupted => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| Error::input("there is no server to connect to")))
}

/// Whether the server has left.
fn is_broken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// A connected socket with the options of the stack.
fn connected(
    parameters: &LiveConnectParameters,
    server: SocketAddr,
    flags: &LiveCancelFlags,
) -> Result<Socket> {
    let stack = &parameters.stack;
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
    ip_options::mark(&socket, stack)?;
    ip_options::bind_initiator(&socket, parameters, server.ip())?;
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
    let patience = Some(ServerPatience::new(stack, server).slice());
    socket
        .set_write_timeout(patience)
        .and_then(|()| socket.set_read_timeout(patience))
        .map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
    Ok(socket)
}
