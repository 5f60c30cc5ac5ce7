//! Finds the innermost IP packet in a link-layer frame: behind link headers, VLAN tags, MPLS labels and tunnels. The innermost packet is
//! what programs sent, so it is the one that counts; if the inside of a tunnel cannot be read, the packet that carries it counts.
//!
//! Link types are numbered as in <https://www.tcpdump.org/linktypes.html>. Tunnels: RFC 2003 (IP in IP), 2784 and 2637 (GRE), 7348
//! (VXLAN), 8926 (GENEVE), 3032 (MPLS), 2516 (PPPoE).

use super::segment::PacketReadError;
use pcap_parser::Linktype;

/// The most headers that are looked through; deeper nesting ends the search.
const DEEPEST: usize = 8;

const LINUX_SLL2: i32 = 276;
const IEEE_802_11: i32 = 105;
const RADIOTAP: i32 = 127;
const PPP: i32 = 9;
const PPP_WITH_DIRECTION: i32 = 204;
const PPP_HDLC: i32 = 50;
/// Link types of raw IP that some systems use instead of 101.
const RAW: [i32; 2] = [12, 14];

/// UDP ports of VXLAN: the one of IANA, and the one Linux uses by default.
const VXLAN: [u16; 2] = [4789, 8472];
/// The UDP port of GENEVE.
const GENEVE: u16 = 6081;

/// The kind of header that comes next in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextHeader {
    /// The header that an EtherType names.
    Ether(u16),
    /// The header that a PPP protocol number names.
    Ppp(u16),
    /// An IPv4 or IPv6 header; its version field says which.
    Ip,
    /// An Ethernet header.
    Ethernet,
}

/// The offset of the innermost IP packet in a frame, in bytes.
///
/// # Errors
/// The reason why no IP packet was found.
pub(crate) fn find_ip(link: Linktype, data: &[u8]) -> Result<usize, PacketReadError> {
    let (mut at, mut next) = behind_link(link, data)?;
    // The offset of the innermost IP packet found so far.
    let mut found = None;
    for _ in 0..DEEPEST {
        let step = match next {
            NextHeader::Ethernet => ethernet(data, at),
            NextHeader::Ether(kind) => ether(data, at, kind),
            NextHeader::Ppp(kind) => ppp(at, kind),
            NextHeader::Ip => {
                if !is_ip(data, at) {
                    return found.ok_or(if data.len() > at {
                        PacketReadError::NotIp
                    } else {
                        PacketReadError::CutOff
                    });
                }
                found = Some(at);
                match tunnel(data, at) {
                    Some(inside) => Ok(inside),
                    None => return Ok(at),
                }
            }
        };
        (at, next) = match (step, found) {
            (Ok(step), _) => step,
            (Err(_), Some(outer)) => return Ok(outer),
            (Err(why), None) => return Err(why),
        };
    }
    found.ok_or(PacketReadError::CutOff)
}

/// The length of the link's own header in bytes, and the kind of header that follows it.
fn behind_link(link: Linktype, data: &[u8]) -> Result<(usize, NextHeader), PacketReadError> {
    let cut = PacketReadError::CutOff;
    let kind = |at| number(data, at).ok_or(cut);
    match link.0 {
        1 => Ok((0, NextHeader::Ethernet)),
        // A Linux cooked capture has the EtherType last, its second version first.
        113 => Ok((16, NextHeader::Ether(kind(14)?))),
        LINUX_SLL2 => Ok((20, NextHeader::Ether(kind(0)?))),
        // A four-byte address family, whose numbers differ between systems: the IP version tells the family instead.
        0 | 108 => Ok((4, NextHeader::Ip)),
        101 | 228 | 229 => Ok((0, NextHeader::Ip)),
        raw if RAW.contains(&raw) => Ok((0, NextHeader::Ip)),
        PPP | PPP_HDLC => {
            // With or without the address and control of HDLC (RFC 1662).
            let framed = data.starts_with(&[0xff, 0x03]);
            behind_ppp(data, if framed { 2 } else { 0 })
        }
        PPP_WITH_DIRECTION => behind_ppp(data, 1),
        RADIOTAP => {
            let length = data.get(2..4).ok_or(cut)?;
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            wireless(data, length)
        }
        IEEE_802_11 => wireless(data, 0),
        _ => Err(PacketReadError::Link),
    }
}

/// Reads the PPP protocol number at `at`: the offset behind it, and the kind of header that follows.
fn behind_ppp(data: &[u8], at: usize) -> Result<(usize, NextHeader), PacketReadError> {
    let first = *data.get(at).ok_or(PacketReadError::CutOff)?;
    // The number may be compressed to one byte, which is odd (RFC 1661, 6.5).
    if first & 1 == 1 {
        return Ok((at + 1, NextHeader::Ppp(first.into())));
    }
    let kind = number(data, at).ok_or(PacketReadError::CutOff)?;
    Ok((at + 2, NextHeader::Ppp(kind)))
}

/// Reads the header of an IEEE 802.11 data frame and the LLC/SNAP header behind it.
fn wireless(data: &[u8], at: usize) -> Result<(usize, NextHeader), PacketReadError> {
    let cut = PacketReadError::CutOff;
    let control = data.get(at..at + 2).ok_or(cut)?;
    let (kind, subtype) = (control[0] >> 2 & 3, control[0] >> 4);
    let (to_ds, from_ds, is_protected) = (
        control[1] & 1 != 0,
        control[1] & 2 != 0,
        control[1] & 0x40 != 0,
    );
    // Management and control frames, data frames without data, and encrypted frames.
    if kind != 2 || subtype & 4 != 0 || is_protected {
        return Err(PacketReadError::NotIp);
    }
    let mut head = 24;
    if to_ds && from_ds {
        // The fourth address of a frame between two access points.
        head += 6;
    }
    if subtype & 8 != 0 {
        // QoS control.
        head += 2;
        // With the order bit set there is an HT control field of 4 bytes.
        head += if control[1] & 0x80 != 0 { 4 } else { 0 };
    }
    let snap = data.get(at + head..at + head + 8).ok_or(cut)?;
    if snap[..3] != [0xaa, 0xaa, 3] {
        return Err(PacketReadError::NotIp);
    }
    let kind = u16::from_be_bytes([snap[6], snap[7]]);
    Ok((at + head + 8, NextHeader::Ether(kind)))
}

/// Reads an Ethernet header: the offset behind it, and the kind of header that follows.
fn ethernet(data: &[u8], at: usize) -> Result<(usize, NextHeader), PacketReadError> {
    let kind = number(data, at + 12).ok_or(PacketReadError::CutOff)?;
    // Below 1536 the field is a length and not a type: IEEE 802.3 with LLC and SNAP.
    if kind < 1536 {
        let snap = data.get(at + 14..at + 22).ok_or(PacketReadError::CutOff)?;
        if snap[..3] != [0xaa, 0xaa, 3] {
            return Err(PacketReadError::NotIp);
        }
        let kind = u16::from_be_bytes([snap[6], snap[7]]);
        return Ok((at + 22, NextHeader::Ether(kind)));
    }
    Ok((at + 14, NextHeader::Ether(kind)))
}

/// Reads what an EtherType names: the offset behind it, and the kind of header that follows.
fn ether(data: &[u8], at: usize, kind: u16) -> Result<(usize, NextHeader), PacketReadError> {
    let cut = PacketReadError::CutOff;
    match kind {
        0x0800 | 0x86dd => Ok((at, NextHeader::Ip)),
        // VLAN tags (IEEE 802.1Q, 802.1ad, and older numbers).
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            let kind = number(data, at + 2).ok_or(cut)?;
            Ok((at + 4, NextHeader::Ether(kind)))
        }
        // A PPPoE session header of 6 bytes: version, code 0, session, length.
        0x8864 => behind_ppp(data, at + 6),
        0x8847 | 0x8848 => {
            let mut at = at;
            loop {
                let label = data.get(at..at + 4).ok_or(cut)?;
                at += 4;
                // The bottom of the stack (RFC 3032, section 2.1).
                if label[2] & 1 != 0 {
                    break;
                }
            }
            // Nothing names the content below the last MPLS label: IP shows its version, anything else is an Ethernet pseudowire (RFC
            // 4448).
            match data.get(at).ok_or(cut)? >> 4 {
                4 | 6 => Ok((at, NextHeader::Ip)),
                0 => Ok((at + 4, NextHeader::Ethernet)),
                _ => Ok((at, NextHeader::Ethernet)),
            }
        }
        // Transparent Ethernet bridging, as in GRE and GENEVE.
        0x6558 => Ok((at, NextHeader::Ethernet)),
        _ => Err(PacketReadError::NotIp),
    }
}

/// Maps a PPP protocol number to the kind of header that follows.
const fn ppp(at: usize, kind: u16) -> Result<(usize, NextHeader), PacketReadError> {
    match kind {
        0x21 | 0x57 => Ok((at, NextHeader::Ip)),
        _ => Err(PacketReadError::NotIp),
    }
}

fn is_ip(data: &[u8], at: usize) -> bool {
    data.get(at)
        .is_some_and(|first| matches!(first >> 4, 4 | 6))
}

/// Where the content of a tunnel begins, and with which kind of header, if the IP packet at `at` carries one.
fn tunnel(data: &[u8], at: usize) -> Option<(usize, NextHeader)> {
    let (protocol, at) = behind_ip(data, at)?;
    match protocol {
        // 4 is IPv4 in IP, 41 IPv6 in IP, 47 GRE, 17 UDP.
        4 | 41 => is_ip(data, at).then_some((at, NextHeader::Ip)),
        47 => gre(data, at),
        17 => {
            let (from, to) = (number(data, at)?, number(data, at + 2)?);
            let head = data.get(at + 8..at + 16)?;
            // The flags say that there is a VXLAN network identifier; reserved bytes are 0.
            let is_vxlan = head[0] == 8 && head[1..4] == [0; 3] && head[7] == 0;
            if (VXLAN.contains(&to) || VXLAN.contains(&from)) && is_vxlan {
                return Some((at + 16, NextHeader::Ethernet));
            }
            // Version 0. The length of the options counts words of 4 bytes.
            let is_geneve = to == GENEVE && head[0] >> 6 == 0;
            let options = usize::from(head[0] & 0x3f) * 4;
            is_geneve.then(|| {
                let kind = u16::from_be_bytes([head[2], head[3]]);
                (at + 16 + options, NextHeader::Ether(kind))
            })
        }
        _ => None,
    }
}

/// The protocol number that an unfragmented IP packet carries, and the offset of its content.
fn behind_ip(data: &[u8], at: usize) -> Option<(u8, usize)> {
    if data.get(at)? >> 4 == 4 {
        let header = data.get(at..at + 20)?;
        // The offset and the flag that more follow: both are 0 in a whole packet.
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let length = usize::from(header[0] & 15) * 4;
        return (fragment == 0 && length >= 20).then_some((header[9], at + length));
    }
    let mut protocol = *data.get(at + 6)?;
    let mut at = at + 40;
    // Hop-by-hop options, routing headers and destination options (RFC 8200).
    for _ in 0..DEEPEST {
        if !matches!(protocol, 0 | 43 | 60) {
            break;
        }
        let head = data.get(at..at + 2)?;
        protocol = head[0];
        // The length counts words of 8 bytes and leaves out the first (RFC 8200).
        at += 8 + usize::from(head[1]) * 8;
    }
    Some((protocol, at))
}

/// Where the content of a GRE packet begins, and with which kind of header.
fn gre(data: &[u8], at: usize) -> Option<(usize, NextHeader)> {
    let (flags, kind) = (number(data, at)?, number(data, at + 2)?);
    let has = |bit: u16| flags & bit != 0;
    let words = |bits: &[u16]| bits.iter().filter(|bit| has(**bit)).count() * 4;
    match flags & 7 {
        // Checksum, key and sequence number have 4 bytes each, if present; source routes are obsolete.
        0 if !has(0x4000) => Some((at + 4 + words(&[0x8000, 0x2000, 0x1000]), ether_kind(kind)?)),
        // PPTP: payload length and call id, then optional sequence numbers, then PPP.
        1 if kind == 0x880b => {
            let at = at + 8 + words(&[0x1000, 0x0080]);
            let framed = data.get(at..)?.starts_with(&[0xff, 0x03]);
            behind_ppp(data, if framed { at + 2 } else { at }).ok()
        }
        _ => None,
    }
}

/// The EtherTypes that are accepted within GRE and GENEVE.
const fn ether_kind(kind: u16) -> Option<NextHeader> {
    match kind {
        0x0800 | 0x86dd | 0x6558 | 0x8847 | 0x8100 => Some(NextHeader::Ether(kind)),
        _ => None,
    }
}

/// Two bytes in network byte order at an offset.
fn number(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 of that protocol.
    fn ip(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol];
        packet.extend([0; 10]);
        packet.extend(behind);
        packet
    }

    fn frame(kind: u16, behind: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(kind.to_be_bytes());
        frame.extend(behind);
        frame
    }

    /// Bytes before the packet that programs sent.
    fn before(link: i32, packet: &[u8]) -> Result<usize, PacketReadError> {
        find_ip(Linktype(link), packet)
    }

    #[test]
    fn the_innermost_packet_is_found_behind_links_tags_and_tunnels() {
        let inner = ip(6, b"segment");
        let of = |head: &[u8]| [head, &inner].concat();
        let vxlan = [
            &[0_u8, 9, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0][..],
            &frame(0x0800, &inner),
        ]
        .concat();
        let geneve = [
            &[
                0_u8, 9, 0x17, 0xc1, 0, 0, 0, 0, 1, 0, 0x65, 0x58, 0, 0, 7, 0,
            ][..],
            &[0; 4],
            &frame(0x0800, &inner),
        ]
        .concat();
        let mut sll = vec![0; 14];
        sll.extend([0x81, 0, 0, 5, 8, 0]);
        let cases: [(i32, Vec<u8>); 15] = [
            (1, frame(0x0800, &inner)),
            (1, frame(0x88a8, &of(&[0, 5, 0x81, 0, 0, 6, 8, 0]))),
            (1, frame(0x8864, &of(&[0x11, 0, 0, 1, 0, 9, 0, 0x21]))),
            (1, frame(0x8847, &of(&[0, 1, 0, 64, 0, 1, 1, 64]))),
            (1, frame(0x0800, &ip(4, &inner))),
            (1, frame(0x0800, &ip(47, &of(&[0x20, 0, 8, 0, 0, 0, 0, 9])))),
            (1, frame(0x0800, &ip(17, &vxlan))),
            (1, frame(0x0800, &ip(17, &geneve))),
            (113, of(&sll)),
            (276, of(&[&[0x81, 0][..], &[0; 18], &[0, 5, 8, 0]].concat())),
            (9, of(&[0xff, 3, 0, 0x21])),
            (9, of(&[0x21])),
            (12, inner.clone()),
            (
                127,
                of(&[
                    &[0, 0, 8, 0, 0, 0, 0, 0, 0x88, 1][..],
                    &[0; 24],
                    &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
                ]
                .concat()),
            ),
            (0, of(&[2, 0, 0, 0])),
        ];
        for (link, packet) in cases {
            assert_eq!(
                before(link, &packet),
                Ok(packet.len() - inner.len()),
                "link {link}: {packet:x?}"
            );
        }
    }

    #[test]
    fn what_is_not_readable_says_why_and_a_tunnel_counts_as_what_carries_it() {
        assert_eq!(before(147, &[0; 40]), Err(PacketReadError::Link));
        assert_eq!(
            before(1, &frame(0x0806, &[0; 28])),
            Err(PacketReadError::NotIp)
        );
        assert_eq!(before(1, &[2; 9]), Err(PacketReadError::CutOff));
        // Encrypted inside: the packet of the tunnel itself.
        let esp = ip(50, &[7; 40]);
        assert_eq!(before(1, &frame(0x0800, &esp)), Ok(14));
        let cut = ip(4, &[]);
        assert_eq!(before(1, &frame(0x0800, &cut)), Ok(14));
        // Tunnels in tunnels end.
        let mut nested = ip(6, b"segment");
        for _ in 0..40 {
            nested = ip(4, &nested);
        }
        assert!(before(101, &nested).is_ok_and(|at| at < nested.len()));
    }
}
