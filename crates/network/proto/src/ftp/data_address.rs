//! Where the connection for a file goes, in commands and replies: six numbers of IPv4 (RFC 959, 4.1.2), or a family, an address and a port
//! between four equal characters (RFC 2428, 2 and 3). A port is never 0.

use alloc::format;
use alloc::string::{String, ToString};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// The families of RFC 2428, 2: those of IANA.
const FAMILIES: (&str, &str) = ("1", "2");

/// The command `EPRT |1|132.235.1.2|6275|`.
#[must_use]
pub fn extended_port_command(address: SocketAddr) -> String {
    let (family, host) = match address.ip() {
        IpAddr::V4(host) => (FAMILIES.0, host.to_string()),
        IpAddr::V6(host) => (FAMILIES.1, host.to_string()),
    };
    format!("EPRT |{family}|{host}|{}|", address.port())
}

/// The command `PORT 132,235,1,2,24,131`.
#[must_use]
pub fn port_command(address: SocketAddrV4) -> String {
    format!("PORT {}", numbers(address))
}

/// The reply `227 Entering Passive Mode (132,235,1,2,24,131)`.
#[must_use]
pub fn passive_reply(address: SocketAddrV4) -> String {
    format!("227 Entering Passive Mode ({})", numbers(address))
}

/// The reply `229 Entering Extended Passive Mode (|||6446|)`.
#[must_use]
pub fn extended_passive_reply(port: u16) -> String {
    format!("229 Entering Extended Passive Mode (|||{port}|)")
}

fn numbers(address: SocketAddrV4) -> String {
    let ([a, b, c, d], [high, low]) = (address.ip().octets(), address.port().to_be_bytes());
    format!("{a},{b},{c},{d},{high},{low}")
}

/// The port of a reply as [`extended_passive_reply`] makes it; any character may stand for the `|`.
#[must_use]
pub fn read_extended_passive(text: &str) -> Option<u16> {
    let (_, inner) = text.split_once('(')?;
    let mark = inner.chars().next()?;
    let rest = inner
        .strip_prefix(mark)?
        .strip_prefix(mark)?
        .strip_prefix(mark)?;
    let (port, _) = rest.split_once(mark)?;
    read_number(port)
}

/// Host and port of a reply as [`passive_reply`] makes it; the parentheses may be absent (RFC 1123, 4.1.2.6).
#[must_use]
pub fn read_passive(text: &str) -> Option<SocketAddrV4> {
    let text = text.get(4..)?;
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let numbers = &text[from..];
    let end = numbers
        .find(|c: char| !c.is_ascii_digit() && c != ',')
        .unwrap_or(numbers.len());
    read_six(&numbers[..end])
}

/// The argument of `PORT`.
#[must_use]
pub fn read_port(argument: &[u8]) -> Option<SocketAddrV4> {
    read_six(core::str::from_utf8(argument).ok()?)
}

/// The argument of `EPRT`; any printable character may stand for the `|`.
#[must_use]
pub fn read_extended_port(argument: &[u8]) -> Option<SocketAddr> {
    let text = core::str::from_utf8(argument).ok()?;
    let mark = text.chars().next().filter(char::is_ascii_graphic)?;
    let mut parts = text.split(mark);
    let [
        Some(""),
        Some(family),
        Some(host),
        Some(port),
        Some(""),
        None,
    ] = core::array::from_fn(|_| parts.next())
    else {
        return None;
    };
    let host = match family {
        _ if family == FAMILIES.0 => IpAddr::V4(host.parse::<Ipv4Addr>().ok()?),
        _ if family == FAMILIES.1 => IpAddr::V6(host.parse::<Ipv6Addr>().ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(host, read_number(port)?))
}

/// Six numbers of a byte each between commas.
fn read_six(text: &str) -> Option<SocketAddrV4> {
    let mut parts = text.split(',').map(read_byte);
    let [
        Some(a),
        Some(b),
        Some(c),
        Some(d),
        Some(high),
        Some(low),
        None,
    ] = core::array::from_fn(|_| parts.next())
    else {
        return None;
    };
    let port = u16::from_be_bytes([high?, low?]);
    let host = Ipv4Addr::new(a?, b?, c?, d?);
    (port > 0).then_some(SocketAddrV4::new(host, port))
}

fn read_byte(digits: &str) -> Option<u8> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

fn read_number(digits: &str) -> Option<u16> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port > 0)
}
