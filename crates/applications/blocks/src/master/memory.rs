//! What has to outlast the master, and how a master that starts takes it up again.

use super::block_map::SetBlockMap;
use super::disk_space::{self, Space};
use super::{Master, ServerState, SetState};
use crate::set::BlockSet;
use crate::wire::master_messages::{BlockCopyLocation, CommittedBlock};
use crate::wire::server_messages::DiskInfo;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What has to outlast the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterChange {
    /// Who the master is, drawn once, and the highest number that a set has had: neither is used again.
    Master {
        /// Its identity.
        identity: u128,
        /// That number.
        last_set: u32,
    },
    /// A set was created, or is whole now.
    Set {
        /// Its number.
        id: u32,
        /// What it is.
        about: BlockSet,
        /// Whether it is whole.
        sealed: bool,
    },
    /// Blocks are on their disks.
    Rows {
        /// Of which set.
        set: u32,
        /// Which.
        blocks: Vec<CommittedBlock>,
    },
    /// A set is gone.
    Deleted {
        /// Its number.
        set: u32,
    },
    /// A server was seen first, or has other disks.
    Server {
        /// Its number.
        id: u16,
        /// Its name.
        name: String,
        /// Identities of its disks, in its order.
        disks: Vec<u128>,
    },
    /// A disk is given away up to there.
    Space {
        /// Of which server.
        server: u16,
        /// Which disk.
        disk: u16,
        /// Bytes.
        up_to: u64,
    },
}

impl MasterChange {
    /// Bytes of memory that it takes while it waits, about.
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
    /// What was remembered, in any order in which sets precede their blocks and servers their space.
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

    /// Adds a set of which nothing is written yet.
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
