//! [`Builder`] takes packets and socket events, source by source and in any order within a short time, and returns finished
//! exchanges.
//!
//! A socket is identified by its kernel address and assigned to a connection by its two ends. Bytes that a program writes and reads
//! are counted from the connection's first byte, so the calls at sockets that existed before the observation cannot be placed in
//! their streams at once. A door is the network interface at which packets leave or enter a host.

mod connection_key;
mod lookups;
mod quic_connections;
mod quic_datagrams;
mod sockets;
mod unknown;

use crate::connection::{Passing, RequestConnection, TransferAccount, UNDER_WAY};
use crate::exchange::{Exchange, ExchangeEnd, ExchangeMessage};
use crate::observation_end::ObservationEnd;
use connection_key::{RequestConnectionEnds, RequestConnectionKey};
use lookups::{AnsweredLookup, Lookup};
use quic_connections::QuicConnections;
use stackline_dissect::conversation::tls::session_secrets::Secrets;
use stackline_dissect::conversation::{ExchangeKind, UNANSWERED, dns};
use stackline_dissect::left_out::Bound;
use stackline_dissect::segment::{DissectedDatagram, DissectedSegment, PacketTransport, of_ip};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::RedactedName;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
pub use unknown::Unknown;

/// The most connections at a time; beyond that, the one that is over or idle for longest is ended.
const MOST_CONNECTIONS: usize = Bound::Connections.most();
/// How many idle connections are looked up at once, to be ended one by one.
const BATCH: usize = 1024;
/// The most beginnings of connections that are remembered.
const MOST_ORIGINS: usize = Bound::Origins.most();
/// The most DNS questions that wait for an answer.
const MOST_LOOKUPS: usize = Bound::Lookups.most();
/// The most answered DNS questions that wait for a connection.
const MOST_ANSWERED: usize = Bound::Answered.most();
/// From this many finished exchanges on, the caller should take them.
const MANY_DONE: usize = 4096;
/// The reason for a DNS question that was dropped at [`MOST_LOOKUPS`].
const TOO_MANY_LOOKUPS: &str = "more than 4,096 DNS questions were waiting for an answer";
/// Ports of DNS, and of multicast DNS within a network.
pub const DNS_PORTS: [u16; 2] = [53, 5353];
/// A connection that begins this soon after a DNS answer is taken to follow from it, ns.
const LOOKUP_NS: u64 = 100_000_000;
/// A connection is forgotten this long after both sides have finished, ns.
const LINGERS_NS: u64 = 2_000_000_000;

/// A host whose packets are observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedHost {
    /// Its name.
    pub name: String,
    /// Its addresses; if empty, it is the only host and has all local addresses.
    pub addresses: Vec<IpAddr>,
}

/// What happened at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// It is connected: its own address, and the peer's.
    Opened(SocketAddr, SocketAddr),
    /// It is connected (its own address, the peer's) and existed before the observation; what it did before is not known.
    Found(SocketAddr, SocketAddr),
    /// Its program wrote this many bytes.
    Wrote(u64),
    /// Its program read this many bytes.
    Read(u64),
    /// It is closed.
    Closed,
}

/// How a packet passes the host at which it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketPassage {
    /// It leaves the host.
    Leaves,
    /// It arrives at the host.
    Arrives,
    /// The host forwards it: neither end is there.
    Between,
}

/// Where and when a segment of a connection passes, and in which of its directions.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPassage {
    /// The host it is seen at, by its number.
    pub host: usize,
    /// How it passes the host.
    pub door: PacketPassage,
    /// When, ns.
    pub at_ns: u64,
    /// The direction of the connection.
    pub direction: EventStreamDirection,
}

/// What identifies a connection to other components too: who opened it, who was connected to, and the sequence number of its first
/// byte.
pub type ConnectionOrigin = (SocketAddr, SocketAddr, u32);

/// What the program has done at a socket so far.
#[derive(Debug, Default)]
struct SocketProgress {
    /// Its own address and the peer's, once known.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Bytes written so far.
    wrote: u64,
    /// Bytes read so far.
    read: u64,
    /// Calls before the first packet of its connection was seen: whether it wrote, the count after it, when (ns), and the thread.
    /// They are given to the connection when that is seen.
    early: Vec<(bool, u64, u64, u32)>,
    /// How many such calls were dropped at a bound.
    left_out: u64,
    /// Calls at it may have been lost: how many bytes passed is unknown until it is another connection's.
    is_uncounted: bool,
}

/// Takes packets and socket events, and builds exchanges from them.
#[derive(Debug)]
pub struct Builder {
    hosts: Vec<ObservedHost>,
    connections: HashMap<RequestConnectionKey, RequestConnection>,
    /// The connections to be ended next when room is needed, each with the time of its last packet when it was looked up.
    idlest: VecDeque<(u64, RequestConnectionKey)>,
    sockets: HashMap<u64, SocketProgress>,
    /// Whether calls at sockets were lost.
    has_lost_calls: bool,
    /// DNS questions that are not answered yet.
    lookups: VecDeque<Lookup>,
    /// Answered DNS questions to which no connection belongs yet.
    answered: VecDeque<AnsweredLookup>,
    /// Whether a name server on a loopback address ever answered.
    has_own_resolver: bool,
    /// Finished exchanges that are not taken yet.
    done: Vec<Exchange>,
    /// Totals of finished connections without an answered request; `None` if they are not wanted.
    transfers: Option<Vec<TransferAccount>>,
    /// The number of the next connection.
    next_flow: u32,
    /// The number of each connection by its origin; `None` if it is not wanted.
    origins: Option<BTreeMap<ConnectionOrigin, u32>>,
    unknown: Unknown,
    /// The TLS secrets with which connections are decrypted.
    secrets: Option<Secrets>,
    observation_end: ObservationEnd,
    quic: QuicConnections,
}

/// What was read of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfDatagram {
    /// It is a DNS message, or it holds packets of QUIC.
    Read,
    /// Nothing: it has no port of DNS, and belongs to no QUIC connection whose beginning was seen.
    Foreign,
    /// Nothing: it has a port of DNS, and is no complete DNS message.
    Unreadable,
}

impl Builder {
    /// Creates a builder for the observed hosts. Elsewhere, a host's number is its place in this list.
    #[must_use]
    pub fn new(hosts: Vec<ObservedHost>) -> Self {
        Self {
            hosts,
            connections: HashMap::new(),
            idlest: VecDeque::new(),
            sockets: HashMap::new(),
            has_lost_calls: false,
            lookups: VecDeque::new(),
            answered: VecDeque::new(),
            has_own_resolver: false,
            done: Vec::new(),
            transfers: None,
            next_flow: 0,
            origins: None,
            unknown: Unknown::default(),
            secrets: None,
            observation_end: ObservationEnd::default(),
            quic: QuicConnections::default(),
        }
    }

    /// Sets the moment from which the observer itself ends programs: connections that end after it count as under way, not as
    /// failed.
    #[must_use]
    pub fn observed_until(mut self, end: ObservationEnd) -> Self {
        self.observation_end = end;
        self
    }

    /// Sets the secrets to decrypt TLS with; more of them may be learnt while the observation goes on.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Also totals connections without an answered request; see [`Builder::take_transfers`].
    #[must_use]
    pub fn accounting_transfers(mut self) -> Self {
        self.transfers = Some(Vec::new());
        self
    }

    /// The totals of connections without an answered request that were finished since the last call.
    pub fn take_transfers(&mut self) -> Vec<TransferAccount> {
        self.transfers
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Remembers how every connection on a network began, for components that number the same connections differently; see
    /// [`Builder::flow_of`].
    #[must_use]
    pub fn remembering_origins(mut self) -> Self {
        self.origins = Some(BTreeMap::new());
        self
    }

    /// The number of a connection by its origin, if its beginning was seen and is remembered.
    #[must_use]
    pub fn flow_of(&self, origin: &ConnectionOrigin) -> Option<u32> {
        self.origins.as_ref()?.get(origin).copied()
    }

    /// The first number that no connection has.
    #[must_use]
    pub const fn next_flow(&self) -> u32 {
        self.next_flow
    }

    /// The observed hosts.
    #[must_use]
    pub fn hosts(&self) -> &[ObservedHost] {
        &self.hosts
    }

    /// Takes a packet at a host's door, from its IP header on; `outgoing`: it leaves the host. On the host's own loopback it also
    /// arrives. `length`: its length before it was cut by the capture, bytes.
    pub fn packet(&mut self, host: usize, outgoing: bool, at_ns: u64, bytes: &[u8], length: u64) {
        match of_ip(bytes, length) {
            Some(PacketTransport::Tcp(segment, data)) => {
                self.segment(host, outgoing, at_ns, &segment, data)
            }
            Some(PacketTransport::Udp(datagram, data)) => {
                let door = if outgoing {
                    PacketPassage::Leaves
                } else {
                    PacketPassage::Arrives
                };
                self.datagram(host, door, at_ns, &datagram, data);
            }
            None => {}
        }
    }

    /// Takes a TCP segment at a host's door; `data`: its captured payload.
    pub fn segment(
        &mut self,
        host: usize,
        outgoing: bool,
        at_ns: u64,
        segment: &DissectedSegment,
        data: &[u8],
    ) {
        let door = if outgoing {
            PacketPassage::Leaves
        } else {
            PacketPassage::Arrives
        };
        let Some((key, direction)) = self.connection(host, door, at_ns, segment) else {
            return;
        };
        let passage = SegmentPassage {
            host,
            door,
            at_ns,
            direction,
        };
        self.pass(passage, key, segment, data);
    }

    /// Takes a TCP segment of a connection that the caller has numbered.
    pub fn located(
        &mut self,
        passage: SegmentPassage,
        flow: u32,
        segment: &DissectedSegment,
        data: &[u8],
    ) {
        let (from, to) = segment.ends;
        let ends = if passage.direction == EventStreamDirection::There {
            (from, to)
        } else {
            (to, from)
        };
        let key = RequestConnectionKey {
            flow: Some(flow),
            ..RequestConnectionKey::new(passage.host, ends)
        };
        if !self.connections.contains_key(&key) {
            if segment.reset || (segment.bytes == 0 && !segment.syn) {
                return; // A remainder of a connection that is not known any more.
            }
            self.open(passage, key, segment);
        }
        self.pass(passage, key, segment, data);
    }

    /// Sets the number of the next connection that the caller does not number itself.
    pub const fn number_from(&mut self, flow: u32) {
        self.next_flow = flow;
    }

    fn pass(
        &mut self,
        passage: SegmentPassage,
        key: RequestConnectionKey,
        segment: &DissectedSegment,
        data: &[u8],
    ) {
        let SegmentPassage {
            host,
            door,
            at_ns,
            direction,
        } = passage;
        let (from, to) = segment.ends;
        let is_loop = self.is_own(host, from.ip()) && self.is_own(host, to.ip());
        let Some(connection) = self.connections.get_mut(&key) else {
            return;
        };
        let Some(is_dissected) = connection.is_dissected_at(host, door == PacketPassage::Between)
        else {
            return;
        };
        // A packet that a host forwards counts as seen at the door of the side that opened the connection.
        let between = door == PacketPassage::Between;
        let leaves = door == PacketPassage::Leaves
            || is_loop
            || (between && direction == EventStreamDirection::There);
        let arrives = door == PacketPassage::Arrives
            || is_loop
            || (between && direction == EventStreamDirection::Back);
        connection.segment(
            at_ns,
            direction,
            Passing {
                leaves,
                arrives,
                is_dissected,
            },
            segment,
            data,
            &mut self.done,
        );
    }

    /// Whether an address is the host's: one of its list, or any loopback address.
    fn is_own(&self, host: usize, address: IpAddr) -> bool {
        address.is_loopback()
            || self
                .hosts
                .get(host)
                .is_some_and(|host| host.addresses.contains(&address))
    }

    /// The connection of a segment, which is opened if it is new, and the segment's direction. `None`: a remainder of a connection
    /// that is not known any more.
    fn connection(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        segment: &DissectedSegment,
    ) -> Option<(RequestConnectionKey, EventStreamDirection)> {
        let (from, to) = segment.ends;
        let opens = segment.syn && segment.acknowledged.is_none();
        for (ends, direction) in [
            ((from, to), EventStreamDirection::There),
            ((to, from), EventStreamDirection::Back),
        ] {
            let key = RequestConnectionKey::new(host, ends);
            if let Some(known) = self.connections.get(&key)
                && !(opens && direction == EventStreamDirection::There && known.is_over())
                && !(opens && direction == EventStreamDirection::Back)
            {
                return Some((key, direction));
            }
        }
        if segment.reset || (segment.bytes == 0 && !segment.syn) {
            return None; // A remainder of a connection that is not known any more.
        }
        // If the SYN was not seen, a SYN-ACK shows who opened the connection; without either, the side with the lower port is taken
        // for the server.
        let is_back = !opens && (segment.syn || from.port() < to.port());
        let (ends, direction) = if is_back {
            ((to, from), EventStreamDirection::Back)
        } else {
            ((from, to), EventStreamDirection::There)
        };
        let key = RequestConnectionKey::new(host, ends);
        if let Some(old) = self.connections.remove(&key) {
            self.end_connection(old);
        }
        let passage = SegmentPassage {
            host,
            door,
            at_ns,
            direction,
        };
        self.open(passage, key, segment);
        Some((key, direction))
    }

    /// Adds a new connection.
    fn open(
        &mut self,
        passage: SegmentPassage,
        key: RequestConnectionKey,
        segment: &DissectedSegment,
    ) {
        let SegmentPassage {
            host,
            door,
            at_ns,
            direction,
        } = passage;
        self.make_room();
        let own = |address: SocketAddr, here: bool| ExchangeEnd {
            host: self.host_of(host, address.ip(), here),
            address,
        };
        let (from_here, to_here) = (
            door == PacketPassage::Leaves,
            door == PacketPassage::Arrives,
        );
        let places = match direction {
            EventStreamDirection::There => [own(key.ends.0, from_here), own(key.ends.1, to_here)],
            EventStreamDirection::Back => [own(key.ends.0, to_here), own(key.ends.1, from_here)],
        };
        let client_host = places[0].host;
        let seen_at = (door == PacketPassage::Between
            && places.iter().all(|place| place.host.is_none()))
        .then_some(host);
        let flow = key.flow.unwrap_or(self.next_flow);
        self.next_flow = self.next_flow.saturating_add(u32::from(key.flow.is_none()));
        self.remember(&key, direction, segment, flow);
        let mut connection =
            RequestConnection::new(flow, places, !segment.syn, self.secrets.clone());
        connection.seen_at = seen_at;
        connection.observation_end = self.observation_end.clone();
        self.unknown.midway += u64::from(!segment.syn);
        connection.lookup = client_host.and_then(|host| self.take_lookup(host, at_ns));
        self.adopt_sockets(key.ends, &mut connection);
        self.connections.insert(key, connection);
    }

    /// Remembers the origin of a connection, if its first segment (in `direction`) is a SYN or SYN-ACK.
    fn remember(
        &mut self,
        key: &RequestConnectionKey,
        direction: EventStreamDirection,
        segment: &DissectedSegment,
        flow: u32,
    ) {
        let first = match direction {
            EventStreamDirection::There => Some(segment.sequence.wrapping_add(1)),
            EventStreamDirection::Back => segment.acknowledged,
        };
        if let Some(origins) = &mut self.origins
            && let Some(first) = first.filter(|_| segment.syn && key.within.is_none())
        {
            if origins.len() >= MOST_ORIGINS {
                return self.unknown.left_out.add(Bound::Origins, 1);
            }
            origins.insert((key.ends.0, key.ends.1, first), flow);
        }
    }

    /// The observed host that has an address, seen at a host's door; `here`: the address is on this host's side.
    fn host_of(&self, host: usize, address: IpAddr, here: bool) -> Option<usize> {
        if here || address.is_loopback() || self.is_own(host, address) {
            return Some(host);
        }
        self.hosts
            .iter()
            .position(|other| other.addresses.contains(&address))
    }

    /// If there are too many connections, ends the one that is over or idle for longest. Candidates are looked up in batches, so
    /// that each costs little.
    fn make_room(&mut self) {
        if self.connections.len() < MOST_CONNECTIONS {
            return;
        }
        loop {
            if self.idlest.is_empty() {
                let ages = self
                    .connections
                    .iter()
                    .map(|(key, known)| (!known.is_over(), known.last_ns, *key));
                let mut ages: Vec<_> = ages.collect();
                let batch = BATCH.min(ages.len());
                ages.select_nth_unstable(batch - 1);
                ages.truncate(batch);
                ages.sort_unstable();
                self.idlest = ages
                    .into_iter()
                    .map(|(_, last_ns, key)| (last_ns, key))
                    .collect();
            }
            let Some((last_ns, key)) = self.idlest.pop_front() else {
                return;
            };
            // A connection on which a packet passed since, or whose key belongs to a newer connection, stays.
            let is_idle = self
                .connections
                .get(&key)
                .is_some_and(|known| known.last_ns == last_ns);
            if is_idle && let Some(old) = self.connections.remove(&key) {
                self.unknown
                    .left_out
                    .add(Bound::Connections, u64::from(!old.is_over()));
                return self.end_connection(old);
            }
        }
    }

    /// Ends a connection: reports its remaining exchanges, its totals, and what is not known of it.
    fn end_connection(&mut self, mut connection: RequestConnection) {
        connection.over(u64::MAX >> 1, true, &mut self.done);
        self.done.extend(connection.unopened());
        if let Some(transfers) = &mut self.transfers {
            transfers.extend(connection.transfer_account());
        }
        self.unknown.left_out.merge(&connection.left_out());
        self.unknown.lost_bytes += connection.lost();
        self.unknown.one_way += u64::from(connection.is_one_way() && connection.has_data());
    }

    // --- what is over ---

    /// Returns the exchanges that are over at `now_ns`. Events that a source reports more than half a second late are not used for
    /// them.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Exchange> {
        let done = &mut self.done;
        let mut gone = BTreeMap::new();
        for (key, connection) in &mut self.connections {
            connection.over(now_ns, false, done);
            if connection.is_over() && connection.last_ns.saturating_add(LINGERS_NS) <= now_ns {
                gone.insert(connection.flow, *key);
            }
        }
        for key in gone.into_values() {
            if let Some(connection) = self.connections.remove(&key) {
                self.end_connection(connection);
            }
        }
        self.advance_quic(now_ns);
        self.take_done()
    }

    /// Ends all connections; returns the remaining exchanges, and the counts of what is not known.
    pub fn finish(&mut self) -> (Vec<Exchange>, Unknown) {
        let connections: BTreeMap<u32, RequestConnection> = self
            .connections
            .drain()
            .map(|(_, connection)| (connection.flow, connection))
            .collect();
        for mut connection in connections.into_values() {
            connection.is_cut_by_observer |= !connection.is_closed();
            self.end_connection(connection);
        }
        self.finish_quic();
        // A host without a configured name server asks its own loopback address (resolv.conf(5)). If none there ever answered, such
        // questions were asked of nobody and are dropped.
        let has_answered = self.has_own_resolver;
        self.lookups
            .retain(|lookup| has_answered || !lookup.exchange.server.address.ip().is_loopback());
        for mut lookup in self.lookups.drain(..) {
            lookup.exchange.void = Some(UNANSWERED);
            self.done.push(lookup.exchange);
        }
        self.unknown.left_out.add(
            Bound::Sessions,
            self.secrets.as_ref().map_or(0, Secrets::left_out),
        );
        (self.take_done(), self.unknown.clone())
    }

    /// Whether so many exchanges are finished that they should be taken before more events are given.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.done.len() >= MANY_DONE
    }

    /// Takes the finished exchanges; [`Builder::advance`] looks for further ones.
    pub fn take_done(&mut self) -> Vec<Exchange> {
        let mut done = std::mem::take(&mut self.done);
        done.sort_by_cached_key(|exchange| (exchange.begin_ns(), exchange.flow, exchange.number));
        let under_way = done
            .iter()
            .filter(|exchange| exchange.void == Some(UNDER_WAY));
        self.unknown.under_way += under_way.count() as u64;
        done
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod quic_tests;
#[cfg(test)]
mod round_trips_tests;
#[cfg(test)]
mod tests;
