//! The master: data sets, sessions, where blocks are, which servers are up (Tierney et al. 1996, section 2.1.3).
//!
//! It says what has to be remembered ([`MasterChange`]) before its answers may be sent, and never touches a block itself.

mod block_map;
mod disk_space;
mod loading;
mod ownership;

pub use disk_space::ALIGNMENT;
pub use ownership::HINT as OWNERSHIP_HINT;

use crate::limits;
use crate::set::BlockSet;
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{
    Ask, BlockCopyLocation, BlockInventoryReply, BlockListRequest, BlockMapEntry,
    BlockRequestRefused, Changed, Commit, CommittedBlock, Create, Delete, DiskChanged,
    DiskServerJoined, Forget, Join, Map, Mapped, MissingBlocksNotice, OpenSetReply, OpenSetRequest,
    Reserve, ServerInfo, SetInfo,
};
use crate::wire::message::{Message, Why};
use crate::wire::server_messages::{BlockListEntry, DiskInfo, ServerBlockRequests};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use block_map::{Choice, SetBlockMap};
use disk_space::Space;
use stackline_core::time::Instant;

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

/// What is to be done: first remembered, then sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// What has to be remembered before anything is sent.
    pub changes: Vec<MasterChange>,
    /// Messages, and the connections they go over.
    pub sends: Vec<(u64, Message)>,
    /// Connections that are to be closed when all is sent.
    pub closes: Vec<u64>,
    /// What whoever runs the master should know, a sentence each.
    pub notes: Vec<String>,
}

impl Actions {
    fn send(&mut self, connection: u64, message: impl Into<Message>) {
        self.sends.push((connection, message.into()));
    }

    fn refuse(&mut self, connection: u64, request: u32, why: Why, words: impl Into<String>) {
        self.send(
            connection,
            BlockRequestRefused {
                request,
                why: why as u8,
                words: words.into(),
            },
        );
    }
}

/// A set and where its blocks are.
struct SetState {
    about: BlockSet,
    rows: SetBlockMap,
    sealed: bool,
    /// Who writes it.
    loader: Option<u64>,
    /// What it reserved and has not committed.
    pending: loading::Pending,
}

struct ServerState {
    name: String,
    address: String,
    /// Its connection, while it is up.
    connection: Option<u64>,
    disks: Vec<Space>,
}

struct MasterPeer {
    role: BlockPeerRole,
    session: u128,
    /// Sets that were opened.
    open: Vec<u32>,
    /// Of a disk server, its number.
    server: Option<u16>,
}

/// The master.
#[derive(Default)]
pub struct Master {
    /// Who it is: what disks keep of it.
    identity: u128,
    sets: BTreeMap<u32, SetState>,
    by_name: BTreeMap<String, u32>,
    /// The highest number that a set has had: what was said of one that is gone is of no other.
    last_set: u32,
    servers: BTreeMap<u16, ServerState>,
    peers: BTreeMap<u64, MasterPeer>,
    /// By server, why its disks are refused: said once.
    refused: BTreeMap<String, String>,
    /// When the last message came.
    now: Instant,
    /// By server and disk, up to where blocks were known when the master was started.
    filled: BTreeMap<(u16, u16), u64>,
}

impl core::fmt::Debug for Master {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (sets, servers) = (self.sets.len(), self.servers.len());
        f.debug_struct("Master")
            .field("sets", &sets)
            .field("servers", &servers)
            .finish_non_exhaustive()
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
                self.by_name.insert(about.name.clone(), id);
                self.last_set = self.last_set.max(id);
                match self.sets.get_mut(&id) {
                    Some(set) => set.sealed = sealed,
                    None => {
                        let rows = SetBlockMap::new(about.replicas);
                        self.sets.insert(
                            id,
                            SetState {
                                about,
                                rows,
                                sealed,
                                loader: None,
                                pending: BTreeMap::new(),
                            },
                        );
                    }
                }
            }
            MasterChange::Rows { set, blocks } => {
                let length = self
                    .sets
                    .get(&set)
                    .map_or(u32::MAX, |set| set.about.block_size);
                for place in blocks.iter().flat_map(|block| &block.row.places) {
                    let filled = self.filled.entry((place.server, place.disk)).or_default();
                    *filled = (*filled).max(place.offset.saturating_add(disk_space::slot(length)));
                }
                if let Some(set) = self.sets.get_mut(&set) {
                    for block in &blocks {
                        set.rows.insert(block.number, &block.row);
                    }
                }
            }
            MasterChange::Deleted { set } => {
                if let Some(set) = self.sets.remove(&set) {
                    self.by_name.remove(&set.about.name);
                }
            }
            MasterChange::Server { id, name, disks } => {
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

    /// A connection came. `session` is drawn, not to be guessed.
    ///
    /// # Errors
    /// [`Why::Limit`] where there are too many.
    pub fn connected(
        &mut self,
        connection: u64,
        role: BlockPeerRole,
        session: u128,
    ) -> Result<(), Why> {
        if self.peers.len() >= limits::MOST_SESSIONS {
            return Err(Why::Limit);
        }
        self.peers.insert(
            connection,
            MasterPeer {
                role,
                session,
                open: Vec::new(),
                server: None,
            },
        );
        Ok(())
    }

    /// A connection is gone: of a server, of a session, of a loader.
    pub fn disconnected(&mut self, connection: u64) -> Actions {
        let mut actions = Actions::default();
        let Some(peer) = self.peers.remove(&connection) else {
            return actions;
        };
        let mut pending = Vec::new();
        for set in self
            .sets
            .values_mut()
            .filter(|set| set.loader == Some(connection))
        {
            set.loader = None;
            pending.push(core::mem::take(&mut set.pending));
        }
        pending
            .into_iter()
            .for_each(|pending| self.give_back(pending));
        if !peer.open.is_empty() {
            let forget = Forget {
                session: peer.session,
            };
            self.up()
                .for_each(|(_, server)| actions.send(server, forget.clone()));
        }
        let server = peer
            .server
            .and_then(|id| Some((id, self.servers.get_mut(&id)?)));
        if let Some((id, server)) =
            server.filter(|(_, server)| server.connection == Some(connection))
        {
            server.connection = None;
            self.announce_server(id, &mut actions);
        }
        actions
    }

    /// A message came.
    pub fn handle(&mut self, now: Instant, connection: u64, message: Message) -> Actions {
        let mut actions = Actions::default();
        self.now = self.now.max(now);
        let Some(role) = self.peers.get(&connection).map(|peer| peer.role) else {
            return actions;
        };
        match (role, message) {
            (BlockPeerRole::Client | BlockPeerRole::Loader, Message::Open(open)) => {
                self.open(connection, &open, &mut actions)
            }
            (BlockPeerRole::Client | BlockPeerRole::Loader, Message::Close(close)) => {
                self.close(connection, close.set)
            }
            (BlockPeerRole::Client | BlockPeerRole::Loader, Message::List(list)) => {
                self.list(now, connection, &list, &mut actions)
            }
            (BlockPeerRole::Client | BlockPeerRole::Loader, Message::Map(map)) => {
                self.map(connection, &map, &mut actions)
            }
            (BlockPeerRole::Client | BlockPeerRole::Loader, Message::Ask(ask)) => {
                self.answer_inventory(connection, &ask, &mut actions)
            }
            (BlockPeerRole::Loader, Message::Create(create)) => {
                self.create(connection, create, &mut actions)
            }
            (BlockPeerRole::Loader, Message::Reserve(reserve)) => {
                self.reserve(connection, &reserve, &mut actions)
            }
            (BlockPeerRole::Loader, Message::Commit(commit)) => {
                self.commit(connection, commit, &mut actions)
            }
            (BlockPeerRole::Loader, Message::Delete(delete)) => {
                self.delete(connection, &delete, &mut actions)
            }
            (BlockPeerRole::Server, Message::Join(join)) => {
                self.join(connection, join, &mut actions)
            }
            (BlockPeerRole::Server, Message::Alive(alive)) => {
                self.alive(connection, &alive.damaged)
            }
            (BlockPeerRole::Server, Message::DiskChanged(disk)) => {
                self.disk(connection, &disk, &mut actions)
            }
            (
                BlockPeerRole::Client,
                Message::Create(Create { request, .. })
                | Message::Reserve(Reserve { request, .. })
                | Message::Commit(Commit { request, .. })
                | Message::Delete(Delete { request, .. }),
            ) => actions.refuse(
                connection,
                request,
                Why::Key,
                "this connection may only read",
            ),
            _ => {
                actions.refuse(
                    connection,
                    0,
                    Why::Malformed,
                    "that message does not belong here",
                );
                actions.closes.push(connection);
            }
        }
        actions
    }

    // --- servers ---

    /// Servers that are up, and their connections.
    fn up(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.servers
            .iter()
            .filter_map(|(id, server)| Some((*id, server.connection?)))
    }

    fn info(&self, id: u16) -> Option<ServerInfo> {
        let server = self.servers.get(&id)?;
        let up = server.connection.is_some();
        let disks = server.disks.iter();
        let disks = disks.map(|space| DiskInfo {
            used: space.used(),
            up: up && space.about.up,
            ..space.about.clone()
        });
        let (name, address) = (server.name.clone(), server.address.clone());
        Some(ServerInfo {
            id,
            name,
            address,
            up,
            disks: disks.collect(),
        })
    }

    fn infos(&self) -> Vec<ServerInfo> {
        self.servers
            .keys()
            .filter_map(|id| self.info(*id))
            .collect()
    }

    fn join(&mut self, connection: u64, join: Join, actions: &mut Actions) {
        let known = self
            .servers
            .iter()
            .find(|(_, server)| server.name == join.name)
            .map(|(id, _)| *id);
        if known.is_some_and(|id| self.servers[&id].connection.is_some()) {
            actions.refuse(connection, 0, Why::Busy, "a server of that name is up");
            actions.closes.push(connection);
            return;
        }
        let id =
            known.unwrap_or_else(|| self.servers.keys().next_back().map_or(0, |last| last + 1));
        if usize::from(id) >= limits::MOST_SERVERS {
            actions.refuse(connection, 0, Why::Limit, "there are too many servers");
            actions.closes.push(connection);
            return;
        }
        let before = self
            .servers
            .get(&id)
            .map(|server| server.disks.clone())
            .unwrap_or_default();
        let Some(identities) = identities(&before, &join.disks) else {
            let words =
                "its disks are not those it had: start it with the same ones, in the same order";
            actions.refuse(connection, 0, Why::Disk, words);
            actions.closes.push(connection);
            return;
        };
        let own = ownership::MasterIdentity {
            identity: self.identity,
            last_set: self.last_set,
        };
        let objection =
            join.disks
                .iter()
                .zip(&join.kept)
                .enumerate()
                .find_map(|(at, (disk, kept))| {
                    ownership::objection(&own, &join.name, disk, kept, before.get(at))
                });
        match objection.filter(|_| !join.adopt) {
            Some(words) => return self.refuse_disks(connection, join.name, words, actions),
            None => drop(self.refused.remove(&join.name)),
        }
        // What an old copy of this master has taken over: the numbers of its sets are not used again.
        let kept = join.kept.iter().filter(|kept| kept.master == self.identity);
        let last_set = kept.map(|kept| kept.last_set).max().unwrap_or(0);
        if last_set > self.last_set {
            self.last_set = last_set;
            actions.changes.push(MasterChange::Master {
                identity: self.identity,
                last_set,
            });
        }
        if known.is_none() || identities.len() > before.len() {
            actions.changes.push(MasterChange::Server {
                id,
                name: join.name.clone(),
                disks: identities.clone(),
            });
            for (disk, space) in before.iter().enumerate() {
                let change = MasterChange::Space {
                    server: id,
                    disk: disk as u16,
                    up_to: space.remembered,
                };
                actions.changes.push(change);
            }
        }
        let mut disks: Vec<Space> = Vec::new();
        for (at, ((about, kept), identity)) in join
            .disks
            .into_iter()
            .zip(join.kept)
            .zip(identities)
            .enumerate()
        {
            let mut space = before
                .get(at)
                .cloned()
                .unwrap_or_else(|| Space::new(about.clone(), ALIGNMENT));
            let goes_on = ownership::goes_on(self.identity, &about, &kept, space.remembered);
            if goes_on > space.remembered {
                (space.next, space.remembered) = (goes_on, goes_on);
                actions.changes.push(MasterChange::Space {
                    server: id,
                    disk: at as u16,
                    up_to: goes_on,
                });
            }
            if about.identity != 0 {
                let filled = self.filled.remove(&(id, at as u16)).unwrap_or(0);
                if space.is_recalled && kept.master == self.identity {
                    space.came(filled, kept.used, self.now + disk_space::REST);
                }
                space.is_recalled = false;
            }
            space.about = DiskInfo { identity, ..about };
            disks.push(space);
        }
        let (name, address) = (join.name, join.address);
        self.servers.insert(
            id,
            ServerState {
                name,
                address,
                connection: Some(connection),
                disks,
            },
        );
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.server = Some(id);
        }
        actions.send(
            connection,
            DiskServerJoined {
                server: id,
                master: self.identity,
            },
        );
        self.announce_server(id, actions);
    }

    /// Disks that are not this master's: nothing is written there.
    fn refuse_disks(
        &mut self,
        connection: u64,
        server: String,
        words: String,
        actions: &mut Actions,
    ) {
        if self.refused.get(&server) != Some(&words) {
            actions.notes.push(alloc::format!(
                "{words}; nothing is written there (hint: {OWNERSHIP_HINT})"
            ));
            if self.refused.len() >= limits::MOST_SERVERS {
                self.refused.clear();
            }
            self.refused.insert(server, words.clone());
        }
        actions.refuse(connection, 0, Why::Foreign, words);
        actions.closes.push(connection);
    }

    fn disk(&mut self, connection: u64, changed: &DiskChanged, actions: &mut Actions) {
        let id = self.peers.get(&connection).and_then(|peer| peer.server);
        let Some(id) = id else { return };
        let server = self.servers.get_mut(&id);
        if let Some(space) =
            server.and_then(|server| server.disks.get_mut(usize::from(changed.disk)))
        {
            (space.about.up, space.about.writable) = (changed.up, changed.writable);
            self.announce_server(id, actions);
        }
    }

    fn alive(&mut self, connection: u64, damaged: &[u64]) {
        let id = self.peers.get(&connection).and_then(|peer| peer.server);
        let Some(server) = id.and_then(|id| self.servers.get_mut(&id)) else {
            return;
        };
        for (space, damaged) in server.disks.iter_mut().zip(damaged) {
            space.about.damaged = *damaged;
        }
    }

    /// The connections of servers that are up.
    pub fn connections_of_servers(&self) -> impl Iterator<Item = u64> + '_ {
        self.up().map(|(_, connection)| connection)
    }

    /// The name of the server whose connection that is.
    #[must_use]
    pub fn server_name(&self, connection: u64) -> Option<&str> {
        let id = self.peers.get(&connection)?.server?;
        self.servers.get(&id).map(|server| server.name.as_str())
    }

    /// Everybody who has a set open learns of a server.
    fn announce_server(&self, id: u16, actions: &mut Actions) {
        let Some(server) = self.info(id) else { return };
        for (connection, peer) in &self.peers {
            if !peer.open.is_empty() {
                actions.send(
                    *connection,
                    Changed {
                        server: server.clone(),
                    },
                );
            }
        }
    }

    fn reachable(&self, place: &BlockCopyLocation) -> bool {
        let server = self
            .servers
            .get(&place.server)
            .filter(|server| server.connection.is_some());
        server
            .and_then(|server| server.disks.get(usize::from(place.disk)))
            .is_some_and(|space| space.about.up)
    }

    // --- clients ---

    fn open(&mut self, connection: u64, open: &OpenSetRequest, actions: &mut Actions) {
        let Some(set) = self.by_name.get(&open.name).copied() else {
            let words = alloc::format!("there is no set {}", open.name);
            return actions.refuse(connection, open.request, Why::NoSet, words);
        };
        let servers = self.infos();
        let (Some(peer), Some(state)) = (self.peers.get_mut(&connection), self.sets.get(&set))
        else {
            return;
        };
        if !peer.open.contains(&set) {
            if peer.open.len() >= limits::MOST_OPEN {
                return actions.refuse(
                    connection,
                    open.request,
                    Why::Limit,
                    "too many sets are open",
                );
            }
            peer.open.push(set);
        }
        let about = state.about.clone();
        let (request, session, master) = (open.request, peer.session, self.identity);
        actions.send(
            connection,
            OpenSetReply {
                request,
                session,
                master,
                set,
                about,
                servers,
            },
        );
    }

    fn close(&mut self, connection: u64, set: u32) {
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.open.retain(|open| *open != set);
        }
    }

    /// A list becomes one for each server: names become places.
    fn list(&self, now: Instant, connection: u64, list: &BlockListRequest, actions: &mut Actions) {
        let Some(peer) = self.peers.get(&connection) else {
            return;
        };
        let Some(set) = self
            .sets
            .get(&list.set)
            .filter(|_| peer.open.contains(&list.set))
        else {
            // Block by block, so that whoever waits for them knows: the set may have been deleted.
            let (why, blocks) = (Why::NoSet as u8, list.blocks.clone());
            return actions.send(
                connection,
                MissingBlocksNotice {
                    set: list.set,
                    serial: list.serial,
                    why,
                    blocks,
                },
            );
        };
        let mut by_server: BTreeMap<u16, Vec<BlockListEntry>> =
            self.up().map(|(id, _)| (id, Vec::new())).collect();
        let mut missing: BTreeMap<Why, Vec<u64>> = BTreeMap::new();
        for (index, number) in list.blocks.iter().enumerate() {
            let index = index as u32;
            let length = set.about.length(*number);
            match set.rows.choose(*number, |place| self.reachable(place)) {
                Choice::At(checksum, place) => {
                    let BlockCopyLocation { disk, offset, .. } = place;
                    let entry = BlockListEntry {
                        index,
                        number: *number,
                        disk,
                        offset,
                        length,
                        checksum,
                    };
                    by_server.entry(place.server).or_default().push(entry);
                }
                Choice::NotWritten => missing.entry(Why::NoBlock).or_default().push(*number),
                Choice::Unreachable => missing.entry(Why::NoServer).or_default().push(*number),
            }
        }
        for (why, blocks) in missing {
            let (set, serial) = (list.set, list.serial);
            actions.send(
                connection,
                MissingBlocksNotice {
                    set,
                    serial,
                    why: why as u8,
                    blocks,
                },
            );
        }
        for (id, entries) in by_server {
            let server = self.servers.get(&id).and_then(|server| server.connection);
            let Some(server) = server.filter(|_| list.supersedes || !entries.is_empty()) else {
                continue;
            };
            let BlockListRequest {
                set,
                serial,
                supersedes,
                report,
                first_unit,
                app_send,
                ..
            } = *list;
            let stamps = [app_send, now.0, now.0];
            let session = peer.session;
            actions.send(
                server,
                ServerBlockRequests {
                    session,
                    set,
                    serial,
                    supersedes,
                    report,
                    first_unit,
                    stamps,
                    entries,
                },
            );
        }
    }

    fn map(&self, connection: u64, map: &Map, actions: &mut Actions) {
        let Some(set) = self.sets.get(&map.set) else {
            return actions.refuse(connection, map.request, Why::NoSet, "there is no such set");
        };
        let last = set
            .about
            .blocks()
            .min(map.first.saturating_add(u64::from(map.count)));
        let nowhere = || BlockMapEntry {
            checksum: 0,
            places: Vec::new(),
        };
        let rows = (map.first..last)
            .map(|number| set.rows.get(number).unwrap_or_else(nowhere))
            .collect();
        actions.send(
            connection,
            Mapped {
                request: map.request,
                set: map.set,
                first: map.first,
                rows,
            },
        );
    }

    fn answer_inventory(&self, connection: u64, ask: &Ask, actions: &mut Actions) {
        let sets = self.sets.values().map(|set| SetInfo {
            about: set.about.clone(),
            written: set.rows.written(),
            reachable: set
                .rows
                .iter()
                .filter(|(_, row)| row.places.iter().any(|place| self.reachable(place)))
                .count() as u64,
            sealed: set.sealed,
        });
        actions.send(
            connection,
            BlockInventoryReply {
                request: ask.request,
                sets: sets.collect(),
                servers: self.infos(),
            },
        );
    }
}

/// The moment at which lists leave is that of their sending, not of their translation.
pub fn stamp_master_out(message: &mut Message, now: Instant) {
    if let Message::Requests(list) = message {
        list.stamps[2] = now.0;
    }
}

impl Master {
    /// The number of a set's name, for tests and lists of people.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}

#[cfg(test)]
mod tests;

/// The identities of a server's disks, of those that it had and of new ones behind them: a disk keeps its number wherever it is
/// mounted, and one that is not there now says 0. Nothing where they are others.
fn identities(before: &[Space], disks: &[DiskInfo]) -> Option<Vec<u128>> {
    let of = |(at, disk): (usize, &DiskInfo)| match (before.get(at), disk.identity) {
        (Some(space), 0) => Some(space.about.identity),
        (Some(space), now) => (space.about.identity == now).then_some(now),
        (None, now) => (now != 0).then_some(now),
    };
    let identities = disks
        .iter()
        .enumerate()
        .map(of)
        .collect::<Option<Vec<u128>>>()?;
    (identities.len() >= before.len()).then_some(identities)
}
