//! The changes that have to outlast the master, and how a master that starts restores its state from them.

use super::block_map::SetBlockMap;
use super::disk_space::{self, Space};
use super::{Master, ServerState, SetState};
use crate::set::BlockSet;
use crate::wire::master_messages::{BlockCopyLocation, CommittedBlock};
use crate::wire::server_messages::DiskInfo;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A change of the master's state that has to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterChange {
    /// The master's identity, drawn once, and the highest number that a set has had. Neither is ever used again.
    Master {
        /// Its identity.
        identity: u128,
        /// The highest number that a set has had.
        last_set: u32,
    },
    /// A set was created, or is sealed.
    Set {
        /// Its number.
        id: u32,
        /// What the set is.
        about: BlockSet,
        /// Whether all of its blocks are written.
        sealed: bool,
    },
    /// Blocks were committed: they are on their disks.
    Rows {
        /// The number of their set.
        set: u32,
        /// The blocks and their places.
        blocks: Vec<CommittedBlock>,
    },
    /// A set was deleted.
    Deleted {
        /// Its number.
        set: u32,
    },
    /// A server joined for the first time, or has more disks.
    Server {
        /// Its number.
        id: u16,
        /// Its name.
        name: String,
        /// The identities of its disks, in their order.
        disks: Vec<u128>,
    },
    /// The end of the allocation of a disk.
    Space {
        /// The number of the server.
        server: u16,
        /// The number of the disk on that server.
        disk: u16,
        /// The end of the allocation, bytes.
        up_to: u64,
    },
}

impl MasterChange {
    /// The approximate memory that it takes while it waits to be stored, bytes.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let row = |block: &CommittedBlock| {
            size_of::<CommittedBlock>() + size_of::<BlockCopyLocation>() * block.row.places.len()
        };
        let blocks = match self {
            Self::Rows { blocks, .. } => blocks.iter().map(row).sum(),
            _ => 0,
        };
        (size_of::<Self>() + blocks) as u64
    }
}

impl Master {
    /// Restores one stored change. A set has to come before its blocks, and a server before the space of its disks.
    pub fn remember(&mut self, change: MasterChange) {
        match change {
            MasterChange::Master { identity, last_set } => {
                self.identity = identity;
                self.last_set = self.last_set.max(last_set);
            }
            MasterChange::Set { id, about, sealed } => {
                self.last_set = self.last_set.max(id);
                match self.sets.get_mut(&id) {
                    Some(set) => set.sealed = sealed,
                    None => self.insert_set(id, about, sealed, None),
                }
            }
            MasterChange::Rows { set, blocks } => self.remember_rows(set, &blocks),
            MasterChange::Deleted { set } => {
                if let Some(set) = self.sets.remove(&set) {
                    self.by_name.remove(&set.about.name);
                }
            }
            MasterChange::Server { id, name, disks } => self.remember_server(id, name, disks),
            MasterChange::Space {
                server,
                disk,
                up_to,
            } => {
                let server = self.servers.get_mut(&server);
                if let Some(space) =
                    server.and_then(|server| server.disks.get_mut(usize::from(disk)))
                {
                    (space.next, space.remembered, space.is_recalled) = (up_to, up_to, true);
                }
            }
        }
    }

    /// Adds a set of which no block is written yet.
    pub(super) fn insert_set(
        &mut self,
        id: u32,
        about: BlockSet,
        sealed: bool,
        loader: Option<u64>,
    ) {
        self.by_name.insert(about.name.clone(), id);
        let rows = SetBlockMap::new(about.replicas);
        let pending = BTreeMap::new();
        self.sets.insert(
            id,
            SetState {
                about,
                rows,
                sealed,
                loader,
                pending,
            },
        );
    }

    fn remember_rows(&mut self, set: u32, blocks: &[CommittedBlock]) {
        let mut set = self.sets.get_mut(&set);
        let length = set.as_ref().map_or(u32::MAX, |set| set.about.block_size);
        for block in blocks {
            for place in &block.row.places {
                let filled = self.filled.entry((place.server, place.disk)).or_default();
                *filled = (*filled).max(place.offset.saturating_add(disk_space::slot(length)));
            }
            if let Some(set) = &mut set {
                set.rows.insert(block.number, &block.row);
            }
        }
    }

    fn remember_server(&mut self, id: u16, name: String, disks: Vec<u128>) {
        let disk = |identity| DiskInfo {
            identity,
            path: String::new(),
            capacity: 0,
            used: 0,
            up: false,
            writable: false,
            damaged: 0,
        };
        let disks = disks
            .into_iter()
            .map(|identity| Space::new(disk(identity), 0))
            .collect();
        self.servers.insert(
            id,
            ServerState {
                name,
                address: String::new(),
                connection: None,
                disks,
            },
        );
    }
}
