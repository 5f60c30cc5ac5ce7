//! A listener's bounded memory of the connections that it accepted. So a repeated request opens no second connection, a replayed sealed
//! request opens none at all, and a CLOSE for a connection that is over can be answered.

use stackline_proto::blast::negotiation::Nonce;
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// Most connections remembered.
const CONNECTIONS: usize = 1024;
/// Most nonces of peers remembered: 1 MiB in all.
const NONCES: usize = 1 << 15;

/// A token that a channel holds as long as it lives: when no one holds it, the connection is over.
pub(crate) type Life = Arc<()>;

/// An accepted connection.
struct One {
    /// The peer's address.
    from: SocketAddr,
    /// The connection's number, chosen by the peer.
    number: u32,
    /// The random bytes of the peer's request, if packets are sealed.
    nonce: Option<Nonce>,
    /// The token of its channel, which can be upgraded while the channel lives.
    life: Weak<()>,
}

/// The listener's memory.
#[derive(Default)]
pub(crate) struct BlastListenerMemory {
    /// The oldest first.
    connections: VecDeque<One>,
    /// Nonces of requests, also of connections that are forgotten.
    nonces: HashSet<Nonce>,
    /// The same nonces, the oldest first.
    order: VecDeque<Nonce>,
}

impl BlastListenerMemory {
    /// Registers a requested connection, with its nonce if packets are sealed. `None` if the connection or the nonce is known already.
    pub(crate) fn begin(
        &mut self,
        from: SocketAddr,
        number: u32,
        nonce: Option<Nonce>,
    ) -> Option<Life> {
        if self.find(from, number).is_some()
            || nonce.is_some_and(|nonce| !self.nonces.insert(nonce))
        {
            return None;
        }
        self.order.extend(nonce);
        if self.order.len() > NONCES {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.nonces.remove(&oldest));
        }
        if self.connections.len() == CONNECTIONS {
            self.connections.pop_front();
        }
        let life = Life::default();
        self.connections.push_back(One {
            from,
            number,
            nonce,
            life: Arc::downgrade(&life),
        });
        Some(life)
    }

    /// Removes a connection that could not be opened, with its nonce: the peer may repeat its request.
    pub(crate) fn forget(&mut self, from: SocketAddr, number: u32) {
        let at = self.connections.iter().position(|one| one.is(from, number));
        let Some(nonce) = at.and_then(|at| self.connections.remove(at)?.nonce) else {
            return;
        };
        self.nonces.remove(&nonce);
        self.order.retain(|other| *other != nonce);
    }

    /// Whether this connection was accepted and its channel has been dropped.
    pub(crate) fn is_over(&self, from: SocketAddr, number: u32) -> bool {
        self.find(from, number)
            .is_some_and(|one| one.life.strong_count() == 0)
    }

    fn find(&self, from: SocketAddr, number: u32) -> Option<&One> {
        self.connections.iter().find(|one| one.is(from, number))
    }
}

impl One {
    fn is(&self, from: SocketAddr, number: u32) -> bool {
        self.number == number && self.from == from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address_of(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_connection_is_new_once_and_over_when_its_channel_is() {
        let mut known = BlastListenerMemory::default();
        let life = known.begin(address_of(1), 7, None).unwrap();
        assert!(known.begin(address_of(1), 7, None).is_none());
        assert!(
            known.begin(address_of(2), 7, None).is_some()
                && known.begin(address_of(1), 8, None).is_some()
        );
        assert!(!known.is_over(address_of(1), 7));
        drop(life);
        assert!(
            known.is_over(address_of(1), 7)
                && !known.is_over(address_of(1), 9)
                && !known.is_over(address_of(3), 7)
        );
        known.forget(address_of(1), 7);
        assert!(!known.is_over(address_of(1), 7) && known.begin(address_of(1), 7, None).is_some());
    }

    #[test]
    fn random_bytes_count_once_wherever_they_come_from() {
        let mut known = BlastListenerMemory::default();
        assert!(known.begin(address_of(1), 7, Some([1; 16])).is_some());
        assert!(known.begin(address_of(2), 8, Some([1; 16])).is_none());
        assert!(
            !known.is_over(address_of(2), 8),
            "what was not opened is not known"
        );
        known.forget(address_of(1), 7);
        assert!(known.begin(address_of(2), 8, Some([1; 16])).is_some());
    }

    #[test]
    fn memory_is_bounded_and_random_bytes_outlast_connections() {
        let mut known = BlastListenerMemory::default();
        let nonce = |n: usize| Some((n as u128).to_le_bytes());
        for n in 0..NONCES + 3 {
            assert!(known.begin(address_of(1), n as u32, nonce(n)).is_some());
        }
        assert_eq!(
            (
                known.connections.len(),
                known.nonces.len(),
                known.order.len()
            ),
            (CONNECTIONS, NONCES, NONCES)
        );
        assert!(
            known.begin(address_of(2), 0, nonce(3)).is_none(),
            "the oldest that is remembered"
        );
        assert!(known.begin(address_of(2), 0, nonce(2)).is_some());
    }
}
