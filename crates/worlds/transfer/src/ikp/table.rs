//! The clients of a server: a bounded table by address and number.
//!
//! Clients that requested delivery once are remembered for the time of the options; others may be replaced as soon as
//! they have their reply. When the table is full, a new client takes an entry that is no longer needed, or is refused. If the options
//! say that strangers give way, it first of all takes the oldest entry whose client has not proven who it is.

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
    /// The number that the client chose, which distinguishes it from others at its address.
    pub(super) connection: u32,
    /// The protocol's state for this client.
    pub(super) machine: ikp::IkpServer,
    pub(super) message: Option<IkpMessage>,
    /// The message and the data that came with it.
    pub(super) body: Vec<u8>,
    pub(super) reply: Vec<u8>,
    /// Whether the message waits to be received.
    pub(super) waits: bool,
    /// Whether it has proven who it is.
    pub(super) is_known: bool,
    /// How many clients had taken an entry when this one did, itself included; it grows with time.
    turn: u64,
}

/// A request to be replied to later: which entry of the table, which of its messages, and whose.
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
    /// Packets to a client that the kernel refused to send.
    pub unsent: u64,
}

/// The table of a server's clients.
#[derive(Debug, Default)]
pub(super) struct IkpClientTable {
    pub(super) entries: Vec<ClientEntry>,
    /// The entry of each client, by address and number.
    numbers: HashMap<(SocketAddr, u32), usize>,
    /// Most entries.
    most: usize,
    /// The entry that was found last, which is looked at first.
    last: usize,
    /// Entries, with their turns, in the order in which they were taken; only where strangers give way.
    taken: Option<VecDeque<(usize, u64)>>,
    /// How many times an entry was taken.
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

    /// Removes from `taken` and returns the oldest entry whose client has not proven who it is.
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

    /// Records that a new client took the entry at `place`.
    fn takes(&mut self, place: usize) {
        self.turn += 1;
        self.entries[place].turn = self.turn;
        let Some(taken) = &mut self.taken else { return };
        taken.push_back((place, self.turn));
        // The queue is kept short: clients that have proven who they are, or whose entry was taken, are removed.
        if taken.len() > 2 * self.most {
            taken.retain(|(place, turn)| {
                self.entries[*place].turn == *turn && !self.entries[*place].is_known
            });
        }
    }

    /// The entry of a client; `None` if it is not in the table.
    pub(super) fn find(&mut self, address: SocketAddr, connection: u32) -> Option<usize> {
        let is = |entry: &ClientEntry| entry.connection == connection && entry.address == address;
        if self.entries.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.last = *self.numbers.get(&(address, connection))?;
        Some(self.last)
    }

    /// Makes an entry for a new client, in place of another one if the table is full; `None` when no entry may be taken.
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
            // A stranger is found at once; a flood of new clients must not search the table each time.
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
