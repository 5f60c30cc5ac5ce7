//! Takes what was seen, source by source and in any order within a short time, and gives exchanges that are over.
//!
//! Sockets are known by the kernel's address and belong to a connection by their two ends; what a program wrote and read is counted
//! from the connection's first byte, so sockets that were there before have no place in their streams.

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

/// Connections that are distinguished; of more the oldest idle one goes first.
const MOST_CONNECTIONS: usize = Bound::Connections.most();
/// Connections that are found at once to give way next.
const BATCH: usize = 1024;
/// Beginnings of connections that are remembered.
const MOST_ORIGINS: usize = Bound::Origins.most();
/// Questions after names that wait for an answer.
const MOST_LOOKUPS: usize = Bound::Lookups.most();
/// Answers that wait for a connection.
const MOST_ANSWERED: usize = Bound::Answered.most();
/// Exchanges that are over and are not taken yet, after which they should be.
const MANY_DONE: usize = 4096;
/// Why a question that gave way has no answer.
const TOO_MANY_LOOKUPS: &str = "more than 4,096 DNS questions were waiting for an answer";
/// Ports of name servers, also of those within a network.
pub const DNS_PORTS: [u16; 2] = [53, 5353];
/// A connection that is asked for so soon behind an answer was asked after.
const LOOKUP_NS: u64 = 100_000_000;
/// A connection whose sides have finished is forgotten after this.
const LINGERS_NS: u64 = 2_000_000_000;

/// A host that is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedHost {
    /// Its name.
    pub name: String,
    /// Its addresses; none: it is the only one, and all local addresses are its.
    pub addresses: Vec<IpAddr>,
}

/// What a socket did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// It has those ends now: its own, and the other's.
    Opened(SocketAddr, SocketAddr),
    /// It has those ends and was there before anybody looked; what it did before is not known.
    Found(SocketAddr, SocketAddr),
    /// Its program wrote so many bytes.
    Wrote(u64),
    /// Its program read so many.
    Read(u64),
    /// It is closed.
    Closed,
}

/// How a packet passes the place where it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketPassage {
    /// It leaves the host.
    Leaves,
    /// It arrives there.
    Arrives,
    /// It passes by: neither end is there.
    Between,
}

/// Where and when a segment of a connection passes, and in which of its directions.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPassage {
    /// The host it is seen at, by its number.
    pub host: usize,
    /// How it passes there.
    pub door: PacketPassage,
    /// The moment.
    pub at_ns: u64,
    /// The direction of the connection.
    pub direction: EventStreamDirection,
}

/// A connection as others know it too: who opened it, who was connected to, the sequence number of its first byte.
pub type ConnectionOrigin = (SocketAddr, SocketAddr, u32);

#[derive(Debug, Default)]
struct SocketProgress {
    ends: Option<(SocketAddr, SocketAddr)>,
    wrote: u64,
    read: u64,
    /// What was done before its connection was seen: it is counted, and given to it.
    early: Vec<(bool, u64, u64, u32)>,
    /// How much of that was more than waits.
    left_out: u64,
}

/// Takes what was seen.
#[derive(Debug)]
pub struct Builder {
    hosts: Vec<ObservedHost>,
    connections: HashMap<RequestConnectionKey, RequestConnection>,
    /// Those that give way next, with the last moment at which something passed on them.
    idlest: VecDeque<(u64, RequestConnectionKey)>,
    sockets: HashMap<u64, SocketProgress>,
    lookups: VecDeque<Lookup>,
    answered: VecDeque<AnsweredLookup>,
    /// Whether a name server on a loopback ever answered.
    has_own_resolver: bool,
    done: Vec<Exchange>,
    /// Transfers that are over, where they are wanted.
    transfers: Option<Vec<TransferAccount>>,
    next_flow: u32,
    /// Which connection has which number, where others want to know it.
    origins: Option<BTreeMap<ConnectionOrigin, u32>>,
    unknown: Unknown,
    secrets: Option<Secrets>,
    observation_end: ObservationEnd,
    quic: QuicConnections,
}

/// What of a datagram was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfDatagram {
    /// A message of DNS, or packets of QUIC.
    Read,
    /// Nothing: it is of no port of DNS, and of no connection of QUIC whose beginning was seen.
    Foreign,
    /// Nothing: it is of a port of DNS, and is no whole message of it.
    Unreadable,
}

impl Builder {
    /// Of those hosts.
    #[must_use]
    pub fn new(hosts: Vec<ObservedHost>) -> Self {
        Self {
            hosts,
            connections: HashMap::new(),
            idlest: VecDeque::new(),
            sockets: HashMap::new(),
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

    /// Connections that end from that moment on, once it has come, were under way.
    #[must_use]
    pub fn observed_until(mut self, end: ObservationEnd) -> Self {
        self.observation_end = end;
        self
    }

    /// TLS is opened with those secrets, of which more may be learnt while it goes on.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(secrets);
        self
    }

    /// Accounts for connections without an answered request too.
    #[must_use]
    pub fn accounting_transfers(mut self) -> Self {
        self.transfers = Some(Vec::new());
        self
    }

    /// Transfers that are over since this was asked last.
    pub fn take_transfers(&mut self) -> Vec<TransferAccount> {
        self.transfers
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Remembers of every connection on a network how it began, for those who number the same connections otherwise.
    #[must_use]
    pub fn remembering_origins(mut self) -> Self {
        self.origins = Some(BTreeMap::new());
        self
    }

    /// The flows of connections whose beginning was seen, as far as they are remembered.
    #[must_use]
    pub fn flow_of(&self, origin: &ConnectionOrigin) -> Option<u32> {
        self.origins.as_ref()?.get(origin).copied()
    }

    /// The first number that no flow has.
    #[must_use]
    pub const fn next_flow(&self) -> u32 {
        self.next_flow
    }

    /// The hosts.
    #[must_use]
    pub fn hosts(&self) -> &[ObservedHost] {
        &self.hosts
    }

    /// A packet at a host's door, from its IP header on: one that leaves, or one that arrives; on a host's own loopback both.
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

    /// A segment at a host's door.
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

    /// A segment of a connection that has that number: numbers are given elsewhere.
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
                return; // What is left of a connection that nobody knows any more.
            }
            self.open(passage, key, segment);
        }
        self.pass(passage, key, segment, data);
    }

    /// The first number that is given to what has none from elsewhere.
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
        // Between its ends it is seen as at the door of who asks.
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

    /// Whether an address is the host's: one that is listed, or any of its own loopback.
    fn is_own(&self, host: usize, address: IpAddr) -> bool {
        address.is_loopback()
            || self
                .hosts
                .get(host)
                .is_some_and(|host| host.addresses.contains(&address))
    }

    /// The connection of a segment, and its direction.
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
            return None; // What is left of a connection that nobody knows any more.
        }
        // Where the first packet was not seen, the answer to it tells who opened; else whoever serves at the lower port was
        // connected to.
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

    /// A connection that was not known.
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

    /// The beginning of a flow, which a first segment of that direction shows.
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

    /// The host of an address, seen at a host's door where `here` says that it is this host's side.
    fn host_of(&self, host: usize, address: IpAddr, here: bool) -> Option<usize> {
        if here || address.is_loopback() || self.is_own(host, address) {
            return Some(host);
        }
        self.hosts
            .iter()
            .position(|other| other.addresses.contains(&address))
    }

    /// The connection that is over or idle for longest gives way. Who they are is looked up for many at a time, so that each costs little.
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
            // One on which something passed since, or that is another one by now, stays.
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

    /// Exchanges that are over by now. What sources report later than half a second after it happened is too late.
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

    /// Everything that is left, and what is not known.
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
        // A host without a name server asks itself (resolv.conf(5)): where none ever answered, nobody was asked.
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

    /// Whether so many exchanges are over that they should be taken before time goes on.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.done.len() >= MANY_DONE
    }

    /// Exchanges that are over already; [`Builder::advance`] looks for further ones.
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
