//! Maintains which connection each socket has, from the events of [`SocketTrace`].
//!
//! A socket keeps its connection after it is closed, since its last receive may come later, until another socket has its kernel
//! address. A socket that existed before the events began is not known.
//!
//! [`SocketTrace`]: super::sockets::SocketTrace

use super::sockets::{SocketChange, SocketEvent, TcpState};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The most sockets that are kept; when there are more, all are forgotten.
const MOST: usize = 1 << 17;

/// The connection of each socket by its kernel address: local address, then remote address.
#[derive(Clone, Debug, Default)]
pub struct SocketConnections {
    pairs: HashMap<u64, (SocketAddr, SocketAddr)>,
}

impl SocketConnections {
    /// Takes an event; events must be in order of time. Returns the connection of its socket.
    pub fn see(&mut self, event: &SocketEvent) -> Option<(SocketAddr, SocketAddr)> {
        match event.what {
            SocketChange::State {
                local: Some(local),
                remote: Some(remote),
                ..
            } => {
                self.insert(event.socket, (local, remote));
            }
            SocketChange::Probe(probe) => {
                if let (Some(local), Some(remote)) = (probe.local, probe.remote) {
                    self.insert(event.socket, (local, remote));
                }
            }
            // Another socket begins at this address.
            SocketChange::State {
                old: TcpState::Closed,
                ..
            } => {
                self.pairs.remove(&event.socket);
            }
            _ => {}
        }
        self.addresses_of(event.socket)
    }

    /// The present connection of a socket.
    #[must_use]
    pub fn addresses_of(&self, socket: u64) -> Option<(SocketAddr, SocketAddr)> {
        self.pairs.get(&socket).copied()
    }

    fn insert(&mut self, socket: u64, pair: (SocketAddr, SocketAddr)) {
        if self.pairs.len() >= MOST {
            self.pairs.clear();
        }
        self.pairs.insert(socket, pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::sockets::Transport;

    fn state(old: TcpState, new: TcpState, ports: [u16; 2]) -> SocketEvent {
        let address = |port| Some(SocketAddr::from(([127, 0, 0, 1], port))).filter(|_| port != 0);
        let what = SocketChange::State {
            old,
            new,
            local: address(ports[0]),
            remote: address(ports[1]),
        };
        SocketEvent {
            at_ns: 0,
            socket: 7,
            thread: 1,
            in_interrupt: false,
            transport: Transport::Tcp,
            what,
        }
    }

    #[test]
    fn a_socket_keeps_its_connection_until_another_has_its_address() {
        let mut connections = SocketConnections::default();
        let ports = |pair: Option<(SocketAddr, SocketAddr)>| {
            pair.map(|(local, remote)| (local.port(), remote.port()))
        };
        assert_eq!(
            connections.see(&state(TcpState::Closed, TcpState::SynSent, [0, 80])),
            None
        );
        let established = state(TcpState::SynSent, TcpState::Established, [5_000, 80]);
        assert_eq!(ports(connections.see(&established)), Some((5_000, 80)));
        connections.see(&state(TcpState::LastAck, TcpState::Closed, [5_000, 80]));
        let read = SocketEvent {
            what: SocketChange::Received { bytes: 0, flags: 0 },
            ..established
        };
        assert_eq!(
            ports(connections.see(&read)),
            Some((5_000, 80)),
            "its last read comes after it is closed"
        );
        assert_eq!(
            connections.see(&state(TcpState::Closed, TcpState::SynSent, [0, 443])),
            None
        );
    }
}
