//! Fragments put together again, and what may not be cut.

use super::*;
use crate::engine::header;
use crate::engine::sample_frames;
use stackline_net::PacketPayload;

fn frame(bytes: &[u8]) -> VnetFrame {
    let mut buffer = PooledBuffer::holding(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    VnetFrame::new(buffer, bytes.len(), &header::read(bytes).unwrap())
}

/// A datagram of so many bytes of data that may be fragmented.
fn datagram(data: usize) -> Vec<u8> {
    let mut bytes = sample_frames::udp_train(0, data);
    (bytes[1], bytes[6 + NETWORK]) = (0, 0);
    sum_ip(&mut bytes, 20);
    bytes
}

/// Cuts into fragments of at most `mtu` bytes.
fn fragments(bytes: &[u8], mtu: u64) -> Vec<Vec<u8>> {
    let mut parts = vec![frame(bytes)];
    while let Some(cut) = parts.last_mut().and_then(|last| last.fragment(mtu)) {
        let packet = parts.last().map(|part| part.bytes().len() - NETWORK);
        assert_eq!(packet, Some(cut.first_bytes as usize));
        assert_eq!(cut.rest.bytes().len() - NETWORK, cut.rest_bytes as usize);
        parts.push(cut.rest);
    }
    parts
        .iter()
        .map(|part| part.bytes()[NETWORK..].to_vec())
        .collect()
}

#[test]
fn fragments_put_together_are_the_packet() {
    let bytes = datagram(3000);
    let whole = sample_frames::finish(&bytes);
    let parts = fragments(&bytes, 1400);
    let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
    // 1400 bytes have room for 172 units of 8 bytes behind the header.
    assert_eq!(lengths, [1396, 1396, 276]);
    let mut data: Vec<u8> = Vec::new();
    for part in &parts {
        assert_eq!(usize::from(read_u16(part, 6) & OFFSET) * 8, data.len());
        assert_eq!(usize::from(read_u16(part, 2)), part.len());
        assert_eq!(sum(&part[..20]), 0xffff);
        assert_eq!(part[4..6], whole[4..6], "one identification");
        data.extend(&part[20..]);
    }
    assert_eq!(data, whole[20..]);
    let more: Vec<bool> = parts.iter().map(|part| part[6] & 0x20 != 0).collect();
    assert_eq!(more, [true, true, false]);
}

#[test]
fn fragments_are_cut_again_and_have_no_flow() {
    let first = fragments(&datagram(3000), 1400).remove(1);
    let mut again = vec![0; NETWORK];
    again[NETWORK - 2] = 8;
    again.extend(first);
    let parts = fragments(&again, 576);
    let places: Vec<u16> = parts.iter().map(|part| read_u16(part, 6)).collect();
    assert_eq!(
        places,
        [0x2000 | 172, 0x2000 | (172 + 69), 0x2000 | (172 + 138)]
    );
    assert!(routed_header(&again).unwrap().flow.is_none());
    assert!(!routed_header(&again).unwrap().may_report);
}

#[test]
fn what_may_not_be_cut_is_not() {
    let mut train = frame(&sample_frames::tcp_train(1448, 1448));
    assert!(train.fragment(576).is_none(), "DF");
    let mut small = frame(&datagram(100));
    assert!(small.fragment(27).is_none(), "no room for 8 bytes");
    assert!(small.fragment(128).is_none(), "it fits");
    assert!(small.fragment(120).is_some());
}

#[test]
fn options_without_the_flag_copied_stay_in_the_first_fragment() {
    // Record route (not copied), strict source route (copied), the end.
    let mut options = [7, 3, 4, 0x89, 3, 4, 0, 9];
    forget_options(&mut options);
    assert_eq!(options, [1, 1, 1, 0x89, 3, 4, 0, 9]);
}
