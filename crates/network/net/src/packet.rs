//! What travels through the network: a packet, or several segments of one flow that segmentation offload left together
//! (a "train").
//!
//! A train of segments is one [`NetworkPacket`] until a loss, a mark, the edge of a queue or its own length cuts it.

use crate::routed_packet::{CutPacket, FlowEnd, FlowSide, RoutedHeader, RouterIcmpError};

/// A host or a switch, by its place in the network: hosts first, in the order declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// The second byte of the IPv4 addresses of first interfaces; further ones have the numbers behind it.
pub(crate) const FIRST_NET: u8 = 71;
/// The second byte of the IPv4 addresses of routers.
pub(crate) const ROUTER_NET: u8 = 70;

/// The IPv4 address of a host, in every world that models it: that of its first interface.
#[must_use]
pub const fn host_address(host: NodeIndex) -> [u8; 4] {
    interface_address(host, 0)
}

/// The IPv4 address of an interface, numbered from 0, of host `i` from 0: `10.(71 + interface).(i / 250).(i % 250 + 1)`.
/// There is room for 64,000 hosts.
#[must_use]
pub const fn interface_address(host: NodeIndex, interface: u32) -> [u8; 4] {
    let net = FIRST_NET + interface as u8;
    // Neither 0 nor 255 as last byte: a /24 uses these for itself and for broadcasts.
    [
        10,
        net,
        (host.0 / 250 % 256) as u8,
        (host.0 % 250 + 1) as u8,
    ]
}

/// The IPv6 address of a host, in every world that models it: that of its first interface.
#[must_use]
pub const fn host_address_v6(host: NodeIndex) -> [u8; 16] {
    interface_address_v6(host, 0)
}

/// The IPv6 address of an interface, numbered from 0: `fd71::N` for the first of host `N - 1`, `fd71:0:0:1::N` for its
/// second, of a unique local prefix (RFC 4193).
#[must_use]
pub const fn interface_address_v6(host: NodeIndex, interface: u32) -> [u8; 16] {
    let [a, b, c, d] = (host.0 + 1).to_be_bytes();
    let interface = interface as u8;
    [0xfd, 0x71, 0, 0, 0, 0, 0, interface, 0, 0, 0, 0, a, b, c, d]
}

/// The IPv4 address of a router, in every world that models it: `10.70.(i / 250).(i % 250 + 1)` for node `i` from 0 among
/// the switches and routers of the network.
#[must_use]
pub const fn router_address(switch: u32) -> [u8; 4] {
    [
        10,
        ROUTER_NET,
        (switch / 250 % 256) as u8,
        (switch % 250 + 1) as u8,
    ]
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMarking {
    /// The sender does not support it: a packet that would be marked is dropped.
    #[default]
    NotCapable,
    /// ECT(0): it may be marked.
    Capable,
    /// ECT(1): it may be marked, and its sender answers each mark with a small reduction (L4S, RFC 9331).
    Scalable,
    /// It has been marked.
    Marked,
}

/// The sizes of a packet's segments, in bytes of the network layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSizes {
    /// The number of segments, at least one.
    pub count: u32,
    /// Bytes of headers that every segment has on the wire (network and transport layer).
    pub header: u32,
    /// Bytes that each segment but the last carries behind its headers.
    pub full: u32,
    /// Bytes that the last segment carries behind its headers.
    pub last: u32,
}

impl SegmentSizes {
    /// A packet of one segment: `bytes` with all headers of the network layer and above.
    #[must_use]
    pub const fn one(bytes: u32) -> Self {
        Self {
            count: 1,
            header: 0,
            full: bytes,
            last: bytes,
        }
    }

    /// The bytes of the segment with that index, headers included.
    #[must_use]
    pub const fn bytes_of(&self, index: u32) -> u64 {
        let carried = if index + 1 == self.count {
            self.last
        } else {
            self.full
        };
        self.header as u64 + carried as u64
    }

    /// The bytes of all segments, headers included.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let all_but_one = (self.count - 1) as u64 * (self.header as u64 + self.full as u64);
        all_but_one + self.header as u64 + self.last as u64
    }

    /// The sizes of the first `at` segments and of the rest; `at` is above 0 and below `count`.
    #[must_use]
    pub const fn split(self, at: u32) -> (Self, Self) {
        (
            Self {
                count: at,
                last: self.full,
                ..self
            },
            Self {
                count: self.count - at,
                ..self
            },
        )
    }
}

/// What a world attaches to a packet: the frame itself, or the simulated datagram.
pub trait PacketPayload: Sized {
    /// Keeps the first `at` segments and returns the rest. Called only on packets of several segments.
    fn split(&mut self, at: u32) -> Self;
    /// Writes the mark of congestion into the headers.
    fn mark(&mut self);
    /// Writes a code point of differentiated services (RFC 2474), 0 to 63, into the headers.
    fn set_dscp(&mut self, dscp: u8);
    /// A copy, for a link that duplicates.
    fn again(&self) -> Self;

    // What routers do. A world whose packets have no headers leaves all of it out: its routers count hops, and know
    // flows by their numbers.

    /// The headers; `None` where packets have none.
    fn routed_header(&self) -> Option<RoutedHeader> {
        None
    }
    /// Counts the time to live down by one.
    fn count_down(&mut self) {}
    /// Writes another address and port in place of one end. In an ICMP error, also in the packet that it quotes, at the
    /// other side.
    fn translate(&mut self, _side: FlowSide, _new: FlowEnd) {}
    /// Cuts it into fragments (RFC 791, section 3.2): keeps the first, of at most `mtu` bytes, and returns the rest,
    /// which may be too large still. `None`, and nothing is cut, if it cannot be. Called only on packets of one segment.
    fn fragment(&mut self, _mtu: u64) -> Option<CutPacket<Self>> {
        None
    }
    /// The ICMP error about it that a router with this address sends to its source, and the error's bytes.
    fn icmp_error(&self, _error: RouterIcmpError, _router: [u8; 4]) -> Option<(Self, u32)> {
        None
    }
    /// What a router with this address answers when it is for the router itself, and the answer's bytes.
    fn router_answer(&self, _router: [u8; 4]) -> Option<(Self, u32)> {
        None
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct NetworkPacket<P> {
    /// Its number, from 1, in the order handed over; parts and copies keep it. The network assigns it.
    pub number: u64,
    /// The host that sent it.
    pub from: NodeIndex,
    /// The host it is for.
    pub to: NodeIndex,
    /// The number of its flow between the two hosts, the same for all packets of a flow; it chooses among equal paths
    /// and among flow queues.
    pub flow: u32,
    /// Whether it may be marked, or has been.
    pub ecn: EcnMarking,
    /// Its code point of differentiated services (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// The number and the sizes of its segments.
    pub segments: SegmentSizes,
    /// What the world attached to it.
    pub payload: P,
}

impl<P> NetworkPacket<P> {
    /// The bytes of all segments, as the network layer counts them.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.segments.bytes()
    }
}

impl<P: PacketPayload> NetworkPacket<P> {
    /// Keeps the first `at` segments and returns the rest.
    #[must_use]
    pub fn split(&mut self, at: u32) -> Self {
        let (front, back) = self.segments.split(at);
        self.segments = front;
        Self {
            segments: back,
            payload: self.payload.split(at),
            ..*self
        }
    }

    /// A copy of the packet.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            payload: self.payload.again(),
            ..*self
        }
    }

    /// Sets the congestion mark if the sender supports ECN. Returns false if it does not.
    pub fn mark(&mut self) -> bool {
        match self.ecn {
            EcnMarking::NotCapable => false,
            EcnMarking::Marked => true,
            EcnMarking::Capable | EcnMarking::Scalable => {
                self.ecn = EcnMarking::Marked;
                self.payload.mark();
                true
            }
        }
    }

    /// Gives the packet another code point of differentiated services, 0 to 63.
    pub fn remark(&mut self, dscp: u8) {
        if self.dscp != dscp {
            self.dscp = dscp;
            self.payload.set_dscp(dscp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(host_address(NodeIndex(0)), [10, 71, 0, 1]);
        assert_eq!(host_address(NodeIndex(249)), [10, 71, 0, 250]);
        assert_eq!(host_address(NodeIndex(250)), [10, 71, 1, 1]);
        assert_eq!(host_address(NodeIndex(63_999)), [10, 71, 255, 250]);
        let six = |host| Ipv6Addr::from(host_address_v6(NodeIndex(host)));
        let written = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        assert_eq!(six(0), written("fd71::1"));
        assert_eq!(six(63_999), written("fd71::fa00"));
        assert_eq!(interface_address(NodeIndex(1), 2), [10, 73, 0, 2]);
        let second = Ipv6Addr::from(interface_address_v6(NodeIndex(1), 1));
        assert_eq!(second, written("fd71:0:0:1::2"));
    }

    #[test]
    fn a_train_is_cut_without_losing_a_byte() {
        let train = SegmentSizes {
            count: 5,
            header: 52,
            full: 1448,
            last: 300,
        };
        assert_eq!(train.bytes(), 4 * 1500 + 352);
        for at in 1..5 {
            let (front, back) = train.split(at);
            assert_eq!(front.bytes() + back.bytes(), train.bytes());
            assert_eq!(back.bytes_of(back.count - 1), 352);
        }
        assert_eq!(SegmentSizes::one(40).bytes(), 40);
    }
}
