//! The TCP socket of a connection to a far end: connecting, calls with a limit on the server's silence, and what the kernel says of it.

use crate::cancel::{LiveCancelFlags, pause};
use crate::error::{self, Blame, Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::server_patience::ServerPatience;
use crate::stacks::tcp_record::{acknowledged_bytes, is_in_transit, read_tcp_record};
use crate::stacks::{ip, ip_options};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use stackline_os::tcp_info::TcpInfo;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before it is looked again whether everything is acknowledged.
const QUIET_LOOK: Duration = Duration::from_millis(1);
/// Most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 16;

/// Most connections of others where a server is expected.
const MOST_STRANGERS: u32 = 1000;

/// Every address that `host:port` resolves to, of the family that is asked for, up to [`MOST_ADDRESSES`]. Port 0 is that of a
/// protocol without ports.
pub(super) fn resolve(address: &str, stack: &Stack) -> Result<Vec<SocketAddr>> {
    let shown = address.strip_suffix(":0").unwrap_or(address);
    let found: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|e| Error::environment(format!("cannot resolve the address {shown}: {e}")))?
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
            "{shown} resolves to no address{family}"
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
    /// Whether something has come since this end has sent last.
    is_answering: bool,
    /// Whether the server has reset the connection.
    was_reset: bool,
    /// Whether the server has been silent for longer than it may.
    was_silent: Cell<bool>,
}

/// A socket where a server may connect to.
pub(super) struct FarEndListener {
    listener: Socket,
    address: SocketAddr,
}

impl FarEndListener {
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
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
            is_answering: false,
            was_reset: false,
            was_silent: Cell::new(false),
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

    /// Sends the parts, one behind the other, in one system call if the kernel takes them at once. False if the server takes nothing more:
    /// it may have said why.
    pub(super) fn send_parts<const N: usize>(&mut self, parts: [&[u8]; N]) -> Result<bool> {
        let all = parts.iter().map(|part| part.len()).sum();
        let slices = parts.map(io::IoSlice::new);
        let mut waited = Duration::ZERO;
        let mut sent = loop {
            self.check_limit()?;
            let fd = self.socket.as_fd();
            match scope::sending(all, || {
                socket::send_vectored(fd, &slices, SendFlags::empty())
            }) {
                Ok(sent) => break sent,
                Err(error) if is_broken(&error) => return Ok(false),
                Err(error) => self.waits("send", &error, &mut waited)?,
            }
        };
        (self.sent, self.is_answering) = (self.sent + sent as u64, false);
        for part in parts {
            let of_part = sent.min(part.len());
            sent -= of_part;
            if !self.send(&part[of_part..])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends all of it. False if the server takes nothing more: it may have said why.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<bool> {
        let mut waited = Duration::ZERO;
        while !bytes.is_empty() {
            self.check_limit()?;
            let fd = self.socket.as_fd();
            match scope::sending(bytes.len(), || socket::send(fd, bytes, SendFlags::empty())) {
                Ok(sent) => {
                    (self.sent, self.is_answering) = (self.sent + sent as u64, false);
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
            self.check_limit()?;
            let fd = self.socket.as_fd();
            match scope::receiving(room.len(), || socket::receive(fd, room, RecvFlags::empty())) {
                Ok(got) => {
                    (self.received, self.is_answering) = (self.received + got as u64, true);
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

    /// Sends what the kernel takes at once: `None` if that is nothing, 0 if the server takes nothing more.
    pub(super) fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        self.check_limit()?;
        let fd = self.socket.as_fd();
        let sent = scope::sending(bytes.len(), || socket::send(fd, bytes, SendFlags::DONTWAIT));
        self.sent_at_once(sent)
    }

    /// Notes what the kernel has taken at once.
    fn sent_at_once(&mut self, sent: io::Result<usize>) -> Result<Option<usize>> {
        match sent {
            Ok(sent) => {
                (self.sent, self.is_answering) = (self.sent + sent as u64, false);
                Ok(Some(sent))
            }
            Err(error) if is_broken(&error) => {
                self.was_reset = true;
                Ok(Some(0))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error::io_error("send", &error)),
        }
    }

    /// Waits until more can be sent, or something has come; true for the latter. `waited` is how long it was waited in vain.
    pub(super) fn awaits_room_or_input(&self, waited: &mut Duration) -> Result<bool> {
        let both = PollFlags::POLLOUT | PollFlags::POLLIN;
        let mut watched = [PollFd::new(self.socket.as_fd(), both)];
        loop {
            self.wait_for_any(&mut watched, true, waited)?;
            match watched[0].revents() {
                Some(came) if came.contains(PollFlags::POLLIN) => return Ok(true),
                Some(came) if !came.is_empty() => return Ok(false),
                _ => {}
            }
        }
    }

    /// Whether the server has not acknowledged all that was sent.
    pub(super) fn is_in_transit(&self) -> bool {
        is_in_transit(self.socket.as_fd())
    }

    /// The same of parts that follow one another.
    pub(super) fn try_send_parts(&mut self, parts: &[io::IoSlice<'_>]) -> Result<Option<usize>> {
        self.check_limit()?;
        let (fd, all) = (
            self.socket.as_fd(),
            parts.iter().map(|part| part.len()).sum(),
        );
        let sent = scope::sending(all, || {
            socket::send_vectored(fd, parts, SendFlags::DONTWAIT)
        });
        self.sent_at_once(sent)
    }

    /// Receives what has come: `None` if that is nothing, 0 if the server has ended its stream.
    pub(super) fn try_receive(&mut self, room: &mut [u8]) -> Result<Option<usize>> {
        self.check_limit()?;
        let fd = self.socket.as_fd();
        match scope::receiving(room.len(), || {
            socket::receive(fd, room, RecvFlags::DONTWAIT)
        }) {
            Ok(got) => {
                (self.received, self.is_answering) = (self.received + got as u64, true);
                Ok(Some(got))
            }
            Err(error) if is_broken(&error) => {
                self.was_reset = true;
                Ok(Some(0))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error::io_error("recv", &error)),
        }
    }

    /// Waits for a while until one of these sockets, which belong to the same test as this one, can go on. `waited` is how long it was
    /// waited in vain.
    pub(super) fn wait_for_any(
        &self,
        sockets: &mut [PollFd<'_>],
        is_sending: bool,
        waited: &mut Duration,
    ) -> Result<()> {
        self.check_limit()?;
        let slice = self.patience.slice();
        let timeout = PollTimeout::try_from(slice).unwrap_or(PollTimeout::MAX);
        match poll(sockets, timeout) {
            Ok(0) => {
                *waited += slice;
                self.patience
                    .check_silence(*waited, || self.silence(is_sending))
            }
            Ok(_) => Ok(()),
            Err(Errno::EINTR) => self.flags.interrupted(),
            Err(error) => Err(error::io_error("poll", &error.into())),
        }
    }

    /// Whether bytes (or the end of the stream) can be received without waiting.
    pub(super) fn has_waiting(&self) -> Result<bool> {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match socket::receive(self.socket.as_fd(), &mut [0], flags) {
            Ok(_) => Ok(true),
            Err(error) if is_broken(&error) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error::io_error("recv", &error)),
            },
        }
    }

    /// A further connection to the same host, at another of its ports.
    pub(super) fn connect_beside(&self, port: u16) -> Result<Self> {
        let mut server = self.server();
        server.set_port(port);
        let mut parameters = self.parameters.clone();
        // The first connection has this port.
        parameters.stack.options.remove("source_port");
        let socket = connected(&parameters, server, &self.flags)?;
        Ok(Self::new(
            socket,
            server,
            parameters,
            Arc::clone(&self.flags),
        ))
    }

    /// A socket where the same host may connect to, at this end's address.
    pub(super) fn listen_beside(&self) -> Result<FarEndListener> {
        let failed = |what: &str| {
            let what = what.to_string();
            move |e: io::Error| error::io_error(&what, &e)
        };
        let own = self.socket.local_addr().map_err(failed("getsockname"))?;
        let mut own = own.as_socket().unwrap_or(self.server());
        own.set_port(0);
        let domain = Domain::for_address(own);
        let listener =
            Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(failed("socket"))?;
        listener.bind(&own.into()).map_err(failed("bind"))?;
        listener.listen(1).map_err(failed("listen"))?;
        let patience = Some(self.patience.slice());
        listener
            .set_read_timeout(patience)
            .map_err(failed("SO_RCVTIMEO"))?;
        let bound = listener.local_addr().map_err(failed("getsockname"))?;
        Ok(FarEndListener {
            listener,
            address: bound.as_socket().unwrap_or(own),
        })
    }

    /// The connection that the server makes to a socket of `listen_beside`; those of others are closed.
    pub(super) fn accept_beside(&self, listening: &FarEndListener) -> Result<Self> {
        let (mut waited, mut strangers) = (Duration::ZERO, 0);
        while strangers < MOST_STRANGERS {
            match listening.listener.accept() {
                Ok((socket, peer)) => {
                    let Some(peer) = peer
                        .as_socket()
                        .filter(|peer| peer.ip() == self.server().ip())
                    else {
                        strangers += 1;
                        continue;
                    };
                    let parameters = self.parameters.clone();
                    set_options(&parameters.stack, &socket)?;
                    set_patience(&socket, self.patience.slice())?;
                    return Ok(Self::new(socket, peer, parameters, Arc::clone(&self.flags)));
                }
                Err(error) => self.waits("accept", &error, &mut waited)?,
            }
        }
        Err(Error::measurement(format!(
            "{MOST_STRANGERS} others connected where only the server at {} should",
            self.server()
        )))
    }

    /// Waits until the server's kernel has acknowledged everything.
    pub(super) fn settle(&self) -> Result<()> {
        let mut waited = Duration::ZERO;
        while is_in_transit(self.socket.as_fd()) {
            self.check_limit()?;
            self.patience.check_silence(waited, || self.silence(true))?;
            pause(QUIET_LOOK);
            waited += QUIET_LOOK;
        }
        Ok(())
    }

    /// Ends the connection in both directions.
    pub(super) fn end(&self) -> Result<()> {
        self.socket
            .shutdown(Shutdown::Both)
            .map_err(|e| error::io_error("shutdown", &e))
    }

    /// Says that nothing more is sent.
    pub(super) fn end_sending(&self) -> Result<()> {
        self.socket
            .shutdown(Shutdown::Write)
            .map_err(|e| error::io_error("shutdown", &e))
    }

    /// Handles a call on a socket beside this one that moved nothing.
    pub(super) fn wait_after(
        &self,
        what: &str,
        error: &io::Error,
        waited: &mut Duration,
    ) -> Result<()> {
        self.check_limit()?;
        self.waits(what, error, waited)
    }

    /// Ends what goes on for long after the time limit.
    #[inline]
    fn check_limit(&self) -> Result<()> {
        self.patience
            .check_limit(&self.flags, || acknowledged_bytes(self.socket.as_fd()))
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
        self.was_silent.set(true);
        if is_sending {
            "does not take what is sent"
        } else if self.is_answering {
            "sends no more of its answer"
        } else if TcpInfo::read(self.socket.as_fd()).is_ok_and(|info| info.unacked > 0) {
            "has not even acknowledged what was sent"
        } else {
            "received everything and does not answer"
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) const fn parameters(&self) -> &LiveConnectParameters {
        &self.parameters
    }

    pub(super) const fn patience(&self) -> &ServerPatience {
        &self.patience
    }

    pub(super) fn was_silent(&self) -> bool {
        self.was_silent.get()
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
    set_options(stack, &socket)?;
    ip_options::bind_initiator(&socket, parameters, server.ip())?;
    socket
        .set_write_timeout(Some(ip::PATIENCE))
        .map_err(|e| error::io_error("SO_SNDTIMEO", &e))?;
    while let Err(error) = socket.connect(&server.into()) {
        match error.raw_os_error() {
            Some(libc::EINTR) => flags.interrupted()?,
            Some(libc::EISCONN) => break,
            Some(libc::EINPROGRESS | libc::EALREADY) => {
                return Err(ip_options::unreachable(
                    stack,
                    &shown,
                    &io::ErrorKind::TimedOut.into(),
                ));
            }
            _ => return Err(ip_options::unreachable(stack, &shown, &error)),
        }
    }
    set_patience(&socket, ServerPatience::new(stack, server).slice())?;
    Ok(socket)
}

/// Sets what the stack's options say.
fn set_options(stack: &Stack, socket: &Socket) -> Result<()> {
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
    ip_options::mark(socket, stack)
}

/// Lets no call wait for longer than a slice of time.
fn set_patience(socket: &Socket, slice: Duration) -> Result<()> {
    let patience = Some(slice);
    socket
        .set_write_timeout(patience)
        .and_then(|()| socket.set_read_timeout(patience))
        .map_err(|e| error::io_error("SO_RCVTIMEO", &e))
}
