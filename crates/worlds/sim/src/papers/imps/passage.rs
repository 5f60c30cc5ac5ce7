//! Passages: the record of a packet passing a host interface or a line, kept where somebody watches the network of IMPs.

use stackline_core::time::Instant;
use stackline_proto::papers::imp::ImpHostAddress;
use std::collections::HashMap;

/// The place that a packet passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpPassagePoint {
    /// From a host into its IMP.
    FromHost(ImpHostAddress),
    /// A direction of a line, by number: line `n` has directions `2n`, from its first end, and `2n + 1`.
    Line(usize),
    /// From its last IMP to its host.
    ToHost(ImpHostAddress),
}

/// One packet of a message passed one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpPacketPassage {
    /// The id of the message.
    pub id: u64,
    /// Which packet of the message, from 0.
    pub part: u8,
    /// Data bits in the packet.
    pub bits: u32,
    /// The place it passed.
    pub place: ImpPassagePoint,
    /// When it came to the place: to the IMP before the line, or to the interface.
    pub came: Instant,
    /// When its last bit left the place.
    pub left: Instant,
    /// Whether the line lost it.
    pub is_lost: bool,
}

/// The passages that nobody has taken yet, and the packets whose passage is not complete.
#[derive(Debug, Default)]
pub(super) struct ImpPassageWatch {
    /// When each packet came to the IMP where it is: by IMP, message id and part.
    pub(super) came: HashMap<(u16, u64, u8), Instant>,
    /// Completed passages that were not taken yet.
    pub(super) passages: Vec<ImpPacketPassage>,
}
