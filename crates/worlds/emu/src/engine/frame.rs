//! A frame in the network, which can be cut at a segment boundary, ECN-marked and duplicated. A train is a frame that stands for several
//! segments.
//!
//! A cut gives the headers that the kernel's own segmentation would give (lengths, identification, sequence number, flags). Remaining
//! segmentation and checksums are left to the kernel that delivers the frame, by fields of the virtio-net header.

use super::buffer::{LARGE, PooledBuffer, SMALL};
use super::checksum::{fold, put, sum_ip, sum_words};
use super::header::{
    self, EmulatedFrameHeader, GSO_ECN, GSO_NONE, GSO_UDP, LONGEST_HEADERS, NEEDS_CHECKSUM,
    NETWORK, TransportHeaderKind, VIRTIO, read_u16, tcp_segmentation,
};
use super::ip_header::{IPV6_HEADER, TCP, UDP};
use super::{routed_frame, router_frames};
use stackline_net::PacketPayload;
use stackline_net::routed_packet::{CutPacket, FlowEnd, FlowSide, RoutedHeader, RouterIcmpError};

// Bits of the TCP header's flags.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// A frame with its virtio-net header, in reused memory.
pub(crate) struct VnetFrame {
    buffer: PooledBuffer,
    /// Offset of the virtio-net header in the buffer.
    start: u32,
    /// Length of the frame, with that header, bytes.
    length: u32,
    /// Length of all headers, with the virtio-net header, bytes.
    data: u16,
    /// Length of the IP header with its options or extension headers, bytes.
    ip: u16,
    /// Whether it is a packet of IPv6.
    is_v6: bool,
    transport: TransportHeaderKind,
}

impl VnetFrame {
    /// The frame in the first `length` bytes of the buffer, with its header as read by [`header::read`].
    pub(crate) fn new(buffer: PooledBuffer, length: usize, header: &EmulatedFrameHeader) -> Self {
        // Padding behind a train would become data of its last segment.
        let length = if header.segments.count > 1 {
            header.end
        } else {
            length
        };
        Self {
            buffer,
            start: 0,
            length: length as u32,
            data: header.data as u16,
            ip: header.ip as u16,
            is_v6: header.is_v6,
            transport: header.transport,
        }
    }

    /// All bytes of the frame, the virtio-net header first.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..][..self.length as usize]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start as usize..][..self.length as usize]
    }

    /// Sets the Ethernet addresses: destination, source.
    pub(crate) fn address(&mut self, to: [u8; 6], from: [u8; 6]) {
        let addresses = &mut self.bytes_mut()[VIRTIO..VIRTIO + 12];
        addresses[..6].copy_from_slice(&to);
        addresses[6..].copy_from_slice(&from);
    }

    /// A frame with these bytes in a buffer of its own.
    fn copy_of(&self, parts: [&[u8]; 2]) -> Self {
        let length = parts[0].len() + parts[1].len();
        let mut buffer = PooledBuffer::holding(length);
        buffer[..parts[0].len()].copy_from_slice(parts[0]);
        buffer[parts[0].len()..length].copy_from_slice(parts[1]);
        Self {
            buffer,
            start: 0,
            length: length as u32,
            ..*self
        }
    }

    /// A frame of so many bytes, a packet without a transport header that offload would know.
    pub(super) const fn without_transport(buffer: PooledBuffer, length: usize) -> Self {
        Self {
            buffer,
            start: 0,
            length: length as u32,
            data: (NETWORK + 20) as u16,
            ip: 20,
            is_v6: false,
            transport: TransportHeaderKind::Other,
        }
    }

    /// A frame with the first `headers` bytes of this one and those from `from` to `to`.
    pub(super) fn headers_and(&self, headers: usize, from: usize, to: usize) -> Self {
        let bytes = self.bytes();
        let mut rest = self.copy_of([&bytes[..headers], &bytes[from..to]]);
        rest.transport = TransportHeaderKind::Other;
        rest
    }

    /// The frame, and its length from the network layer on.
    fn with_packet_bytes(self) -> (Self, u32) {
        let bytes = self.length - NETWORK as u32;
        (self, bytes)
    }

    /// Keeps the first bytes alone.
    pub(super) fn keep(&mut self, length: usize) {
        self.length = self.length.min(length as u32);
        self.transport = TransportHeaderKind::Other;
    }

    /// Cuts after `behind` bytes of data and returns the second part, with a copy of the headers. Only the shorter part is copied.
    fn cut(&mut self, behind: usize) -> Self {
        let headers = usize::from(self.data);
        let (front, back) = self.bytes()[headers..].split_at(behind);
        if back.len() <= front.len() {
            let rest = self.copy_of([&self.bytes()[..headers], back]);
            self.length = (headers + behind) as u32;
            return rest;
        }
        let mut first = self.copy_of([&self.bytes()[..headers], front]);
        // The headers move up to the data, perhaps over themselves: hence the copy.
        let mut copy = [0; LONGEST_HEADERS];
        copy[..headers].copy_from_slice(&self.bytes()[..headers]);
        self.start += behind as u32;
        self.length -= behind as u32;
        self.bytes_mut()[..headers].copy_from_slice(&copy[..headers]);
        std::mem::swap(self, &mut first);
        first
    }

    /// Turns the headers of a train into those of one of its parts, which `before` segments of `full` bytes precede.
    fn become_part(&mut self, before: usize, full: usize, first: bool, last: bool) {
        let (ip, data, transport) = (usize::from(self.ip), usize::from(self.data), self.transport);
        let is_v6 = self.is_v6;
        let frame = self.bytes_mut();
        let total = (frame.len() - NETWORK) as u16;
        if is_v6 {
            put(frame, NETWORK + 4, total - IPV6_HEADER as u16);
        } else {
            put(frame, NETWORK + 2, total);
            // As segmentation in the kernel counts it.
            let identification = read_u16(frame, NETWORK + 4).wrapping_add(before as u16);
            put(frame, NETWORK + 4, identification);
            sum_ip(frame, ip);
        }
        let segment = NETWORK + ip;
        let checksum = match transport {
            TransportHeaderKind::Tcp => {
                advance(frame, segment + 4, (before * full) as u32);
                // As the kernel cuts: FIN and PSH stay on the last segment, CWR on the first.
                let keep = !(if last { 0 } else { FIN | PSH } | if first { 0 } else { CWR });
                frame[segment + 13] &= keep;
                16
            }
            _ => {
                put(frame, segment + 4, total - ip as u16);
                6
            }
        };
        let addresses = if is_v6 { 8..IPV6_HEADER } else { 12..20 };
        let addresses = &frame[NETWORK + addresses.start..NETWORK + addresses.end];
        let partial = pseudo_sum(addresses, transport, total - ip as u16);
        put(frame, segment + checksum, partial);
        describe(
            frame,
            Offload {
                data,
                segment,
                checksum,
                full,
                is_v6,
                transport,
            },
        );
    }
}

/// What the virtio-net header of a part says; offsets are from the beginning of that header.
struct Offload {
    /// Offset of the data.
    data: usize,
    /// Offset of the transport header.
    segment: usize,
    /// Offset of the checksum within the transport header.
    checksum: usize,
    /// Bytes of data in each segment.
    full: usize,
    is_v6: bool,
    transport: TransportHeaderKind,
}

/// Writes the virtio-net header of a part.
fn describe(frame: &mut [u8], offload: Offload) {
    let several = frame.len() - offload.data > offload.full;
    let reduced =
        offload.transport == TransportHeaderKind::Tcp && frame[offload.segment + 13] & CWR != 0;
    let kind = if offload.transport == TransportHeaderKind::Tcp {
        tcp_segmentation(offload.is_v6)
    } else {
        GSO_UDP
    };
    let mark = if reduced { frame[1] & GSO_ECN } else { 0 };
    frame[0] |= NEEDS_CHECKSUM;
    frame[1] = if several { kind | mark } else { GSO_NONE };
    // The fields hdr_len, gso_size, csum_start and csum_offset.
    put_native(frame, 2, (offload.data - VIRTIO) as u16);
    put_native(frame, 4, if several { offload.full as u16 } else { 0 });
    put_native(frame, 6, (offload.segment - VIRTIO) as u16);
    put_native(frame, 8, offload.checksum as u16);
}

/// Writes a value in native byte order, as in the virtio-net header.
fn put_native(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

/// Adds to a 32-bit number in network byte order.
fn advance(frame: &mut [u8], at: usize, by: u32) {
    let number = u32::from(read_u16(frame, at)) << 16 | u32::from(read_u16(frame, at + 2));
    frame[at..at + 4].copy_from_slice(&number.wrapping_add(by).to_be_bytes());
}

/// Changes the byte with the code point of differentiated services and the ECN bits: IPv6's traffic class, which no checksum covers
/// (RFC 8200, section 3), or IPv4's.
fn change_service(frame: &mut [u8], is_v6: bool, change: impl Fn(u8) -> u8) {
    let before = read_u16(frame, NETWORK);
    if is_v6 {
        let class = change((before >> 4) as u8);
        return put(frame, NETWORK, before & 0xf00f | u16::from(class) << 4);
    }
    frame[NETWORK + 1] = change(frame[NETWORK + 1]);
    // RFC 1624: the sum changes by the difference.
    let sum = u32::from(!read_u16(frame, NETWORK + 10))
        + u32::from(!before)
        + u32::from(read_u16(frame, NETWORK));
    put(frame, NETWORK + 10, !fold(sum));
}

/// The sum of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1), which stands in the checksum field while the rest of the
/// checksum is left to offload. `addresses` are both addresses of the IP header.
fn pseudo_sum(addresses: &[u8], transport: TransportHeaderKind, length: u16) -> u16 {
    let protocol = match transport {
        TransportHeaderKind::Tcp => TCP,
        TransportHeaderKind::Udp | TransportHeaderKind::Other => UDP,
    };
    fold(sum_words(addresses) + u32::from(protocol) + u32::from(length))
}

impl PacketPayload for VnetFrame {
    fn split(&mut self, at: u32) -> Self {
        let full = header::segment_bytes(self.bytes()) as usize;
        let data = self.length as usize - usize::from(self.data);
        debug_assert!(
            full * (at as usize) < data,
            "cut after {at} segments of {full} bytes; {data} bytes in all"
        );
        let mut rest = self.cut((full * at as usize).min(data));
        self.become_part(0, full, true, false);
        rest.become_part(at as usize, full, false, true);
        rest
    }

    fn mark(&mut self) {
        // Both bits: congestion experienced (RFC 3168, section 5).
        let is_v6 = self.is_v6;
        change_service(self.bytes_mut(), is_v6, |byte| byte | 3);
    }

    fn set_dscp(&mut self, dscp: u8) {
        let is_v6 = self.is_v6;
        change_service(self.bytes_mut(), is_v6, |byte| byte & 3 | dscp << 2);
    }

    fn again(&self) -> Self {
        self.copy_of([self.bytes(), &[]])
    }

    fn routed_header(&self) -> Option<RoutedHeader> {
        // Routers report nothing about packets of IPv6 and translate none.
        if self.is_v6 {
            return None;
        }
        routed_frame::routed_header(self.bytes())
    }

    fn count_down(&mut self) {
        if self.is_v6 {
            let hops = &mut self.bytes_mut()[NETWORK + 7];
            *hops = hops.saturating_sub(1);
            return;
        }
        routed_frame::count_down(self.bytes_mut());
    }

    fn translate(&mut self, side: FlowSide, new: FlowEnd) {
        routed_frame::translate(self.bytes_mut(), side, new);
    }

    fn fragment(&mut self, mtu: u64) -> Option<CutPacket<Self>> {
        // IPv6 is cut by its sender alone (RFC 8200, section 5).
        if self.is_v6 {
            return None;
        }
        router_frames::fragment(self, mtu)
    }

    fn icmp_error(&self, error: RouterIcmpError, router: [u8; 4]) -> Option<(Self, u32)> {
        router_frames::icmp_error(self, error, router).map(Self::with_packet_bytes)
    }

    fn router_answer(&self, router: [u8; 4]) -> Option<(Self, u32)> {
        router_frames::router_answer(self, router).map(Self::with_packet_bytes)
    }
}

const _: () = assert!(SMALL > LONGEST_HEADERS && LARGE >= NETWORK + 65_535);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sample_frames;
    use proptest::prelude::*;

    fn frame(bytes: &[u8]) -> VnetFrame {
        let mut buffer = PooledBuffer::holding(bytes.len());
        buffer[..bytes.len()].copy_from_slice(bytes);
        VnetFrame::new(buffer, bytes.len(), &header::read(bytes).unwrap())
    }

    /// Cuts at these boundaries, counted from the beginning of the whole.
    fn cut_at(bytes: &[u8], boundaries: &[u32]) -> Vec<Vec<u8>> {
        let mut rest = frame(bytes);
        let mut parts = Vec::new();
        let mut done = 0;
        for boundary in boundaries {
            let back = rest.split(boundary - done);
            parts.push(std::mem::replace(&mut rest, back));
            done = *boundary;
        }
        parts.push(rest);
        parts.iter().map(|part| part.bytes().to_vec()).collect()
    }

    #[test]
    fn cuts_into_single_segments_equal_the_kernels() {
        for train in [
            sample_frames::tcp_train(1448, 7 * 1448 + 31),
            sample_frames::udp_train(1200, 5000),
            sample_frames::tcp_train(1, 9),
            sample_frames::over_ipv6(&sample_frames::tcp_train(1428, 7 * 1428 + 31)),
            sample_frames::over_ipv6(&sample_frames::udp_train(1200, 5000)),
        ] {
            let count = header::read(&train).unwrap().segments.count;
            let boundaries: Vec<u32> = (1..count).collect();
            let actual: Vec<Vec<u8>> = cut_at(&train, &boundaries)
                .iter()
                .map(|part| sample_frames::finish(part))
                .collect();
            assert_eq!(actual, sample_frames::segment(&train));
        }
    }

    #[test]
    fn a_whole_train_is_unchanged() {
        let train = sample_frames::tcp_train(1448, 40_000);
        assert_eq!(frame(&train).bytes(), train);
        assert_eq!(frame(&train).again().bytes(), train);
    }

    #[test]
    fn a_mark_keeps_the_header_sum_right() {
        for tos in [1, 2, 0xfd, 0x2e] {
            let mut bytes = sample_frames::tcp_train(1448, 100);
            bytes[NETWORK + 1] = tos;
            sum_ip(&mut bytes, 20);
            let mut frame = frame(&bytes);
            frame.mark();
            assert_eq!(frame.bytes()[NETWORK + 1], tos | 3);
            let sum = |frame: &VnetFrame| fold(sum_words(&frame.bytes()[NETWORK..NETWORK + 20]));
            assert_eq!(sum(&frame), 0xffff);
            frame.set_dscp(46);
            assert_eq!(frame.bytes()[NETWORK + 1], 46 << 2 | 3);
            assert_eq!(sum(&frame), 0xffff);
        }
    }

    #[test]
    fn a_mark_over_ipv6_is_in_its_traffic_class() {
        let mut frame = frame(&sample_frames::over_ipv6(&sample_frames::tcp_train(
            1428, 100,
        )));
        let before = frame.bytes().to_vec();
        frame.mark();
        let after = header::read(frame.bytes()).unwrap();
        assert_eq!(after.ecn, stackline_net::EcnMarking::Marked);
        assert_eq!(frame.bytes()[NETWORK + 2..], before[NETWORK + 2..]);
    }

    proptest! {
        #[test]
        fn any_cuts_carry_the_same_segments(
            six in any::<bool>(), udp in any::<bool>(), full in 1_u16..3000, data in 2_usize..60_000,
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let full = full.max(60);
            let train = if udp { sample_frames::udp_train(full, data) } else { sample_frames::tcp_train(full, data) };
            let train = if six { sample_frames::over_ipv6(&train) } else { train };
            let count = header::read(&train).unwrap().segments.count;
            let mut boundaries: Vec<u32> =
                cuts.iter().filter(|_| count > 1).map(|cut| 1 + cut.index(count as usize - 1) as u32).collect();
            boundaries.sort_unstable();
            boundaries.dedup();
            let parts = cut_at(&train, &boundaries);
            let segments: Vec<Vec<u8>> = parts.iter().flat_map(|part| sample_frames::segment(part)).collect();
            prop_assert_eq!(segments, sample_frames::segment(&train));
        }

        #[test]
        fn fuzzed_cuts_do_no_harm(cut in any::<u8>(), full in 60_u16..3000, data in 2_usize..60_000) {
            let mut bytes = vec![cut];
            bytes.extend(sample_frames::tcp_train(full, data));
            crate::engine::fuzzing::frame(&bytes);
            let six = sample_frames::over_ipv6(&bytes[1..]);
            bytes.splice(1.., six);
            crate::engine::fuzzing::frame(&bytes);
        }

        #[test]
        fn hostile_frames_are_cut_and_marked_without_harm(
            mut bytes in proptest::collection::vec(any::<u8>(), NETWORK + 20..400), udp in any::<bool>(), at in any::<u32>(),
        ) {
            let train = if udp { sample_frames::udp_train(9, 100) } else { sample_frames::tcp_train(9, 100) };
            for index in [1, 5, 22, 23, NETWORK, NETWORK + 2, NETWORK + 3, NETWORK + 6, NETWORK + 7, NETWORK + 9] {
                bytes[index] = train[index];
            }
            let total = (train.len().min(bytes.len()) - NETWORK) as u16;
            put(&mut bytes, NETWORK + 2, total);
            if let Ok(header) = header::read(&bytes) {
                let mut frame = VnetFrame::new({
                    let mut buffer = PooledBuffer::holding(bytes.len());
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    buffer
                }, bytes.len(), &header);
                frame.mark();
                if header.segments.count > 1 {
                    let rest = frame.split(1 + at % (header.segments.count - 1));
                    prop_assert!(rest.bytes().len() > NETWORK);
                }
            }
        }
    }
}
