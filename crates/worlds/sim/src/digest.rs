//! The tap of every run: it computes a digest of all network events, counts them, and notes when packets of waiting
//! senders have left their hosts. It passes every event on to an inner tap.

use crate::datagram::SimDatagram;
use stackline_core::network as plan;
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, NetworkEvent, NetworkLocation, NetworkPacket, NodeIndex, Tap};
use std::collections::BTreeMap;

/// How long a packet that its own host drops keeps its place in the send buffer. Without this a sender would go on
/// dropping at one instant for ever, where a real one is slowed down by its processor.
const DROPPED: Duration = Duration(1_000_000);

/// A packet that has left its host, or was dropped there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) at: Instant,
    pub(crate) pair: u32,
    pub(crate) from: NodeIndex,
    pub(crate) bytes: u32,
}

/// The tap of every run.
#[derive(Debug)]
pub(crate) struct RunDigestTap<T> {
    pub(crate) inner: T,
    pub(crate) digest: u64,
    pub(crate) events: u64,
    /// The host at the sending end of each port.
    hosts: Vec<Option<NodeIndex>>,
    /// Whether anybody waits for departures.
    pub(crate) departures_wanted: bool,
    pub(crate) departures: Vec<Departure>,
}

impl<T> RunDigestTap<T> {
    pub(crate) fn new(network: &plan::Network, inner: T) -> Self {
        let names: BTreeMap<&str, u32> = network
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .zip(0..)
            .collect();
        let host = |name: &str| names.get(name).copied().map(NodeIndex);
        let hosts = network
            .links
            .iter()
            .flat_map(|link| [host(&link.ends.0), host(&link.ends.1)])
            .collect();
        let digest = 0x9e37_79b9_7f4a_7c15;
        Self {
            inner,
            digest,
            events: 0,
            hosts,
            departures_wanted: false,
            departures: Vec::new(),
        }
    }

    /// Mixes a word into the digest; the order matters.
    #[inline]
    pub(crate) const fn mix(&mut self, word: u64) {
        self.digest = (self.digest ^ word)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(29);
    }

    fn note_departure(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<SimDatagram>,
    ) {
        let first = match place {
            NetworkLocation::Port(port) => {
                self.hosts.get(port.0 as usize).copied().flatten() == Some(packet.from)
            }
            NetworkLocation::Host(node) => node == packet.from,
        };
        // A packet that a link loses has left its queue before.
        let lost = matches!(
            what,
            NetworkEvent::Drop(DropReason::Lost | DropReason::BitError | DropReason::CellLost)
        );
        if first && !lost && matches!(what, NetworkEvent::Dequeue | NetworkEvent::Drop(_)) {
            let (pair, from, bytes) = (packet.payload.pair, packet.from, packet.bytes() as u32);
            let at = if matches!(what, NetworkEvent::Drop(_)) {
                at + DROPPED
            } else {
                at
            };
            self.departures.push(Departure {
                at,
                pair,
                from,
                bytes,
            });
        }
    }
}

impl<T: Tap<SimDatagram>> Tap<SimDatagram> for RunDigestTap<T> {
    const ON: bool = true;
    const LENGTHS: bool = T::LENGTHS;

    #[inline]
    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<SimDatagram>,
    ) {
        self.events += 1;
        let (kind, number) = match place {
            NetworkLocation::Port(port) => (0_u64, port.0),
            NetworkLocation::Host(node) => (1, node.0),
        };
        let code = match what {
            NetworkEvent::Enqueue(_) => 0,
            NetworkEvent::Dequeue => 1,
            NetworkEvent::Mark => 2,
            NetworkEvent::Duplicate => 3,
            NetworkEvent::Deliver => 4,
            NetworkEvent::Drop(reason) => {
                5 + DropReason::ALL
                    .iter()
                    .position(|r| *r == reason)
                    .unwrap_or(0) as u64
            }
        };
        self.mix(at.0);
        self.mix(packet.bytes() << 40 | u64::from(number) << 8 | code << 1 | kind);
        if self.departures_wanted {
            self.note_departure(at, place, what, packet);
        }
        if T::ON {
            self.inner.record(at, place, what, packet);
        }
    }
}
