//! Placement: on which disk a block is put when it is loaded, and which of its copies is read. The disks are numbered so that neighbouring
//! numbers belong to different servers.
//!
//! A block is never moved afterwards: the master records where each was put.

use crate::pyramid::{Pyramid, Tile};
use crate::wire::codec::{BlockWireField, BlockWireReader, MalformedBlockMessage};
use alloc::vec::Vec;

/// How disks are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlacementPolicy {
    /// By the block's number modulo the number of disks.
    RoundRobin,
    /// Pseudo-randomly, from this seed and the block's number.
    Random(u64),
    /// By a hash of the block's number, so that the same set has the same layout everywhere.
    Hash,
    /// Neighbouring tiles of a picture go to different disks: those of a row, of a column and of a small rectangle.
    Tiles,
    /// The loader names the disk of each block.
    Given,
}

impl BlockPlacementPolicy {
    /// The index of the disk for a block among `disks` disks; 0 for [`BlockPlacementPolicy::Given`], whose disk the loader names.
    #[must_use]
    pub fn disk(self, number: u64, picture: Option<&Pyramid>, disks: usize) -> usize {
        let disks = disks.max(1) as u64;
        let at = match self {
            Self::RoundRobin => number % disks,
            // Hashed before the seed is mixed in: else near seeds would only swap neighbours'
            // disks.
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

/// Chooses the copy of a block that is read: the first, because the placement spreads first copies as evenly as it can. If the first cannot
/// be reached, one of the others, chosen by a hash of the block's number. `None` if no copy can be reached.
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

/// Hashes a number so that every bit of the result depends on every bit of the input (the finaliser of SplitMix64).
const fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Assigns tiles to disks by a lattice: column + step * row + (step + 1) * level, modulo the number of disks. The step has no factor in
/// common with the number of disks and is about 0.382 of it (the golden section), so that horizontal and vertical neighbours and tiles of
/// adjacent levels are far apart.
fn declustered(tile: Tile, disks: u64) -> u64 {
    let mut step = (disks * 382 / 1000).max(1);
    while disks > 1 && common(step, disks) != 1 {
        step += 1;
    }
    (u64::from(tile.column) + step * u64::from(tile.row) + (step + 1) * u64::from(tile.level))
        % disks
}

/// The greatest common divisor.
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
