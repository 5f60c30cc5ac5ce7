//! Blocks out of datagrams: parts in any order, some missing for ever. It knows no socket.
//!
//! A few blocks are put together at a time; one that is still not whole when room is needed was lost.

use crate::datagrams::{PART, PAYLOAD_TYPE, RTP};
use stackline_blocks::limits;
use stackline_blocks::wire::data::{BLOCK_HEAD, BlockHead};
use stackline_blocks::wire::{Field, Reader};
use std::collections::BTreeMap;

/// Most blocks that are put together at a time.
const AT_ONCE: usize = 64;

#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    missing: usize,
    /// Where parts began that have come.
    came: Vec<u32>,
}

/// Puts blocks together.
#[derive(Debug, Default)]
pub struct Reassembly {
    rtp: bool,
    partial: BTreeMap<u64, Partial>,
    lost: u64,
    parts: u64,
}

impl Reassembly {
    /// Of datagrams with RTP's headers, or without.
    #[must_use]
    pub fn new(rtp: bool) -> Self {
        Self { rtp, ..Self::default() }
    }

    /// Blocks of which some part came and some never did.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Datagrams that came.
    #[must_use]
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// A datagram came; the block that it makes whole.
    pub fn datagram(&mut self, mut datagram: &[u8]) -> Option<(BlockHead, Vec<u8>)> {
        if self.rtp {
            let header = datagram.get(..RTP)?;
            if header[0] >> 6 != 2 || header[1] & 0x7f != PAYLOAD_TYPE {
                return None;
            }
            datagram = &datagram[RTP..];
        }
        let (header, part) = datagram.split_at_checked(PART)?;
        let mut reader = Reader::new(header);
        let unit = u64::take(&mut reader).ok()?;
        let (at, all) = (u32::take(&mut reader).ok()?, u32::take(&mut reader).ok()? as usize);
        let end = (at as usize).checked_add(part.len())?;
        if part.is_empty() || end > all || !(BLOCK_HEAD..=limits::BLOCK_SIZES.1 as usize + BLOCK_HEAD).contains(&all) {
            return None;
        }
        self.parts += 1;
        if !self.partial.contains_key(&unit) && self.partial.len() >= AT_ONCE {
            // Units are numbered in order: the oldest is the least.
            self.partial.pop_first();
            self.lost += 1;
        }
        let fresh = || Partial { bytes: vec![0; all], missing: all, came: Vec::new() };
        let partial = self.partial.entry(unit).or_insert_with(fresh);
        if partial.bytes.len() != all || partial.came.contains(&at) {
            return None;
        }
        partial.came.push(at);
        partial.bytes[at as usize..end].copy_from_slice(part);
        partial.missing = partial.missing.checked_sub(part.len()).unwrap_or(usize::MAX);
        if partial.missing > 0 {
            return None;
        }
        let mut bytes = self.partial.remove(&unit)?.bytes;
        let head = BlockHead::take(&mut Reader::new(&bytes[..BLOCK_HEAD])).ok()?;
        if head.unit != unit || head.length as usize != all - BLOCK_HEAD {
            return None;
        }
        bytes.drain(..BLOCK_HEAD);
        Some((head, bytes))
    }
}
