//! A run: consecutive packets of one blast that are sent together, and why they are sent. Plain data.

use super::options::BlastExtent;
use super::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, FIN};

/// Consecutive packets of one blast, all full but the last of the blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastPacketRun {
    /// The number of the connection.
    pub connection: u32,
    /// The blast that the packets belong to.
    pub blast: BlastExtent,
    /// The number of the transmission of the blast, from 0.
    pub round: u16,
    /// The index of the first packet in the blast.
    pub first: u32,
    /// The number of packets.
    pub count: u32,
    /// Whether the last of them requests an answer.
    pub requests_ack: bool,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Why they are sent.
    pub reason: BlastSendReason,
}

/// Why packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastSendReason {
    /// They are sent for the first time.
    New,
    /// The receiver reported them as missing.
    Missing,
    /// A request was not answered in time.
    Timeout,
    /// A later request was answered, this one was not.
    Overtaken,
}

impl BlastSendReason {
    /// The reason as a word, as events show it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Missing => "nak",
            Self::Timeout => "timeout",
            Self::Overtaken => "overtaken",
        }
    }
}

impl BlastPacketRun {
    /// The header of its `n`th packet (from 0). `check` is put into the packet that requests an answer.
    #[must_use]
    #[inline]
    pub fn header(&self, n: u32, check: u32) -> BlastHeader {
        let requests_ack = self.requests_ack && n + 1 == self.count;
        let flags =
            if requests_ack { ACK_REQUEST } else { 0 } | if self.blast.last { FIN } else { 0 };
        BlastHeader {
            kind: BlastPacketKind::Data,
            flags,
            round: self.round,
            connection: self.connection,
            blast: self.blast.number,
            length: self.blast.length,
            start: self.blast.start,
            index: (self.first + n) as u16,
            check: if requests_ack { check } else { 0 },
        }
    }

    /// The stream position and the bytes of its `n`th packet (from 0).
    #[must_use]
    #[inline]
    pub fn span(&self, n: u32) -> (u64, u32) {
        self.blast.span(self.first + n, self.packet)
    }
}
