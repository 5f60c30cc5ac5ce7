//! `tcp`: one connection of the kernel's TCP.

use super::authentication::ProvenConnection;
use super::ip;
use super::ip::Guests;
use super::ip_options::{self, IP_OPTIONS};
use super::stream::{Flavour, LiveStream, Receive, THREADS};
use super::tcp_record::read_tcp_record;
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::clock;
use crate::error::{self, Error, Result};
use crate::readiness;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use socket2::{SockAddr, Socket, TcpKeepalive, Type};
use stackline_core::catalogue::{
    ClosedForm, FlowControl, IP_FAMILY, OptionKind, OptionTable, PacketContent, ServiceMapping,
    StackFacts, StackTable, least_mtu_of_family,
};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_os::socket_option::{read_option, set_option};
use stackline_os::tcp_info::TcpInfo;
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

/// The option `keepalive` when it is not written, s.
const KEEPALIVE_S: f64 = 10.0;
/// The longest silence that Linux accepts (MAX_TCP_KEEPIDLE), s.
const KEEPALIVE_MOST_S: f64 = 32_767.0;
/// The largest TCP_MAXSEG that Linux accepts (MAX_TCP_WINDOW), bytes.
const LARGEST_MSS: u64 = 32_767;

pub(super) const TABLE: StackTable = StackTable {
    name: "tcp",
    ecn: true,
    summary: "the kernel's TCP over IPv4 or IPv6",
    options: &OPTIONS,
    mapping: MAPPING,
    facts: StackFacts {
        packets: PacketContent::Stream,
        form: ClosedForm::Tcp,
        flow_control: FlowControl::KernelBuffers,
        ..StackTable::RELIABLE.facts
    },
    exclusive: EXCLUSIVE,
    least_mtu: least_mtu_of_family,
    ..StackTable::RELIABLE
};

/// The options of TCP. MPTCP has all but the first two, `zerocopy` and `fastopen`, and the last one, `ttl`.
pub(super) const OPTIONS: [OptionTable; 18] = StackTable::joined(&TCP_OPTIONS, &IP_OPTIONS);

const TCP_OPTIONS: [OptionTable; 13] = [
    OptionTable::new(
        "zerocopy",
        OptionKind::Flag,
        "off: the kernel copies data",
        "MSG_ZEROCOPY: send from the buffer's pages; the result reports whether the kernel copied the data anyway",
    ),
    OptionTable::flag(
        "fastopen",
        "TCP_FASTOPEN (RFC 7413): once the peer's cookie is known, the first data go in the SYN; the result reports whether they did",
    ),
    OptionTable::new(
        "nodelay",
        OptionKind::Flag,
        "off: Nagle's algorithm holds back small segments",
        "TCP_NODELAY: every data unit is sent at once",
    ),
    OptionTable::new(
        "congestion",
        OptionKind::Name,
        "the host's default, which the result reports",
        "TCP_CONGESTION: congestion control by name, such as cubic or bbr",
    ),
    OptionTable::new(
        "send_buffer",
        OptionKind::BUFFER,
        "tuned by the kernel",
        "SO_SNDBUF in bytes (the kernel doubles it)",
    ),
    OptionTable::new(
        "notsent_lowat",
        OptionKind::BUFFER,
        "the host's default, usually none",
        "TCP_NOTSENT_LOWAT: a writer waits while at least this many bytes are unsent",
    ),
    OptionTable::new(
        "receive_buffer",
        OptionKind::BUFFER,
        "tuned by the kernel",
        "SO_RCVBUF in bytes (the kernel doubles it)",
    ),
    OptionTable::new(
        "mss",
        OptionKind::Number(88, LARGEST_MSS),
        "from the path's MTU",
        "TCP_MAXSEG: largest segment in bytes",
    ),
    OptionTable::new(
        "receive",
        OptionKind::Word(&["block", "spin", "truncate"]),
        "block",
        "block: sleep until data arrives; spin: poll continuously; truncate: the kernel drops the data without copying it",
    ),
    THREADS,
    OptionTable::new(
        "port",
        OptionKind::PORT,
        "any free port",
        "first port of the responders; replicas use consecutive ports",
    ),
    OptionTable::new(
        "keepalive",
        OptionKind::Time,
        "10 s",
        "SO_KEEPALIVE: silence before the first probe, then one every 5 s; 0 sends none",
    ),
    IP_FAMILY,
];

/// Pairs of options that exclude each other: a thread that drives many pairs sleeps in epoll alone and does not wait for zero-copy
/// completions, nor for a connection that begins with the first send. MPTCP uses the first pair only.
pub(super) const EXCLUSIVE: &[&[&str]] = &[
    &["threads", "receive"],
    &["threads", "zerocopy"],
    &["threads", "fastopen"],
];

pub(super) const MAPPING: ServiceMapping = ServiceMapping(
"\
ConnectRequest -> socket, connect; a 16-byte token is sent with the first data unit, or at the clock's start (in \
procedures without data: on the first connection only; on loopback, connections bind to an address derived from the token)
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise); connections without it are closed
DataRequest -> send of the whole unit (FILE: sendfile)
AwaitDataIndication -> recv of up to max(unit, 128 KiB) until the unit is complete; data read ahead serves the next unit; \
truncate: recv with MSG_TRUNC; FILE: recv, pwrite
RPCCall -> send of the request, recv until the response is complete
RPCAwaitCallInd -> recv until the request is complete
RPCReturn -> send of the response
StartBulkGet, StartBulkPut -> send of 1 byte
AwaitStartBulkGet, AwaitStartBulkPut -> recv of 1 byte
StopBulkGet -> none: the last unit has arrived
AwaitStopBulkGet -> setsockopt TCP_NODELAY once, so that Nagle's algorithm does not hold back the last segment
StopBulkPut -> setsockopt TCP_NODELAY once, recv of 1 byte that confirms arrival
AwaitStopBulkPut -> send of that byte
end of stream (time limit) -> shutdown(SHUT_WR); the peer's recv returns 0
DisconnectRequest -> close
AwaitDisconnectIndication -> recv until it returns 0, close",
);

/// The stack `tcp`.
pub(super) struct LiveTcpStack;

impl LiveStack for LiveTcpStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        listen(parameters, None)
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        connector(parameters, address, None)
    }
}

/// The responder's end of TCP, or of MPTCP if `protocol` names it.
pub(super) fn listen(
    parameters: &LiveConnectParameters,
    protocol: Option<socket2::Protocol>,
) -> Result<Box<dyn LiveListener>> {
    Ok(Box::new(TcpListener::new(parameters, protocol)?))
}

/// The initiator's end of TCP, or of MPTCP if `protocol` names it.
pub(super) fn connector(
    parameters: &LiveConnectParameters,
    address: &str,
    protocol: Option<socket2::Protocol>,
) -> Result<Box<dyn Connector>> {
    Ok(Box::new(TcpConnector::new(parameters, address, protocol)?))
}

/// Accepts the connections of the peer, which show the token of the run first.
pub(super) struct TcpListener {
    socket: Socket,
    parameters: LiveConnectParameters,
    guests: Guests,
}

impl TcpListener {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        protocol: Option<socket2::Protocol>,
    ) -> Result<Self> {
        let socket = ip::bound_socket(parameters, Type::STREAM, protocol)?;
        // Set before listening: accepted connections inherit it, also what is negotiated in the handshake.
        configure(&socket, &parameters.stack)?;
        if parameters.stack.flag("fastopen") {
            fast_open(&socket, libc::TCP_FASTOPEN, FAST_OPEN_BACKLOG)?;
        }
        if parameters.carries_data {
            keep_alive(&socket, &parameters.stack);
        }
        ip::listen(&socket)?;
        Ok(Self {
            socket,
            parameters: parameters.clone(),
            guests: Guests::default(),
        })
    }

    /// The port.
    pub(super) fn port(&self) -> String {
        ip::bound_port(&self.socket)
    }

    /// The socket that listens.
    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next connection, from which the token has been read if it shows one.
    pub(super) fn accept_socket(&mut self, buffers: &LiveThreadBuffers) -> Result<Socket> {
        ip::accept(&self.socket, &mut self.guests, &self.parameters, buffers)
    }

    /// The next connection that shows the token after so many bytes of its protocol, with what was read from it.
    pub(super) fn accept_behind(
        &mut self,
        before: usize,
        buffers: &LiveThreadBuffers,
    ) -> Result<ProvenConnection> {
        let (socket, guests) = (&self.socket, &mut self.guests);
        ip::accept_behind(socket, guests, &self.parameters, before, buffers)
    }
}

impl LiveListener for TcpListener {
    fn address(&self) -> String {
        self.port()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let socket = self.accept_socket(buffers)?;
        Ok(Box::new(stream(socket, &self.parameters)?))
    }
}

/// Connects to the peer.
pub(super) struct TcpConnector {
    address: SockAddr,
    shown: String,
    parameters: LiveConnectParameters,
    protocol: Option<socket2::Protocol>,
    /// Whether an earlier connection has sent the token.
    introduced: bool,
}

impl TcpConnector {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        address: &str,
        protocol: Option<socket2::Protocol>,
    ) -> Result<Self> {
        Ok(Self {
            address: ip::resolve(address, &parameters.stack)?,
            shown: address.to_string(),
            parameters: parameters.clone(),
            protocol,
            introduced: false,
        })
    }

    /// A new connection, and the token that has to be sent first, if it has to.
    pub(super) fn connect_socket(
        &mut self,
        flags: &LiveCancelFlags,
    ) -> Result<(Socket, Option<DatagramToken>)> {
        let socket = Socket::new(self.address.domain(), Type::STREAM, self.protocol)
            .map_err(|e| ip::socket_unavailable(&self.parameters.stack.name, &e))?;
        configure(&socket, &self.parameters.stack)?;
        // Where nothing is sent, a connection that waits for data would never begin.
        if self.parameters.stack.flag("fastopen") && self.parameters.carries_data {
            fast_open(&socket, libc::TCP_FASTOPEN_CONNECT, 1)?;
        }
        let is_bound = match self.address.as_socket() {
            Some(peer) => ip_options::bind_initiator(&socket, &self.parameters, peer.ip())?,
            None => false,
        };
        if !self.parameters.carries_data && !is_bound {
            ip::bind_to_an_address_of_our_own(&socket, &self.address, &self.parameters.token)?;
        }
        let until = if readiness::is_here() {
            Some(ip::without_blocking(&socket)?)
        } else {
            None
        };
        // SO_SNDTIMEO bounds the handshake of the first connection; later ones in a loop connect to a peer known to answer.
        let first = !std::mem::replace(&mut self.introduced, true);
        if first {
            socket
                .set_write_timeout(Some(ip::PATIENCE))
                .map_err(|e| error::io_error("SO_SNDTIMEO", &e))?;
        }
        while let Err(error) = socket.connect(&self.address) {
            match error.raw_os_error() {
                Some(libc::EINTR) => flags.interrupted()?,
                Some(libc::EISCONN) => break,
                Some(libc::EINPROGRESS | libc::EALREADY)
                    if until.is_some_and(|until| clock::now() < until) =>
                {
                    readiness::wait_for_room(socket.as_fd(), until)?;
                    flags.interrupted()?;
                }
                Some(libc::EINPROGRESS | libc::EALREADY) => {
                    return Err(ip::unreachable(
                        &self.shown,
                        &std::io::ErrorKind::TimedOut.into(),
                    ));
                }
                _ => {
                    let stack = &self.parameters.stack;
                    return Err(ip_options::unreachable(stack, &self.shown, &error));
                }
            }
        }
        if first {
            socket
                .set_write_timeout(None)
                .map_err(|e| error::io_error("SO_SNDTIMEO", &e))?;
            keep_alive(&socket, &self.parameters.stack);
        }
        let shows_token = first || self.parameters.carries_data;
        Ok((socket, shows_token.then_some(self.parameters.token)))
    }
}

impl Connector for TcpConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (socket, token) = self.connect_socket(&buffers.flags)?;
        let mut stream = stream(socket, &self.parameters)?;
        if let Some(token) = token {
            stream = stream.introducing(token);
        }
        if !self.parameters.carries_data {
            stream.introduce(buffers)?;
        }
        Ok(Box::new(stream))
    }
}

/// Connections whose SYN carried data and that are not accepted yet; what is beyond shakes hands as usual.
const FAST_OPEN_BACKLOG: i32 = 1024;
/// Which ends may use TCP Fast Open on this host, as bits: 1 clients, 2 servers.
const FAST_OPEN_SYSCTL: &str = "/proc/sys/net/ipv4/tcp_fastopen";

/// Sets an option of TCP Fast Open.
fn fast_open(socket: &Socket, option: i32, value: i32) -> Result<()> {
    set_option(socket.as_fd(), libc::IPPROTO_TCP, option, value).map_err(|e| {
        Error::environment(format!("this host refuses TCP Fast Open: {e}"))
            .hint("`sysctl net.ipv4.tcp_fastopen=3` allows it to clients and servers")
    })
}

/// Whether the first data went in the SYN, where that was asked for or happened, and what this host allows.
fn fast_open_settings(socket: &Socket, settings: &mut BTreeMap<String, String>) {
    let Ok(info) = TcpInfo::read(socket.as_fd()) else {
        return;
    };
    let went = info.has_syn_data();
    let option = read_option(
        socket.as_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_FASTOPEN_CONNECT,
    );
    // Before the first data it is not known; the SYN counts as a byte.
    let is_known = went || info.acked_bytes.is_some_and(|bytes| bytes > 1);
    if !is_known || (!went && option.unwrap_or(0) == 0) {
        return;
    }
    let said = if went {
        "data in the SYN"
    } else {
        "data after the handshake"
    };
    settings.insert("fastopen".into(), said.into());
    if let Ok(bits) = std::fs::read_to_string(FAST_OPEN_SYSCTL) {
        settings.insert("net.ipv4.tcp_fastopen".into(), bits.trim().into());
    }
}

/// Turns keep-alive probes on. A failure is ignored.
pub(super) fn keep_alive(socket: &Socket, stack: &Stack) {
    let silence = stack.seconds("keepalive").unwrap_or(KEEPALIVE_S);
    if silence <= 0.0 {
        return;
    }
    let silence = Duration::from_secs_f64(silence.clamp(1.0, KEEPALIVE_MOST_S));
    let keepalive = TcpKeepalive::new()
        .with_time(silence)
        .with_interval(Duration::from_secs(5));
    let _ = socket.set_tcp_keepalive(&keepalive);
}

/// The connection over a connected socket.
pub(super) fn stream(
    socket: Socket,
    parameters: &LiveConnectParameters,
) -> Result<LiveStream<TcpFlavour>> {
    let zerocopy = parameters.stack.flag("zerocopy");
    if zerocopy {
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(|e| {
            Error::environment(format!("this host refuses MSG_ZEROCOPY: {e}"))
                .hint("omit the option `zerocopy`")
        })?;
    }
    let flavour = TcpFlavour {
        zerocopy: parameters.stack.name == TABLE.name,
    };
    LiveStream::new(socket, flavour, Receive::new(&parameters.stack), zerocopy)
}

/// Sets the socket options that the specification gives. Others keep the kernel's defaults, which the result reports.
pub(super) fn configure(socket: &Socket, stack: &Stack) -> Result<()> {
    let failed = |name: &str, e: std::io::Error| {
        Error::environment(format!(
            "the option {name} of {} was refused: {e}",
            stack.name
        ))
    };
    ip_options::mark(socket, stack)?;
    if stack.flag("nodelay") {
        socket
            .set_tcp_nodelay(true)
            .map_err(|e| failed("nodelay", e))?;
    }
    if let Some(name) = stack.word("congestion") {
        socket.set_tcp_congestion(name.as_bytes()).map_err(|e| {
            let failure = match e.raw_os_error() {
                Some(libc::ENOENT) => Error::environment(format!("this host has no congestion control named {name}")),
                _ => failed(&format!("congestion = {name}"), e),
            };
            failure.hint("/proc/sys/net/ipv4/tcp_available_congestion_control on this host lists the available algorithms")
        })?;
    }
    if let Some(bytes) = stack.number("send_buffer") {
        socket
            .set_send_buffer_size(bytes as usize)
            .map_err(|e| failed("send_buffer", e))?;
    }
    if let Some(bytes) = stack.number("notsent_lowat") {
        socket
            .set_tcp_notsent_lowat(bytes as u32)
            .map_err(|e| failed("notsent_lowat", e))?;
    }
    if let Some(bytes) = stack.number("receive_buffer") {
        socket
            .set_recv_buffer_size(bytes as usize)
            .map_err(|e| failed("receive_buffer", e))?;
    }
    if let Some(bytes) = stack.number("mss") {
        socket
            .set_tcp_mss(bytes as u32)
            .map_err(|e| failed("mss", e))?;
    }
    Ok(())
}

/// The settings of a socket that are in force, by option name.
pub(super) fn settings(socket: &Socket) -> BTreeMap<String, String> {
    let mut settings = ip_options::marks(socket);
    if let Ok(name) = socket.tcp_congestion() {
        let name = String::from_utf8_lossy(&name);
        settings.insert("congestion".into(), name.trim_end_matches('\0').into());
    }
    if let Ok(on) = socket.tcp_nodelay() {
        settings.insert("nodelay".into(), if on { "on" } else { "off" }.into());
    }
    if let Ok(bytes) = socket.tcp_mss() {
        settings.insert("mss".into(), format!("{bytes} B"));
    }
    fast_open_settings(socket, &mut settings);
    settings
}

/// What TCP and MPTCP add to a byte stream.
pub(super) struct TcpFlavour {
    /// Whether the stack has the option `zerocopy`.
    zerocopy: bool,
}

impl Flavour for TcpFlavour {
    fn transport(&self, socket: &Socket) -> Option<TransportRecord> {
        read_tcp_record(socket.as_fd()).ok()
    }

    fn settings(&self, socket: &Socket) -> BTreeMap<String, String> {
        settings(socket)
    }

    fn has_zerocopy(&self) -> bool {
        self.zerocopy
    }

    fn push(&self, socket: &Socket) {
        if let Ok(false) = socket.tcp_nodelay() {
            // Setting TCP_NODELAY sends what Nagle's algorithm holds back. A failure is ignored: it would only delay the last segment.
            let _ = socket.set_tcp_nodelay(true);
        }
    }
}
