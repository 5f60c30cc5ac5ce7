//! Assigns QUIC datagrams to their connections: by their two ends, or by a connection ID where an end has migrated.

use super::connection_key::{RequestConnectionEnds, RequestConnectionKey};
use super::quic_connections::{QuicConnections, TrackedConnection};
use super::{Builder, OfDatagram, PacketPassage};
use crate::exchange::ExchangeEnd;
use crate::quic_connection::{DatagramPassage, QuicAccount, QuicConnection};
use stackline_dissect::left_out::Bound;
use stackline_dissect::quic::dissector::QuicDissector;
use stackline_dissect::segment::DissectedDatagram;
use stackline_events::unit_ids::EventStreamDirection;
use std::net::SocketAddr;

/// The most QUIC connections at a time; beyond that, the one that was idle longest is ended.
const MOST_CONNECTIONS: usize = Bound::QuicConnections.most();
/// The most connection IDs of one connection that are remembered; each end holds a few at a time (RFC 9000, 5.1.1).
const MOST_IDS: usize = 64;
/// A closed connection is forgotten after this, ns.
const LINGERS_NS: u64 = 2_000_000_000;

impl Builder {
    /// Takes a datagram that may be of QUIC, at a host's door; returns whether it is.
    pub(super) fn quic_datagram(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        datagram: &DissectedDatagram,
        data: &[u8],
    ) -> OfDatagram {
        let (key, direction) = match self.quic_of(host, datagram, data) {
            Some(known) => known,
            None => match self.open_quic(host, door, at_ns, datagram, data) {
                Some(key) => (key, EventStreamDirection::There),
                None => return OfDatagram::Foreign,
            },
        };
        let (from, to) = datagram.ends;
        let is_loop = self.is_own(host, from.ip()) && self.is_own(host, to.ip());
        let QuicConnections {
            connections,
            by_id,
            lengths,
            ..
        } = &mut self.quic;
        let Some(TrackedConnection { connection, ids }) = connections.get_mut(&key) else {
            return OfDatagram::Foreign;
        };
        let passage = DatagramPassage {
            at_ns,
            direction,
            leaves: door == PacketPassage::Leaves || is_loop,
            arrives: door == PacketPassage::Arrives || is_loop,
        };
        connection.datagram(passage, data, datagram.bytes, |side, id| {
            // A shorter ID may belong to another connection too.
            if id.len() >= 4 && ids.len() < MOST_IDS {
                lengths.insert(id.len());
                by_id.insert(id.clone(), (key, side));
                ids.push(id);
            }
        });
        OfDatagram::Read
    }

    /// The known connection of a datagram, and the datagram's direction.
    fn quic_of(
        &mut self,
        host: usize,
        datagram: &DissectedDatagram,
        data: &[u8],
    ) -> Option<(RequestConnectionKey, EventStreamDirection)> {
        let (from, to) = datagram.ends;
        for (ends, direction) in [
            ((from, to), EventStreamDirection::There),
            ((to, from), EventStreamDirection::Back),
        ] {
            let key = RequestConnectionKey::new(host, ends);
            let QuicConnections {
                connections, moved, ..
            } = &self.quic;
            let key = moved
                .get(&key)
                .filter(|of| connections.contains_key(of))
                .copied()
                .unwrap_or(key);
            let Some(known) = connections.get(&key) else {
                continue;
            };
            if direction == EventStreamDirection::There && known.connection.is_followed_by(data) {
                self.end_quic(key);
                return None;
            }
            return Some((key, direction));
        }
        // A packet with a short header begins with its receiver's connection ID.
        let id = data
            .first()
            .filter(|first| *first & 0x80 == 0)
            .and(data.get(1..))?;
        let mut found = self
            .quic
            .lengths
            .iter()
            .rev()
            .filter_map(|length| self.quic.by_id.get(id.get(..*length)?));
        let (key, receiver) = *found.next()?;
        let direction = match receiver {
            EventStreamDirection::Back => EventStreamDirection::There,
            EventStreamDirection::There => EventStreamDirection::Back,
        };
        let ends: RequestConnectionEnds = match direction {
            EventStreamDirection::There => (from, to),
            EventStreamDirection::Back => (to, from),
        };
        // One end still has its address: the other one has migrated.
        let is_same_host = key.ends.0 == ends.0 || key.ends.1 == ends.1;
        let known = self
            .quic
            .connections
            .get_mut(&key)
            .filter(|_| is_same_host)?;
        known.connection.migrations += 1;
        if self.quic.moved.len() < 4 * MOST_CONNECTIONS {
            self.quic
                .moved
                .insert(RequestConnectionKey::new(host, ends), key);
        }
        Some((key, direction))
    }

    /// Adds the connection that a datagram begins; `None` if it begins none.
    fn open_quic(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        datagram: &DissectedDatagram,
        data: &[u8],
    ) -> Option<RequestConnectionKey> {
        let dissector = QuicDissector::begin(data, datagram.bytes, self.secrets.clone())?;
        self.make_room_for_quic();
        let key = RequestConnectionKey::new(host, datagram.ends);
        let end = |address: SocketAddr, here: bool| ExchangeEnd {
            host: self.host_of(host, address.ip(), here),
            address,
        };
        let ends = [
            end(datagram.ends.0, door == PacketPassage::Leaves),
            end(datagram.ends.1, door == PacketPassage::Arrives),
        ];
        let is_between =
            door == PacketPassage::Between && ends.iter().all(|end| end.host.is_none());
        let lookup = ends[0].host.and_then(|host| self.take_lookup(host, at_ns));
        let flow = self.next_flow;
        self.next_flow = self.next_flow.saturating_add(1);
        let connection =
            QuicConnection::new(flow, ends, is_between.then_some(host), lookup, dissector);
        self.quic.connections.insert(
            key,
            TrackedConnection {
                connection,
                ids: Vec::new(),
            },
        );
        Some(key)
    }

    /// If there are too many QUIC connections, ends the one that was idle longest.
    fn make_room_for_quic(&mut self) {
        if self.quic.connections.len() < MOST_CONNECTIONS {
            return;
        }
        let oldest = self
            .quic
            .connections
            .iter()
            .min_by_key(|(_, known)| known.connection.last_ns);
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.unknown.left_out.add(Bound::QuicConnections, 1);
            self.end_quic(key);
        }
    }

    /// Ends a QUIC connection: reports its remaining exchanges, its totals, and what is not known of it.
    fn end_quic(&mut self, key: RequestConnectionKey) {
        let Some(TrackedConnection {
            mut connection,
            ids,
        }) = self.quic.connections.remove(&key)
        else {
            return;
        };
        connection.over(u64::MAX >> 1, true, &mut self.done);
        for id in &ids {
            self.quic.by_id.remove(id);
        }
        self.unknown.left_out.merge(&connection.left_out());
        self.quic.sealed += u64::from(connection.is_sealed());
        self.quic.unopened += connection.unopened();
        self.quic.one_way += u64::from(connection.is_one_way());
        self.quic.accounts.push(connection.account());
    }

    /// Moves the QUIC exchanges that are over at `now_ns` to `done`, and forgets connections that are over.
    pub(super) fn advance_quic(&mut self, now_ns: u64) {
        let mut gone = Vec::new();
        for (key, known) in &mut self.quic.connections {
            known.connection.over(now_ns, false, &mut self.done);
            if known.connection.is_over(now_ns, LINGERS_NS) {
                gone.push((known.connection.flow, *key));
            }
        }
        gone.sort_unstable_by_key(|(flow, _)| *flow);
        gone.into_iter().for_each(|(_, key)| self.end_quic(key));
        if self.quic.connections.is_empty() {
            self.quic.moved.clear();
        }
    }

    /// Ends all QUIC connections.
    pub(super) fn finish_quic(&mut self) {
        let keys = self
            .quic
            .connections
            .iter()
            .map(|(key, known)| (known.connection.flow, *key));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by_key(|(flow, _)| *flow);
        keys.into_iter().for_each(|(_, key)| self.end_quic(key));
        self.unknown.sealed_quic = self.quic.sealed;
        self.unknown.unopened_quic = self.quic.unopened;
        self.unknown.one_way += std::mem::take(&mut self.quic.one_way);
    }

    /// The totals of QUIC connections that were finished since the last call.
    pub fn take_quic_accounts(&mut self) -> Vec<QuicAccount> {
        std::mem::take(&mut self.quic.accounts)
    }
}
