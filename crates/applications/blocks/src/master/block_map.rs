//! Where the blocks of a set are: in tables of some thousand blocks each, as they are written.

use crate::placement;
use crate::wire::master_messages::{BlockCopyLocation, BlockMapEntry};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

/// Blocks of one table.
const TABLE: u64 = 1024;

/// No place.
const NOWHERE: PackedCopyLocation = PackedCopyLocation {
    server: u16::MAX,
    disk: u16::MAX,
    offset: 0,
};

#[derive(Clone, Copy, Debug)]
struct PackedCopyLocation {
    server: u16,
    disk: u16,
    offset: u64,
}

#[derive(Clone, Debug)]
struct BlockMapPage {
    checksums: Box<[u32]>,
    /// So many a block as it has copies.
    spots: Box<[PackedCopyLocation]>,
}

/// Where the blocks of a set are.
#[derive(Clone, Debug)]
pub(crate) struct SetBlockMap {
    replicas: usize,
    tables: BTreeMap<u64, BlockMapPage>,
    written: u64,
}

impl SetBlockMap {
    /// None are written yet.
    pub(crate) fn new(replicas: u8) -> Self {
        Self {
            replicas: usize::from(replicas),
            tables: BTreeMap::new(),
            written: 0,
        }
    }

    /// How many blocks are written.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// A block is there; whether it was not before.
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

    /// Where a block is.
    pub(crate) fn get(&self, number: u64) -> Option<BlockMapEntry> {
        let (checksum, places) = self.spots(number)?;
        Some(BlockMapEntry {
            checksum,
            places: places.collect(),
        })
    }

    /// The copy of a block that is read.
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

    /// All blocks that are written, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, BlockMapEntry)> + '_ {
        let numbers = self
            .tables
            .keys()
            .flat_map(|table| table * TABLE..(table + 1) * TABLE);
        numbers.filter_map(|number| Some((number, self.get(number)?)))
    }
}

/// Which copy is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The block was not written.
    NotWritten,
    /// No server that has it is up.
    Unreachable,
    /// This one, with the checksum.
    At(u32, BlockCopyLocation),
}
