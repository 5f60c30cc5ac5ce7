//! Puts QUIC's packets into UDP datagrams of the simulated network, from one socket of a pair to the other.

use crate::datagram::{SimDatagram, SimDatagramBody, UDP, ipv4_header};
use crate::run_state::SimRunState;
use bytes::{BufMut, BytesMut};
use quinn_proto::EcnCodepoint;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The IPv4 flag that forbids fragmentation, which path MTU discovery needs.
const DONT_FRAGMENT: u16 = 0x4000;
/// Packets share an allocation of this many bytes, which can be reused when all of them are gone.
const ROOM: usize = 64 << 10;
/// Bytes of an IPv4 header.
const IP: usize = 20;
/// Bytes of the IPv4 and UDP headers.
const HEADERS: usize = 28;

/// The addresses of packets from one side to the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimQuicWire {
    pub(super) pair: u32,
    /// The nodes of the sender and the receiver.
    pub(super) nodes: [NodeIndex; 2],
    /// The UDP ports of the sender and the receiver.
    pub(super) ports: [u16; 2],
}

impl SimQuicWire {
    /// The address of the far socket.
    pub(super) fn far(&self) -> SocketAddr {
        let address = Ipv4Addr::from(stackline_net::packet::host_address(self.nodes[1]));
        SocketAddr::new(IpAddr::V4(address), self.ports[1])
    }

    /// Sends the packet that quinn-proto has written into `shared.frames.made`.
    pub(super) fn send(&self, connection: u32, ecn: Option<EcnCodepoint>, shared: &SimRunState) {
        let mut frames = shared.frames.borrow_mut();
        let frames = &mut *frames;
        let bytes = copy(&mut frames.room, &frames.made);
        let length = HEADERS + bytes.len();
        let mut header = [0; HEADERS];
        header[..IP].copy_from_slice(&ipv4_header(
            self.nodes[0],
            self.nodes[1],
            UDP,
            length,
            0,
            DONT_FRAGMENT,
        ));
        header[1] = ecn.map_or(0, |ecn| ecn as u8);
        header[20..22].copy_from_slice(&self.ports[0].to_be_bytes());
        header[22..24].copy_from_slice(&self.ports[1].to_be_bytes());
        // The checksum stays 0, which says that there is none.
        header[24..26].copy_from_slice(&((length - IP) as u16).to_be_bytes());
        let payload = SimDatagram::new(
            self.pair,
            connection,
            &header,
            SimDatagramBody::Bytes(bytes),
        )
        .sealed();
        shared.send(NetworkPacket {
            number: 0,
            from: self.nodes[0],
            to: self.nodes[1],
            flow: self.pair,
            ecn: match ecn {
                None => EcnMarking::NotCapable,
                Some(EcnCodepoint::Ect1) => EcnMarking::Scalable,
                Some(_) => EcnMarking::Capable,
            },
            dscp: 0,
            segments: SegmentSizes::one(length as u32),
            payload,
        });
    }
}

/// Copies a packet into the shared allocation.
fn copy(room: &mut BytesMut, bytes: &[u8]) -> BytesMut {
    if room.capacity() < bytes.len() {
        room.reserve(ROOM.max(bytes.len()));
    }
    room.put_slice(bytes);
    room.split()
}

/// The ECN codepoint with which a packet arrives.
pub(super) const fn ecn_codepoint(packet: &NetworkPacket<SimDatagram>) -> Option<EcnCodepoint> {
    match packet.ecn {
        EcnMarking::NotCapable => None,
        EcnMarking::Capable => Some(EcnCodepoint::Ect0),
        EcnMarking::Scalable => Some(EcnCodepoint::Ect1),
        EcnMarking::Marked => Some(EcnCodepoint::Ce),
    }
}
