//! Connections accepted by a listener, as far back as it remembers: a repeated request opens no second one, a replayed
//! sealed request none at all, and a CLOSE for one that is over can be answered.

use stackline_proto::blast::negotiation::Nonce;
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// Most connections remembered.
const CONNECTIONS: usize = 1024;
/// Most nonces of peers remembered: 1 MiB in all.
const NONCES: usize = 1 << 15;

/// Held by a channel as long as it lives.
pub(crate) type Life = Arc<()>;

struct One {
    from: SocketAddr,
    number: u32,
    nonce: Option<Nonce>,
    life: Weak<()>,
}

/// The listener's memory.
#[derive(Default)]
pub(crate) struct BlastListenerMemory {
    connections: VecDeque<One>,
    nonces: HashSet<Nonce>,
    order: VecDeque<Nonce>,
}

impl BlastListenerMemory {
    /// Registers a requested connection, with its nonce if packets are sealed. `None` if it is not new.
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

    /// It was not opened: the peer may repeat its request.
    pub(crate) fn forget(&mut self, from: SocketAddr, number: u32) {
        let at = self.connections.iter().position(|one| one.is(from, number));
        let Some(nonce) = at.and_then(|at| self.connections.remove(at)?.nonce) else {
            return;
        };
        self.nonces.remove(&nonce);
        self.order.retain(|other| *other != nonce);
    }

    /// Whether a connection was here whose channel is no more.
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

    fn of(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_connection_is_new_once_and_over_when_its_channel_is() {
        let mut known = BlastListenerMemory::default();
        let life = known.begin(of(1), 7, None).unwrap();
        assert!(known.begin(of(1), 7, None).is_none());
        assert!(known.begin(of(2), 7, None).is_some() && known.begin(of(1), 8, None).is_some());
        assert!(!known.is_over(of(1), 7));
        drop(life);
        assert!(known.is_over(of(1), 7) && !known.is_over(of(1), 9) && !known.is_over(of(3), 7));
        known.forget(of(1), 7);
        assert!(!known.is_over(of(1), 7) && known.begin(of(1), 7, None).is_some());
    }

    #[test]
    fn random_bytes_count_once_wherever_they_come_from() {
        let mut known = BlastListenerMemory::default();
        assert!(known.begin(of(1), 7, Some([1; 16])).is_some());
        assert!(known.begin(of(2), 8, Some([1; 16])).is_none());
        assert!(!known.is_over(of(2), 8), "what was not opened is not known");
        known.forget(of(1), 7);
        assert!(known.begin(of(2), 8, Some([1; 16])).is_some());
    }

    #[test]
    fn memory_is_bounded_and_random_bytes_outlast_connections() {
        let mut known = BlastListenerMemory::default();
        let nonce = |n: usize| Some((n as u128).to_le_bytes());
        for n in 0..NONCES + 3 {
            assert!(known.begin(of(1), n as u32, nonce(n)).is_some());
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
            known.begin(of(2), 0, nonce(3)).is_none(),
            "the oldest that is remembered"
        );
        assert!(known.begin(of(2), 0, nonce(2)).is_some());
    }
}
