//! Network events, where they happen and why: the basis of traces, captures and counters.

use crate::packet::{NetworkPacket, NodeIndex};
use core::fmt;
use stackline_core::time::{Duration, Instant};

/// One direction of a link, by its place: link `i` of the network has `2 i` (first to second end) and `2 i + 1` (back).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u32);

/// The place of a network event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkLocation {
    /// At the sending end of one direction of a link, or on it.
    Port(PortIndex),
    /// At a host.
    Host(NodeIndex),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The switch's shared buffer was full.
    SharedBufferFull,
    /// A newer packet took its place at the head of the queue.
    Displaced,
    /// Random early detection dropped it by probability.
    RedEarly,
    /// Random early detection dropped it because the average queue was too long.
    RedForced,
    /// It waited too long (CoDel).
    CoDel,
    /// The proportional integral controller (PIE) dropped it.
    Pie,
    /// The controller of DualPI2 dropped it.
    DualPi2,
    /// It found too few tokens in a policer.
    Policed,
    /// The link lost it.
    Lost,
    /// One of its bits was wrong.
    BitError,
    /// One of its cells was lost or dropped.
    CellLost,
    /// A cell switch discarded the whole frame.
    EarlyDiscard,
    /// Larger than the link's MTU.
    TooLarge,
    /// The host's interface had no free buffer.
    InterfaceFull,
    /// No path leads to its host.
    NoPath,
    /// Its time to live ran out at a router.
    TtlExpired,
    /// It came from outside, and a router that translates addresses has no translation for it.
    NotTranslated,
    /// The router's table of translations is full.
    NatTableFull,
    /// It came from outside and belongs to no connection that the firewall knows.
    FirewallRefused,
    /// The firewall's table of connections is full.
    FirewallTableFull,
}

impl DropReason {
    /// All reasons, in the order of their discriminants, by which [`PortCounters::drops`] is indexed.
    pub const ALL: [Self; 21] = [
        Self::QueueFull,
        Self::SharedBufferFull,
        Self::Displaced,
        Self::RedEarly,
        Self::RedForced,
        Self::CoDel,
        Self::Pie,
        Self::DualPi2,
        Self::Policed,
        Self::Lost,
        Self::BitError,
        Self::CellLost,
        Self::EarlyDiscard,
        Self::TooLarge,
        Self::InterfaceFull,
        Self::NoPath,
        Self::TtlExpired,
        Self::NotTranslated,
        Self::NatTableFull,
        Self::FirewallRefused,
        Self::FirewallTableFull,
    ];
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "queue full",
            Self::SharedBufferFull => "switch buffer full",
            Self::Displaced => "displaced from the head of the queue",
            Self::RedEarly => "RED, early",
            Self::RedForced => "RED, average above the maximum",
            Self::CoDel => "CoDel, queued too long",
            Self::Pie => "PIE",
            Self::DualPi2 => "DualPI2",
            Self::Policed => "above the rate of a policer",
            Self::Lost => "lost on the link",
            Self::BitError => "bit error on the link",
            Self::CellLost => "one of its cells was lost",
            Self::EarlyDiscard => "early packet discard",
            Self::TooLarge => "larger than the MTU",
            Self::InterfaceFull => "no free buffer in the host's interface",
            Self::NoPath => "no path",
            Self::TtlExpired => "time to live ran out",
            Self::NotTranslated => "no address translation",
            Self::NatTableFull => "table of address translations full",
            Self::FirewallRefused => "refused by the firewall",
            Self::FirewallTableFull => "table of the firewall full",
        })
    }
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// It joined the queue before a link; the value is the queue's length in bytes, this packet included.
    Enqueue(u64),
    /// Its last bit has left the queue.
    Dequeue,
    /// It got a congestion mark (ECN).
    Mark,
    /// It was duplicated.
    Duplicate,
    /// It was dropped.
    Drop(DropReason),
    /// It reached its host.
    Deliver,
}

/// Receives every network event. `at` may be later than the present for what is already certain (a departure), so sort
/// a log by `at` before reading it. For several segments in one packet it is the instant of the last.
pub trait Tap<P> {
    /// Whether events are recorded at all; false costs nothing.
    const ON: bool;
    /// Whether queue lengths are wanted with [`NetworkEvent::Enqueue`] (0 is passed otherwise); they have to be kept.
    const LENGTHS: bool = true;
    /// Receives one event.
    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
    );
}

/// No tap: events are not recorded.
impl<P> Tap<P> for () {
    const ON: bool = false;
    const LENGTHS: bool = false;
    fn record(&mut self, _: Instant, _: NetworkLocation, _: NetworkEvent, _: &NetworkPacket<P>) {}
}

/// What went through one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets that left (each segment is one).
    pub packets: u64,
    /// Bytes of these packets, as the network layer counts them.
    pub bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// The time during which the link was transmitting.
    pub busy: Duration,
    /// Frames that lost their first cell here (lost on the link or dropped before it); such a frame never arrives
    /// whole.
    pub spoilt: u64,
    /// Packets dropped or lost, by reason in the order of [`DropReason::ALL`]; at a direction that leaves a cell
    /// switch, cells instead of packets.
    pub drops: [u64; DropReason::ALL.len()],
}

impl PortCounters {
    /// Drops and losses by reason, without zeros.
    pub fn drops_by_reason(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL
            .into_iter()
            .zip(self.drops)
            .filter(|(_, count)| *count > 0)
    }

    /// All drops and losses together.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }
}
