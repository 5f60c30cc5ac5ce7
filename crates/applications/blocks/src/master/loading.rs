//! Loading: sets are created, their blocks get places, and the places are stored once the blocks are on their disks.
//!
//! A set has one loader at a time. What it has committed is stored block by block, so a loader that was interrupted can go on where it was.
//! Places that were reserved and never committed are given back when the load ends.

use super::disk_space::{REST, Space, in_turn, slot};
use super::{Actions, Master, MasterChange, RequestRefusal, SetState};
use crate::limits;
use crate::placement::BlockPlacementPolicy;
use crate::set::BlockSet;
use crate::wire::master_messages::{
    BlockCopyLocation, BlockMapEntry, BlockRequestDone, Commit, Create, Created, Delete, Gone,
    Reserve, Reserved,
};
use crate::wire::message::{Message, Why};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Places that were reserved and not committed: server, disk and offset, with the length of the block in bytes.
pub(super) type Pending = BTreeMap<(u16, u16, u64), u32>;

/// The outcome of a loader's request: `Err` if it is refused.
type Done = Result<(), RequestRefusal>;

fn not_loaded() -> RequestRefusal {
    let words = "that set is not being loaded by this connection";
    RequestRefusal::new(Why::NoSet, words)
}

fn no_such_block() -> RequestRefusal {
    RequestRefusal::new(Why::NoBlock, "the set has no such block")
}

impl SetState {
    /// Lets a connection load a set that was begun earlier. Returns how many of its blocks are written.
    fn go_on_loading(&mut self, connection: u64, about: &BlockSet) -> Result<u64, RequestRefusal> {
        let name = &about.name;
        let words = if self.sealed {
            format!("the set {name} already exists")
        } else if self.loader.is_some_and(|loader| loader != connection) {
            format!("another client is loading the set {name}")
        } else if self.about != *about {
            format!("the set {name} was created with a different size, block size or placement")
        } else {
            self.loader = Some(connection);
            return Ok(self.rows.written());
        };
        Err(RequestRefusal::new(Why::Busy, words))
    }
}

impl Master {
    /// Handles a loader's request to create, fill or delete a set.
    pub(super) fn load(&mut self, connection: u64, message: Message, actions: &mut Actions) {
        let (request, done) = match message {
            Message::Create(create) => (create.request, self.create(connection, create, actions)),
            Message::Reserve(reserve) => {
                (reserve.request, self.reserve(connection, &reserve, actions))
            }
            Message::Commit(commit) => (commit.request, self.commit(connection, commit, actions)),
            Message::Delete(delete) => (delete.request, self.delete(connection, &delete, actions)),
            _ => return,
        };
        if let Err(RequestRefusal { why, words }) = done {
            actions.refuse(connection, request, why, words);
        }
    }

    fn create(&mut self, connection: u64, create: Create, actions: &mut Actions) -> Done {
        let Create { request, about } = create;
        if let Some(fault) = about.fault() {
            return Err(RequestRefusal::new(Why::Malformed, fault));
        }
        let known = self.by_name.get(&about.name).copied();
        let (set, written) = match known.and_then(|id| Some((id, self.sets.get_mut(&id)?))) {
            Some((id, set)) => (id, set.go_on_loading(connection, &about)?),
            None => (self.begin_set(connection, about, actions)?, 0),
        };
        let servers = self.infos();
        actions.send(
            connection,
            Created {
                request,
                set,
                written,
                servers,
            },
        );
        Ok(())
    }

    /// Creates a new set, and returns its number.
    fn begin_set(
        &mut self,
        connection: u64,
        about: BlockSet,
        actions: &mut Actions,
    ) -> Result<u32, RequestRefusal> {
        if self.sets.len() >= limits::MOST_SETS {
            return Err(RequestRefusal::new(Why::Limit, "too many sets exist"));
        }
        let id = self
            .last_set
            .checked_add(1)
            .ok_or_else(|| RequestRefusal::new(Why::Limit, "all set numbers have been used"))?;
        self.last_set = id;
        actions.changes.push(MasterChange::Set {
            id,
            about: about.clone(),
            sealed: false,
        });
        self.insert_set(id, about, false, Some(connection));
        Ok(id)
    }

    /// The set that a connection loads, if the requested reservation is allowed in it.
    fn reservable(&self, connection: u64, reserve: &Reserve) -> Result<&BlockSet, RequestRefusal> {
        let set = self.sets.get(&reserve.set);
        let set = set
            .filter(|set| set.loader == Some(connection))
            .ok_or_else(not_loaded)?;
        let (about, count) = (&set.about, reserve.blocks.len());
        if reserve
            .blocks
            .iter()
            .any(|number| *number >= about.blocks())
        {
            return Err(no_such_block());
        }
        if about.placement == BlockPlacementPolicy::Given && reserve.given.len() != count {
            let words = "each block needs a disk";
            return Err(RequestRefusal::new(Why::Malformed, words));
        }
        if set.pending.len() + count * usize::from(about.replicas) > limits::MOST_UNCOMMITTED_COPIES
        {
            let words = "commit the reserved blocks before reserving more";
            return Err(RequestRefusal::new(Why::Limit, words));
        }
        Ok(about)
    }

    fn reserve(&mut self, connection: u64, reserve: &Reserve, actions: &mut Actions) -> Done {
        let request = reserve.request;
        let about = self.reservable(connection, reserve)?.clone();
        let mut rows = Vec::new();
        let mut remember = Vec::new();
        // Only the disks are saved: a refused request restores them, since no place was reported to anybody.
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
                return Err(RequestRefusal::new(Why::Full, words));
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
        Ok(())
    }

    /// Gives back places that were reserved and not committed: they become holes, usable after [`REST`].
    pub(super) fn give_back(&mut self, pending: Pending) {
        let from = self.now + REST;
        for ((server, disk, offset), length) in pending {
            let state = self.servers.get_mut(&server);
            if let Some(space) = state.and_then(|state| state.disks.get_mut(usize::from(disk))) {
                space.give_back(offset, offset + slot(length), from);
            }
        }
    }

    /// Words that say why there are no places for the copies of a block.
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
            "; space that a load reserved but did not use becomes free a minute after that load ends"
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
            0 if !read_only.is_empty() => "all disks are read-only".into(),
            up if up < copies => format!("{copies} cop{need} {copies} {disk}; {up} {are} up"),
            up => format!(
                "no space for block {number} of {}: {copies} cop{need} {copies} {disk} with {length} bytes free; {up} \
                 {are} up, {room} of them with enough space{later}",
                about.name
            ),
        }
    }

    /// Places for the copies of one block, each on a server of its own as long as there are enough servers.
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

    fn commit(&mut self, connection: u64, commit: Commit, actions: &mut Actions) -> Done {
        let Commit {
            request,
            set: id,
            blocks,
            seal,
        } = commit;
        let set = self.sets.get_mut(&id);
        let set = set
            .filter(|set| set.loader == Some(connection))
            .ok_or_else(not_loaded)?;
        let count = set.about.blocks();
        let replicas = usize::from(set.about.replicas);
        if blocks
            .iter()
            .any(|block| block.number >= count || block.row.places.len() != replicas)
        {
            return Err(no_such_block());
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
                "a location was not reserved by this load, or has been released: reserve it again";
            return Err(RequestRefusal::new(Why::NoBlock, words));
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
                let words = format!("blocks of {} not yet written: {missing}", set.about.name);
                return Err(RequestRefusal::new(Why::NoBlock, words));
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
        Ok(())
    }

    fn delete(&mut self, connection: u64, delete: &Delete, actions: &mut Actions) -> Done {
        let Some(id) = self.by_name.get(&delete.name).copied() else {
            let words = format!("unknown set {}", delete.name);
            return Err(RequestRefusal::new(Why::NoSet, words));
        };
        if self
            .sets
            .get(&id)
            .and_then(|set| set.loader)
            .is_some_and(|loader| loader != connection)
        {
            let words = format!("another client is loading the set {}", delete.name);
            return Err(RequestRefusal::new(Why::Busy, words));
        }
        if let Some(set) = self.sets.remove(&id) {
            self.give_back(set.pending);
        }
        self.by_name.remove(&delete.name);
        for (reader, peer) in &mut self.peers {
            if peer.open.contains(&id) {
                peer.open.retain(|open| *open != id);
                // A client that knows the places of its blocks has to forget them, so that it does not read them without the master.
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
        Ok(())
    }
}
