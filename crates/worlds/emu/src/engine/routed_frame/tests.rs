//! Headers that routers change, against checksums computed anew.

use super::*;
use crate::engine::buffer::PooledBuffer;
use crate::engine::checksum::sum_ip;
use crate::engine::completion::{complete_in_place, sum};
use crate::engine::frame::VnetFrame;
use crate::engine::header;
use crate::engine::sample_frames;
use proptest::prelude::*;
use stackline_net::PacketPayload;

fn frame(bytes: &[u8]) -> VnetFrame {
    let mut buffer = PooledBuffer::holding(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    VnetFrame::new(buffer, bytes.len(), &header::read(bytes).unwrap())
}

/// A datagram of so many bytes of data that may be fragmented, with its checksum computed or left open.
fn datagram(data: usize, open: bool) -> Vec<u8> {
    let mut bytes = sample_frames::udp_train(0, data);
    (bytes[1], bytes[6 + NETWORK]) = (0, 0);
    sum_ip(&mut bytes, 20);
    if !open {
        complete_in_place(&mut bytes);
    }
    bytes
}

const SERVER: FlowEnd = FlowEnd {
    address: [10, 71, 0, 2],
    port: 8080,
};

#[test]
fn the_time_to_live_is_counted_down_with_the_checksum() {
    let mut bytes = sample_frames::tcp_train(1448, 4000);
    for left in (0..64).rev() {
        count_down(&mut bytes);
        assert_eq!(bytes[NETWORK + 8], left);
        sample_frames::finish(&bytes);
    }
}

#[test]
fn the_flow_is_that_of_addresses_and_ports() {
    let header = routed_header(&sample_frames::tcp_train(1448, 4000)).unwrap();
    let flow = header.flow.unwrap();
    assert_eq!(
        (flow.kind, flow.destination),
        (FlowKind::Protocol(6), SERVER)
    );
    assert_eq!(flow.source.port, 0x1389);
    assert_eq!((header.ttl, header.source), (64, [10, 71, 0, 1]));
    assert!(!header.may_fragment && header.may_report && header.quoted.is_none());
}

#[test]
fn translated_frames_have_correct_checksums() {
    let new = FlowEnd {
        address: [10, 70, 0, 1],
        port: 0xfffe,
    };
    let frames = [
        sample_frames::tcp_train(1448, 1000),
        sample_frames::tcp_train(1448, 9000),
        datagram(77, true),
        datagram(77, false),
    ];
    for mut bytes in frames {
        for side in [FlowSide::Source, FlowSide::Destination] {
            translate(&mut bytes, side, new);
            // It checks both sums.
            sample_frames::segment(&bytes);
        }
        let flow = routed_header(&bytes).unwrap().flow.unwrap();
        assert_eq!((flow.source, flow.destination), (new, new));
        let closed = bytes[0] & NEEDS_CHECKSUM == 0;
        assert!(!closed || sum_of_datagram(&bytes[NETWORK..]) == 0xffff);
    }
}

/// The sum of a datagram with its pseudo-header and its checksum.
fn sum_of_datagram(packet: &[u8]) -> u16 {
    let mut all = packet[12..20].to_vec();
    all.extend([0, packet[9]]);
    all.extend((packet.len() as u16 - 20).to_be_bytes());
    all.extend(&packet[20..]);
    sum(&all)
}

#[test]
fn a_datagram_without_a_checksum_keeps_none() {
    let mut bytes = datagram(77, false);
    put(&mut bytes, NETWORK + 26, 0);
    translate(&mut bytes, FlowSide::Source, SERVER);
    assert_eq!(read_u16(&bytes, NETWORK + 26), 0);
}

proptest! {
    #[test]
    fn hostile_frames_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 24..200), mtu in 0_u64..300) {
        // Of what is not forwarded anyway nothing is asked.
        (bytes[NETWORK - 2], bytes[NETWORK - 1]) = (8, 0);
        if header::read(&bytes).is_ok_and(|header| header.segments.count == 1) {
            let mut frame = frame(&bytes);
            let _ = frame.routed_header();
            frame.count_down();
            frame.translate(FlowSide::Source, SERVER);
            frame.translate(FlowSide::Destination, SERVER);
            let _ = frame.icmp_error(stackline_net::routed_packet::RouterIcmpError::TimeExceeded, [1; 4]);
            let _ = frame.router_answer([1; 4]);
            let _ = frame.fragment(mtu);
        }
    }
}
