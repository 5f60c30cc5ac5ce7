//! Frames for tests, and a simple segmentation of trains (GSO packets) by the kernel's rules, to compare the emulator's cuts with.

use super::header::{GSO_ECN, GSO_TCP, GSO_TCP6, GSO_UDP, NETWORK, VIRTIO, read_u16};

fn train(
    protocol: u8,
    kind: u8,
    full: u16,
    transport: &[u8],
    checksum: u16,
    data: usize,
) -> Vec<u8> {
    let mut frame = vec![1, kind];
    let headers = 14 + 20 + transport.len() as u16;
    for value in [headers, full, 34, checksum] {
        frame.extend(value.to_ne_bytes());
    }
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let total = (20 + transport.len() + data) as u16;
    frame.extend([0x45, 0x02]);
    frame.extend(total.to_be_bytes());
    frame.extend([
        0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0, 10, 71, 0, 1, 10, 71, 0, 2,
    ]);
    let sum = checksum_of(&frame[NETWORK..NETWORK + 20]);
    frame[NETWORK + 10..NETWORK + 12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(transport);
    frame.extend((0..data).map(|i| (i * 7 + i / 256) as u8));
    let pseudo = !checksum_of(&pseudo_header(&frame[NETWORK..]));
    let at = NETWORK + 20 + usize::from(checksum);
    frame[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
    frame
}

/// A train with timestamps in its header, CWR on its first and PSH, FIN on its last segment.
pub(crate) fn tcp_train(full: u16, data: usize) -> Vec<u8> {
    let mut header = vec![
        0x13, 0x89, 0x1f, 0x90, 0xff, 0xff, 0xf0, 0, 1, 2, 3, 4, 0x80, 0x99, 1, 0, 0, 0, 0, 0,
    ];
    header.extend([1, 1, 8, 10, 9, 9, 9, 9, 8, 8, 8, 8]);
    train(6, GSO_TCP | GSO_ECN, full, &header, 16, data)
}

/// A train of datagrams.
pub(crate) fn udp_train(full: u16, data: usize) -> Vec<u8> {
    let length = (8 + data) as u16;
    let mut header = vec![0x13, 0x89, 0x1f, 0x90];
    header.extend(length.to_be_bytes());
    header.extend([0, 0]);
    train(17, GSO_UDP, full, &header, 6, data)
}

/// The same train over IPv6, from host 0 to host 1, with a flow label.
pub(crate) fn over_ipv6(frame: &[u8]) -> Vec<u8> {
    let mut six = frame[..NETWORK].to_vec();
    let own = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
    for at in [2, 6] {
        six[at..at + 2].copy_from_slice(&(own(at) + 20).to_ne_bytes());
    }
    if six[1] & !GSO_ECN == GSO_TCP {
        six[1] = GSO_TCP6 | six[1] & GSO_ECN;
    }
    six[NETWORK - 2..NETWORK].copy_from_slice(&[0x86, 0xdd]);
    let class = frame[NETWORK + 1];
    six.extend([0x60 | class >> 4, class << 4 | 0x0a, 0xbc, 0xde]);
    six.extend((read_u16(frame, NETWORK + 2) - 20).to_be_bytes());
    six.extend([frame[NETWORK + 9], 64]);
    for host in [1, 2] {
        six.extend(std::net::Ipv6Addr::new(0xfd71, 0, 0, 0, 0, 0, 0, host).octets());
    }
    six.extend(&frame[NETWORK + 20..]);
    let pseudo = !checksum_of(&pseudo_header(&six[NETWORK..]));
    let at = NETWORK + 40 + usize::from(own(8));
    six[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
    six
}

/// Bytes of the IP header of a packet without options.
fn ip_length(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 6 { 40 } else { 20 }
}

fn checksum_of(bytes: &[u8]) -> u16 {
    let mut sum: u64 = bytes
        .chunks(2)
        .map(|c| u64::from(c[0]) << 8 | c.get(1).map_or(0, |b| u64::from(*b)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn pseudo_header(packet: &[u8]) -> Vec<u8> {
    let (addresses, protocol, length) = match ip_length(packet) {
        40 => (8..40, packet[6], read_u16(packet, 4)),
        _ => (12..20, packet[9], read_u16(packet, 2) - 20),
    };
    let mut bytes = packet[addresses].to_vec();
    bytes.extend([0, protocol]);
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The packet as it is on the wire: checksum computed where it was left open, without virtio-net and Ethernet header.
pub(crate) fn finish(frame: &[u8]) -> Vec<u8> {
    let mut packet = frame[NETWORK..].to_vec();
    if ip_length(&packet) == 20 {
        assert_eq!(checksum_of(&packet[..20]), 0, "sum of the IPv4 header");
    }
    if frame[0] & 1 != 0 {
        let own = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
        let start = own(6) + VIRTIO - NETWORK;
        let sum = checksum_of(&packet[start..]);
        packet[start + own(8)..start + own(8) + 2].copy_from_slice(&sum.to_be_bytes());
        let mut all = pseudo_header(&packet);
        all.extend(&packet[start..]);
        assert_eq!(checksum_of(&all), 0, "sum of the whole segment");
    }
    packet
}

/// Every segment of a train as it is on the wire.
pub(crate) fn segment(frame: &[u8]) -> Vec<Vec<u8>> {
    let ip = ip_length(&frame[NETWORK..]);
    let tcp = frame[NETWORK + if ip == 40 { 6 } else { 9 }] == 6;
    let headers = NETWORK + ip + if tcp { 32 } else { 8 };
    let full = usize::from(u16::from_ne_bytes([frame[4], frame[5]]));
    let data = &frame[headers..];
    if frame[1] == 0 || data.len() <= full {
        return vec![finish(frame)];
    }
    let pieces: Vec<&[u8]> = data.chunks(full).collect();
    let one = |(index, piece): (usize, &&[u8])| {
        let mut packet = frame[NETWORK..headers].to_vec();
        packet.extend(*piece);
        let total = packet.len() as u16;
        if ip == 40 {
            packet[4..6].copy_from_slice(&(total - 40).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            let identification = read_u16(&packet, 4).wrapping_add(index as u16);
            packet[4..6].copy_from_slice(&identification.to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum_of(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let checksum = if tcp {
            let sequence = u32::from_be_bytes(packet[ip + 4..ip + 8].try_into().unwrap());
            packet[ip + 4..ip + 8]
                .copy_from_slice(&sequence.wrapping_add((index * full) as u32).to_be_bytes());
            packet[ip + 13] &= if index + 1 < pieces.len() {
                !0x09
            } else {
                0xff
            };
            packet[ip + 13] &= if index > 0 { !0x80 } else { 0xff };
            ip + 16
        } else {
            packet[ip + 4..ip + 6].copy_from_slice(&(total - ip as u16).to_be_bytes());
            ip + 6
        };
        packet[checksum..checksum + 2].fill(0);
        let mut all = pseudo_header(&packet);
        all.extend(&packet[ip..]);
        let sum = checksum_of(&all);
        packet[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
        packet
    };
    pieces.iter().enumerate().map(one).collect()
}
