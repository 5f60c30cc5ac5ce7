//! Finds the thread that made a connection attempt that failed, from the state changes of its socket: no data passes on such a
//! connection that would show whose it is.

use stackline_monitor::observe::sockets::{SocketChange, SocketEvent, TcpState};
use stackline_requests::Exchange;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The most attempts that are remembered: that many in progress and that many failed.
const MOST_ATTEMPTS: usize = 4096;

/// The connection attempts of traced programs.
#[derive(Debug, Default)]
pub(crate) struct ConnectAttempts {
    /// Attempts in progress: the thread by the socket.
    going: BTreeMap<u64, u32>,
    /// Failed attempts: the thread by the two ends.
    failed: BTreeMap<(SocketAddr, SocketAddr), u32>,
}

impl ConnectAttempts {
    /// Takes an event of a socket; returns the thread if it begins an attempt.
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

    /// The thread that made the failed attempt of an exchange; 0 if it is not known.
    pub(crate) fn take(&mut self, exchange: &Exchange) -> u32 {
        let ends = (exchange.client.address, exchange.server.address);
        self.failed.remove(&ends).unwrap_or(0)
    }
}
