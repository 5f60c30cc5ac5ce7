//! How packets of the blast protocols and of `ikp` (V's message passing) travel through the simulated network: an IPv4 and a UDP
//! header, the protocol's own header, then the payload. Data is counted and not stored, as nobody reads it; the bytes that a seal
//! (authentication) would add are counted as well.

use super::pair::SimPairRoute;
use super::send_credit::SendCredit;
use crate::datagram::{SimDatagram, SimDatagramBody, UDP, ipv4_header};
use stackline_core::procedure::PairSide;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use stackline_proto::blast::wire::{BlastHeader, HEADER};
use stackline_proto::datagram::DatagramToken;
use std::rc::Rc;

/// Bytes of the IPv4 and UDP headers.
pub(crate) const BELOW: usize = 28;
/// Bytes of a socket that may wait in its host's interface: Linux's default.
const SEND_BUFFER: u64 = 212_992;
/// Bytes of the largest IPv4 packet.
const LARGEST_PACKET: u64 = 65_535;
/// The first ports of initiators and of responders; a pair's number modulo [`PORT_RANGE`] is added.
const PORTS: [u32; 2] = [32_768, 1024];
const PORT_RANGE: u32 = 28_000;
/// The IPv4 flag that forbids fragmentation.
const DO_NOT_FRAGMENT: u16 = 1 << 14;

/// The sending side of a pair, with the addresses of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketWire {
    pub(crate) pair: u32,
    /// The side that sends.
    pub(crate) side: PairSide,
    /// The nodes of the sender and the receiver.
    pub(crate) nodes: [NodeIndex; 2],
    /// The UDP ports of the sender and the receiver.
    pub(crate) ports: [u16; 2],
    /// Bytes that a seal adds to each packet; 0 where packets are not sealed.
    pub(crate) seal: u32,
}

/// A packet that has arrived.
#[derive(Debug)]
pub(crate) struct ArrivedSimPacket<'d> {
    pub(crate) header: BlastHeader,
    /// The bytes after the header; empty where they are only counted.
    pub(crate) body: &'d [u8],
    /// How many bytes follow the header, without the seal.
    pub(crate) payload: usize,
}

/// Bytes of data that a packet of a pair can carry in addition to `headers` bytes of everything else.
pub(crate) fn payload_room(route: &SimPairRoute, headers: u64) -> u32 {
    u32::try_from(route.mtu.min(LARGEST_PACKET).saturating_sub(headers)).unwrap_or(0)
}

/// By side: how much may wait in the host's interface. Where the host's processor copies packets into the interface (`route.copies`),
/// at most two packets may wait, one of them being copied: so the sender's timers begin when a packet leaves.
pub(super) fn send_credits(route: &SimPairRoute) -> [Rc<SendCredit>; 2] {
    [PairSide::Initiator, PairSide::Responder].map(|side| {
        let most = if route.copies[side.index()] {
            2 * route.mtu
        } else {
            SEND_BUFFER
        };
        Rc::new(SendCredit::new(route.rooms[side.index()].min(most)))
    })
}

/// The token that shows that packets belong to this run.
pub(crate) fn seeded_token(seed: u64) -> DatagramToken {
    let mut token = DatagramToken::default();
    token[..8].copy_from_slice(&seed.to_le_bytes());
    token
}

impl PacketWire {
    /// The wires of the initiator and the responder of a pair.
    pub(crate) fn both(route: &SimPairRoute, seal: u32) -> [Self; 2] {
        let ports = PORTS.map(|first| (first + route.pair % PORT_RANGE) as u16);
        [PairSide::Initiator, PairSide::Responder].map(|side| {
            let (near, far) = (side.index(), side.other().index());
            let (nodes, ports) = (
                [route.nodes[near], route.nodes[far]],
                [ports[near], ports[far]],
            );
            Self {
                pair: route.pair,
                side,
                nodes,
                ports,
                seal,
            }
        })
    }

    /// A packet with `bytes` bytes of data.
    pub(crate) fn data(&self, header: &BlastHeader, bytes: u32) -> NetworkPacket<SimDatagram> {
        self.packet(header, bytes, SimDatagramBody::Zeros(bytes + self.seal))
    }

    /// A packet whose data begins at position `place` of the stream.
    pub(crate) fn data_at(
        &self,
        header: &BlastHeader,
        place: u64,
        bytes: u32,
    ) -> NetworkPacket<SimDatagram> {
        let mut packet = self.data(header, bytes);
        packet.payload = packet.payload.at(place, bytes);
        packet
    }

    /// A packet without data; `body` follows its header.
    pub(crate) fn control(
        &self,
        header: &BlastHeader,
        mut body: Vec<u8>,
    ) -> NetworkPacket<SimDatagram> {
        let bytes = body.len() as u32;
        if body.is_empty() {
            return self.data(header, 0);
        }
        body.resize((bytes + self.seal) as usize, 0);
        self.packet(
            header,
            bytes,
            SimDatagramBody::Bytes(body.as_slice().into()),
        )
    }

    fn packet(
        &self,
        header: &BlastHeader,
        bytes: u32,
        body: SimDatagramBody,
    ) -> NetworkPacket<SimDatagram> {
        let length = BELOW + HEADER + (bytes + self.seal) as usize;
        let [from, to] = self.nodes;
        let mut headers = [0; BELOW + HEADER];
        headers[..20].copy_from_slice(&ipv4_header(from, to, UDP, length, 0, DO_NOT_FRAGMENT));
        headers[20..22].copy_from_slice(&self.ports[0].to_be_bytes());
        headers[22..24].copy_from_slice(&self.ports[1].to_be_bytes());
        headers[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
        headers[BELOW..].copy_from_slice(&header.write());
        let payload = SimDatagram::new(self.pair, header.connection, &headers, body);
        let (flow, segments) = (self.pair, SegmentSizes::one(length as u32));
        NetworkPacket {
            number: 0,
            from,
            to,
            flow,
            ecn: EcnMarking::NotCapable,
            dscp: 0,
            segments,
            payload,
        }
    }

    /// Reads a packet that has arrived; `None` if it has another format.
    pub(crate) fn read<'d>(&self, datagram: &'d SimDatagram) -> Option<ArrivedSimPacket<'d>> {
        let header = BlastHeader::read(datagram.header().get(BELOW..)?)?;
        let payload = datagram.carried().checked_sub(self.seal as usize)?;
        let body = match datagram.body() {
            SimDatagramBody::Bytes(bytes) => bytes.get(..payload)?,
            _ => &[],
        };
        Some(ArrivedSimPacket {
            header,
            body,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_proto::blast::BlastPacketKind;
    use stackline_proto::blast::wire::SEAL;

    #[test]
    fn what_is_sent_is_read_and_as_long_as_it_says() {
        for seal in [0, SEAL as u32] {
            let wire = PacketWire {
                pair: 3,
                side: PairSide::Initiator,
                nodes: [NodeIndex(0), NodeIndex(1)],
                ports: [40_000, 4000],
                seal,
            };
            let header = BlastHeader {
                blast: 7,
                ..BlastHeader::new(BlastPacketKind::Answer, 5)
            };
            for body in [vec![], vec![1, 2, 3]] {
                let packet = wire.control(&header, body.clone());
                let arrived = wire.read(&packet.payload).unwrap();
                assert_eq!(
                    (arrived.header, arrived.body, arrived.payload),
                    (header, &body[..], body.len())
                );
                assert_eq!(packet.bytes() as usize, 60 + body.len() + seal as usize);
                assert_eq!(packet.payload.bytes().len(), packet.bytes() as usize);
            }
            let packet = wire.data(&header, 1000);
            assert_eq!(
                wire.read(&packet.payload).map(|arrived| arrived.payload),
                Some(1000)
            );
            let bytes = packet.payload.bytes();
            assert_eq!(
                (bytes.len(), BlastHeader::read(&bytes[28..])),
                (1060 + seal as usize, Some(header))
            );
            assert_eq!(bytes[20..26], [0x9c, 0x40, 0x0f, 0xa0, 4, 16 + seal as u8]);
        }
    }
}
