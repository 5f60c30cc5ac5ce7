//! Packets that a capture has twice: it looks at several interfaces under one name, and a packet came by more than one of them.
//! A copy is the same to the last number that its sender gave it; what is sent again is another packet, and takes longer.

use stackline_dissect::pcapng::CapturePacket;
use stackline_dissect::segment::DissectedSegment;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A copy comes within so much, where packets have numbers of their own (the identification of IPv4)...
const NUMBERED_NS: u64 = 1_000_000;
/// ...and where they have none.
const UNNUMBERED_NS: u64 = 100_000;
/// The first packet of a connection is not sent again for so long.
const OPENS_NS: u64 = 10_000_000;
/// Packets that are remembered; those that are too old go when there are so many.
const MOST: usize = 1 << 13;

/// Packets of a short time.
#[derive(Debug, Default)]
pub(super) struct PacketCopies {
    seen: HashMap<u64, u64>,
}

impl PacketCopies {
    /// Whether the packet was seen just before, at an interface of the same name. What has no data is not looked at.
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

/// The number that its sender gave to a packet of IPv4, if it gave one.
fn identification(packet: &[u8]) -> Option<u16> {
    let header = packet
        .first_chunk::<20>()
        .filter(|header| header[0] >> 4 == 4)?;
    Some(u16::from_be_bytes([header[4], header[5]])).filter(|number| *number != 0)
}
