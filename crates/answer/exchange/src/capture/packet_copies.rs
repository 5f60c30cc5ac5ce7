//! Recognises packets that a capture has twice, because it covers several interfaces under one name and the packet passed more than one.
//! A copy has the same fields, including the IPv4 identification; a retransmission differs in that, and comes later.

use stackline_dissect::pcapng::CapturePacket;
use stackline_dissect::segment::DissectedSegment;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A copy follows within this time (ns) if packets have an IPv4 identification.
const NUMBERED_NS: u64 = 1_000_000;
/// A copy follows within this time (ns) if packets have no identification.
const UNNUMBERED_NS: u64 = 100_000;
/// The same for a SYN, ns: it is not retransmitted sooner.
const OPENS_NS: u64 = 10_000_000;
/// The most packets that are remembered; then the old ones are dropped.
const MOST: usize = 1 << 13;

/// The packets of a short time.
#[derive(Debug, Default)]
pub(super) struct PacketCopies {
    /// The time of each packet, ns, by a hash of its fields.
    seen: HashMap<u64, u64>,
}

impl PacketCopies {
    /// Whether the packet is a copy of one at an interface of the same name. Segments without data, SYN or FIN are not examined.
    pub(super) fn is_copy(
        &mut self,
        packet: &CapturePacket<'_>,
        segment: &DissectedSegment,
    ) -> bool {
        if segment.bytes == 0 && !segment.syn && !segment.fin {
            return false;
        }
        let number = packet.ip().and_then(identification);
        let mut hasher = DefaultHasher::new();
        let flags = (segment.syn, segment.fin, segment.reset);
        let numbers = (segment.sequence, segment.acknowledged, segment.bytes);
        (packet.interface, segment.ends, numbers, flags).hash(&mut hasher);
        (segment.window, number).hash(&mut hasher);
        let at_ns = packet.at_ns;
        if self.seen.len() >= MOST {
            self.seen
                .retain(|_, seen_ns| at_ns.saturating_sub(*seen_ns) <= OPENS_NS);
            if self.seen.len() >= MOST {
                self.seen.clear();
            }
        }
        let before = self.seen.insert(hasher.finish(), at_ns);
        let within = match (segment.syn, number) {
            (true, _) => OPENS_NS,
            (false, Some(_)) => NUMBERED_NS,
            (false, None) => UNNUMBERED_NS,
        };
        before.is_some_and(|seen_ns| at_ns.saturating_sub(seen_ns) <= within)
    }
}

/// The identification of an IPv4 packet, if it is not 0.
fn identification(packet: &[u8]) -> Option<u16> {
    let header = packet
        .first_chunk::<20>()
        .filter(|header| header[0] >> 4 == 4)?;
    Some(u16::from_be_bytes([header[4], header[5]])).filter(|number| *number != 0)
}
