//! Whose a connection was that never was set up: the thread that asked for it, by what its socket did. No bytes pass on it that would
//! show whose they are.

use stackline_monitor::observe::sockets::{SocketChange, SocketEvent, TcpState};
use stackline_requests::Exchange;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Attempts that are remembered, of those that go on and of those that failed.
const MOST_ATTEMPTS: usize = 4096;

/// Attempts to connect.
#[derive(Debug, Default)]
pub(crate) struct ConnectAttempts {
    /// Those that go on: the thread of each socket.
    going: BTreeMap<u64, u32>,
    /// Those that came to nothing, by their two ends.
    failed: BTreeMap<(SocketAddr, SocketAddr), u32>,
}

impl ConnectAttempts {
    /// Takes what a socket did; the thread, where that begins an attempt.
    pub(crate) fn see(&mut self, event: &SocketEvent) -> Option<u32> {
        let SocketChange::State {
            old,
            new,
            local,
            remote,
        } = event.what
        else {
            return None;
        };
        if new == TcpState::SynSent {
            let is_known = !event.in_interrupt && self.going.len() < MOST_ATTEMPTS;
            return is_known.then(|| {
                self.going.insert(event.socket, event.thread);
                event.thread
            });
        }
        let thread = self.going.remove(&event.socket)?;
        let has_failed = old == TcpState::SynSent && new == TcpState::Closed;
        if let Some(ends) = local.zip(remote).filter(|_| has_failed)
            && self.failed.len() < MOST_ATTEMPTS
        {
            self.failed.insert(ends, thread);
        }
        None
    }

    /// The thread that asked for the connection of an exchange that had none; 0 where it is not known.
    pub(crate) fn take(&mut self, exchange: &Exchange) -> u32 {
        let ends = (exchange.client.address, exchange.server.address);
        self.failed.remove(&ends).unwrap_or(0)
    }
}
