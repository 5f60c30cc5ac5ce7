//! A run: consecutive packets of one blast that leave together, and why they leave. Plain data.

use super::options::BlastExtent;
use super::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, FIN};

/// Consecutive packets of one blast, all full but the last of the blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastPacketRun {
    /// Which connection.
    pub connection: u32,
    /// The blast they belong to.
    pub blast: BlastExtent,
    /// Which transmission of it.
    pub round: u16,
    /// Index of the first packet.
    pub first: u32,
    /// How many packets.
    pub count: u32,
    /// Whether the last of them requests an answer.
    pub requests_ack: bool,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Why they leave.
    pub reason: BlastSendReason,
}

/// Why packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastSendReason {
    /// For the first time.
    New,
    /// The receiver reported it as missing.
    Missing,
    /// A request was not answered in time.
    Timeout,
    /// A later request was answered, this one was not.
    Overtaken,
}

impl BlastSendReason {
    /// The word for it in events.
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
    /// The header of its `n`th packet; `check` goes with the one that requests an answer.
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

    /// Stream position and bytes of its `n`th packet.
    #[must_use]
    #[inline]
    pub fn span(&self, n: u32) -> (u64, u32) {
        self.blast.span(self.first + n, self.packet)
    }
}
