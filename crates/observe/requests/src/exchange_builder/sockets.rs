//! Assigns socket events (connected, wrote, read, closed) to the connections that have the sockets' two ends.

use super::{Builder, RequestConnectionEnds, RequestConnectionKey, SocketEvent, SocketProgress};
use crate::connection::RequestConnection;
use stackline_dissect::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use std::net::SocketAddr;

/// The most calls at a socket that are kept until the first packet of its connection is seen.
const MOST_EARLY: usize = Bound::EarlyCalls.most();
/// The most sockets at a time; calls at further ones are not used.
const MOST_SOCKETS: usize = Bound::Sockets.most();

impl Builder {
    /// Takes an event of a socket. `socket`: its kernel address; `thread`: the kernel's number of the thread that made the call.
    pub fn socket(&mut self, at_ns: u64, socket: u64, thread: u32, event: SocketEvent) {
        if matches!(event, SocketEvent::Opened(..) | SocketEvent::Found(..))
            && self.sockets.len() >= MOST_SOCKETS
            && !self.sockets.contains_key(&socket)
        {
            return self.unknown.left_out.add(Bound::Sockets, 1);
        }
        match event {
            SocketEvent::Opened(own, other) => {
                let known = self.sockets.entry(socket).or_default();
                if known.ends != Some((own, other)) {
                    *known = SocketProgress {
                        ends: Some((own, other)),
                        ..SocketProgress::default()
                    };
                }
            }
            SocketEvent::Found(own, other) => {
                // If calls were lost, those at a socket that is found afterwards may be among them.
                let is_uncounted = self.has_lost_calls;
                let new = || SocketProgress {
                    is_uncounted,
                    ..SocketProgress::default()
                };
                let known = self.sockets.entry(socket).or_insert_with(new);
                if !known.is_uncounted {
                    known.ends.get_or_insert((own, other));
                }
            }
            SocketEvent::Closed => {
                self.sockets.remove(&socket);
            }
            SocketEvent::Wrote(bytes) | SocketEvent::Read(bytes) => {
                let wrote = matches!(event, SocketEvent::Wrote(_));
                let Some(known) = self.sockets.get_mut(&socket) else {
                    self.unknown.early_sockets = self.unknown.early_sockets.saturating_add(bytes);
                    return;
                };
                let count = if wrote {
                    &mut known.wrote
                } else {
                    &mut known.read
                };
                *count = count.saturating_add(bytes);
                let up_to = *count;
                let Some((own, other)) = known.ends else {
                    self.unknown.early_sockets = self.unknown.early_sockets.saturating_add(bytes);
                    return;
                };
                match self.of_socket(own, other) {
                    Some((connection, end)) if connection.midway => {
                        connection.counted(end, wrote, up_to, at_ns, thread);
                    }
                    Some((connection, end)) => {
                        record_socket_progress(connection, end, wrote, up_to, at_ns, thread)
                    }
                    None => {
                        let known = self.sockets.entry(socket).or_default();
                        if known.early.len() < MOST_EARLY {
                            known.early.push((wrote, up_to, at_ns, thread));
                        } else {
                            known.left_out += 1;
                        }
                    }
                }
            }
        }
    }

    /// The connection of a socket by its own address and the peer's, and which end of it the socket is.
    fn of_socket(
        &mut self,
        own: SocketAddr,
        other: SocketAddr,
    ) -> Option<(&mut RequestConnection, EventStreamDirection)> {
        let loopback = own.ip().is_loopback();
        let hosts = (0..self.hosts.len().max(1)).filter(|host| loopback || *host == 0);
        let mut keys = hosts.flat_map(|host| {
            let key = |ends| RequestConnectionKey::new(host, ends);
            [
                (key((own, other)), EventStreamDirection::There),
                (key((other, own)), EventStreamDirection::Back),
            ]
        });
        let (key, end) = keys.find(|(key, _)| self.connections.contains_key(key))?;
        Some((self.connections.get_mut(&key)?, end))
    }

    /// Some socket events were lost: the byte counts of all sockets so far are wrong, so these are forgotten. A socket is used again
    /// only after a further [`SocketEvent::Opened`], as that of another connection.
    pub fn lost_sockets(&mut self) {
        self.has_lost_calls = true;
        self.sockets.values_mut().for_each(|socket| {
            *socket = SocketProgress {
                is_uncounted: true,
                ..SocketProgress::default()
            }
        });
        self.connections
            .values_mut()
            .for_each(|connection| connection.sockets = [false; 2]);
    }

    /// Gives a new connection the calls at its sockets that came before its first packet. If the packets of a socket's connection
    /// are never seen, as in another network namespace, nothing is counted as missing.
    pub(super) fn adopt_sockets(
        &mut self,
        ends: RequestConnectionEnds,
        connection: &mut RequestConnection,
    ) {
        let midway = connection.midway;
        for socket in self
            .sockets
            .values_mut()
            .filter(|socket| !socket.early.is_empty())
        {
            let end = match socket.ends {
                Some(own) if own == ends => EventStreamDirection::There,
                Some((own, other)) if (other, own) == ends => EventStreamDirection::Back,
                _ => continue,
            };
            let early = std::mem::take(&mut socket.early);
            let left_out = std::mem::take(&mut socket.left_out);
            self.unknown.left_out.add(Bound::EarlyCalls, left_out);
            for (wrote, up_to, at_ns, thread) in early.into_iter().filter(|_| !midway) {
                record_socket_progress(connection, end, wrote, up_to, at_ns, thread);
            }
        }
    }
}

fn record_socket_progress(
    connection: &mut RequestConnection,
    end: EventStreamDirection,
    wrote: bool,
    up_to: u64,
    at_ns: u64,
    thread: u32,
) {
    match wrote {
        true => connection.wrote(end, up_to, at_ns, thread),
        false => connection.has_read(end, up_to, at_ns, thread),
    }
}
