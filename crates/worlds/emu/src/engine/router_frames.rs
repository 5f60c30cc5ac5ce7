//! The packets that routers make: ICMP errors, echo replies, what a host without a listener answers, and fragments.

use super::buffer::PooledBuffer;
use super::checksum::{put, sum_ip};
use super::completion::{complete_in_place, sum};
use super::frame::VnetFrame;
use super::header::{NETWORK, VIRTIO, read_u16};
use super::routed_frame::{
    DONT_FRAGMENT, ECHO_REPLY, ECHO_REQUEST, ICMP, MORE, OFFSET, header_length, routed_header,
};
use stackline_net::routed_packet::{CutPacket, RouterIcmpError};

/// Time to live of what a router sends, Linux's default.
const TTL: u8 = 64;
/// Bytes of the IPv4 header and of the fixed part of an ICMP message that a router sends.
const BEFORE_QUOTE: usize = 28;
/// An ICMP error has at most so many bytes (RFC 1812, section 4.3.2.3).
const LONGEST_ERROR: usize = 576;

/// The error about a frame's packet that a router sends to its source.
pub(super) fn icmp_error(
    frame: &VnetFrame,
    error: RouterIcmpError,
    router: [u8; 4],
) -> Option<VnetFrame> {
    let (kind, code, mtu) = match error {
        RouterIcmpError::TimeExceeded => (11, 0, 0),
        RouterIcmpError::NetUnreachable => (3, 0, 0),
        RouterIcmpError::FragmentationNeeded { mtu } => (3, 4, mtu),
        RouterIcmpError::Prohibited => (3, 13, 0),
    };
    quoting(frame, [kind, code], mtu, router)
}

/// What a router answers to a packet for its own address; no program of it listens.
pub(super) fn router_answer(frame: &VnetFrame, router: [u8; 4]) -> Option<VnetFrame> {
    let packet = frame.bytes().get(NETWORK..)?;
    let header = routed_header(frame.bytes())?;
    // Fragments are not put together here.
    header.flow?;
    let ip = header_length(packet);
    match *packet.get(9)? {
        ICMP if packet.get(ip) == Some(&ECHO_REQUEST) => echo_reply(frame),
        6 => refused_connection(frame),
        // Port unreachable.
        17 if header.may_report => quoting(frame, [3, 3], 0, router),
        // Protocol unreachable.
        protocol if protocol != ICMP && header.may_report => quoting(frame, [3, 2], 0, router),
        _ => None,
    }
}

/// An ICMP error of that type and code that quotes the packet.
fn quoting(frame: &VnetFrame, kind: [u8; 2], mtu: u16, router: [u8; 4]) -> Option<VnetFrame> {
    let packet = frame.bytes().get(NETWORK..)?;
    let total = usize::from(read_u16(packet, 2)).min(packet.len());
    let quote = packet.get(..total.min(LONGEST_ERROR - BEFORE_QUOTE))?;
    let to = packet.get(12..16)?;
    let mut error = new_packet(frame, BEFORE_QUOTE + quote.len(), ICMP);
    let bytes = &mut error.bytes_mut()[NETWORK..];
    // Precedence "internetwork control", as RFC 1812, section 4.3.2.5, and Linux have it.
    bytes[1] = 0xc0;
    bytes[12..16].copy_from_slice(&router);
    bytes[16..20].copy_from_slice(to);
    bytes[20..22].copy_from_slice(&kind);
    put(bytes, 26, mtu);
    bytes[BEFORE_QUOTE..].copy_from_slice(quote);
    let checksum = !sum(&bytes[20..]);
    put(bytes, 22, checksum);
    sum_ip(error.bytes_mut(), 20);
    Some(error)
}

/// The reply to an echo request.
fn echo_reply(frame: &VnetFrame) -> Option<VnetFrame> {
    let packet = frame.bytes().get(NETWORK..)?;
    let (ip, total) = (header_length(packet), usize::from(read_u16(packet, 2)));
    let message = packet.get(ip..total)?;
    let mut reply = new_packet(frame, 20 + message.len(), ICMP);
    let bytes = &mut reply.bytes_mut()[NETWORK..];
    bytes[1] = packet[1];
    swap_addresses(packet, bytes);
    bytes[20..].copy_from_slice(message);
    bytes[20] = ECHO_REPLY;
    put(bytes, 22, 0);
    let checksum = !sum(&bytes[20..]);
    put(bytes, 22, checksum);
    sum_ip(reply.bytes_mut(), 20);
    Some(reply)
}

/// The reset by which a host without a listener refuses a connection (RFC 9293, section 3.5.2); nothing answers a reset.
fn refused_connection(frame: &VnetFrame) -> Option<VnetFrame> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RST: u8 = 4;
    const ACK: u8 = 16;
    let packet = frame.bytes().get(NETWORK..)?;
    let (ip, total) = (header_length(packet), usize::from(read_u16(packet, 2)));
    let segment = packet
        .get(ip..total)
        .filter(|segment| segment.len() >= 20)?;
    let flags = segment[13];
    if flags & RST != 0 {
        return None;
    }
    let mut reset = new_packet(frame, 40, 6);
    let bytes = &mut reset.bytes_mut()[NETWORK..];
    swap_addresses(packet, bytes);
    bytes[20..22].copy_from_slice(&segment[2..4]);
    bytes[22..24].copy_from_slice(&segment[..2]);
    if flags & ACK != 0 {
        bytes[24..28].copy_from_slice(&segment[8..12]);
        bytes[33] = RST;
    } else {
        let data = segment
            .len()
            .saturating_sub(usize::from(segment[12] >> 4) * 4) as u32;
        let counted = data + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let begin = u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]);
        bytes[28..32].copy_from_slice(&begin.wrapping_add(counted).to_be_bytes());
        bytes[33] = RST | ACK;
    }
    // A header of five words.
    bytes[32] = 0x50;
    let mut summed = [0; 32];
    summed[..8].copy_from_slice(&bytes[12..20]);
    summed[8..12].copy_from_slice(&[0, 6, 0, 20]);
    summed[12..].copy_from_slice(&bytes[20..40]);
    let checksum = !sum(&summed);
    put(bytes, 36, checksum);
    sum_ip(reset.bytes_mut(), 20);
    Some(reset)
}

/// Writes the addresses of a packet into its answer.
fn swap_addresses(packet: &[u8], answer: &mut [u8]) {
    answer[12..16].copy_from_slice(&packet[16..20]);
    answer[16..20].copy_from_slice(&packet[12..16]);
}

/// A packet of `total` bytes whose IPv4 header has neither addresses nor a checksum yet; the Ethernet header is the
/// other packet's.
fn new_packet(other: &VnetFrame, total: usize, protocol: u8) -> VnetFrame {
    let mut buffer = PooledBuffer::holding(NETWORK + total);
    buffer[..NETWORK + total].fill(0);
    buffer[VIRTIO..NETWORK].copy_from_slice(&other.bytes()[VIRTIO..NETWORK]);
    let bytes = &mut buffer[NETWORK..];
    bytes[0] = 0x45;
    put(bytes, 2, total as u16);
    bytes[8] = TTL;
    bytes[9] = protocol;
    VnetFrame::without_transport(buffer, NETWORK + total)
}

/// Cuts a frame of one segment in two fragments, the first of at most `mtu` bytes (RFC 791, section 3.2).
pub(super) fn fragment(frame: &mut VnetFrame, mtu: u64) -> Option<CutPacket<VnetFrame>> {
    let packet = frame.bytes().get(NETWORK..)?;
    let (ip, total) = (header_length(packet), usize::from(read_u16(packet, 2)));
    let place = read_u16(packet, 6);
    if total as u64 <= mtu {
        return None;
    }
    // A whole number of units of 8 bytes.
    let first = usize::try_from(mtu).unwrap_or(total).checked_sub(ip)? & !7;
    if place & DONT_FRAGMENT != 0 || first == 0 || total <= ip + first || total > packet.len() {
        return None;
    }
    complete_in_place(frame.bytes_mut());
    let headers = NETWORK + ip;
    let mut rest = frame.headers_and(headers, headers + first, NETWORK + total);
    frame.keep(headers + first);
    let offset = place & OFFSET;
    let behind = offset + (first / 8) as u16;
    finish_fragment(frame.bytes_mut(), ip, offset | MORE);
    forget_options(&mut rest.bytes_mut()[NETWORK + 20..headers]);
    finish_fragment(rest.bytes_mut(), ip, behind | place & MORE);
    Some(CutPacket {
        first_bytes: (ip + first) as u32,
        rest_bytes: (total - first) as u32,
        rest,
    })
}

/// Writes length, place and checksum of a fragment, for which nothing is left to offload.
fn finish_fragment(frame: &mut [u8], ip: usize, place: u16) {
    frame[..VIRTIO].fill(0);
    let total = (frame.len() - NETWORK) as u16;
    put(frame, NETWORK + 2, total);
    put(frame, NETWORK + 6, place);
    sum_ip(frame, ip);
}

/// Replaces the options that only the first fragment has by the one that does nothing (RFC 791, section 3.1).
fn forget_options(options: &mut [u8]) {
    /// Flag of an option's type: it is copied into all fragments.
    const COPIED: u8 = 0x80;
    let mut at = 0;
    while at < options.len() {
        let length = match options[at] {
            0 => return,
            1 => 1,
            _ => usize::from(options.get(at + 1).copied().unwrap_or(0)).max(2),
        };
        let end = (at + length).min(options.len());
        if options[at] & COPIED == 0 {
            options[at..end].fill(1);
        }
        at = end;
    }
}

#[cfg(test)]
mod fragment_tests;
#[cfg(test)]
mod tests;
