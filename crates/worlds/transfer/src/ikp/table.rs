//! The clients of a server: a bounded table by address and number.
//!
//! Clients that requested delivery once are remembered for the time of the options; others may be replaced as soon as
//! they have their reply. If no entry is free, a new client is refused; or, where the options say so, the oldest gives way of those that have not proven
//! who they are.

use super::options::Protocol;
use stackline_core::time::Instant;
use stackline_proto::ikp;
use stackline_proto::ikp::server::IkpMessage;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// A client, its last message and the last reply to it.
#[derive(Debug)]
pub(super) struct ClientEntry {
    pub(super) address: SocketAddr,
    pub(super) connection: u32,
    pub(super) machine: ikp::IkpServer,
    pub(super) message: Option<IkpMessage>,
    /// The message and the data that came with it.
    pub(super) body: Vec<u8>,
    pub(super) reply: Vec<u8>,
    /// Whether the message waits to be received.
    pub(super) waits: bool,
    /// Whether it has proven who it is.
    pub(super) is_known: bool,
    /// When its client took this entry, as a count of those that did.
    turn: u64,
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
pub struct RefusedIkpPackets {
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
#[derive(Debug, Default)]
pub(super) struct IkpClientTable {
    pub(super) entries: Vec<ClientEntry>,
    numbers: HashMap<(SocketAddr, u32), usize>,
    most: usize,
    last: usize,
    /// Entries in the order in which they were taken, where strangers give way.
    taken: Option<VecDeque<(usize, u64)>>,
    turn: u64,
}

impl IkpClientTable {
    pub(super) fn new(most: usize, strangers_give_way: bool) -> Self {
        let taken = strangers_give_way.then(VecDeque::new);
        Self {
            most: most.max(1),
            taken,
            ..Self::default()
        }
    }

    /// The entry that was taken first of those whose clients have not proven who they are.
    fn stranger(&mut self) -> Option<usize> {
        let taken = self.taken.as_mut()?;
        while let Some((place, turn)) = taken.pop_front() {
            if self
                .entries
                .get(place)
                .is_some_and(|entry| entry.turn == turn && !entry.is_known)
            {
                return Some(place);
            }
        }
        None
    }

    /// A place was taken by a new client.
    fn takes(&mut self, place: usize) {
        self.turn += 1;
        self.entries[place].turn = self.turn;
        let Some(taken) = &mut self.taken else { return };
        taken.push_back((place, self.turn));
        // Those that have proven who they are, or have gone, need no turn.
        if taken.len() > 2 * self.most {
            taken.retain(|(place, turn)| {
                self.entries[*place].turn == *turn && !self.entries[*place].is_known
            });
        }
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
        let place = match self.entries.len() {
            fewer if fewer < self.most => fewer,
            _ => self
                .stranger()
                .or_else(|| self.entries.iter().position(free))?,
        };
        let machine = ikp::IkpServer::new(protocol, connection);
        if let Some(entry) = self.entries.get_mut(place) {
            self.numbers.remove(&(entry.address, entry.connection));
            (entry.address, entry.connection, entry.machine) = (address, connection, machine);
            (entry.message, entry.waits, entry.is_known) = (None, false, false);
        } else {
            let (body, reply) = (Vec::new(), Vec::new());
            let (message, waits, is_known) = (None, false, false);
            let entry = ClientEntry {
                address,
                connection,
                machine,
                message,
                body,
                reply,
                waits,
                is_known,
                turn: 0,
            };
            self.entries.push(entry);
        }
        self.takes(place);
        match self.numbers.entry((address, connection)) {
            Entry::Vacant(entry) => *entry.insert(place),
            Entry::Occupied(entry) => *entry.get(),
        };
        self.last = place;
        Some(place)
    }
}
