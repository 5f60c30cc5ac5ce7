//! What routers read of frames, and what they change: the time to live, addresses and ports. Checksums are updated by the
//! difference (RFC 1624), also those that offload has left open, which hold the sum of the pseudo-header.

use super::checksum::{fold, put};
use super::header::{NEEDS_CHECKSUM, NETWORK, read_u16};
use stackline_net::routed_packet::{FlowEnd, FlowKind, FlowSide, PacketFlow, RoutedHeader};

/// IP protocol number of ICMP.
pub(super) const ICMP: u8 = 1;
/// ICMP type of an echo request.
pub(super) const ECHO_REQUEST: u8 = 8;
/// ICMP type of an echo reply.
pub(super) const ECHO_REPLY: u8 = 0;
/// ICMP types of errors: unreachable, source quench, redirect, time exceeded, parameter problem.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// IP protocol numbers with ports in the first four bytes: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
/// IP protocol number of TCP.
const TCP: u8 = 6;
/// IP protocol number of UDP.
const UDP: u8 = 17;
/// Flag of the field of flags and offset: it may not be fragmented.
pub(super) const DONT_FRAGMENT: u16 = 0x4000;
/// Flag of the same field: more fragments follow.
pub(super) const MORE: u16 = 0x2000;
/// The offset in the same field, in units of 8 bytes.
pub(super) const OFFSET: u16 = 0x1fff;

/// Reads what routers look at.
pub(super) fn routed_header(frame: &[u8]) -> Option<RoutedHeader> {
    let packet = frame.get(NETWORK..)?;
    let source = address(packet, 12)?;
    let place = read_u16(packet, 6);
    let error = is_icmp_error(packet);
    let quoted = packet.get(header_length(packet) + 8..).filter(|_| error);
    Some(RoutedHeader {
        ttl: *packet.get(8)?,
        source,
        flow: flow(packet),
        quoted: quoted.and_then(flow),
        may_fragment: place & DONT_FRAGMENT == 0,
        may_report: place & OFFSET == 0 && !error,
    })
}

/// Whether a packet, from its IPv4 header on, is an ICMP error.
pub(super) fn is_icmp_error(packet: &[u8]) -> bool {
    let first = read_u16(packet, 6) & 0x1fff == 0;
    let kind = packet.get(header_length(packet));
    first && packet.get(9) == Some(&ICMP) && kind.is_some_and(|kind| ERRORS.contains(kind))
}

/// Bytes of the IPv4 header of a packet.
pub(super) fn header_length(packet: &[u8]) -> usize {
    packet
        .first()
        .map_or(0, |first| usize::from(first & 15) * 4)
}

fn address(packet: &[u8], at: usize) -> Option<[u8; 4]> {
    packet.get(at..at + 4)?.try_into().ok()
}

/// The flow of a packet, which may be cut off behind its ports; `None` for a fragment.
fn flow(packet: &[u8]) -> Option<PacketFlow> {
    let ip = header_length(packet);
    if ip < 20 || read_u16(packet, 6) & (MORE | OFFSET) != 0 {
        return None;
    }
    let protocol = *packet.get(9)?;
    let (mut from, mut to) = (0, 0);
    if WITH_PORTS.contains(&protocol) {
        packet.get(ip..ip + 4)?;
        (from, to) = (read_u16(packet, ip), read_u16(packet, ip + 2));
    } else if protocol == ICMP {
        match *packet.get(ip)? {
            ECHO_REQUEST => from = read_u16(packet, ip + 4),
            ECHO_REPLY => to = read_u16(packet, ip + 4),
            _ => {}
        }
    }
    Some(PacketFlow {
        kind: FlowKind::Protocol(protocol),
        source: FlowEnd {
            address: address(packet, 12)?,
            port: from,
        },
        destination: FlowEnd {
            address: address(packet, 16)?,
            port: to,
        },
    })
}

/// Counts the time to live down.
pub(super) fn count_down(frame: &mut [u8]) {
    let at = NETWORK + 8;
    let new = read_u16(frame, at).saturating_sub(0x0100);
    replace(frame, at, new, &[Checksum::Closed(NETWORK + 10)]);
}

/// A checksum field that covers a word.
#[derive(Clone, Copy)]
enum Checksum {
    /// At this offset, the complement of the sum.
    Closed(usize),
    /// At this offset; zero stands for no checksum.
    Optional(usize),
    /// At this offset, the sum itself: of the pseudo-header, to be completed by offload.
    Open(usize),
}

/// Writes a word, and updates the checksums that cover it (RFC 1624, equation 3). Outside the frame it does nothing.
fn replace(bytes: &mut [u8], at: usize, new: u16, checksums: &[Checksum]) {
    if at + 2 > bytes.len() {
        return;
    }
    let change = u32::from(!read_u16(bytes, at)) + u32::from(new);
    put(bytes, at, new);
    for checksum in checksums {
        let (Checksum::Closed(field) | Checksum::Optional(field) | Checksum::Open(field)) =
            *checksum;
        if field + 2 > bytes.len() {
            continue;
        }
        let old = read_u16(bytes, field);
        let sum = match checksum {
            Checksum::Open(_) => fold(u32::from(old) + change),
            Checksum::Optional(_) if old == 0 => continue,
            Checksum::Optional(_) => match !fold(u32::from(!old) + change) {
                // Zero would stand for no checksum (RFC 768).
                0 => 0xffff,
                sum => sum,
            },
            Checksum::Closed(_) => !fold(u32::from(!old) + change),
        };
        put(bytes, field, sum);
    }
}

/// Writes another address and port in place of one end.
pub(super) fn translate(frame: &mut [u8], side: FlowSide, new: FlowEnd) {
    let open = frame[0] & NEEDS_CHECKSUM != 0;
    let packet = &mut frame[NETWORK..];
    if !is_icmp_error(packet) {
        return translate_packet(packet, side, new, open);
    }
    let ip = header_length(packet);
    write_address(packet, side, new.address, &[Checksum::Closed(10)]);
    let end = usize::from(read_u16(packet, 2)).min(packet.len());
    let Some(message) = packet.get_mut(ip..end).filter(|message| message.len() > 8) else {
        return;
    };
    let other = match side {
        FlowSide::Source => FlowSide::Destination,
        FlowSide::Destination => FlowSide::Source,
    };
    translate_packet(&mut message[8..], other, new, false);
    put(message, 2, 0);
    let sum = !super::completion::sum(message);
    put(message, 2, sum);
}

/// Translates one end of a packet that begins with its IPv4 header. `open` says that offload is to complete the
/// checksum of the transport layer.
fn translate_packet(packet: &mut [u8], side: FlowSide, new: FlowEnd, open: bool) {
    let ip = header_length(packet);
    let Some(protocol) = packet.get(9).copied() else {
        return;
    };
    let transport = match (protocol, open) {
        (TCP, true) => Some(Checksum::Open(ip + 16)),
        (TCP, false) => Some(Checksum::Closed(ip + 16)),
        (UDP, true) => Some(Checksum::Open(ip + 6)),
        (UDP, false) => Some(Checksum::Optional(ip + 6)),
        _ => None,
    };
    let both = [
        Checksum::Closed(10),
        transport.unwrap_or(Checksum::Closed(10)),
    ];
    let covering = if transport.is_some() {
        &both[..]
    } else {
        &both[..1]
    };
    write_address(packet, side, new.address, covering);
    if read_u16(packet, 6) & OFFSET != 0 {
        return;
    }
    match (transport, protocol) {
        // Ports are not in the pseudo-header: offload sums them.
        (Some(Checksum::Open(_)), _) => replace(packet, port_at(ip, side), new.port, &[]),
        (Some(checksum), _) => replace(packet, port_at(ip, side), new.port, &[checksum]),
        (None, ICMP) if echoes(packet, ip, side) => {
            replace(packet, ip + 4, new.port, &[Checksum::Closed(ip + 2)]);
        }
        (None, protocol) if WITH_PORTS.contains(&protocol) => {
            replace(packet, port_at(ip, side), new.port, &[]);
        }
        _ => {}
    }
}

/// Where the port of a side stands.
const fn port_at(ip: usize, side: FlowSide) -> usize {
    match side {
        FlowSide::Source => ip,
        FlowSide::Destination => ip + 2,
    }
}

/// Whether an ICMP packet is an echo whose identifier belongs to that side.
fn echoes(packet: &[u8], ip: usize, side: FlowSide) -> bool {
    let asking = match side {
        FlowSide::Source => ECHO_REQUEST,
        FlowSide::Destination => ECHO_REPLY,
    };
    packet.get(ip) == Some(&asking)
}

fn write_address(packet: &mut [u8], side: FlowSide, address: [u8; 4], covering: &[Checksum]) {
    let at = match side {
        FlowSide::Source => 12,
        FlowSide::Destination => 16,
    };
    let [a, b, c, d] = address;
    replace(packet, at, u16::from_be_bytes([a, b]), covering);
    replace(packet, at + 2, u16::from_be_bytes([c, d]), covering);
}

#[cfg(test)]
mod tests;
