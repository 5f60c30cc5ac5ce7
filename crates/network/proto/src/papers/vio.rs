//! V's I/O protocol: a file, a device or a connection as blocks that are read and written by messages (Lantz, Nowicki and Theimer 1985,
//! section 2.3). V's messages may come twice; blocks have numbers, so that none is read or written twice.
//!
//! ```text
//! request  what 1 | create: length of the secret 1, secret, name
//!                 | read: instance 8, block 4     | write: instance 8, block 4, bytes
//!                 | release: instance 8           | look: instance 8 (something may have come for it)
//! reply    what 1 (0 done, 1 no more, 2 later, 3 refused)
//!                 | created: instance 8, bytes of a block 2     | read: bytes     | no more, refused: why
//! ```
//! Each side counts: the next block that is read, the next that is written. The block read last is kept and given again; one that was
//! written is not written again. It knows no connection and keeps no other bytes.

use alloc::vec::Vec;

/// Bytes of a block.
pub const BLOCK: usize = 1000;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioRequest<'r> {
    /// An instance of what has that name.
    Create {
        /// What lets its client in.
        secret: &'r [u8],
        /// Its name.
        name: &'r [u8],
    },
    /// A block.
    Read(u64, u32),
    /// A block is written.
    Write(u64, u32, &'r [u8]),
    /// It is not used any more.
    Release(u64),
    /// Something may have come for whoever reads.
    Look(u64),
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioReply<'r> {
    /// It is there: its number, and bytes of a block.
    Created(u64, u16),
    /// Bytes that were read; it is written or released.
    Done(&'r [u8]),
    /// There is no more, and why.
    Ended(&'r [u8]),
    /// Not now: to be asked again.
    Later,
    /// Not at all.
    Refused(&'r [u8]),
}

impl<'r> VioRequest<'r> {
    /// As it is sent.
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

    /// Out of a message; nothing where it is none.
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
    /// As it is sent.
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

    /// Out of a message; nothing where it is none. What a creation brought is [`VioReply::created`].
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

    /// The instance, and bytes of a block, where this answers a creation.
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

/// What a request for a block is to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VioBlockTurn {
    /// The next one.
    Next,
    /// The last one once more: it is given again, and not written again.
    Again,
    /// Another one, which is refused.
    Other,
}

/// An instance: which blocks are next, and the last that was read.
#[derive(Clone, Debug, Default)]
pub struct VioInstance {
    reads: u32,
    writes: u32,
    last: Vec<u8>,
}

impl VioInstance {
    /// What reading that block is.
    #[must_use]
    pub const fn reads(&self, block: u32) -> VioBlockTurn {
        turn(self.reads, block)
    }

    /// What writing that block is.
    #[must_use]
    pub const fn writes(&self, block: u32) -> VioBlockTurn {
        turn(self.writes, block)
    }

    /// The block read last.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// The next block is read: these bytes.
    pub fn read(&mut self, bytes: Vec<u8>) {
        (self.reads, self.last) = (self.reads.wrapping_add(1), bytes);
    }

    /// The next block is written.
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
