//! Reassembles blocks from datagrams, which come in any order and may be lost. There is no socket here.
//!
//! A limited number of blocks is reassembled at a time. When room is needed, the oldest incomplete block is given up as lost.

use crate::datagrams::{PART, PAYLOAD_TYPE, RTP};
use stackline_blocks::limits;
use stackline_blocks::wire::server_messages::{BLOCK_HEAD, BlockHead};
use stackline_blocks::wire::{BlockWireField, BlockWireReader};
use std::collections::BTreeMap;

/// A block of which some datagrams have come.
#[derive(Debug)]
struct Partial {
    /// Bytes of head and data together.
    all: usize,
    head: [u8; BLOCK_HEAD],
    /// The data up to the last byte that has come; zeros where it is missing.
    data: Vec<u8>,
    /// Bytes that have not come.
    missing: usize,
    /// The offsets of the datagrams that have come.
    came: Vec<u32>,
}

impl Partial {
    /// A block of `all` bytes, with room for `kept` bytes of data.
    fn new(all: usize, kept: usize) -> Self {
        let (head, data) = ([0; BLOCK_HEAD], Vec::with_capacity(kept));
        Self {
            all,
            head,
            data,
            missing: all,
            came: Vec::new(),
        }
    }

    /// Stores a part at its offset; with `discard`, only what belongs to the head.
    fn put(&mut self, at: usize, part: &[u8], discard: bool) {
        let (head, data) = part.split_at(BLOCK_HEAD.saturating_sub(at).min(part.len()));
        if !head.is_empty() {
            self.head[at..at + head.len()].copy_from_slice(head);
        }
        if discard {
            return;
        }
        let from = (at + head.len()).saturating_sub(BLOCK_HEAD);
        // Most parts come in order, so they are appended.
        let within = self.data.len().saturating_sub(from).min(data.len());
        if self.data.len() < from {
            self.data.resize(from, 0);
        }
        self.data[from..from + within].copy_from_slice(&data[..within]);
        self.data.extend_from_slice(&data[within..]);
    }
}

/// Reassembles blocks.
#[derive(Debug, Default)]
pub struct BlockReassembly {
    rtp: bool,
    discard: bool,
    partial: BTreeMap<u64, Partial>,
    /// Blocks that were given up.
    lost: u64,
    /// Valid datagrams that have come.
    parts: u64,
}

impl BlockReassembly {
    /// For datagrams with or without RTP headers.
    #[must_use]
    pub fn new(rtp: bool) -> Self {
        Self {
            rtp,
            ..Self::default()
        }
    }

    /// Keeps only the heads of blocks, not their data.
    #[must_use]
    pub fn discarding(self) -> Self {
        Self {
            discard: true,
            ..self
        }
    }

    /// The number of blocks of which some parts came and others never did.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The number of valid datagrams that came.
    #[must_use]
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// Takes a datagram. Returns the block that it completes.
    pub fn datagram(&mut self, mut datagram: &[u8]) -> Option<(BlockHead, Vec<u8>)> {
        if self.rtp {
            let header = datagram.get(..RTP)?;
            if header[0] >> 6 != 2 || header[1] & 0x7f != PAYLOAD_TYPE {
                return None;
            }
            datagram = &datagram[RTP..];
        }
        let (header, part) = datagram.split_at_checked(PART)?;
        let mut reader = BlockWireReader::new(header);
        let unit = u64::take(&mut reader).ok()?;
        let (at, all) = (
            u32::take(&mut reader).ok()?,
            u32::take(&mut reader).ok()? as usize,
        );
        let end = (at as usize).checked_add(part.len())?;
        if part.is_empty()
            || end > all
            || !(BLOCK_HEAD..=limits::BLOCK_SIZES.1 as usize + BLOCK_HEAD).contains(&all)
        {
            return None;
        }
        self.parts += 1;
        if !self.partial.contains_key(&unit) && self.partial.len() >= limits::MOST_PARTIAL_BLOCKS {
            // Units increase with time, so the smallest is the oldest.
            self.partial.pop_first();
            self.lost += 1;
        }
        let partial = self
            .partial
            .entry(unit)
            .or_insert_with(|| Partial::new(all, if self.discard { 0 } else { all - BLOCK_HEAD }));
        // A second copy, or a datagram of something else with this unit.
        if partial.all != all || partial.came.contains(&at) {
            return None;
        }
        partial.came.push(at);
        partial.put(at as usize, part, self.discard);
        // More came than was missing: parts overlap, so it can never be known to be whole.
        partial.missing = partial
            .missing
            .checked_sub(part.len())
            .unwrap_or(usize::MAX);
        if partial.missing > 0 {
            return None;
        }
        let Partial { head, data, .. } = self.partial.remove(&unit)?;
        let head = BlockHead::take(&mut BlockWireReader::new(&head)).ok()?;
        // The sum of the parts alone does not prove that they fit together.
        if head.unit != unit
            || head.length as usize != all - BLOCK_HEAD
            || !(self.discard || data.len() == all - BLOCK_HEAD)
        {
            return None;
        }
        Some((head, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 5000;

    /// The parts of a block, so many bytes each.
    fn parts(unit: u64, each: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let head = BlockHead {
            unit,
            length: BYTES as u32,
            ..stamped()
        };
        head.put(&mut all);
        all.extend((0..BYTES).map(|at| (at % 251) as u8));
        let part = |(at, part): (usize, &[u8])| {
            let mut datagram = Vec::new();
            unit.put(&mut datagram);
            ((at * each) as u32).put(&mut datagram);
            (all.len() as u32).put(&mut datagram);
            datagram.extend_from_slice(part);
            datagram
        };
        all.chunks(each).enumerate().map(part).collect()
    }

    fn stamped() -> BlockHead {
        let zeros = [0; BLOCK_HEAD];
        BlockHead::take(&mut BlockWireReader::new(&zeros)).unwrap()
    }

    #[test]
    fn parts_in_any_order_make_the_block() {
        for each in [50, 113, 200, 1456, 6000] {
            let backwards: Vec<Vec<u8>> = parts(7, each).into_iter().rev().collect();
            for order in [parts(7, each), backwards] {
                let mut reassembly = BlockReassembly::new(false);
                let (last, others) = order.split_last().unwrap();
                for part in others {
                    assert!(reassembly.datagram(part).is_none(), "{each}");
                    // What comes twice is used once.
                    assert!(reassembly.datagram(part).is_none(), "{each}");
                }
                let (head, data) = reassembly.datagram(last).unwrap();
                assert_eq!((head.unit, data.len()), (7, BYTES));
                assert!(
                    data.iter()
                        .enumerate()
                        .all(|(at, byte)| *byte == (at % 251) as u8),
                    "{each}"
                );
            }
        }
    }

    #[test]
    fn a_block_with_a_part_missing_is_lost_in_the_end() {
        let mut reassembly = BlockReassembly::new(false);
        for unit in 0..=limits::MOST_PARTIAL_BLOCKS as u64 {
            for part in parts(unit, 1456).iter().skip(1) {
                assert!(reassembly.datagram(part).is_none());
            }
        }
        assert_eq!(reassembly.lost(), 1);
    }
}
