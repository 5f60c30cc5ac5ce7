//! The output of a client's and a server's machine: plain data.

use super::wire;
use crate::blast::{self, BlastHeader};
use alloc::vec::Vec;

/// What a machine sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IkpOutput {
    /// A packet without bytes of the application: a header and what follows it.
    Control(BlastHeader, Vec<u8>),
    /// A message and the data that travels with it: of a Send, or of the last Reply.
    Message(BlastHeader),
    /// Packets of a move.
    Run(IkpPacketRun),
}

/// Consecutive packets of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IkpPacketRun {
    pub(super) run: blast::BlastPacketRun,
    pub(super) delivery: u16,
}

impl IkpPacketRun {
    /// The number of packets.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.run.count
    }

    /// Whether its packets are sent for the first time.
    pub(super) const fn is_first(&self) -> bool {
        self.run.round == 0
    }

    /// The header of its `n`th packet.
    #[must_use]
    #[inline]
    pub fn header(&self, n: u32) -> BlastHeader {
        BlastHeader {
            check: u32::from(self.delivery),
            ..self.run.header(n, 0)
        }
    }

    /// The run of packets of a blast that this is.
    #[must_use]
    pub const fn packets(&self) -> &blast::BlastPacketRun {
        &self.run
    }

    /// The offset in the segment of its `n`th packet's data, and its bytes.
    #[must_use]
    #[inline]
    pub fn span(&self, n: u32) -> (u32, u32) {
        let (position, bytes) = self.run.span(n);
        (wire::offset(position), bytes)
    }
}

/// The answer of a receiver of a move, with the delivery that it belongs to.
pub(super) fn answer(header: BlastHeader, body: Vec<u8>, delivery: u16) -> IkpOutput {
    IkpOutput::Control(
        BlastHeader {
            length: u32::from(delivery),
            ..header
        },
        body,
    )
}
