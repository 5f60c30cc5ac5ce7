//! The places of the blocks of a set, in tables of 1024 blocks each, which are created as blocks are written.

use crate::placement;
use crate::wire::master_messages::{BlockCopyLocation, BlockMapEntry};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

/// The number of blocks in one table.
const TABLE: u64 = 1024;

/// The mark of an empty place.
const NOWHERE: PackedCopyLocation = PackedCopyLocation {
    server: u16::MAX,
    disk: u16::MAX,
    offset: 0,
};

/// The place of one copy of a block.
#[derive(Clone, Copy, Debug)]
struct PackedCopyLocation {
    server: u16,
    disk: u16,
    offset: u64,
}

/// The places and checksums of the blocks of one table.
#[derive(Clone, Debug)]
struct BlockMapPage {
    checksums: Box<[u32]>,
    /// `replicas` places for each block, one block after the other.
    spots: Box<[PackedCopyLocation]>,
}

/// The places of all blocks of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetBlockMap {
    /// Copies of each block.
    replicas: usize,
    /// The tables, by block number divided by [`TABLE`].
    tables: BTreeMap<u64, BlockMapPage>,
    /// The number of blocks that are written.
    written: u64,
}

impl SetBlockMap {
    /// The map of a set of which no block is written yet.
    pub(crate) fn new(replicas: u8) -> Self {
        Self {
            replicas: usize::from(replicas),
            tables: BTreeMap::new(),
            written: 0,
        }
    }

    /// The number of blocks that are written.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Records where a block is. Returns whether it was not written before.
    pub(crate) fn insert(&mut self, number: u64, row: &BlockMapEntry) -> bool {
        let replicas = self.replicas;
        let table = self
            .tables
            .entry(number / TABLE)
            .or_insert_with(|| BlockMapPage {
                checksums: vec![0; TABLE as usize].into(),
                spots: vec![NOWHERE; TABLE as usize * replicas].into(),
            });
        let at = (number % TABLE) as usize;
        table.checksums[at] = row.checksum;
        let spots = &mut table.spots[at * replicas..(at + 1) * replicas];
        // A set has at least one copy of each block (`BlockSet::fault`).
        let new = spots[0].server == u16::MAX;
        spots.fill(NOWHERE);
        for (spot, place) in spots.iter_mut().zip(&row.places) {
            *spot = PackedCopyLocation {
                server: place.server,
                disk: place.disk,
                offset: place.offset,
            };
        }
        self.written += u64::from(new);
        new
    }

    /// The checksum and the places of a block; `None` if it is not written.
    fn spots(&self, number: u64) -> Option<(u32, impl Iterator<Item = BlockCopyLocation> + '_)> {
        let table = self.tables.get(&(number / TABLE))?;
        let at = (number % TABLE) as usize;
        let spots = &table.spots[at * self.replicas..(at + 1) * self.replicas];
        let places = spots.iter().take_while(|spot| spot.server != u16::MAX);
        let places = places.map(|spot| BlockCopyLocation {
            server: spot.server,
            disk: spot.disk,
            offset: spot.offset,
        });
        (spots[0].server != u16::MAX).then_some((table.checksums[at], places))
    }

    /// The checksum and the places of a block; `None` if it is not written.
    pub(crate) fn get(&self, number: u64) -> Option<BlockMapEntry> {
        let (checksum, places) = self.spots(number)?;
        Some(BlockMapEntry {
            checksum,
            places: places.collect(),
        })
    }

    /// Chooses the copy of a block that is read.
    pub(crate) fn choose(
        &self,
        number: u64,
        is_reachable: impl Fn(&BlockCopyLocation) -> bool,
    ) -> Choice {
        let Some((checksum, places)) = self.spots(number) else {
            return Choice::NotWritten;
        };
        placement::choose_copy(number, places, is_reachable)
            .map_or(Choice::Unreachable, |place| Choice::At(checksum, place))
    }

    /// All blocks that are written, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, BlockMapEntry)> + '_ {
        let numbers = self
            .tables
            .keys()
            .flat_map(|table| table * TABLE..(table + 1) * TABLE);
        numbers.filter_map(|number| Some((number, self.get(number)?)))
    }
}

/// The copy of a block that is read, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The block is not written.
    NotWritten,
    /// No server that has it can be reached.
    Unreachable,
    /// The checksum of the block and the place of the copy.
    At(u32, BlockCopyLocation),
}
