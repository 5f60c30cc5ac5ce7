//! Shared by the stacks over IP: resolving addresses, the listening socket, accepting connections of the peer and closing those of
//! strangers, and the errors of connecting.

use super::authentication::{Newcomers, ProvenConnection, TokenBytes, wait_for_a_connection};
use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self, Error, Result};
use crate::readiness;
use crate::stacks::contract::LiveConnectParameters;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stackline_core::catalogue::IP_FAMILY;
use stackline_core::plan::Stack;
use stackline_core::time::{self as core, Instant};
use stackline_os::socket_option::set_option;
use stackline_proto::datagram::DatagramToken;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

/// How long a peer may take to answer a connection request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the accept queue, more than systems permit (they cut it): a client that closes each connection at once gets far ahead of the
/// server.
const BACKLOG: i32 = 1 << 16;

/// The port that a responder listens on: the option `port` plus the replica's index; without that option 0, any free port.
pub(crate) fn listening_port(parameters: &LiveConnectParameters) -> Result<u16> {
    match parameters.stack.number("port") {
        None => Ok(0),
        Some(first) => u16::try_from(first + parameters.port_offset()).map_err(|_| {
            Error::input("the ports of all replicas must be below 65536")
                .hint("the replicas listen on consecutive ports")
        }),
    }
}

/// A socket bound to the responder's address and port. Falls back to IPv4 on a host without IPv6, and to every address if the given
/// address is not one of this host's.
pub(crate) fn bound_socket(
    parameters: &LiveConnectParameters,
    kind: Type,
    protocol: Option<Protocol>,
) -> Result<Socket> {
    let mut address = SocketAddr::new(parameters.bind, listening_port(parameters)?);
    let mut socket = Socket::new(Domain::for_address(address), kind, protocol);
    if parameters.bind.is_ipv6()
        && matches!(&socket, Err(e) if e.raw_os_error() == Some(libc::EAFNOSUPPORT))
    {
        // A host without IPv6: instead of every address of both families, take every IPv4 address.
        address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        socket = Socket::new(Domain::IPV4, kind, protocol);
    }
    let socket = socket.map_err(|e| socket_unavailable(&parameters.stack.name, &e))?;
    if kind == Type::STREAM {
        socket
            .set_reuse_address(true)
            .map_err(|e| error::io_error("SO_REUSEADDR", &e))?;
    }
    let mut done = socket.bind(&address.into());
    if matches!(&done, Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable) {
        // Behind network address translation, the address that others use is not one of this host's.
        let any = if address.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        done = socket.bind(&SocketAddr::new(any, address.port()).into());
    }
    done.map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => Error::environment(format!(
            "port {} is in use on {}",
            address.port(),
            address.ip()
        ))
        .hint("omit the option `port` to get a free port"),
        io::ErrorKind::PermissionDenied => {
            Error::environment(format!("port {} is not permitted: {e}", address.port()))
                .hint("ports below 1024 need privileges")
        }
        _ => Error::environment(format!("cannot listen on {address}: {e}")),
    })?;
    Ok(socket)
}

/// Makes a bound stream socket listen.
pub(crate) fn listen(socket: &Socket) -> Result<()> {
    socket
        .listen(BACKLOG)
        .map_err(|e| Error::environment(format!("cannot listen: {e}")))?;
    if readiness::is_here() {
        socket
            .set_nonblocking(true)
            .map_err(|e| error::io_error("O_NONBLOCK", &e))?;
        readiness::watch(socket.as_fd())?;
    }
    Ok(())
}

/// Makes a socket non-blocking before it connects. Returns until when connecting may take.
pub(super) fn without_blocking(socket: &Socket) -> Result<Instant> {
    socket
        .set_nonblocking(true)
        .map_err(|e| error::io_error("O_NONBLOCK", &e))?;
    Ok(clock::now() + core::Duration::from_seconds(PATIENCE.as_secs_f64()))
}

/// The port of a bound socket as text; empty if it has none.
pub(crate) fn bound_port(socket: &Socket) -> String {
    socket
        .local_addr()
        .ok()
        .and_then(|a| a.as_socket())
        .map_or_else(String::new, |a| a.port().to_string())
}

/// The first address that `host:port` resolves to, of the version of IP that the stack asks for, if it does.
pub(crate) fn resolve(address: &str, stack: &Stack) -> Result<SockAddr> {
    let found = address.to_socket_addrs().map_err(|e| {
        Error::environment(format!("cannot resolve the address {address}: {e}")).hint(
            "give the address at which others reach the host: `host NAME at \"10.0.0.5\" via ...;`",
        )
    })?;
    let version = stack.word(IP_FAMILY.name);
    let mut fitting = found.filter(|found| match version {
        Some("ipv4") => found.is_ipv4(),
        Some("ipv6") => found.is_ipv6(),
        _ => true,
    });
    fitting.next().map(SockAddr::from).ok_or_else(|| {
        let of = version.map_or("", |version| match version {
            "ipv4" => " of IPv4",
            _ => " of IPv6",
        });
        Error::environment(format!("{address} resolves to no address{of}"))
            .hint("give the host such an address with `at`, or omit `family`")
    })
}

/// Binds a connection to IPv4 loopback, in a procedure without data, to a loopback address derived from the token. In such a procedure only
/// the first connection sends the token; by this source address the responder distinguishes later ones from those of other programs on
/// this machine. The port is chosen on connecting, as without binding.
pub(crate) fn bind_to_an_address_of_our_own(
    socket: &Socket,
    to: &SockAddr,
    token: &DatagramToken,
) -> Result<()> {
    if to.as_socket_ipv4().is_none_or(|to| !to.ip().is_loopback()) {
        return Ok(());
    }
    let own = Ipv4Addr::new(127, 128 | token[0], token[1], 1 + token[2] % 254);
    set_option(
        socket.as_fd(),
        libc::SOL_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1,
    )
    .map_err(|e| error::io_error("IP_BIND_ADDRESS_NO_PORT", &e))?;
    socket
        .bind(&SocketAddr::from((own, 0)).into())
        .map_err(|e| error::io_error("bind", &e))
}

/// The error, with a hint, when a socket cannot be opened.
pub(crate) fn socket_unavailable(stack: &str, error: &io::Error) -> Error {
    let failure = Error::environment(format!(
        "cannot open a socket for {stack} on this host: {error}"
    ));
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => {
            failure.hint("raise the open-file limit (ulimit -n), or use fewer replicas")
        }
        Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT) => {
            failure.hint("the kernel lacks the protocol, or the protocol is disabled (for mptcp: sysctl net.mptcp.enabled=1)")
        }
        _ => failure,
    }
}

/// The error, with a hint, when connecting failed.
pub(crate) fn unreachable(address: &str, error: &io::Error) -> Error {
    let failure = Error::environment(format!("cannot connect to {address}: {error}"));
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            failure.hint("nothing is listening there, a firewall blocks the port, or the address is wrong")
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => failure
            .hint("no answer: a firewall blocks the port (between agents, `over tcp(port = 5201)` names one that is open), or the address is wrong (`host NAME at \"...\"`)"),
        io::ErrorKind::AddrNotAvailable if address.starts_with('[') && !has_ipv6() => {
            failure.hint("IPv6 is disabled on this host; use an IPv4 address")
        }
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("closed connections have used up the local ports; use fewer connections per run, or wait a minute")
        }
        io::ErrorKind::NetworkUnreachable if address.starts_with("127.") => {
            failure.hint("the loopback interface is down: `ip link set lo up`")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => failure.hint("check the address and routes"),
        _ => failure,
    }
}

/// Whether this host has any IPv6 address, loopback's included.
fn has_ipv6() -> bool {
    std::fs::read_to_string("/proc/net/if_inet6").is_ok_and(|addresses| !addresses.is_empty())
}

/// What a listener knows of its connections.
#[derive(Default)]
pub(crate) struct Guests {
    /// The address of the peer that has shown the token.
    known: Option<IpAddr>,
    /// Connections that have not shown the token yet.
    newcomers: Newcomers,
}

/// Accepts the next connection of the peer; connections of others are closed. A connection has to show the token, except in procedures
/// without data, where after the first one it is enough that it comes from the same address.
pub(crate) fn accept(
    listener: &Socket,
    guests: &mut Guests,
    parameters: &LiveConnectParameters,
    buffers: &LiveThreadBuffers,
) -> Result<Socket> {
    while !parameters.carries_data && guests.known.is_some() {
        match guests
            .newcomers
            .next()
            .map_or_else(|| listener.accept(), Ok)
        {
            Ok((guest, from)) if from.as_socket().map(|a| a.ip()) == guests.known => {
                return Ok(guest);
            }
            Ok(_) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => wait_for_a_connection(None, buffers)?,
                io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                io::ErrorKind::ConnectionAborted => {}
                _ => return Err(error::io_error("accept", &error)),
            },
        }
    }
    let proven = accept_behind(listener, guests, parameters, 0, buffers)?;
    guests.known = proven.from.as_socket().map(|a| a.ip());
    Ok(proven.socket)
}

/// Accepts the next connection that shows the token after so many bytes of its protocol; connections of others are closed.
pub(crate) fn accept_behind(
    listener: &Socket,
    guests: &mut Guests,
    parameters: &LiveConnectParameters,
    before: usize,
    buffers: &LiveThreadBuffers,
) -> Result<ProvenConnection> {
    let newcomers = &mut guests.newcomers;
    let dialogue = || TokenBytes::behind(before);
    newcomers.accept(listener, &parameters.token, dialogue, buffers)
}
