//! What IMPs send to each other: packets of messages, packets about messages (requests, answers), routing messages, acknowledgements.
//!
//! The contents follow BBN 2499 (sections 2.1.2 and 2.3). Packets are values with sizes in bits; they are not encoded as bytes.

use super::routing::Vector;
use alloc::rc::Rc;

/// Data bits of a full packet: 63 words of 16 bits (BBN 2499, 2.1.2).
pub const FULL_BITS: u32 = 1008;
/// The most packets in a message.
pub const MOST_PARTS: u8 = 8;
/// The most data bits in a message.
pub const FULL_MESSAGE_BITS: u32 = FULL_BITS * MOST_PARTS as u32;
/// Bits in a word of an IMP's memory.
pub const WORD_BITS: u32 = 16;

/// The address of a host: its IMP and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImpHostAddress {
    /// The IMP, from 0.
    pub imp: u16,
    /// The host there, from 0.
    pub host: u16,
}

/// A message between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpMessage {
    /// The sending host.
    pub from: ImpHostAddress,
    /// The receiving host.
    pub to: ImpHostAddress,
    /// Its data, bits; from 0 to [`FULL_MESSAGE_BITS`].
    pub bits: u32,
    /// The id that the sending host has given it.
    pub id: u64,
}

impl ImpMessage {
    /// The number of its packets; one even without data.
    #[must_use]
    pub const fn parts(&self) -> u8 {
        let parts = self.bits.div_ceil(FULL_BITS);
        if parts == 0 { 1 } else { parts as u8 }
    }

    /// Data bits of one of its packets.
    #[must_use]
    pub const fn bits_of(&self, part: u8) -> u32 {
        let rest = self.bits.saturating_sub(part as u32 * FULL_BITS);
        if rest < FULL_BITS { rest } else { FULL_BITS }
    }
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpPacketKind {
    /// A part of a message. A message of one packet is also a request for a buffer.
    Data {
        /// Which part, from 0.
        part: u8,
        /// How many there are.
        parts: u8,
        /// The id that the sending host has given the message.
        id: u64,
        /// Bits of the whole message.
        of_bits: u32,
    },
    /// A request for buffers for a message of that many packets.
    Request {
        /// Packets: 1 or 8.
        packets: u8,
    },
    /// An allocation: buffers for a message of that many packets are reserved.
    Allocate {
        /// Packets: 1 or 8.
        packets: u8,
    },
    /// The message was delivered (Request For Next Message).
    Rfnm {
        /// Whether buffers for another message of eight packets are reserved for its sender.
        allocates: bool,
    },
    /// Reserved buffers are given back unused.
    GiveBack,
    /// The message was not delivered.
    Failed(ImpDeliveryFailure),
    /// A query about the fate of a message.
    Query,
}

/// Why a message was not delivered, as it is reported to the host that sent it (BBN 1822, types 7 and 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImpDeliveryFailure {
    /// The IMP of its destination cannot be reached.
    DeadImp,
    /// The host is dead.
    DeadHost,
    /// The host did not accept it in time.
    HostSlow,
    /// It was lost in the network: an incomplete transmission.
    Incomplete,
}

/// A packet on its way through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpPacket {
    /// The sending host, whose IMP sends the packet; host 0 where the packet is the IMP's own.
    pub from: ImpHostAddress,
    /// Where it goes.
    pub to: ImpHostAddress,
    /// Its kind.
    pub kind: ImpPacketKind,
    /// The number of its message among all from its IMP to the other.
    pub number: u32,
    /// The number of the oldest unanswered message from its IMP to the other: no message before it will come.
    pub first: u32,
    /// The epoch of the sending IMP: it changes when the IMP restarts, and numbers then begin again.
    pub epoch: u16,
    /// The epoch of the receiving IMP, as far as the sender knows: packets of an earlier epoch are void.
    pub to_epoch: u16,
    /// Data bits in it.
    pub bits: u32,
}

impl ImpPacket {
    /// Whether it has priority: all but the packets of messages of several packets.
    #[must_use]
    pub const fn has_priority(&self) -> bool {
        !matches!(self.kind, ImpPacketKind::Data { parts: 2.., .. })
    }

    /// Whether it carries a host's data.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self.kind, ImpPacketKind::Data { .. })
    }
}

/// A transmission on a line.
#[derive(Clone, Debug)]
pub struct ImpFrame {
    /// What it carries.
    pub load: ImpFrameLoad,
    /// Acknowledgements: which group of eight receiving channels, and a bit for the state of each.
    pub acks: (u16, u8),
}

/// What a frame carries.
#[derive(Clone, Debug)]
pub enum ImpFrameLoad {
    /// A packet, on a channel, with the channel's odd/even bit.
    Packet {
        /// The channel.
        channel: u16,
        /// Its odd/even bit.
        odd: bool,
        /// The packet.
        packet: ImpPacket,
    },
    /// A routing message, which is also a hello to the neighbour.
    Routing(Rc<Vector>),
    /// Nothing but acknowledgements; it may also answer a hello.
    Null {
        /// Whether a routing message was heard.
        heard: bool,
    },
}

impl ImpFrame {
    /// Its bits without the overhead.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        match &self.load {
            ImpFrameLoad::Packet { packet, .. } => packet.bits,
            // For the largest network of the time, as long as a full packet: 68 words, less the header.
            ImpFrameLoad::Routing(_) => FULL_BITS,
            ImpFrameLoad::Null { .. } => 0,
        }
    }

    /// The id of the message and the part of it that the frame carries, if any.
    #[must_use]
    pub const fn part(&self) -> Option<(u64, u8)> {
        match &self.load {
            ImpFrameLoad::Packet {
                packet:
                    ImpPacket {
                        kind: ImpPacketKind::Data { part, id, .. },
                        ..
                    },
                ..
            } => Some((*id, *part)),
            _ => None,
        }
    }

    /// Whether it carries data of a host.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(&self.load, ImpFrameLoad::Packet { packet, .. } if packet.is_data())
    }
}
