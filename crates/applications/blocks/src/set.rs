//! A data set: blocks of one size under a name. The blocks may be the tiles of a picture.

use crate::limits;
use crate::placement::BlockPlacementPolicy;
use crate::pyramid::Pyramid;
use crate::wire::codec::record;
use alloc::string::String;

record! {
    /// A data set as its master describes it.
    pub struct BlockSet {
        /// The name: 1 to 100 letters, digits, `.`, `_` and `-`, not beginning with `.`.
        pub name: String,
        /// Bytes of a block; the last one may be shorter.
        pub block_size: u32,
        /// Bytes of all blocks together.
        pub bytes: u64,
        /// The number of copies of each block, on different servers as long as there are enough.
        pub replicas: u8,
        /// How the disk of each block is chosen.
        pub placement: BlockPlacementPolicy,
        /// The picture whose tiles the blocks are, if they are tiles.
        pub picture: Option<Pyramid>,
    }
}

impl BlockSet {
    /// The number of blocks in the set.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        // A peer may describe a set with a block size of 0. It counts as a set without blocks, and `fault` reports it.
        if self.block_size == 0 {
            0
        } else {
            self.bytes.div_ceil(self.block_size as u64)
        }
    }

    /// Bytes of the block with that number; 0 if the set has no such block.
    #[must_use]
    pub fn length(&self, number: u64) -> u32 {
        let before = number.saturating_mul(u64::from(self.block_size));
        u32::try_from(
            self.bytes
                .saturating_sub(before)
                .min(u64::from(self.block_size)),
        )
        .unwrap_or(0)
    }

    /// Why this description is invalid, as words for a message; `None` if it is valid.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let (least, most) = limits::BLOCK_SIZES;
        if self.name.is_empty()
            || self.name.len() > 100
            || !self.name.chars().all(plain)
            || self.name.starts_with('.')
        {
            Some(
                "a name may have up to 100 letters, digits, dots, underscores and dashes, and must not start with a dot",
            )
        } else if !(least..=most).contains(&self.block_size) {
            Some("a block must be 512 bytes to 16 MiB")
        } else if self.bytes == 0 || self.blocks() > limits::MOST_BLOCKS {
            Some("a set must have 1 to 4,294,967,296 blocks")
        } else if self.replicas == 0 || self.replicas > limits::MOST_REPLICAS {
            Some("a block must have 1 to 8 copies")
        } else if self
            .picture
            .as_ref()
            .is_some_and(|picture| !picture.fits(self.blocks(), self.block_size))
        {
            Some("the tiles of its picture do not match its blocks")
        } else {
            None
        }
    }
}
