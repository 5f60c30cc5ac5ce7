//! What IMPs send one another: packets of messages, words about messages, routing, and what acknowledges them.
//!
//! Formats are those of BBN 2499 (sections 2.1.2 and 2.3) as far as they are counted: nothing here is bytes.

use super::routing::Vector;
use alloc::rc::Rc;

/// Data bits of a full packet: 63 words of 16 bits (BBN 2499, 2.1.2).
pub const FULL_BITS: u32 = 1008;
/// Packets of a message, at most.
pub const MOST_PARTS: u8 = 8;
/// Bits of a message, at most.
pub const FULL_MESSAGE_BITS: u32 = FULL_BITS * MOST_PARTS as u32;
/// Bits of a word.
pub const WORD_BITS: u32 = 16;

/// A host: its IMP and its number there.
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
    /// Who sends it.
    pub from: ImpHostAddress,
    /// Who gets it.
    pub to: ImpHostAddress,
    /// Its data, bits; from 0 to [`FULL_MESSAGE_BITS`].
    pub bits: u32,
    /// What its sender calls it.
    pub id: u64,
}

impl ImpMessage {
    /// How many packets it takes: one even for none of data.
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

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpPacketKind {
    /// A part of a message. A message of one packet asks for its room by itself.
    Data {
        /// Which part, from 0.
        part: u8,
        /// How many there are.
        parts: u8,
        /// What the sending host calls the message.
        id: u64,
        /// Bits of the whole message.
        of_bits: u32,
    },
    /// Room for a message is asked for: of so many packets.
    Request {
        /// Packets: 1 or 8.
        packets: u8,
    },
    /// There is room for it.
    Allocate {
        /// Packets: 1 or 8.
        packets: u8,
    },
    /// The message was delivered (Request For Next Message); `allocates`: there is room for the next.
    Rfnm {
        /// Whether room for a message of eight packets is kept for its sender.
        allocates: bool,
    },
    /// Room is given back unused.
    GiveBack,
    /// The message was not delivered.
    Failed(ImpDeliveryFailure),
    /// What became of a message is asked.
    Query,
}

/// Why a message was not delivered, as it is reported to the host that sent it (BBN 1822, types 7 and 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImpDeliveryFailure {
    /// The IMP of its destination cannot be reached.
    DeadImp,
    /// The host is dead.
    DeadHost,
    /// The host did not take it in time.
    HostSlow,
    /// It was lost in the network: an incomplete transmission.
    Incomplete,
}

/// A packet on its way through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpPacket {
    /// The host whose message it is of, and the IMP that sends it.
    pub from: ImpHostAddress,
    /// Where it goes.
    pub to: ImpHostAddress,
    /// What it is for.
    pub kind: ImpPacketKind,
    /// The number of its message among all from the one IMP to the other.
    pub number: u32,
    /// The oldest message of its IMP to the other that was not answered: none before it comes any more.
    pub first: u32,
    /// Since when the sending IMP counts: another one after it was started anew.
    pub epoch: u16,
    /// The same of the IMP that it is for, as far as its sender knows: what was sent to it before it was started anew is void.
    pub to_epoch: u16,
    /// Data bits in it.
    pub bits: u32,
}

impl ImpPacket {
    /// Whether it goes before others: whatever says something of a message, and messages of one packet.
    #[must_use]
    pub const fn has_priority(&self) -> bool {
        !matches!(self.kind, ImpPacketKind::Data { parts: 2.., .. })
    }

    /// Whether it has data.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self.kind, ImpPacketKind::Data { .. })
    }
}

/// What is on a line.
#[derive(Clone, Debug)]
pub struct ImpFrame {
    /// What it carries.
    pub load: ImpFrameLoad,
    /// The states of eight of the receiving channels, and which eight: they acknowledge.
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
    /// A routing message; hello as well.
    Routing(Rc<Vector>),
    /// Nothing but acknowledgements; `heard`: it answers a hello.
    Null {
        /// Whether a routing message was heard.
        heard: bool,
    },
}

impl ImpFrame {
    /// Data bits beside the overhead.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        match &self.load {
            ImpFrameLoad::Packet { packet, .. } => packet.bits,
            // Of the largest network of the time, a full packet (history of the formats: 68 words less their header).
            ImpFrameLoad::Routing(_) => FULL_BITS,
            ImpFrameLoad::Null { .. } => 0,
        }
    }

    /// The message of a host and the part of it that it carries.
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
