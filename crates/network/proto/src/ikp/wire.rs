//! The headers of IKP's packets. They have the form of [`crate::blast::wire`]; their fields mean, in every packet:
//!
//! | field | Send | Reply | Pending, Refuse | MoveFrom | Data of a move | Answer |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | connection | the client's number | the same | the same | the same | the same | the same |
//! | blast | transaction | transaction | transaction | transaction | number of the blast | the same |
//! | round | which Send of the message | the last one heard | the same | which request of this range | of the blast | the same |
//! | flags | [`ONCE`] | | | | as in blasts | as in blasts |
//! | index | bytes of the message | bytes of the message | 0 | number of the move | as in blasts | as in blasts |
//! | length | bytes that may be read | bytes of data | 0 | bytes wanted | as in blasts | delivery |
//! | start | terms | where the data belongs | 0 | where they are | position | as far as is granted |
//! | check | bytes that may be written | delivery | 0 | delivery | delivery | as in blasts |
//!
//! Transactions are counted by the client and wrap. The **delivery** is the round of the Send that was received: a message
//! that is delivered twice has two, and their moves are kept apart. A **position** is the transaction and an offset in the
//! segment, so that a packet of one transaction fits into no other. Behind a Send's header comes the message, and then as
//! many of the first readable bytes as the packet has room for; behind a Reply's the message, then the data.

use super::options::{BESIDE, ClientParameters};
use crate::blast::{BlastHeader, BlastPacketKind};
use core::ops::Range;

/// The client requests delivery once only.
pub const ONCE: u8 = 16;

/// What the receiver of a message may do with the memory of its sender, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Bytes of the segment that it may read.
    pub readable: u32,
    /// Bytes of the segment that it may write.
    pub writable: u32,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IkpRefusal {
    /// The client's packets are longer than the server accepts, or of another version.
    Parameters = 1,
    /// The server has no room for more clients.
    Full = 2,
}

impl IkpRefusal {
    /// The refusal with that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Parameters, Self::Full]
            .into_iter()
            .find(|refusal| *refusal as u8 == number)
    }

    /// The header of a refusal, for the sender of a packet with this header.
    #[must_use]
    pub fn header(send: &BlastHeader) -> BlastHeader {
        BlastHeader {
            blast: send.blast,
            round: send.round,
            ..BlastHeader::new(BlastPacketKind::Refuse, send.connection)
        }
    }
}

/// The position of a segment's byte in a transaction.
#[must_use]
pub(crate) const fn position(transaction: u32, offset: u32) -> u64 {
    (transaction as u64) << 32 | offset as u64
}

/// The positions of a part of a segment.
#[must_use]
pub(crate) const fn positions(transaction: u32, offset: u32, bytes: u32) -> Range<u64> {
    let from = position(transaction, offset);
    from..from + bytes as u64
}

/// The offset in its segment of a position.
#[must_use]
pub(crate) const fn offset(position: u64) -> u32 {
    position as u32
}

/// The transaction of a position.
#[must_use]
pub(crate) const fn transaction(position: u64) -> u32 {
    (position >> 32) as u32
}

/// Whether a part (`offset`, `bytes`) lies inside a segment of `all` bytes.
#[must_use]
pub(crate) const fn inside(offset: u32, bytes: u32, all: u32) -> bool {
    offset as u64 + bytes as u64 <= all as u64
}

/// How many of the readable bytes travel with a message.
#[must_use]
pub(crate) fn carried(packet: u32, message: u32, readable: u32) -> u32 {
    (packet + BESIDE).saturating_sub(message).min(readable)
}

/// The content of a Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) connection: u32,
    pub(crate) transaction: u32,
    pub(crate) round: u16,
    pub(crate) once: bool,
    pub(crate) message: u32,
    pub(crate) grants: Grants,
    pub(crate) parameters: ClientParameters,
}

impl Send {
    pub(crate) fn header(&self) -> BlastHeader {
        BlastHeader {
            flags: if self.once { ONCE } else { 0 },
            round: self.round,
            blast: self.transaction,
            length: self.grants.readable,
            start: self.parameters.pack(),
            index: self.message as u16,
            check: self.grants.writable,
            ..BlastHeader::new(BlastPacketKind::Send, self.connection)
        }
    }

    /// Reads a Send from a header with these parameters and `payload` bytes behind it; `None` where they contradict
    /// each other.
    pub(crate) fn read(
        header: &BlastHeader,
        parameters: ClientParameters,
        payload: usize,
    ) -> Option<Self> {
        let message = u32::from(header.index);
        let grants = Grants {
            readable: header.length,
            writable: header.check,
        };
        let bytes = message + carried(parameters.packet, message, grants.readable);
        (message <= parameters.packet + BESIDE && bytes as usize == payload).then_some(Self {
            connection: header.connection,
            transaction: header.blast,
            round: header.round,
            once: header.has(ONCE),
            message,
            grants,
            parameters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ikp::IkpOptions;

    #[test]
    fn a_send_is_read_as_it_was_meant() {
        let parameters = ClientParameters::from_options(&IkpOptions::v().fitted());
        let grants = Grants {
            readable: 5000,
            writable: 65536,
        };
        let send = Send {
            connection: 7,
            transaction: 9,
            round: 1,
            once: true,
            message: 32,
            grants,
            parameters,
        };
        assert_eq!(Send::read(&send.header(), parameters, 1056), Some(send));
        assert_eq!(Send::read(&send.header(), parameters, 1055), None);
        assert_eq!(carried(1024, 32, 5000), 1024);
        assert_eq!(carried(1024, 32, 10), 10);
    }

    #[test]
    fn positions_of_one_transaction_are_in_no_other() {
        let all = positions(u32::MAX, 0, u32::MAX);
        assert_eq!(
            (transaction(all.start), transaction(all.end - 1)),
            (u32::MAX, u32::MAX)
        );
        assert!(
            inside(0, u32::MAX, u32::MAX) && !inside(1, u32::MAX, u32::MAX) && !inside(11, 0, 10)
        );
    }
}
