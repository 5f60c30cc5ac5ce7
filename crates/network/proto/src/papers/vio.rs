//! The I/O protocol of the V system: a file, a device or a connection (an *instance*) is a sequence of blocks that are read and written by
//! messages (Lantz, Nowicki and Theimer 1985, section 2.3). Messages may arrive twice; numbers keep a block from being read or written
//! twice.
//!
//! ```text
//! request  what 1 | create: length of the secret 1, secret, name
//!                 | read: instance 8, block 4     | write: instance 8, block 4, bytes
//!                 | release: instance 8           | look: instance 8 (something may have come for it)
//! reply    what 1 (0 done, 1 no more, 2 later, 3 refused)
//!                 | created: instance 8, bytes of a block 2     | read: bytes     | no more, refused: why
//! ```
//! Both sides count the next block to be read and the next to be written. The server keeps the block that was read last and returns it
//! again if asked again; a block that was written is not written again. No other bytes are kept.

use alloc::vec::Vec;

/// The most bytes in a block.
pub const BLOCK: usize = 1000;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioRequest<'r> {
    /// Create an instance of the object with that name.
    Create {
        /// The secret that admits the client; at most 255 bytes are sent.
        secret: &'r [u8],
        /// The name of the object.
        name: &'r [u8],
    },
    /// Read a block: instance and block number.
    Read(u64, u32),
    /// Write a block: instance, block number and bytes.
    Write(u64, u32, &'r [u8]),
    /// Release an instance.
    Release(u64),
    /// Check an instance: data may have arrived for a reader.
    Look(u64),
}

/// The reply of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioReply<'r> {
    /// The instance was created: its number, and the bytes of a block.
    Created(u64, u16),
    /// Done: the bytes that were read, or nothing after a write or a release.
    Done(&'r [u8]),
    /// The end of the instance's data, and the reason.
    Ended(&'r [u8]),
    /// Not possible at present: ask again later.
    Later,
    /// Refused, and the reason.
    Refused(&'r [u8]),
}

impl<'r> VioRequest<'r> {
    /// The request as a message.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Create { secret, name } => {
                let secret = secret.get(..255).unwrap_or(secret);
                [&[1, secret.len() as u8], secret, name].concat()
            }
            Self::Read(instance, block) => {
                [&[2], &instance.to_be_bytes()[..], &block.to_be_bytes()].concat()
            }
            Self::Write(instance, block, bytes) => [
                &[3],
                &instance.to_be_bytes()[..],
                &block.to_be_bytes(),
                bytes,
            ]
            .concat(),
            Self::Release(instance) => [&[4], &instance.to_be_bytes()[..]].concat(),
            Self::Look(instance) => [&[5], &instance.to_be_bytes()[..]].concat(),
        }
    }

    /// Reads a request; `None` if the message has another format.
    #[must_use]
    pub fn read(message: &'r [u8]) -> Option<Self> {
        let (what, rest) = message.split_first()?;
        if *what == 1 {
            let (length, rest) = rest.split_first()?;
            let (secret, name) = rest.split_at_checked(usize::from(*length))?;
            return Some(Self::Create { secret, name });
        }
        let (instance, rest) = rest.split_first_chunk()?;
        let instance = u64::from_be_bytes(*instance);
        let block = rest
            .split_first_chunk()
            .map(|(block, bytes)| (u32::from_be_bytes(*block), bytes));
        match (what, block) {
            (2, Some((block, _))) => Some(Self::Read(instance, block)),
            (3, Some((block, bytes))) => Some(Self::Write(instance, block, bytes)),
            (4, _) => Some(Self::Release(instance)),
            (5, _) => Some(Self::Look(instance)),
            _ => None,
        }
    }
}

impl<'r> VioReply<'r> {
    /// The reply as a message.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Created(instance, block) => {
                [&[0], &instance.to_be_bytes()[..], &block.to_be_bytes()].concat()
            }
            Self::Done(bytes) => [&[0], *bytes].concat(),
            Self::Ended(why) => [&[1], *why].concat(),
            Self::Later => [2].to_vec(),
            Self::Refused(why) => [&[3], *why].concat(),
        }
    }

    /// Reads a reply; `None` if the message has another format. Never [`VioReply::Created`]: see [`VioReply::created`].
    #[must_use]
    pub fn read(message: &'r [u8]) -> Option<Self> {
        let (what, rest) = message.split_first()?;
        match what {
            0 => Some(Self::Done(rest)),
            1 => Some(Self::Ended(rest)),
            2 => Some(Self::Later),
            3 => Some(Self::Refused(rest)),
            _ => None,
        }
    }

    /// The instance and the bytes of a block, if this is the reply to a creation; the format is that of [`VioReply::Done`].
    #[must_use]
    pub fn created(&self) -> Option<(u64, u16)> {
        let Self::Done(bytes) = self else { return None };
        let (instance, rest) = bytes.split_first_chunk()?;
        Some((
            u64::from_be_bytes(*instance),
            u16::from_be_bytes(*rest.first_chunk()?),
        ))
    }
}

/// How a block number relates to the next one that an instance expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioBlockTurn {
    /// The next block.
    Next,
    /// The previous block, requested again: return the kept bytes, or do not write again.
    Again,
    /// Any other block, which is refused.
    Other,
}

/// The block numbers of an instance, and the block that was read last.
#[derive(Clone, Debug, Default)]
pub struct VioInstance {
    /// The next block to be read.
    reads: u32,
    /// The next block to be written.
    writes: u32,
    /// The block that was read last.
    last: Vec<u8>,
}

impl VioInstance {
    /// How a request to read `block` relates to the next block.
    #[must_use]
    pub const fn reads(&self, block: u32) -> VioBlockTurn {
        turn(self.reads, block)
    }

    /// How a request to write `block` relates to the next block.
    #[must_use]
    pub const fn writes(&self, block: u32) -> VioBlockTurn {
        turn(self.writes, block)
    }

    /// The block that was read last.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// Notes that the next block was read, and keeps its bytes.
    pub fn read(&mut self, bytes: Vec<u8>) {
        (self.reads, self.last) = (self.reads.wrapping_add(1), bytes);
    }

    /// Notes that the next block was written.
    pub const fn wrote(&mut self) {
        self.writes = self.writes.wrapping_add(1);
    }
}

const fn turn(next: u32, block: u32) -> VioBlockTurn {
    match next.wrapping_sub(block) {
        0 => VioBlockTurn::Next,
        1 => VioBlockTurn::Again,
        _ => VioBlockTurn::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_sent_is_read_and_any_bytes_are_read_or_refused(instance: u64, block: u32, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let short = &bytes[..bytes.len().min(255)];
            for request in [
                VioRequest::Create { secret: short, name: &bytes },
                VioRequest::Read(instance, block),
                VioRequest::Write(instance, block, &bytes),
                VioRequest::Release(instance),
                VioRequest::Look(instance),
            ] {
                let sent = request.bytes();
                prop_assert_eq!(VioRequest::read(&sent), Some(request));
            }
            for reply in [VioReply::Done(&bytes), VioReply::Ended(&bytes), VioReply::Later, VioReply::Refused(&bytes)] {
                let sent = reply.bytes();
                prop_assert_eq!(VioReply::read(&sent), Some(reply));
            }
            let created = VioReply::Created(instance, 7).bytes();
            prop_assert_eq!(VioReply::read(&created).and_then(|reply| reply.created()), Some((instance, 7)));
            let _ = (VioRequest::read(&bytes), VioReply::read(&bytes));
        }

        #[test]
        fn requests_that_come_twice_read_and_write_each_block_once(twice in prop::collection::vec(any::<bool>(), 1..50)) {
            let mut instance = VioInstance::default();
            let (mut read, mut written) = (Vec::new(), Vec::new());
            for (block, twice) in twice.iter().enumerate() {
                for _ in 0..=usize::from(*twice) {
                    if instance.reads(block as u32) == VioBlockTurn::Next {
                        instance.read([block as u8].to_vec());
                    }
                    read.push(instance.last()[0]);
                    if instance.writes(block as u32) == VioBlockTurn::Next {
                        instance.wrote();
                        written.push(block);
                    }
                }
                prop_assert_eq!(instance.writes(block as u32 + 2), VioBlockTurn::Other);
            }
            read.dedup();
            prop_assert!(read.iter().map(|block| usize::from(*block)).eq(0..twice.len()));
            prop_assert!(written.into_iter().eq(0..twice.len()));
        }
    }
}
