//! Sets are created, blocks given places, and remembered once they are on their disks.
//!
//! A set has one loader at a time. What it committed is remembered block by block, so a loader that was ended goes on
//! where it was; what was given a place and never committed is given back when the load ends.

use super::disk_space::{REST, Space, in_turn, slot};
use super::{Actions, Master, MasterChange, SetState};
use crate::limits;
use crate::master::block_map::SetBlockMap;
use crate::placement::BlockPlacementPolicy;
use crate::set::BlockSet;
use crate::wire::master_messages::{
    BlockCopyLocation, BlockMapEntry, BlockRequestDone, Commit, Create, Created, Delete, Gone,
    Reserve, Reserved,
};
use crate::wire::message::Why;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Places that were reserved and not committed: server, disk and offset, and how many bytes were asked for.
pub(super) type Pending = BTreeMap<(u16, u16, u64), u32>;

/// Places of one set that may be so.
const MOST_PENDING: usize = 65_536;

impl Master {
    pub(super) fn create(&mut self, connection: u64, create: Create, actions: &mut Actions) {
        let Create { request, about } = create;
        if let Some(fault) = about.fault() {
            return actions.refuse(connection, request, Why::Malformed, fault);
        }
        let servers = self.infos();
        if let Some(id) = self.by_name.get(&about.name).copied() {
            let Some(set) = self.sets.get_mut(&id) else {
                return;
            };
            if set.sealed {
                let words = format!("the set {} is there already", about.name);
                return actions.refuse(connection, request, Why::Busy, words);
            }
            if set.loader.is_some_and(|loader| loader != connection) {
                let words = format!("somebody else loads the set {}", about.name);
                return actions.refuse(connection, request, Why::Busy, words);
            }
            if set.about != about {
                let words = format!(
                    "the set {} was begun with another size, block size or placement",
                    about.name
                );
                return actions.refuse(connection, request, Why::Busy, words);
            }
            set.loader = Some(connection);
            let written = set.rows.written();
            return actions.send(
                connection,
                Created {
                    request,
                    set: id,
                    written,
                    servers,
                },
            );
        }
        if self.sets.len() >= limits::MOST_SETS {
            return actions.refuse(connection, request, Why::Limit, "there are too many sets");
        }
        let Some(id) = self.last_set.checked_add(1) else {
            return actions.refuse(
                connection,
                request,
                Why::Limit,
                "all numbers of sets were used",
            );
        };
        self.last_set = id;
        actions.changes.push(MasterChange::Set {
            id,
            about: about.clone(),
            sealed: false,
        });
        self.by_name.insert(about.name.clone(), id);
        let rows = SetBlockMap::new(about.replicas);
        self.sets.insert(
            id,
            SetState {
                about,
                rows,
                sealed: false,
                loader: Some(connection),
                pending: BTreeMap::new(),
            },
        );
        actions.send(
            connection,
            Created {
                request,
                set: id,
                written: 0,
                servers,
            },
        );
    }

    pub(super) fn reserve(&mut self, connection: u64, reserve: &Reserve, actions: &mut Actions) {
        let request = reserve.request;
        let Some(set) = self
            .sets
            .get(&reserve.set)
            .filter(|set| set.loader == Some(connection))
        else {
            return actions.refuse(
                connection,
                request,
                Why::NoSet,
                "that set is not being loaded by this connection",
            );
        };
        let about = set.about.clone();
        if reserve
            .blocks
            .iter()
            .any(|number| *number >= about.blocks())
        {
            return actions.refuse(
                connection,
                request,
                Why::NoBlock,
                "the set has no such block",
            );
        }
        if about.placement == BlockPlacementPolicy::Given
            && reserve.given.len() != reserve.blocks.len()
        {
            return actions.refuse(
                connection,
                request,
                Why::Malformed,
                "places are to be given, one a block",
            );
        }
        if set.pending.len() + reserve.blocks.len() * usize::from(about.replicas) > MOST_PENDING {
            return actions.refuse(
                connection,
                request,
                Why::Limit,
                "commit what was reserved before more is reserved",
            );
        }
        let mut rows = Vec::new();
        let mut remember = Vec::new();
        // Only the disks: a refused request leaves them as they were, since no place has been reported.
        let before: Vec<_> = self
            .servers
            .iter()
            .map(|(id, server)| (*id, server.disks.clone()))
            .collect();
        for (at, number) in reserve.blocks.iter().enumerate() {
            let given = reserve.given.get(at).map(|disk| *disk as usize);
            let first = |disks: usize| match about.placement {
                BlockPlacementPolicy::Given => given.unwrap_or(0) % disks.max(1),
                placement => placement.disk(*number, about.picture.as_ref(), disks),
            };
            let places = self.places(
                first,
                about.length(*number),
                usize::from(about.replicas),
                &mut remember,
            );
            if places.len() < usize::from(about.replicas) {
                let words = self.no_places(&about, *number);
                for (id, disks) in before {
                    self.servers
                        .entry(id)
                        .and_modify(|server| server.disks = disks);
                }
                return actions.refuse(connection, request, Why::Full, words);
            }
            rows.push(BlockMapEntry {
                checksum: 0,
                places,
            });
        }
        if let Some(set) = self.sets.get_mut(&reserve.set) {
            for (number, row) in reserve.blocks.iter().zip(&rows) {
                for place in &row.places {
                    set.pending.insert(
                        (place.server, place.disk, place.offset),
                        about.length(*number),
                    );
                }
            }
        }
        actions.changes.extend(remember);
        actions.send(connection, Reserved { request, rows });
    }

    /// What the loads of a connection, or of one set, reserved and did not commit is used again after a while.
    pub(super) fn give_back(&mut self, pending: Pending) {
        let from = self.now + REST;
        for ((server, disk, offset), length) in pending {
            let state = self.servers.get_mut(&server);
            if let Some(space) = state.and_then(|state| state.disks.get_mut(usize::from(disk))) {
                space.give_back(offset, offset + slot(length), from);
            }
        }
    }

    /// What is missing for the copies of a block.
    fn no_places(&self, about: &BlockSet, number: u64) -> String {
        let (copies, length) = (usize::from(about.replicas), about.length(number));
        let servers = self.up().filter_map(|(id, _)| self.servers.get(&id));
        let disks: Vec<&Space> = servers.flat_map(|server| &server.disks).collect();
        let (disks, read_only): (Vec<_>, Vec<_>) = disks
            .into_iter()
            .filter(|space| space.about.up)
            .partition(|space| space.about.writable);
        let room = disks
            .iter()
            .filter(|space| space.fits(length, self.now))
            .count();
        let rests = disks.iter().any(|space| space.rests(self.now));
        let later = if rests {
            "; space that a load reserved and did not use is free again a minute after that load ended"
        } else {
            ""
        };
        let (are, need) = (
            if disks.len() == 1 { "is" } else { "are" },
            if copies == 1 { "y needs" } else { "ies need" },
        );
        let disk = if copies == 1 { "disk" } else { "disks" };
        match disks.len() {
            0 if self.up().next().is_none() => "no disk server is up".into(),
            0 if !read_only.is_empty() => "all disks that are up can only be read".into(),
            up if up < copies => format!("{copies} cop{need} {copies} {disk}; {up} {are} up"),
            up => format!(
                "there is no room for block {number} of {}: {copies} cop{need} {copies} {disk} with {length} bytes free; {up} {are} up, {room} of them with so much room{later}",
                about.name
            ),
        }
    }

    /// Places for the copies of one block, each on a server of its own while there are enough.
    fn places(
        &mut self,
        first: impl Fn(usize) -> usize,
        length: u32,
        replicas: usize,
        remember: &mut Vec<MasterChange>,
    ) -> Vec<BlockCopyLocation> {
        let up: Vec<u16> = self.up().map(|(id, _)| id).collect();
        let disks = up.iter().flat_map(|id| {
            let count = self.servers.get(id).map_or(0, |server| server.disks.len());
            (0..count).map(|disk| (*id, disk as u16))
        });
        let disks = in_turn(disks);
        let first = first(disks.len());
        let order: Vec<_> = disks[first.min(disks.len())..]
            .iter()
            .chain(&disks[..first.min(disks.len())])
            .collect();
        let now = self.now;
        let mut places: Vec<BlockCopyLocation> = Vec::new();
        for same_server in [false, true] {
            for (server, disk) in &order {
                if places.len() == replicas {
                    break;
                }
                let taken = places
                    .iter()
                    .any(|place| place.server == *server && (!same_server || place.disk == *disk));
                let state = self.servers.get_mut(server);
                let space = state.and_then(|state| state.disks.get_mut(usize::from(*disk)));
                let Some(space) = space.filter(|space| !taken && space.fits(length, now)) else {
                    continue;
                };
                let (offset, more) = space.take(length, now);
                if more {
                    let change = MasterChange::Space {
                        server: *server,
                        disk: *disk,
                        up_to: space.remembered,
                    };
                    remember.retain(
                        |other| !matches!(other, MasterChange::Space { server: s, disk: d, .. } if s == server && d == disk),
                    );
                    remember.push(change);
                }
                places.push(BlockCopyLocation {
                    server: *server,
                    disk: *disk,
                    offset,
                });
            }
        }
        places
    }

    pub(super) fn commit(&mut self, connection: u64, commit: Commit, actions: &mut Actions) {
        let Commit {
            request,
            set: id,
            blocks,
            seal,
        } = commit;
        let Some(set) = self
            .sets
            .get_mut(&id)
            .filter(|set| set.loader == Some(connection))
        else {
            return actions.refuse(
                connection,
                request,
                Why::NoSet,
                "that set is not being loaded by this connection",
            );
        };
        let count = set.about.blocks();
        let replicas = usize::from(set.about.replicas);
        if blocks
            .iter()
            .any(|block| block.number >= count || block.row.places.len() != replicas)
        {
            return actions.refuse(
                connection,
                request,
                Why::NoBlock,
                "the set has no such block",
            );
        }
        let is_its_own = |place: &BlockCopyLocation| {
            set.pending
                .contains_key(&(place.server, place.disk, place.offset))
        };
        if !blocks
            .iter()
            .flat_map(|block| &block.row.places)
            .all(is_its_own)
        {
            let words =
                "a place was not reserved by this load, or was given back: reserve places again";
            return actions.refuse(connection, request, Why::NoBlock, words);
        }
        for block in &blocks {
            set.rows.insert(block.number, &block.row);
            for place in &block.row.places {
                set.pending
                    .remove(&(place.server, place.disk, place.offset));
            }
        }
        if !blocks.is_empty() {
            actions.changes.push(MasterChange::Rows { set: id, blocks });
        }
        if seal {
            let missing = count - set.rows.written();
            if missing > 0 {
                let words = format!("{missing} blocks of {} are not written", set.about.name);
                return actions.refuse(connection, request, Why::NoBlock, words);
            }
            set.sealed = true;
            set.loader = None;
            let pending = core::mem::take(&mut set.pending);
            actions.changes.push(MasterChange::Set {
                id,
                about: set.about.clone(),
                sealed: true,
            });
            self.give_back(pending);
        }
        actions.send(connection, BlockRequestDone { request });
    }

    pub(super) fn delete(&mut self, connection: u64, delete: &Delete, actions: &mut Actions) {
        let Some(id) = self.by_name.get(&delete.name).copied() else {
            let words = format!("there is no set {}", delete.name);
            return actions.refuse(connection, delete.request, Why::NoSet, words);
        };
        if self
            .sets
            .get(&id)
            .and_then(|set| set.loader)
            .is_some_and(|loader| loader != connection)
        {
            let words = format!("somebody else loads the set {}", delete.name);
            return actions.refuse(connection, delete.request, Why::Busy, words);
        }
        if let Some(set) = self.sets.remove(&id) {
            self.give_back(set.pending);
        }
        self.by_name.remove(&delete.name);
        for (reader, peer) in &mut self.peers {
            if peer.open.contains(&id) {
                peer.open.retain(|open| *open != id);
                // Whoever knows where its blocks are forgets it: nothing of it is read past the master.
                actions.send(*reader, Gone { set: id });
            }
        }
        actions.changes.push(MasterChange::Deleted { set: id });
        actions.send(
            connection,
            BlockRequestDone {
                request: delete.request,
            },
        );
    }
}
