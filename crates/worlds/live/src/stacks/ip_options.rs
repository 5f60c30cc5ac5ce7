//! Options of every stack over IP: from where an initiator connects, and how both ends mark their packets.

use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::ip;
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_os::socket_option::set_option;
use stackline_transfer::udp::UdpCarrierOptions;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

/// Options of stacks whose library marks its packets itself.
pub(crate) const UNMARKED_OPTIONS: [OptionTable; 4] = [
    OptionTable::new(
        "source",
        OptionKind::Name,
        "the kernel chooses by the route",
        "local address of the initiators, as in \"10.0.0.2\"",
    ),
    OptionTable::new(
        "source_port",
        OptionKind::PORT,
        "any free port",
        "first local port of the initiators; replicas use consecutive ports",
    ),
    OptionTable::new(
        "interface",
        OptionKind::Name,
        "the kernel chooses by the route",
        "SO_BINDTODEVICE: the initiators send and receive through this interface alone",
    ),
    OptionTable::new(
        "ttl",
        OptionKind::Number(1, 255),
        "the host's default, usually 64",
        "IP_TTL, IPV6_UNICAST_HOPS: after so many routers a packet is dropped",
    ),
];

/// Options of all others.
pub(crate) const IP_OPTIONS: [OptionTable; 5] = StackTable::joined(
    &[OptionTable::new(
        "dscp",
        OptionKind::Number(0, 63),
        "0, best effort",
        "the packets' code point (RFC 2474) from both ends: 46 is EF, 8 is CS1",
    )],
    &UNMARKED_OPTIONS,
);

/// What to do about a source port that cannot be used.
const PORT_RESTS: &str = "another socket has this port, or an earlier connection from it rests in TIME-WAIT for up to a minute: use one run, \
or omit `source_port`";
/// The offset of the code point in the byte that also has ECN's bits.
const DSCP_SHIFT: u32 = 2;
/// The TTL that hosts have unless they are set up otherwise.
const USUAL_TTL: u32 = 64;

/// Marks what a socket will send, before it connects or listens: accepted sockets inherit it.
///
/// # Errors
/// An [`Error`] when the kernel refuses.
pub(crate) fn mark(socket: &Socket, stack: &Stack) -> Result<()> {
    let is_ipv6 = matches!(socket.domain(), Ok(Domain::IPV6));
    let refused = |option: &str, error: io::Error| {
        let name = &stack.name;
        Error::environment(format!(
            "the option {option} of {name} was refused: {error}"
        ))
    };
    // A socket of IPv6 also has the marks of IPv4, for peers at mapped addresses.
    if let Some(dscp) = stack.number("dscp") {
        let tos = (dscp as u32) << DSCP_SHIFT;
        let set = socket.set_tos_v4(tos);
        let set = if is_ipv6 {
            socket.set_tclass_v6(tos)
        } else {
            set
        };
        set.map_err(|e| refused("dscp", e))?;
    }
    if let Some(ttl) = stack.number("ttl") {
        let set = socket.set_ttl_v4(ttl as u32);
        let set = if is_ipv6 {
            socket.set_unicast_hops_v6(ttl as u32)
        } else {
            set
        };
        set.map_err(|e| refused("ttl", e))?;
    }
    Ok(())
}

/// Gives an initiator's socket the local address that is asked for, before it connects. Returns whether it has one now.
///
/// # Errors
/// An [`Error`] when the options do not fit this host or the peer.
pub(crate) fn bind_initiator(
    socket: &Socket,
    parameters: &LiveConnectParameters,
    to: IpAddr,
) -> Result<bool> {
    let stack = &parameters.stack;
    if let Some(name) = stack.word("interface") {
        let bound = socket.bind_device(Some(name.as_bytes()));
        bound.map_err(|e| interface_refused(name, &e))?;
    }
    let port = source_port(parameters)?;
    let source = stack.word("source").map(|text| source_address(text, to));
    let address = match (source.transpose()?, port) {
        (None, 0) => return Ok(false),
        (Some(source), port) => SocketAddr::new(source, port),
        (None, port) if to.is_ipv4() => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        (None, port) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
    };
    if port == 0 {
        // The port is chosen on connecting, where only the pair of addresses has to be free.
        let _ = set_option(
            socket.as_fd(),
            libc::SOL_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            1,
        );
    } else {
        // Ports of connections that were closed a moment ago may be used again.
        let _ = socket.set_reuse_address(true);
    }
    let bound = socket.bind(&address.into());
    bound.map_err(|e| source_refused(address, &e))?;
    Ok(true)
}

/// A socket of datagrams of an initiator, connected to its peer from where the options say. Its carrier marks it, as [`carried_marks`] has
/// it.
///
/// # Errors
/// An [`Error`] when the options do not fit this host or the peer, or there is no way to it.
pub(crate) fn connected_datagrams(
    parameters: &LiveConnectParameters,
    peer: SocketAddr,
) -> Result<Socket> {
    let stack = &parameters.stack;
    let domain = Domain::for_address(peer);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
        .map_err(|e| ip::socket_unavailable(&stack.name, &e))?;
    bind_initiator(&socket, parameters, peer.ip())?;
    socket
        .connect(&peer.into())
        .map_err(|e| unreachable(stack, &peer.to_string(), &e))?;
    Ok(socket)
}

/// How a carrier of datagrams marks its packets.
pub(crate) fn carried_marks(stack: &Stack, options: UdpCarrierOptions) -> UdpCarrierOptions {
    let mark = |name: &str| stack.number(name).and_then(|mark| u8::try_from(mark).ok());
    UdpCarrierOptions {
        traffic_class: mark("dscp").unwrap_or(0) << DSCP_SHIFT,
        hops: mark("ttl").unwrap_or(0),
        ..options
    }
}

/// The option `source_port` plus the replica's index; 0 without it.
fn source_port(parameters: &LiveConnectParameters) -> Result<u16> {
    let Some(first) = parameters.stack.number("source_port") else {
        return Ok(0);
    };
    u16::try_from(first + parameters.port_offset()).map_err(|_| {
        Error::input("the source ports of all replicas must be below 65536")
            .hint("the replicas use consecutive ports, beginning with `source_port`")
    })
}

fn source_address(text: &str, to: IpAddr) -> Result<IpAddr> {
    let source: IpAddr = text.parse().map_err(|_| {
        Error::input(format!("`source` takes an IP address, not `{text}`"))
            .hint("for an interface by its name: the option `interface`")
    })?;
    if source.is_ipv4() == to.is_ipv4() {
        return Ok(source);
    }
    let family = |address: IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let message = format!(
        "the source {source} is an address of {}, the peer {to} one of {}",
        family(source),
        family(to)
    );
    Err(Error::input(message).hint("give both addresses of one family"))
}

fn interface_refused(name: &str, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENODEV) => {
            Error::environment(format!("this host has no interface named `{name}`"))
                .hint("`ip link` lists the interfaces of this host")
        }
        _ => Error::environment(format!("the interface `{name}` was refused: {error}")),
    }
}

/// The error, with a hint, when connecting failed.
pub(crate) fn unreachable(stack: &Stack, address: &str, error: &io::Error) -> Error {
    let failure = ip::unreachable(address, error);
    let has_own_port = stack.number("source_port").is_some();
    match error.kind() {
        io::ErrorKind::AddrNotAvailable if has_own_port => failure.hint(PORT_RESTS),
        _ => failure,
    }
}

fn source_refused(address: SocketAddr, error: &io::Error) -> Error {
    let failure = Error::environment(format!("cannot connect from {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("`source` has to be an address of this host; `ip address` lists them")
        }
        io::ErrorKind::AddrInUse => failure.hint(PORT_RESTS),
        io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 need privileges"),
        _ => failure,
    }
}

/// How a socket marks its packets, where that is not the usual: by option name.
pub(crate) fn marks(socket: &Socket) -> BTreeMap<String, String> {
    let is_ipv6 = matches!(socket.domain(), Ok(Domain::IPV6));
    let (tos, ttl) = if is_ipv6 {
        (socket.tclass_v6(), socket.unicast_hops_v6())
    } else {
        (socket.tos_v4(), socket.ttl_v4())
    };
    let dscp = tos.map_or(0, |tos| tos >> DSCP_SHIFT);
    let ttl = ttl.unwrap_or(USUAL_TTL);
    [("dscp", dscp, 0), ("ttl", ttl, USUAL_TTL)]
        .into_iter()
        .filter(|(_, value, usual)| value != usual)
        .map(|(name, value, _)| (name.to_string(), value.to_string()))
        .collect()
}
