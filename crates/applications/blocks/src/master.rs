//! The state machine of the master: data sets, sessions, the places of blocks, and which disk servers are up (Tierney et al. 1996, section
//! 2.1.3).
//!
//! It names the changes that have to be stored ([`MasterChange`]) before its answers may be sent. It never touches the data of a block.

mod block_map;
mod disk_servers;
mod disk_space;
mod loading;
mod memory;
mod ownership;
mod readers;

pub use disk_space::ALIGNMENT;
pub use memory::MasterChange;
pub use ownership::HINT as OWNERSHIP_HINT;

use crate::limits;
use crate::set::BlockSet;
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{BlockRequestRefused, Commit, Create, Delete, Forget, Reserve};
use crate::wire::message::{Message, Why};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use block_map::SetBlockMap;
use disk_space::Space;
use stackline_core::time::Instant;

/// What the caller has to do: first store the changes, then send the messages, then close connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Changes that have to be stored before anything is sent.
    pub changes: Vec<MasterChange>,
    /// Messages to send, each with the connection it goes over.
    pub sends: Vec<(u64, Message)>,
    /// Connections to close after everything is sent.
    pub closes: Vec<u64>,
    /// Notes for the operator of the master, a sentence each.
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

    /// Refuses what the connection sent and closes it.
    fn refuse_and_close(&mut self, connection: u64, why: Why, words: impl Into<String>) {
        self.refuse(connection, 0, why, words);
        self.closes.push(connection);
    }
}

/// Why a request is refused: the code and the words for the requester.
struct RequestRefusal {
    why: Why,
    words: String,
}

impl RequestRefusal {
    fn new(why: Why, words: impl Into<String>) -> Self {
        Self {
            why,
            words: words.into(),
        }
    }
}

/// A set and where its blocks are.
struct SetState {
    /// The set's description.
    about: BlockSet,
    /// Where its blocks are.
    rows: SetBlockMap,
    /// Whether all blocks are written and loading has ended.
    sealed: bool,
    /// The connection of the loader that writes it.
    loader: Option<u64>,
    /// Places that this loader reserved and has not committed.
    pending: loading::Pending,
}

/// A disk server that has joined at some time.
struct ServerState {
    name: String,
    address: String,
    /// Its connection, while it is up.
    connection: Option<u64>,
    disks: Vec<Space>,
}

/// A connection whose greeting is complete.
struct MasterPeer {
    role: BlockPeerRole,
    /// The session number, which only this peer is given.
    session: u128,
    /// The numbers of the sets that it has open.
    open: Vec<u32>,
    /// The number of the disk server, if the peer is one.
    server: Option<u16>,
}

/// The state of the master.
#[derive(Default)]
pub struct Master {
    /// The master's identity, drawn once. Its disks store it.
    identity: u128,
    sets: BTreeMap<u32, SetState>,
    by_name: BTreeMap<String, u32>,
    /// The highest number that any set has had. Numbers are never used again, so what was said of a deleted set applies to no other.
    last_set: u32,
    servers: BTreeMap<u16, ServerState>,
    peers: BTreeMap<u64, MasterPeer>,
    /// By server name, why its disks are refused: so that the note is written once.
    refused: BTreeMap<String, String>,
    /// When the last message came.
    now: Instant,
    /// By server and disk: the end, in bytes, of the known blocks when the master was started.
    filled: BTreeMap<(u16, u16), u64>,
}

impl Master {
    /// Records that a peer has connected. `session` is a random number that cannot be guessed.
    ///
    /// # Errors
    /// [`Why::Limit`] if there are too many connections.
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

    /// Handles the end of a connection: a loader's reservations are given back, servers forget a session, others learn that a server is
    /// down.
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

    /// Handles a message from a connection.
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
            (
                BlockPeerRole::Loader,
                message @ (Message::Create(_)
                | Message::Reserve(_)
                | Message::Commit(_)
                | Message::Delete(_)),
            ) => self.load(connection, message, &mut actions),
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
                "this connection is read-only",
            ),
            _ => {
                let words = "that message is not allowed here";
                actions.refuse_and_close(connection, Why::Malformed, words);
            }
        }
        actions
    }
}

/// Stamps a list for a server with the moment at which it is sent. The stamp it has until then is the moment of its translation.
pub fn stamp_master_out(message: &mut Message, now: Instant) {
    if let Message::Requests(list) = message {
        list.stamps[2] = now.0;
    }
}

impl Master {
    /// The number of the set with that name.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}

#[cfg(test)]
mod tests;
