//! How a packet of the protocol travels: behind an IPv4 and a UDP header, its own header as it is on every carrier, then
//! what it carries. Data is counted and not carried, as nobody reads it; what a seal would add is counted as well.

use super::pair::SimPairRoute;
use super::send_credit::SendCredit;
use crate::datagram::{SimDatagram, SimDatagramBody, UDP, ipv4_header};
use stackline_core::procedure::PairSide;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use stackline_proto::blast::wire::{BlastHeader, HEADER};
use stackline_proto::datagram::DatagramToken;
use std::rc::Rc;

/// IP and UDP headers.
pub(crate) const BELOW: usize = 28;
/// What of a socket may wait in its host's interface, as Linux sets it out.
const SEND_BUFFER: u64 = 212_992;
/// Largest packet of the network layer.
const LARGEST_PACKET: u64 = 65_535;
/// Ports of the two sides; every pair has its own.
const PORTS: [u32; 2] = [32_768, 1024];
const PORT_RANGE: u32 = 28_000;
/// Never fragmented.
const DO_NOT_FRAGMENT: u16 = 1 << 14;

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketWire {
    pub(crate) pair: u32,
    /// Of which side what leaves is.
    pub(crate) side: PairSide,
    pub(crate) nodes: [NodeIndex; 2],
    pub(crate) ports: [u16; 2],
    /// Bytes behind each packet.
    pub(crate) seal: u32,
}

/// What has arrived.
#[derive(Debug)]
pub(crate) struct ArrivedSimPacket<'d> {
    pub(crate) header: BlastHeader,
    /// What follows the header of a packet without data.
    pub(crate) body: &'d [u8],
    /// How many bytes follow.
    pub(crate) payload: usize,
}

/// Bytes of data that a packet of a pair can carry behind so many bytes of headers and what else it has to hold.
pub(crate) fn payload_room(route: &SimPairRoute, headers: u64) -> u32 {
    u32::try_from(route.mtu.min(LARGEST_PACKET).saturating_sub(headers)).unwrap_or(0)
}

/// What waits at each side for its host's interface. A processor that copies packets into it is the sender's own: the sender gets no
/// further ahead of it than a packet that waits while another is copied, so that its timers begin when a packet leaves.
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

/// Proof that packets are of one run.
pub(crate) fn seeded_token(seed: u64) -> DatagramToken {
    let mut token = DatagramToken::default();
    token[..8].copy_from_slice(&seed.to_le_bytes());
    token
}

impl PacketWire {
    /// Those of the initiator and the responder of a pair.
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

    /// A packet with so many bytes of data.
    pub(crate) fn data(&self, header: &BlastHeader, bytes: u32) -> NetworkPacket<SimDatagram> {
        self.packet(header, bytes, SimDatagramBody::Zeros(bytes + self.seal))
    }

    /// The same with data that begins at that place of the stream.
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

    /// A packet without data.
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
            segments,
            payload,
        }
    }

    /// What is in a packet that has arrived.
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
