//! What routers send, byte by byte, and how their errors are translated.

use super::*;
use crate::engine::header;
use crate::engine::sample_frames;
use stackline_net::PacketPayload;
use stackline_net::routed_packet::{FlowEnd, FlowKind, FlowSide};

const ROUTER: [u8; 4] = [10, 70, 0, 1];

fn frame(bytes: &[u8]) -> VnetFrame {
    let mut buffer = PooledBuffer::holding(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    VnetFrame::new(buffer, bytes.len(), &header::read(bytes).unwrap())
}

fn segment() -> VnetFrame {
    frame(&sample_frames::tcp_train(1448, 1000))
}

/// The packet, with both of its sums checked.
fn checked(frame: &VnetFrame) -> Vec<u8> {
    header::read(frame.bytes()).unwrap();
    let packet = frame.bytes()[NETWORK..].to_vec();
    assert_eq!(sum(&packet[..20]), 0xffff, "the header's sum");
    if packet[9] == ICMP {
        assert_eq!(sum(&packet[20..]), 0xffff, "the message's sum");
    }
    packet
}

/// An echo request with this identifier and so many bytes of data.
fn echo(identifier: u16, data: usize) -> VnetFrame {
    let mut request = new_packet(&segment(), 28 + data, ICMP);
    let bytes = &mut request.bytes_mut()[NETWORK..];
    bytes[12..20].copy_from_slice(&[10, 71, 0, 1, 10, 70, 0, 1]);
    bytes[20] = ECHO_REQUEST;
    put(bytes, 24, identifier);
    let checksum = !sum(&bytes[20..]);
    put(bytes, 22, checksum);
    sum_ip(request.bytes_mut(), 20);
    request
}

#[test]
fn errors_quote_the_packet_up_to_576_bytes() {
    let about = segment();
    let error = icmp_error(
        &about,
        RouterIcmpError::FragmentationNeeded { mtu: 1280 },
        ROUTER,
    )
    .unwrap();
    let packet = checked(&error);
    assert_eq!(packet.len(), 576);
    assert_eq!(packet[12..20], [10, 70, 0, 1, 10, 71, 0, 1]);
    assert_eq!(
        (packet[20], packet[21], read_u16(&packet, 26)),
        (3, 4, 1280)
    );
    assert_eq!(packet[28..], about.bytes()[NETWORK..][..548]);
    let short = icmp_error(&echo(1, 8), RouterIcmpError::TimeExceeded, ROUTER).unwrap();
    let packet = checked(&short);
    assert_eq!((packet.len(), packet[20], packet[21]), (28 + 36, 11, 0));
}

#[test]
fn errors_are_recognised_and_not_reported() {
    let error = icmp_error(&segment(), RouterIcmpError::TimeExceeded, ROUTER).unwrap();
    let header = error.routed_header().unwrap();
    assert!(!header.may_report);
    assert_eq!(header.quoted, segment().routed_header().unwrap().flow);
    assert!(router_answer(&error, ROUTER).is_none());
}

#[test]
fn a_router_answers_echoes() {
    let answer = router_answer(&echo(77, 56), ROUTER).unwrap();
    let packet = checked(&answer);
    assert_eq!((packet.len(), packet[8], packet[20]), (84, 64, ECHO_REPLY));
    assert_eq!(packet[12..20], [10, 70, 0, 1, 10, 71, 0, 1]);
    assert_eq!(read_u16(&packet, 24), 77);
}

#[test]
fn a_router_refuses_connections_and_datagrams() {
    let reset = checked(&router_answer(&segment(), ROUTER).unwrap());
    assert_eq!((reset.len(), reset[9]), (40, 6));
    // The sample has ACK: the reset begins at what it acknowledges.
    assert_eq!((read_u16(&reset, 20), read_u16(&reset, 22)), (8080, 0x1389));
    assert_eq!((&reset[24..28], reset[33]), (&[1, 2, 3, 4][..], 4));
    let datagram = frame(&sample_frames::udp_train(1200, 77));
    let error = checked(&router_answer(&datagram, ROUTER).unwrap());
    assert_eq!((error[20], error[21]), (3, 3), "port unreachable");
}

#[test]
fn an_echo_is_translated_by_its_identifier() {
    let mut request = echo(77, 56);
    let flow = request.routed_header().unwrap().flow.unwrap();
    assert_eq!(
        (flow.kind, flow.source.port, flow.destination.port),
        (FlowKind::Protocol(1), 77, 0)
    );
    let end = FlowEnd {
        address: [10, 70, 0, 9],
        port: 1024,
    };
    request.translate(FlowSide::Source, end);
    let packet = checked(&request);
    assert_eq!(
        (&packet[12..16], read_u16(&packet, 24)),
        (&[10, 70, 0, 9][..], 1024)
    );
    let mut reply = router_answer(&request, ROUTER).unwrap();
    assert_eq!(
        reply.routed_header().unwrap().flow.unwrap().destination,
        end
    );
    reply.translate(FlowSide::Destination, flow.source);
    assert_eq!(read_u16(&checked(&reply), 24), 77);
}

#[test]
fn an_error_is_translated_inside_and_outside() {
    let inner = segment().routed_header().unwrap().flow.unwrap();
    let outer = FlowEnd {
        address: ROUTER,
        port: 1024,
    };
    let mut sent = segment();
    sent.translate(FlowSide::Source, outer);
    let mut error = icmp_error(&sent, RouterIcmpError::TimeExceeded, [10, 70, 0, 5]).unwrap();
    assert_eq!(error.routed_header().unwrap().quoted.unwrap().source, outer);
    error.translate(FlowSide::Destination, inner.source);
    let packet = checked(&error);
    assert_eq!(packet[16..20], inner.source.address);
    assert_eq!(error.routed_header().unwrap().quoted, Some(inner));
    assert_eq!(sum(&packet[28..48]), 0xffff, "the quoted header's sum");
}
