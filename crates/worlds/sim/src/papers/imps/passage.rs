//! Where packets of messages pass, for whoever watches.

use stackline_core::time::Instant;
use stackline_proto::papers::imp::ImpHostAddress;
use std::collections::HashMap;

/// Where a packet passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpPassagePoint {
    /// From a host into its IMP.
    FromHost(ImpHostAddress),
    /// A direction of a line: two a line, the first from its first end.
    Line(usize),
    /// From its last IMP to its host.
    ToHost(ImpHostAddress),
}

/// A packet of a message passed somewhere, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpPacketPassage {
    /// The message.
    pub id: u64,
    /// Which of its packets.
    pub part: u8,
    /// Its data, bits.
    pub bits: u32,
    /// Where.
    pub place: ImpPassagePoint,
    /// Since when it was there: at the IMP before the line, or at the host.
    pub came: Instant,
    /// When its last bit had left.
    pub left: Instant,
    /// Whether the line lost it.
    pub is_lost: bool,
}

/// What packets pass, where that is wanted.
#[derive(Debug, Default)]
pub(super) struct ImpPassageWatch {
    /// Since when each packet is at an IMP: by IMP, message and part.
    pub(super) came: HashMap<(u16, u64, u8), Instant>,
    pub(super) passages: Vec<ImpPacketPassage>,
}
