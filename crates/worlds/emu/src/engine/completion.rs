//! Computes the transport checksum that a host left to checksum offload, in a copy of the packet for captures; the frame itself stays
//! unchanged. A frame that is cut into fragments gets it at once.

use super::header::{NEEDS_CHECKSUM, NETWORK, VIRTIO, read_u16};
use super::ip_header::IPV6_HEADER;

/// Copies the packet of a frame to `copy`, from the network layer on, with its checksum computed. Returns false without copying when
/// there is no checksum to compute or the virtio-net header points outside the packet. A train of segments gets the checksum of the
/// whole train.
pub(crate) fn completed(frame: &[u8], copy: &mut Vec<u8>) -> bool {
    let Some((start, field)) = open_checksum(frame) else {
        return false;
    };
    let packet = &frame[NETWORK..];
    // Padding behind the packet is not summed.
    let end = match packet[0] >> 4 {
        6 => IPV6_HEADER + usize::from(read_u16(packet, 4)),
        _ => usize::from(read_u16(packet, 2)),
    };
    let end = end.min(packet.len());
    if start < 20 || field + 2 > end {
        return false;
    }
    copy.clear();
    copy.extend_from_slice(packet);
    // The checksum field already holds the sum of the pseudo header.
    let sum = match !sum(&copy[start..end]) {
        // In UDP a field of zero would mean that there is no checksum (RFC 768).
        0 => 0xffff,
        sum => sum,
    };
    copy[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Computes the checksum that offload left open in the frame itself, which is about to be cut into fragments: no later
/// offload could compute it.
pub(super) fn complete_in_place(frame: &mut [u8]) {
    let Some((start, field)) = open_checksum(frame) else {
        return;
    };
    let packet = &mut frame[NETWORK..];
    let end = usize::from(read_u16(packet, 2)).min(packet.len());
    if start < 20 || field + 2 > end {
        return;
    }
    let sum = match !sum(&packet[start..end]) {
        0 => 0xffff,
        sum => sum,
    };
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    frame[0] &= !NEEDS_CHECKSUM;
}

/// The offsets at which the summed range begins and where the sum goes, in bytes from the network layer on; `None` when no checksum
/// was left open.
fn open_checksum(frame: &[u8]) -> Option<(usize, usize)> {
    let flags = *frame.first()?;
    let own = |at: usize| {
        frame
            .get(at..at + 2)
            .map(|two| usize::from(u16::from_ne_bytes([two[0], two[1]])))
    };
    let start = (own(6)? + VIRTIO).checked_sub(NETWORK)?;
    let field = start + own(8)?;
    (flags & NEEDS_CHECKSUM != 0 && frame.len() > NETWORK).then_some((start, field))
}

/// One's complement sum of 16-bit words (RFC 1071), an odd byte at the end being the upper half of one.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    let word = |two: &[u8]| u64::from(two[0]) << 8 | two.get(1).map_or(0, |low| u64::from(*low));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sample_frames;
    use proptest::prelude::*;

    #[test]
    fn single_packets_and_trains_are_completed() {
        let frames = [
            sample_frames::tcp_train(1448, 1000),
            sample_frames::udp_train(1200, 77),
            sample_frames::tcp_train(1448, 20_001),
            sample_frames::over_ipv6(&sample_frames::tcp_train(1428, 20_001)),
            sample_frames::over_ipv6(&sample_frames::udp_train(1200, 77)),
        ];
        for frame in frames {
            let mut copy = vec![1, 2, 3];
            assert!(completed(&frame, &mut copy));
            assert_eq!(copy, sample_frames::finish(&frame));
        }
    }

    #[test]
    fn padding_is_not_summed() {
        let mut frame = sample_frames::udp_train(1200, 5);
        let finished = sample_frames::finish(&frame);
        frame.extend([0xab; 13]);
        let mut copy = Vec::new();
        assert!(completed(&frame, &mut copy));
        assert_eq!(copy[..finished.len()], finished);
    }

    #[test]
    fn a_sum_of_zero_is_written_as_ones() {
        let mut frame = sample_frames::udp_train(1200, 2);
        let data = frame.len() - 2;
        frame[data..].fill(0);
        let without = u16::from_be_bytes(sample_frames::finish(&frame)[26..28].try_into().unwrap());
        frame[data..].copy_from_slice(&without.to_be_bytes());
        let mut copy = Vec::new();
        assert!(completed(&frame, &mut copy));
        assert_eq!(copy[26..28], [0xff, 0xff]);
    }

    #[test]
    fn a_packet_with_its_checksum_is_not_copied() {
        let mut frame = sample_frames::udp_train(1200, 5);
        frame[0] = 0;
        assert!(!completed(&frame, &mut Vec::new()));
    }

    proptest! {
        #[test]
        fn hostile_frames_are_unchanged(mut frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(flags) = frame.first_mut() {
                *flags |= NEEDS_CHECKSUM;
            }
            let mut copy = Vec::new();
            if completed(&frame, &mut copy) {
                prop_assert_eq!(copy.len(), frame.len() - NETWORK);
            }
        }
    }
}
