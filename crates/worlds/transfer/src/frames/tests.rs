//! Real sockets in a network of the test's own: a veth pair and loopback.

use super::*;
use crate::carrier::PacketHeadBuffer;
use socket2::Socket;
use stackline_os::packet_socket;

const HEAD: usize = 32;
const LONG: CarrierWait = CarrierWait::Block(Duration::from_secs(10));
const NUMBER: u32 = 0x0102_0304;

/// Each of these tests is run in a network of its own.
macro_rules! in_rooms {
    ($($name:ident)*) => {
        mod each {
            $(#[test]
            fn $name() {
                crate::room::inside(concat!(module_path!(), "::", stringify!($name)), super::$name);
            })*
        }
    };
}

mod carrying;
mod foreign_frames;
mod interfaces;
mod peers;
mod ring;

fn options() -> FrameCarrierOptions {
    FrameCarrierOptions::default()
}

fn head(kind: BlastPacketKind, number: u32) -> PacketHeadBuffer {
    let mut head = PacketHeadBuffer::EMPTY;
    head.0[0] = kind as u8;
    head.0[4..8].copy_from_slice(&number.to_le_bytes());
    head
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn say(carrier: &mut FrameCarrier, kind: BlastPacketKind, number: u32, payload: &[u8]) {
    let heads = [head(kind, number)];
    assert_eq!(
        carrier
            .send(PacketRun {
                head: HEAD,
                heads: &heads,
                payload,
                each: payload.len()
            })
            .unwrap(),
        1
    );
}

/// The kind and the payload of the next packet.
fn hear(carrier: &mut FrameCarrier) -> (u8, Vec<u8>) {
    assert_eq!(carrier.receive(HEAD, &mut [], &[], LONG).unwrap(), 1);
    let packet = carrier.packet(0);
    let CarrierPayload::Here(payload) = packet.payload else {
        panic!("it is in the ring")
    };
    (packet.head[0], payload.to_vec())
}

/// Two ends that have spoken: the peers are settled.
fn pair(
    near: &str,
    far: &str,
    number: u32,
    options: FrameCarrierOptions,
) -> (FrameCarrier, FrameCarrier) {
    let mut dial = FrameCarrier::connect(near, options).unwrap();
    let mut listen = FrameCarrier::listen(far, None, options).unwrap();
    say(&mut dial, BlastPacketKind::Open, number, b"open");
    assert_eq!(
        hear(&mut listen),
        (BlastPacketKind::Open as u8, b"open".to_vec())
    );
    say(&mut listen, BlastPacketKind::Accept, number, b"accept");
    assert_eq!(
        hear(&mut dial),
        (BlastPacketKind::Accept as u8, b"accept".to_vec())
    );
    say(&mut dial, BlastPacketKind::Answer, number, b"");
    assert_eq!(hear(&mut listen), (BlastPacketKind::Answer as u8, vec![]));
    assert_eq!(
        (dial.peer(), listen.peer()),
        (Some(listen.local()), Some(dial.local()))
    );
    (dial, listen)
}

fn veth() -> (FrameCarrier, FrameCarrier) {
    pair("near", "far", NUMBER, options())
}

/// Packets with these payloads, numbered, arrive in order.
fn crosses(
    left: &mut FrameCarrier,
    right: &mut FrameCarrier,
    packets: usize,
    data: &[u8],
    each: usize,
) {
    let heads: Vec<PacketHeadBuffer> = (0..packets)
        .map(|i| {
            let mut head = head(BlastPacketKind::Data, NUMBER);
            head.0[8..12].copy_from_slice(&(i as u32).to_le_bytes());
            head
        })
        .collect();
    assert_eq!(
        left.send(PacketRun {
            head: HEAD,
            heads: &heads,
            payload: data,
            each
        })
        .unwrap(),
        packets
    );
    let (mut came, mut all) = (0, Vec::new());
    while came < packets {
        let n = right.receive(HEAD, &mut [], &[], LONG).unwrap();
        assert!(n > 0, "{came} of {packets} packets came");
        for index in 0..n {
            let packet = right.packet(index);
            assert_eq!(packet.head, &heads[came].0[..HEAD]);
            let CarrierPayload::Here(payload) = packet.payload else {
                panic!("it is in the ring")
            };
            all.extend_from_slice(payload);
            came += 1;
        }
    }
    assert!(all == data, "the bytes are others");
}

/// A socket that sends any bytes over an interface.
fn forger(interface: &str) -> Socket {
    let socket = raw().unwrap();
    let known = interface_properties(socket.as_fd(), interface).unwrap();
    packet_socket::bind(socket.as_fd(), known.index, 0).unwrap();
    socket
}

fn frame(from: Mac, to: Mac, number: u32, payload: &[u8]) -> Vec<u8> {
    let mut prefix = [0; PREFIX];
    let length = HEAD + payload.len();
    format::write(&mut prefix, to, from, ETHERTYPE, length as u16, WAKE);
    let mut frame = [
        &prefix[..],
        &head(BlastPacketKind::Data, number).0[..HEAD],
        payload,
    ]
    .concat();
    frame.resize(frame.len().max(LEAST), 0);
    frame
}
