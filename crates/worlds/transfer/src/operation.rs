//! What an operation has in hand: bytes of the stream to send, and memory to receive it into.

use crate::error::Error;
use crate::stream_memory::{self, Posted};

/// What an operation has in hand: bytes to send and memory to receive into.
pub(crate) struct ChannelOperation<'a> {
    /// Bytes to send, whose first one is at stream position `from`; after `round` of them they begin again.
    pub(crate) data: &'a [u8],
    pub(crate) from: u64,
    pub(crate) round: usize,
    /// Where to receive.
    pub(crate) posted: Posted<'a>,
}

impl ChannelOperation<'_> {
    /// Stream positions `from..to` of what is sent.
    pub(crate) fn slice(&self, from: u64, to: u64) -> Result<&[u8], Error> {
        let (begin, length) = (
            from.checked_sub(self.from),
            to.saturating_sub(from) as usize,
        );
        let begin = begin.map(|begin| (begin % self.round.max(1) as u64) as usize);
        begin
            .and_then(|begin| self.data.get(begin..begin + length))
            .ok_or(Error::Broken)
    }

    /// CRC-32C of stream positions `from..to` of what is sent.
    pub(crate) fn check(&self, from: u64, to: u64) -> Result<u32, Error> {
        let mut sum = 0;
        let mut at = from;
        while at < to {
            let next = to.min(at + stream_memory::TAIL as u64);
            sum = crc32c::crc32c_append(sum, self.slice(at, next)?);
            at = next;
        }
        Ok(sum)
    }
}
