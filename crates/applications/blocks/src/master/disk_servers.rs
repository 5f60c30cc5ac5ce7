//! Disk servers join, change and leave: what the master knows of their disks, and which clients are informed.

use super::disk_space::{self, ALIGNMENT, Space};
use super::ownership::{self, HINT};
use super::{Actions, Master, MasterChange, RequestRefusal, ServerState};
use crate::limits;
use crate::wire::master_messages::{
    BlockCopyLocation, Changed, DiskChanged, DiskOwnerRecord, DiskServerJoined, Join, ServerInfo,
};
use crate::wire::message::Why;
use crate::wire::server_messages::DiskInfo;
use alloc::string::String;
use alloc::vec::Vec;

impl Master {
    /// The servers that are up, with their connections.
    pub(super) fn up(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.servers
            .iter()
            .filter_map(|(id, server)| Some((*id, server.connection?)))
    }

    /// The description of a server for clients.
    pub(super) fn info(&self, id: u16) -> Option<ServerInfo> {
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

    /// The descriptions of all servers.
    pub(super) fn infos(&self) -> Vec<ServerInfo> {
        self.servers
            .keys()
            .filter_map(|id| self.info(*id))
            .collect()
    }

    /// Handles a disk server's request to join: its disks have to be those it had, and this master's.
    pub(super) fn join(&mut self, connection: u64, join: Join, actions: &mut Actions) {
        let id = match self.joining_number(&join.name) {
            Ok(id) => id,
            Err(RequestRefusal { why, words }) => {
                return actions.refuse_and_close(connection, why, words);
            }
        };
        let known = self.servers.get(&id);
        let is_new = known.is_none();
        let before = known.map(|server| server.disks.clone()).unwrap_or_default();
        let Some(identities) = identities(&before, &join.disks) else {
            let words = "its disks have changed: start it with the same disks, in the same order";
            return actions.refuse_and_close(connection, Why::Disk, words);
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
        self.pass_last_set(&join.kept, actions);
        if is_new || identities.len() > before.len() {
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
        let disks = self.joined_disks(id, &before, join.disks, join.kept, identities, actions);
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

    /// The number of a server that joins: the one that it had before, or a new one.
    fn joining_number(&self, name: &str) -> Result<u16, RequestRefusal> {
        let known = self.servers.iter().find(|(_, server)| server.name == name);
        if known.is_some_and(|(_, server)| server.connection.is_some()) {
            let words = "a server with that name is already up";
            return Err(RequestRefusal::new(Why::Busy, words));
        }
        let next = || self.servers.keys().next_back().map_or(0, |last| last + 1);
        let id = known.map_or_else(next, |(id, _)| *id);
        if usize::from(id) >= limits::MOST_SERVERS {
            let words = "too many servers have joined";
            return Err(RequestRefusal::new(Why::Limit, words));
        }
        Ok(id)
    }

    /// Takes over the highest set number from the disks of this master: an old copy of the master may know fewer sets, and must not use
    /// their numbers again.
    fn pass_last_set(&mut self, kept: &[DiskOwnerRecord], actions: &mut Actions) {
        let kept = kept.iter().filter(|kept| kept.master == self.identity);
        let last_set = kept.map(|kept| kept.last_set).max().unwrap_or(0);
        if last_set > self.last_set {
            self.last_set = last_set;
            actions.changes.push(MasterChange::Master {
                identity: self.identity,
                last_set,
            });
        }
    }

    /// The space of each disk of a server that joins, from what was known of it and what the disk says.
    fn joined_disks(
        &mut self,
        id: u16,
        before: &[Space],
        disks: Vec<DiskInfo>,
        kept: Vec<DiskOwnerRecord>,
        identities: Vec<u128>,
        actions: &mut Actions,
    ) -> Vec<Space> {
        let mut spaces: Vec<Space> = Vec::new();
        for (at, ((about, kept), identity)) in
            disks.into_iter().zip(kept).zip(identities).enumerate()
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
            spaces.push(space);
        }
        spaces
    }

    /// Refuses a server because of a disk that is not this master's: nothing is written there.
    fn refuse_disks(
        &mut self,
        connection: u64,
        server: String,
        words: String,
        actions: &mut Actions,
    ) {
        if self.refused.get(&server) != Some(&words) {
            actions.notes.push(alloc::format!(
                "{words}; nothing is written to the disk (hint: {HINT})"
            ));
            if self.refused.len() >= limits::MOST_SERVERS {
                self.refused.clear();
            }
            self.refused.insert(server, words.clone());
        }
        actions.refuse_and_close(connection, Why::Foreign, words);
    }

    /// Handles that a disk of a server is gone, is there again, or cannot be written.
    pub(super) fn disk(&mut self, connection: u64, changed: &DiskChanged, actions: &mut Actions) {
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

    /// Handles a server's periodic report of damaged copies, one count per disk.
    pub(super) fn alive(&mut self, connection: u64, damaged: &[u64]) {
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

    /// Sends the description of a server to every client that has a set open.
    pub(super) fn announce_server(&self, id: u16, actions: &mut Actions) {
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

    /// Whether the server and the disk of a copy are up.
    pub(super) fn reachable(&self, place: &BlockCopyLocation) -> bool {
        let server = self
            .servers
            .get(&place.server)
            .filter(|server| server.connection.is_some());
        server
            .and_then(|server| server.disks.get(usize::from(place.disk)))
            .is_some_and(|space| space.about.up)
    }
}

/// The identities of a server's disks: those that it had, then new ones. A disk keeps its number wherever it is mounted; one that is not
/// there reports identity 0. `None` if the known disks are not the same in the same order.
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
