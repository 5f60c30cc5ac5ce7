//! On which disk a block is put when it is loaded, and which of its copies is read. Disks are numbered so that neighbours
//! belong to different servers.
//!
//! It moves nothing later: what was placed stands in the master's catalogue.

use crate::pyramid::{Pyramid, Tile};
use crate::wire::codec::{BlockWireField, BlockWireReader, MalformedBlockMessage};
use alloc::vec::Vec;

/// How disks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlacementPolicy {
    /// One after the other.
    RoundRobin,
    /// Drawn, from that seed.
    Random(u64),
    /// By the block's number alone, so that the same set lies the same everywhere.
    Hash,
    /// Neighbouring tiles of a picture on different disks: those of any row, column and small rectangle.
    Tiles,
    /// The loader says it block by block.
    Given,
}

impl BlockPlacementPolicy {
    /// The disk for a block among `disks`; of a block that is [`BlockPlacementPolicy::Given`], 0.
    #[must_use]
    pub fn disk(self, number: u64, picture: Option<&Pyramid>, disks: usize) -> usize {
        let disks = disks.max(1) as u64;
        let at = match self {
            Self::RoundRobin => number % disks,
            Self::Random(seed) => scattered(seed ^ scattered(number)) % disks,
            Self::Hash => scattered(number) % disks,
            Self::Tiles => {
                let tile = picture.and_then(|picture| picture.tile(number));
                tile.map_or(number % disks, |tile| declustered(tile, disks))
            }
            Self::Given => 0,
        };
        at as usize
    }
}

/// Which copy of a block is read: the first, since the placement spreads those as evenly as it can; where it cannot be
/// reached one of the others, spread by the block's number.
pub fn choose_copy<P>(
    number: u64,
    mut places: impl Iterator<Item = P>,
    mut is_reachable: impl FnMut(&P) -> bool,
) -> Option<P> {
    let first = places.next()?;
    if is_reachable(&first) {
        return Some(first);
    }
    let mut others: Vec<P> = places.filter(is_reachable).collect();
    let at = scattered(number).checked_rem(others.len() as u64)?;
    Some(others.swap_remove(at as usize))
}

/// Every bit of the number in every bit of the result (the finaliser of SplitMix64).
const fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Column plus so many disks a row: a lattice whose step has no factor in common with the number of disks and is near the
/// golden section of it, so that neighbours in both directions, and tiles above one another, are far apart.
fn declustered(tile: Tile, disks: u64) -> u64 {
    let mut step = (disks * 382 / 1000).max(1);
    while disks > 1 && common(step, disks) != 1 {
        step += 1;
    }
    (u64::from(tile.column) + step * u64::from(tile.row) + (step + 1) * u64::from(tile.level))
        % disks
}

const fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

impl BlockWireField for BlockPlacementPolicy {
    const LEAST: usize = 1;
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::RoundRobin => 0_u8.put(to),
            Self::Random(seed) => {
                1_u8.put(to);
                seed.put(to);
            }
            Self::Hash => 2_u8.put(to),
            Self::Tiles => 3_u8.put(to),
            Self::Given => 4_u8.put(to),
        }
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        Ok(match u8::take(from)? {
            0 => Self::RoundRobin,
            1 => Self::Random(u64::take(from)?),
            2 => Self::Hash,
            3 => Self::Tiles,
            4 => Self::Given,
            _ => return Err(MalformedBlockMessage::Field("placement")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    const PICTURE: Pyramid = Pyramid {
        width: 8192,
        height: 8192,
        tile: 128,
        pixel_bytes: 3,
    };

    #[test]
    fn neighbouring_tiles_lie_on_different_disks() {
        for disks in [2_usize, 3, 4, 5, 8, 12, 20] {
            let on = |row, column| {
                let number = PICTURE
                    .number(Tile {
                        level: 0,
                        row,
                        column,
                    })
                    .unwrap();
                BlockPlacementPolicy::Tiles.disk(number, Some(&PICTURE), disks)
            };
            for row in 1..63 {
                for column in 1..63 {
                    assert_ne!(
                        on(row, column),
                        on(row, column + 1),
                        "{disks} disks, to the right"
                    );
                    assert_ne!(on(row, column), on(row + 1, column), "{disks} disks, below");
                }
            }
            // As many tiles in a row, or in a column, as there are disks use all of them.
            let row: BTreeSet<_> = (0..disks as u32).map(|column| on(7, column)).collect();
            let column: BTreeSet<_> = (0..disks as u32).map(|row| on(row, 7)).collect();
            assert_eq!((row.len(), column.len()), (disks, disks));
        }
    }

    #[test]
    fn drawn_and_hashed_blocks_are_spread_evenly() {
        for placement in [BlockPlacementPolicy::Random(7), BlockPlacementPolicy::Hash] {
            let mut counts = [0_u32; 10];
            for number in 0..10_000 {
                counts[placement.disk(number, None, 10)] += 1;
            }
            // A count of 10,000 draws with p = 0.1 has a standard deviation of 30.
            assert!(
                counts.iter().all(|count| (850..1150).contains(count)),
                "{counts:?}"
            );
        }
    }
}
