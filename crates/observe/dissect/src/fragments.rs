//! Reassembles fragments of IP packets (RFC 791; RFC 8200, 4.5). Memory is bounded; a packet whose fragments overlap is not reassembled
//! (RFC 5722).

use crate::left_out::{Bound, LeftOut};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The most packets whose fragments are waiting for the others; beyond it, the oldest is dropped.
const MOST: usize = Bound::Fragments.most();
/// The longest packet that fragments can make, in bytes.
const LONGEST: usize = 65_535;

/// Identifies the packet that a fragment belongs to: source, destination, identification, protocol.
type FragmentKey = (IpAddr, IpAddr, u32, u8);

/// A packet of which some fragments have arrived.
#[derive(Debug, Default)]
struct FragmentedPacket {
    /// A running number that orders packets by age.
    number: u64,
    /// The headers before the part that was fragmented, from the first fragment, with the protocol that follows them.
    headers: Option<Vec<u8>>,
    /// The fragments' data by their offset in bytes.
    parts: BTreeMap<usize, Vec<u8>>,
    /// The length of the fragmented part in bytes; known from the last fragment.
    length: Option<usize>,
    /// Whether fragments overlap or disagree about the length.
    is_damaged: bool,
}

/// One fragment of a packet.
struct Fragment<'p> {
    key: FragmentKey,
    headers: Vec<u8>,
    /// The offset of `data` in the fragmented part, in bytes.
    at: usize,
    is_last: bool,
    data: &'p [u8],
}

/// The result of adding a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentOutcome {
    /// The packet still lacks other fragments.
    Waits,
    /// This fragment completed the packet: the whole packet.
    Whole(Vec<u8>),
    /// The packet is not a readable fragment.
    Unreadable,
}

/// Collects fragments and puts packets together.
#[derive(Debug, Default)]
pub struct FragmentReassembly {
    packets: BTreeMap<FragmentKey, FragmentedPacket>,
    /// How many fragments were taken so far; numbers the packets.
    begun: u64,
    left_out: LeftOut,
}

impl FragmentReassembly {
    /// Takes a fragment, from its IP header on.
    pub fn add(&mut self, packet: &[u8]) -> FragmentOutcome {
        let Some(fragment) = Fragment::read(packet) else {
            return FragmentOutcome::Unreadable;
        };
        self.make_room(&fragment.key);
        self.begun += 1;
        let (key, number) = (fragment.key, self.begun);
        let known = self.packets.entry(key).or_insert_with(|| FragmentedPacket {
            number,
            ..FragmentedPacket::default()
        });
        known.add(fragment);
        let Some(whole) = known.whole() else {
            return FragmentOutcome::Waits;
        };
        self.packets.remove(&key);
        FragmentOutcome::Whole(whole)
    }

    /// How many fragments are waiting for others that did not arrive.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let parts = self.packets.values().map(|packet| packet.parts.len());
        parts.sum::<usize>() as u64
    }

    /// What was left out because a limit was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Drops the oldest packet if there is no room for a new one.
    fn make_room(&mut self, key: &FragmentKey) {
        if self.packets.len() < MOST || self.packets.contains_key(key) {
            return;
        }
        let oldest = self.packets.iter().min_by_key(|(_, packet)| packet.number);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.packets.remove(&oldest);
            self.left_out.add(Bound::Fragments, 1);
        }
    }
}

impl FragmentedPacket {
    fn add(&mut self, fragment: Fragment<'_>) {
        let end = fragment.at + fragment.data.len();
        if fragment.is_last {
            self.is_damaged |= self.length.is_some_and(|length| length != end);
            self.length = Some(end);
        }
        if fragment.at == 0 {
            self.headers = Some(fragment.headers);
        }
        let is_again = self
            .parts
            .get(&fragment.at)
            .is_some_and(|part| part == fragment.data);
        // Earlier parts do not overlap, so only the last one before the end can reach into this
        // one.
        let overlaps = self
            .parts
            .range(..end)
            .next_back()
            .is_some_and(|(at, part)| at + part.len() > fragment.at);
        self.is_damaged |= overlaps && !is_again;
        self.parts.insert(fragment.at, fragment.data.to_vec());
    }

    /// The whole packet, with a corrected length field, if all fragments are there.
    fn whole(&self) -> Option<Vec<u8>> {
        let (mut packet, length) = (self.headers.clone()?, self.length?);
        let mut at = 0;
        for (from, part) in &self.parts {
            if *from != at {
                return None;
            }
            packet.extend(part);
            at += part.len();
        }
        if at != length || self.is_damaged || packet.len() > LONGEST {
            return None;
        }
        let is_v4 = packet.first()? >> 4 == 4;
        // The length field of IPv6 leaves out its own header of 40 bytes.
        let total = if is_v4 {
            packet.len()
        } else {
            packet.len() - 40
        };
        let place = if is_v4 { 2 } else { 4 };
        packet
            .get_mut(place..place + 2)?
            .copy_from_slice(&u16::try_from(total).ok()?.to_be_bytes());
        Some(packet)
    }
}

impl<'p> Fragment<'p> {
    fn read(packet: &'p [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_v4(packet),
            6 => Self::read_v6(packet),
            _ => None,
        }
    }

    fn read_v4(packet: &'p [u8]) -> Option<Self> {
        let header = packet.first_chunk::<20>()?;
        let length = usize::from(header[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let field = u16::from_be_bytes([header[6], header[7]]);
        let data = packet.get(length..total)?;
        let mut headers = packet.get(..length)?.to_vec();
        // Don't Fragment is kept; the rest is 0 in a whole packet.
        headers[6] &= 0x40;
        headers[7] = 0;
        let address =
            |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let id = u32::from(u16::from_be_bytes([header[4], header[5]]));
        Some(Self {
            key: (address(12), address(16), id, header[9]),
            headers,
            at: usize::from(field & 0x1fff) * 8,
            is_last: field & 0x2000 == 0,
            data,
        })
    }

    fn read_v6(packet: &'p [u8]) -> Option<Self> {
        let header = packet.first_chunk::<40>()?;
        let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().ok()?;
            Some(IpAddr::from(bytes))
        };
        // `next` is the offset of the protocol number of the header at `at`.
        let (mut next, mut at) = (6, 40);
        while matches!(packet.get(next)?, 0 | 43 | 60) {
            next = at;
            at += 8 + usize::from(*packet.get(at + 1)?) * 8;
        }
        // 44 is the fragment header.
        let fragment = packet.get(at..at + 8).filter(|_| packet[next] == 44)?;
        let field = u16::from_be_bytes([fragment[2], fragment[3]]);
        let id = u32::from_be_bytes([fragment[4], fragment[5], fragment[6], fragment[7]]);
        let mut headers = packet.get(..at)?.to_vec();
        headers[next] = fragment[0];
        Some(Self {
            key: (address(8)?, address(24)?, id, fragment[0]),
            headers,
            at: usize::from(field >> 3) * 8,
            is_last: field & 1 == 0,
            data: packet.get(at + 8..40 + payload)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{PacketTransport, of_ip};

    /// A fragment of a datagram of DNS over IPv4.
    fn v4(id: u8, at: usize, more: bool, data: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, (20 + data.len()) as u8, 0, id];
        packet.extend(((at as u16 / 8) | if more { 0x2000 } else { 0 }).to_be_bytes());
        packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(data);
        packet
    }

    fn v6(at: u16, more: bool, data: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8 + data.len() as u8, 44, 64];
        packet.extend([1; 32]);
        packet.extend([17, 0]);
        packet.extend((at | u16::from(more)).to_be_bytes());
        packet.extend([0, 0, 0, 9]);
        packet.extend(data);
        packet
    }

    /// Header of UDP and 16 bytes.
    const DATAGRAM: &[u8] = &[
        0, 53, 0xc0, 1, 0, 24, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ];

    fn datagram(packet: &[u8]) -> (u16, Vec<u8>) {
        match of_ip(packet, packet.len() as u64) {
            Some(PacketTransport::Udp(datagram, data)) => (datagram.ends.0.port(), data.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    fn whole(outcome: FragmentOutcome) -> Vec<u8> {
        match outcome {
            FragmentOutcome::Whole(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fragment_that_came_twice_waits_no_longer_than_its_packet() {
        let mut all = FragmentReassembly::default();
        for _ in 0..2 {
            let last = all.add(&v4(1, 16, false, &DATAGRAM[16..]));
            assert_eq!(last, FragmentOutcome::Waits);
        }
        assert_eq!(all.waiting(), 1);
        whole(all.add(&v4(1, 0, true, &DATAGRAM[..16])));
        assert_eq!(all.waiting(), 0);
    }

    #[test]
    fn fragments_in_any_order_make_the_packet() {
        let mut all = FragmentReassembly::default();
        assert_eq!(
            all.add(&v4(1, 16, false, &DATAGRAM[16..])),
            FragmentOutcome::Waits
        );
        assert_eq!(
            all.add(&v4(2, 0, true, &DATAGRAM[..8])),
            FragmentOutcome::Waits
        );
        let packet = whole(all.add(&v4(1, 0, true, &DATAGRAM[..16])));
        assert_eq!(datagram(&packet), (53, DATAGRAM[8..].to_vec()));
        assert_eq!(all.waiting(), 1);
        assert_eq!(
            all.add(&v6(0, true, &DATAGRAM[..8])),
            FragmentOutcome::Waits
        );
        let packet = whole(all.add(&v6(8, false, &DATAGRAM[8..])));
        assert_eq!(datagram(&packet), (53, DATAGRAM[8..].to_vec()));
    }

    #[test]
    fn of_what_overlaps_nothing_is_made() {
        let mut all = FragmentReassembly::default();
        let _ = all.add(&v4(1, 0, true, &DATAGRAM[..16]));
        let _ = all.add(&v4(1, 8, true, &[7; 8]));
        assert_eq!(
            all.add(&v4(1, 16, false, &DATAGRAM[16..])),
            FragmentOutcome::Waits
        );
        assert_eq!(all.add(&[0x45; 10]), FragmentOutcome::Unreadable);
        assert_eq!(all.add(&[]), FragmentOutcome::Unreadable);
    }

    #[test]
    fn packets_that_wait_are_bounded() {
        Bound::Fragments.assert_reported(|count| {
            let mut all = FragmentReassembly::default();
            for at in 0..count {
                let mut packet = v4(0, 0, true, &DATAGRAM[..8]);
                packet[4..6].copy_from_slice(&(at as u16).to_be_bytes());
                let _ = all.add(&packet);
            }
            all.left_out().clone()
        });
    }
}
