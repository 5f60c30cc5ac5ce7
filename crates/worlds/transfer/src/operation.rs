//! The memory of one operation of a channel: bytes of the stream to send, and memory to receive into.

use crate::error::Error;
use crate::stream_memory::{self, Posted};

/// The memory of one operation.
pub(crate) struct ChannelOperation<'a> {
    /// The bytes to send.
    pub(crate) data: &'a [u8],
    /// Stream position of the first byte of `data`.
    pub(crate) from: u64,
    /// After this many bytes, sending begins again at the first byte of `data`.
    pub(crate) round: usize,
    /// The memory to receive into.
    pub(crate) posted: Posted<'a>,
}

impl ChannelOperation<'_> {
    /// The bytes at stream positions `from..to`; an error if the operation does not have them.
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

    /// The CRC-32C of the bytes at stream positions `from..to`.
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
