//! Tracks the congestion state of each connection's sender, from which the cause of a retransmission follows. It records nothing.

use crate::address_pair::AddressPair;
use std::collections::{BTreeSet, HashMap};

/// The names of the states, in the kernel's order.
const NAMES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
/// The state in which the sender repairs a loss by fast retransmission.
pub(super) const RECOVERY: u8 = 3;
/// The state after a retransmission timeout.
pub(super) const LOSS: u8 = 4;
/// The most connections whose state is kept; when there are more, all are forgotten.
const MOST_CONNECTIONS: usize = 1 << 16;

/// The name of a state.
pub(super) fn name(state: u8) -> &'static str {
    NAMES.get(usize::from(state)).copied().unwrap_or("unknown")
}

/// The state of each connection, and since when, ns.
#[derive(Default)]
pub(super) struct CongestionStates(HashMap<AddressPair, (u64, u8)>);

impl CongestionStates {
    pub(super) fn set(&mut self, pair: AddressPair, at_ns: u64, state: u8) {
        if self.0.len() >= MOST_CONNECTIONS {
            self.0.clear();
        }
        self.0.insert(pair, (at_ns, state));
    }

    /// Sets the state of a connection that has none yet.
    pub(super) fn set_first(&mut self, pair: AddressPair, at_ns: u64, state: u8) {
        if !self.0.contains_key(&pair) {
            self.set(pair, at_ns, state);
        }
    }

    /// Forgets the state of a connection, as a new connection has its addresses.
    pub(super) fn forget(&mut self, pair: &AddressPair) {
        self.0.remove(pair);
    }

    /// Forgets connections that were not open at the time of the poll, except those whose state was set later.
    pub(super) fn retain(&mut self, open: &BTreeSet<&AddressPair>, polled_ns: u64) {
        self.0
            .retain(|pair, (since_ns, _)| *since_ns > polled_ns || open.contains(pair));
    }

    /// The cause of a retransmission. The sender changes its state before it sends, so the state shows it.
    pub(super) fn cause(&self, pair: &AddressPair, handshake: bool) -> &'static str {
        match self.0.get(pair) {
            _ if handshake => "handshake",
            Some((_, LOSS)) => "timeout",
            Some((_, RECOVERY)) => "fast",
            // A tail loss probe is sent without a change of state.
            _ => "probe",
        }
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<(AddressPair, u64, u8)> {
        self.0
            .iter()
            .map(|(pair, (at_ns, state))| (*pair, *at_ns, *state))
            .collect()
    }
}
