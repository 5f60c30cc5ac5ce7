//! What a data set is: blocks of one size under a name, perhaps the tiles of a picture.

use crate::limits;
use crate::placement::BlockPlacementPolicy;
use crate::pyramid::Pyramid;
use crate::wire::codec::record;
use alloc::string::String;

record! {
    /// A data set.
    pub struct BlockSet {
        /// Its name: letters, digits, `.`, `_`, `-`; not longer than 100.
        pub name: String,
        /// Bytes of a block; the last one may be shorter.
        pub block_size: u32,
        /// Bytes of all blocks.
        pub bytes: u64,
        /// Copies of each block, on different servers while there are enough.
        pub replicas: u8,
        /// Where blocks are put.
        pub placement: BlockPlacementPolicy,
        /// The picture whose tiles they are.
        pub picture: Option<Pyramid>,
    }
}

impl BlockSet {
    /// How many blocks it has.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        // A set that somebody else describes may have blocks of no size: it has none, and `fault` says so.
        if self.block_size == 0 {
            0
        } else {
            self.bytes.div_ceil(self.block_size as u64)
        }
    }

    /// Bytes of a block; 0 where there is none.
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

    /// What of it cannot be, in words.
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
