//! What a router reads of a packet, and the errors that it reports.

/// One end of a flow: an IPv4 address and a port. ICMP echoes have their identifier as the port of the side that asks,
/// and 0 on the other; protocols without ports have 0 on both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowEnd {
    /// The IPv4 address.
    pub address: [u8; 4],
    /// The port.
    pub port: u16,
}

/// What distinguishes flows between the same ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// The IP protocol number.
    Protocol(u8),
    /// The number of a simulated flow, whose packets have no headers.
    Simulated(u32),
}

/// A flow as one of its packets names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketFlow {
    /// The protocol.
    pub kind: FlowKind,
    /// The end that sent the packet.
    pub source: FlowEnd,
    /// The end that it is for.
    pub destination: FlowEnd,
}

impl PacketFlow {
    /// The same flow as packets in the other direction name it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            kind: self.kind,
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The headers of a packet, as far as routers look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutedHeader {
    /// The time to live that the packet arrived with.
    pub ttl: u8,
    /// The source address.
    pub source: [u8; 4],
    /// The flow; `None` for a fragment, which has no ports.
    pub flow: Option<PacketFlow>,
    /// For an ICMP error, the flow of the packet that it is about, as that packet named it.
    pub quoted: Option<PacketFlow>,
    /// Whether routers may cut it into fragments (IPv4 without the flag DF).
    pub may_fragment: bool,
    /// Whether an ICMP error may be sent about it: not about ICMP errors nor about later fragments (RFC 1122,
    /// section 3.2.2).
    pub may_report: bool,
}

/// Which address of a packet a translation replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSide {
    /// The source.
    Source,
    /// The destination.
    Destination,
}

/// An ICMP error that a router sends (RFC 792, RFC 1191, RFC 1812).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterIcmpError {
    /// Type 11, code 0: the time to live ran out.
    TimeExceeded,
    /// Type 3, code 0: no route.
    NetUnreachable,
    /// Type 3, code 4: larger than the next link allows, and it may not be cut.
    FragmentationNeeded {
        /// The largest packet that would pass, in bytes.
        mtu: u16,
    },
    /// Type 3, code 13: a firewall refuses it.
    Prohibited,
}

/// A packet cut in two by [`crate::PacketPayload::fragment`], whose first part stays in place.
#[derive(Debug)]
pub struct CutPacket<P> {
    /// Bytes of the first part, header included.
    pub first_bytes: u32,
    /// The rest.
    pub rest: P,
    /// Bytes of the rest, header included.
    pub rest_bytes: u32,
}
