//! Finds which bytes of which stream a packet carries, from its IPv4, TCP or UDP header, or from the headers of this project's own
//! protocols over UDP. A packet that is foreign, cut short or carries no part of a stream yields `None`. A flow (a connection) is known
//! by its responder's address and port, or is learned from its first packet.
//! A unit is a numbered piece of data of the workload; its id and the stream's come from [`stackline_events::unit_ids`].

mod flow_learning;

use crate::left_out::{Bound, LeftOut};
use crate::sequence_position::Position;
use serde::{Deserialize, Serialize};
use stackline_events::unit_ids::{EventStreamDirection, Numbering};
use stackline_proto::blast::wire::SEAL;
use stackline_proto::blast::{BlastHeader, BlastPacketKind, HEADER};
use stackline_proto::datagram::control::CONTROL;
use stackline_proto::datagram::{NUMBER, NUMBERS};
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};

pub use flow_learning::Began;
use flow_learning::Learning;

/// Which bytes of which stream a packet carries, as far as this is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameStreamRange {
    /// The data unit's id, where the packet itself carries the unit's number.
    pub unit: Option<i64>,
    /// The stream's id; see [`stackline_events::unit_ids`].
    pub stream: Option<i64>,
    /// The offset of its first data byte, counted from the first byte after connecting.
    pub offset: Option<u64>,
    /// The number of data bytes.
    pub bytes: Option<u64>,
    /// Whether the packet begins before the farthest byte seen of its stream. At the sending host's own port this means a retransmission.
    pub repeated: bool,
}

/// IP protocol numbers, and the SYN bit of the TCP flags.
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 2;

/// How the packets of a flow say which part of a stream they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carries {
    /// By TCP sequence numbers.
    Stream,
    /// By numbers: each datagram is a data unit and begins with its number, from 0 on one connection.
    Units {
        /// Whether both ends send units, so that the numbering covers both directions.
        both_ways: bool,
    },
    /// By numbers: each datagram is a call or its response, numbered from 1.
    Calls,
    /// By the packet headers of [`stackline_proto::blast`].
    Blasts {
        /// Whether the packets are encrypted.
        sealed: bool,
    },
    /// Packets do not say it.
    Nothing,
}

/// A flow, and how its packets are recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowAt {
    /// The address at which its responder listens.
    pub responder: SocketAddrV4,
    /// The flow's number.
    pub flow: u32,
    /// How its packets say which part of a stream they carry.
    pub carries: Carries,
}

/// The sender's and the receiver's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FrameEnds {
    from: SocketAddrV4,
    to: SocketAddrV4,
}

/// Locates packets: the flows of a run, and how far each connection has come.
#[derive(Clone, Debug, Default)]
pub struct FrameLocator {
    /// The flows by their responder's address.
    flows: BTreeMap<SocketAddrV4, (u32, Carries)>,
    /// How far each direction of a TCP connection has come.
    streams: HashMap<FrameEnds, Position>,
    /// The data bytes of a full packet of a blast: the largest seen so far, since only the last packet is shorter.
    blasts: HashMap<FrameEnds, u64>,
    /// Set if flows are learned from packets instead of given.
    learning: Option<Learning>,
    left_out: LeftOut,
}

/// The most connections that are remembered; packets of further ones get no offset.
const MOST_CONNECTIONS: usize = Bound::Flows.most();

impl FrameLocator {
    /// A locator for the given flows.
    #[must_use]
    pub fn new(flows: &[FlowAt]) -> Self {
        let flows = flows
            .iter()
            .map(|at| (at.responder, (at.flow, at.carries)))
            .collect();
        Self {
            flows,
            ..Self::default()
        }
    }

    /// A locator that learns flows: they are numbered from 0 in the order in which they begin.
    #[must_use]
    pub fn learning() -> Self {
        Self {
            learning: Some(Learning::default()),
            ..Self::default()
        }
    }

    /// The flow that the previous packet began, if flows are learned. Returns it once.
    pub fn began(&mut self) -> Option<Began> {
        self.learning.as_mut()?.began.take()
    }

    /// What was left out because a limit was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The range that a packet carries; `packet` begins at its IPv4 header. `segments` is how many segments offload joined in it.
    pub fn range(&mut self, packet: &[u8], segments: u32) -> Option<FrameStreamRange> {
        let Ipv4Content {
            protocol,
            ends,
            data,
        } = Ipv4Content::read(packet)?;
        if let Some(learning) = &mut self.learning {
            return learning.range(protocol, ends, data, &mut self.left_out);
        }
        let (flow, carries, direction) =
            match (self.flows.get(&ends.to), self.flows.get(&ends.from)) {
                (Some((flow, carries)), _) => (*flow, *carries, EventStreamDirection::There),
                (None, Some((flow, carries))) => (*flow, *carries, EventStreamDirection::Back),
                (None, None) => return None,
            };
        let range = match (carries, protocol) {
            (Carries::Stream, TCP) => self.of_stream(ends, data),
            (Carries::Units { both_ways }, UDP) => of_unit(data, segments)
                .map(|(number, range)| (number.map(|n| (direction, n, both_ways)), range)),
            (Carries::Calls, UDP) => {
                let call = |n: u64| {
                    n.checked_sub(1)
                        .map(|n| (EventStreamDirection::There, n, false))
                };
                of_unit(data, segments).map(|(number, range)| (number.and_then(call), range))
            }
            (Carries::Blasts { sealed }, UDP) => self.of_blast(ends, data, segments, sealed),
            _ => None,
        };
        let (unit, range) = range?;
        let unit = unit.map(|(direction, number, both_ways)| {
            Numbering::new(flow, both_ways).id(direction, number)
        });
        Some(FrameStreamRange {
            unit,
            stream: Some(stackline_events::unit_ids::stream(flow, direction)),
            ..range
        })
    }

    /// The range of a TCP segment.
    fn of_stream(&mut self, ends: FrameEnds, segment: &[u8]) -> Option<Dissected> {
        let header = segment.first_chunk::<20>()?;
        let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let data = segment.get(usize::from(header[12] >> 4) * 4..)?;
        if header[13] & SYN != 0 {
            let first = sequence.wrapping_add(1);
            // A SYN that comes again must not undo how far the stream has come.
            if self
                .streams
                .get(&ends)
                .is_none_or(|position| !position.begins_at(first))
            {
                if self.streams.len() < MOST_CONNECTIONS {
                    self.streams.insert(ends, Position::new(first));
                } else {
                    self.left_out.add(Bound::Flows, 1);
                }
            }
            return None;
        }
        if data.is_empty() {
            return None;
        }
        let bytes = Some(data.len() as u64);
        let Some(position) = self.streams.get_mut(&ends) else {
            return Some((
                None,
                FrameStreamRange {
                    bytes,
                    ..FrameStreamRange::default()
                },
            ));
        };
        let offset = position.offset(sequence)?;
        let repeated = offset < position.farthest();
        position.advance(offset + data.len() as u64);
        Some((
            None,
            FrameStreamRange {
                offset: Some(offset),
                bytes,
                repeated,
                ..FrameStreamRange::default()
            },
        ))
    }

    /// The range of a data packet of a blast.
    fn of_blast(
        &mut self,
        ends: FrameEnds,
        data: &[u8],
        segments: u32,
        sealed: bool,
    ) -> Option<Dissected> {
        let header =
            BlastHeader::read(data).filter(|header| header.kind == BlastPacketKind::Data)?;
        let head = HEADER + if sealed { SEAL } else { 0 };
        let heads = head * segments.max(1) as usize;
        let bytes = data.len().checked_sub(heads)? as u64;
        // All joined packets but the last are of one size.
        let each = bytes.div_ceil(u64::from(segments.max(1)));
        if self.blasts.len() >= MOST_CONNECTIONS && !self.blasts.contains_key(&ends) {
            self.left_out.add(Bound::Flows, 1);
            return None;
        }
        let packet = self.blasts.entry(ends).or_default();
        *packet = each.max(*packet);
        let within = u64::from(header.index) * *packet;
        // An empty blast has one packet, at its start.
        let is_within = within < u64::from(header.length).max(1);
        let offset = header.start.checked_add(within).filter(|_| is_within);
        Some((
            None,
            FrameStreamRange {
                offset,
                bytes: Some(bytes),
                ..FrameStreamRange::default()
            },
        ))
    }
}

/// The unit's direction, its number and whether numbering covers both directions; and the rest of the range.
type Dissected = (Option<(EventStreamDirection, u64, bool)>, FrameStreamRange);

/// The unit number at the start of a datagram, if it is not a control packet, and the datagram's length.
fn of_unit(data: &[u8], segments: u32) -> Option<(Option<u64>, FrameStreamRange)> {
    // A control packet begins with a token, whose top bit is set.
    if data.len() == CONTROL && data[7] & 0x80 != 0 {
        return None;
    }
    let number = data
        .first_chunk::<NUMBER>()
        .map(|number| u64::from_le_bytes(*number) % NUMBERS);
    let range = FrameStreamRange {
        bytes: Some(data.len() as u64),
        ..FrameStreamRange::default()
    };
    // Joined datagrams are several units: the first number does not stand for all.
    Some((number.filter(|_| segments <= 1), range))
}

/// The part of an IPv4 packet above IP: for TCP from the TCP header on, for UDP the data.
struct Ipv4Content<'p> {
    protocol: u8,
    ends: FrameEnds,
    data: &'p [u8],
}

impl<'p> Ipv4Content<'p> {
    /// Reads a packet. `None` for a later fragment, since it does not begin with the ports.
    fn read(packet: &'p [u8]) -> Option<Self> {
        let header = packet.first_chunk::<20>()?;
        let (version, words) = (header[0] >> 4, usize::from(header[0] & 15));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        if version != 4 || words < 5 || fragment != 0 {
            return None;
        }
        // A packet that is longer than its length field can say has 0 there.
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let total = if total == 0 {
            packet.len()
        } else {
            total.min(packet.len())
        };
        let behind = packet.get(words * 4..total)?;
        let ports = behind.first_chunk::<4>()?;
        let address =
            |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let ends = FrameEnds {
            from: SocketAddrV4::new(address(12), port(0)),
            to: SocketAddrV4::new(address(16), port(2)),
        };
        let protocol = header[9];
        let data = if protocol == UDP {
            behind.get(8..)?
        } else {
            behind
        };
        Some(Self {
            protocol,
            ends,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40_000);
    const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 10_007);

    fn ip(protocol: u8, from: SocketAddrV4, to: SocketAddrV4, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(20 + 4 + behind.len() as u16).to_be_bytes());
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&from.ip().octets());
        packet[16..20].copy_from_slice(&to.ip().octets());
        packet.extend(from.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend(behind);
        packet
    }

    fn tcp(from: SocketAddrV4, to: SocketAddrV4, sequence: u32, flags: u8, data: usize) -> Vec<u8> {
        let mut behind = sequence.to_be_bytes().to_vec();
        behind.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        behind.extend(vec![7; data]);
        ip(TCP, from, to, &behind)
    }

    fn udp(from: SocketAddrV4, to: SocketAddrV4, data: &[u8]) -> Vec<u8> {
        let behind: Vec<u8> = [0; 4].into_iter().chain(data.iter().copied()).collect();
        ip(UDP, from, to, &behind)
    }

    fn frames(carries: Carries) -> FrameLocator {
        FrameLocator::new(&[FlowAt {
            responder: SERVER,
            flow: 5,
            carries,
        }])
    }

    #[test]
    fn offsets_count_from_the_syn_through_retransmissions_and_beyond_the_largest_number() {
        let mut frames = frames(Carries::Stream);
        let first = u32::MAX - 999;
        assert_eq!(
            frames.range(&tcp(CLIENT, SERVER, first.wrapping_sub(1), SYN, 0), 1),
            None
        );
        let mut at = |sequence: u32, data| {
            let range = frames.range(&tcp(CLIENT, SERVER, sequence, 16, data), 1)?;
            assert_eq!(range.repeated, sequence == first.wrapping_add(500));
            Some((range.stream, range.offset, range.bytes))
        };
        let there = Some(10);
        assert_eq!(at(first, 1000), Some((there, Some(0), Some(1000))));
        assert_eq!(
            at(0, 60_000),
            Some((there, Some(1000), Some(60_000))),
            "it has wrapped"
        );
        assert_eq!(
            at(first.wrapping_add(500), 500),
            Some((there, Some(500), Some(500))),
            "again"
        );
        assert_eq!(at(60_000, 0), None, "an acknowledgement carries nothing");
        assert_eq!(
            at(first.wrapping_sub(1), 1),
            None,
            "before the stream there is none"
        );
        // Twice round.
        let mut offset = 61_000;
        while offset < 9 << 30 {
            let sequence = first.wrapping_add(offset as u32);
            assert_eq!(at(sequence, 100), Some((there, Some(offset), Some(100))));
            offset += 1 << 29;
        }
        // The other way the beginning is unknown.
        let range = frames.range(&tcp(SERVER, CLIENT, 77, 16, 10), 1).unwrap();
        assert_eq!(
            (range.stream, range.offset, range.bytes),
            (Some(11), None, Some(10))
        );
        let stranger = SocketAddrV4::new(*SERVER.ip(), 80);
        assert_eq!(frames.range(&tcp(CLIENT, stranger, 0, 16, 10), 1), None);
    }

    #[test]
    fn datagrams_name_their_units() {
        let unit = |number: u64| stackline_events::unit_ids::unit(5, number);
        let mut data = 41_u64.to_le_bytes().to_vec();
        data.extend([0; 50]);
        let mut units = frames(Carries::Units { both_ways: false });
        let range = units.range(&udp(SERVER, CLIENT, &data), 1).unwrap();
        assert_eq!(
            (range.unit, range.stream, range.bytes),
            (Some(unit(41)), Some(11), Some(58))
        );
        assert_eq!(
            units.range(&udp(SERVER, CLIENT, &data), 3).unwrap().unit,
            None,
            "only the first of several"
        );
        let mut control = vec![0xff; CONTROL];
        assert_eq!(units.range(&udp(CLIENT, SERVER, &control), 1), None);
        control.push(0);
        assert!(units.range(&udp(CLIENT, SERVER, &control), 1).is_some());
        let mut calls = frames(Carries::Calls);
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            assert_eq!(
                calls.range(&udp(from, to, &data), 1).unwrap().unit,
                Some(unit(40))
            );
        }
    }

    #[test]
    fn blasts_name_their_place_in_the_stream() {
        let mut frames = frames(Carries::Blasts { sealed: false });
        let mut at = |kind, index, data: usize, segments: u32| {
            let header = BlastHeader {
                start: 5000,
                length: 2500,
                index,
                ..BlastHeader::new(kind, 9)
            };
            let mut bytes = header.write().to_vec();
            bytes.extend(vec![0; data + HEADER * (segments as usize - 1)]);
            let range = frames.range(&udp(CLIENT, SERVER, &bytes), segments)?;
            Some((range.offset?, range.bytes?))
        };
        assert_eq!(at(BlastPacketKind::Data, 0, 1000, 1), Some((5000, 1000)));
        assert_eq!(at(BlastPacketKind::Data, 2, 500, 1), Some((7000, 500)));
        assert_eq!(at(BlastPacketKind::Data, 1, 1500, 2), Some((6000, 1500)));
        assert_eq!(at(BlastPacketKind::Answer, 1, 0, 1), None);
    }

    #[test]
    fn a_blast_behind_the_end_of_all_streams_has_no_place() {
        let mut frames = frames(Carries::Blasts { sealed: false });
        let header = BlastHeader {
            start: u64::MAX - 10,
            length: 2500,
            index: 1,
            ..BlastHeader::new(BlastPacketKind::Data, 9)
        };
        let bytes = [&header.write()[..], &[0; 1000]].concat();
        assert_eq!(
            frames
                .range(&udp(CLIENT, SERVER, &bytes), 1)
                .unwrap()
                .offset,
            None
        );
    }

    /// A line for each packet: what began with it, and its range.
    fn learned(packets: &[Vec<u8>]) -> Vec<String> {
        let mut frames = FrameLocator::learning();
        let line = |packet: &Vec<u8>| {
            let range = frames.range(packet, 1);
            let began = frames.began().map_or_else(String::new, |began| {
                let first = began
                    .first_sequence
                    .map_or("?".into(), |first| first.to_string());
                format!(
                    "{}: {} > {} from {first}; ",
                    began.flow, began.initiator, began.responder
                )
            });
            let number =
                |number: Option<u64>| number.map_or("?".into(), |number| number.to_string());
            let range = range.map_or("nothing".into(), |range| {
                let again = if range.repeated { " again" } else { "" };
                format!(
                    "{} {}+{}{again}",
                    range.stream.unwrap(),
                    number(range.offset),
                    number(range.bytes)
                )
            });
            began + &range
        };
        packets.iter().map(line).collect()
    }

    fn acknowledging(mut packet: Vec<u8>, number: u32) -> Vec<u8> {
        packet[28..32].copy_from_slice(&number.to_be_bytes());
        packet
    }

    #[test]
    fn flows_that_nobody_knew_are_learned_from_their_first_packet() {
        const ACK: u8 = 16;
        let other = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 3), 50_000);
        let packets = [
            tcp(CLIENT, SERVER, 99, SYN, 0),
            tcp(CLIENT, SERVER, 99, SYN, 0),
            acknowledging(tcp(SERVER, CLIENT, u32::MAX, SYN | ACK, 0), 100),
            tcp(CLIENT, SERVER, 100, ACK, 0),
            tcp(CLIENT, SERVER, 100, ACK, 10),
            tcp(SERVER, CLIENT, 0, ACK, 3000),
            tcp(SERVER, CLIENT, 1000, ACK, 500),
            tcp(CLIENT, SERVER, 50, ACK, 1),
            // The same ends again.
            tcp(CLIENT, SERVER, 7000, SYN, 0),
            tcp(CLIENT, SERVER, 7001, ACK, 5),
            // One of which the first packet was not seen, one that was there before, what is left of one.
            acknowledging(tcp(SERVER, other, 500, SYN | ACK, 0), 43),
            tcp(other, SERVER, 43, ACK, 4),
            tcp(SocketAddrV4::new(*SERVER.ip(), 80), other, 900, ACK, 20),
            tcp(other, SocketAddrV4::new(*SERVER.ip(), 80), 77, ACK, 30),
            tcp(other, SocketAddrV4::new(*SERVER.ip(), 81), 77, ACK, 0),
            udp(SERVER, other, b"abc"),
            udp(other, SERVER, b""),
            ip(1, other, SERVER, b"echo"),
        ];
        let expected = [
            "0: 10.0.0.1:40000 > 10.0.0.2:10007 from 100; 0 ?+0",
            "0 ?+0",
            "1 ?+0",
            "0 ?+0",
            "0 0+10",
            "1 0+3000",
            "1 1000+500 again",
            "0 ?+1",
            "1: 10.0.0.1:40000 > 10.0.0.2:10007 from 7001; 2 ?+0",
            "2 0+5",
            "2: 10.0.0.3:50000 > 10.0.0.2:10007 from 43; 5 ?+0",
            "4 0+4",
            "3: 10.0.0.3:50000 > 10.0.0.2:80 from ?; 7 0+20",
            "6 0+30",
            "nothing",
            "4: 10.0.0.2:10007 > 10.0.0.3:50000 from ?; 8 ?+3",
            "9 ?+0",
            "nothing",
        ];
        assert_eq!(learned(&packets), expected);
    }

    proptest! {
        #[test]
        fn hostile_packets_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..120), segments in 0_u32..70) {
            for carries in [Carries::Stream, Carries::Calls, Carries::Blasts { sealed: true }] {
                let mut frames = frames(carries);
                let _ = frames.range(&bytes, segments);
                let mut ours = ip(TCP, CLIENT, SERVER, &bytes);
                let _ = frames.range(&ours, segments);
                let mut learning = FrameLocator::learning();
                let _ = learning.range(&ours, segments);
                ours[9] = UDP;
                let _ = frames.range(&ours, segments);
                let _ = learning.range(&ours, segments);
            }
        }
    }
}
