//! The clients of a server: a bounded table by address and number.
//!
//! Clients that requested delivery once are remembered for the time of the options; others may be replaced as soon as
//! they have their reply. If no entry is free, a new client is refused.

use super::options::Protocol;
use stackline_core::time::Instant;
use stackline_proto::ikp;
use stackline_proto::ikp::server::Message;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;

/// A client, its last message and the last reply to it.
#[derive(Debug)]
pub(super) struct ClientEntry {
    pub(super) address: SocketAddr,
    pub(super) connection: u32,
    pub(super) machine: ikp::Server,
    pub(super) message: Option<Message>,
    /// The message and the data that came with it.
    pub(super) body: Vec<u8>,
    pub(super) reply: Vec<u8>,
    /// Whether the message waits to be received.
    pub(super) waits: bool,
}

/// A request to be replied to later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) entry: usize,
    pub(super) transaction: u32,
    pub(super) address: SocketAddr,
}

/// Counters of refused packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Messages of new clients, for lack of room.
    pub full: u64,
    /// Packets without a known header, or without an address.
    pub strange: u64,
    /// Packets of unknown clients.
    pub unknown: u64,
    /// Packets to a client that its route did not take.
    pub unsent: u64,
}

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) entries: Vec<ClientEntry>,
    numbers: HashMap<(SocketAddr, u32), usize>,
    most: usize,
    last: usize,
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: Vec::new(), numbers: HashMap::new(), most: most.max(1), last: 0 }
    }

    /// The entry of a client.
    pub(super) fn find(&mut self, address: SocketAddr, connection: u32) -> Option<usize> {
        let is = |entry: &ClientEntry| entry.connection == connection && entry.address == address;
        if self.entries.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.last = *self.numbers.get(&(address, connection))?;
        Some(self.last)
    }

    /// An entry for a new client; `None` when all are taken.
    pub(super) fn entry(
        &mut self,
        now: Instant,
        protocol: &Protocol,
        address: SocketAddr,
        connection: u32,
    ) -> Option<usize> {
        let free = |entry: &ClientEntry| entry.machine.forgotten_at().is_some_and(|at| at <= now);
        let place =
            if self.entries.len() < self.most { self.entries.len() } else { self.entries.iter().position(free)? };
        let machine = ikp::Server::new(protocol, connection);
        if let Some(entry) = self.entries.get_mut(place) {
            self.numbers.remove(&(entry.address, entry.connection));
            (entry.address, entry.connection, entry.machine) = (address, connection, machine);
            (entry.message, entry.waits) = (None, false);
        } else {
            let (body, reply) = (Vec::new(), Vec::new());
            self.entries.push(ClientEntry { address, connection, machine, message: None, body, reply, waits: false });
        }
        match self.numbers.entry((address, connection)) {
            Entry::Vacant(entry) => *entry.insert(place),
            Entry::Occupied(entry) => *entry.get(),
        };
        self.last = place;
        Some(place)
    }
}
