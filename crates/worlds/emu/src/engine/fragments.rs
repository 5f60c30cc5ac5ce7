//! Cuts frames into IPv4 fragments, as a router does where a link takes only smaller packets.

use super::checksum::{put, sum_ip};
use super::completion::complete_in_place;
use super::frame::VnetFrame;
use super::header::{NETWORK, VIRTIO, read_u16};
use super::routed_frame::{DONT_FRAGMENT, MORE, OFFSET, header_length};
use stackline_net::routed_packet::CutPacket;

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
mod tests;
