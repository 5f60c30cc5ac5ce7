//! A stateful firewall as a machine: it knows the connections that were begun from the inside, and forgets idle ones.

use crate::flow_table::{FlowTable, TableFull};
use crate::routed_packet::PacketFlow;
use stackline_core::time::{Duration, Instant};

/// The connections that a firewall knows, each as its inner end's packets name it.
#[derive(Clone, Debug)]
pub struct FirewallTable {
    known: FlowTable<PacketFlow, ()>,
}

impl FirewallTable {
    /// A firewall that knows no connection.
    #[must_use]
    pub const fn new(idle: Duration, entries: u32) -> Self {
        Self {
            known: FlowTable::new(idle, entries),
        }
    }

    /// Notes a packet on its way out.
    ///
    /// # Errors
    /// It begins a connection, and the table is full.
    pub fn pass_outward(&mut self, now: Instant, flow: PacketFlow) -> Result<(), TableFull> {
        if self.known.use_entry(now, &flow).is_some() {
            return Ok(());
        }
        self.known.remove(&flow);
        self.known.put(now, flow, (), |_, ()| {})
    }

    /// Whether a packet from outside belongs to a known connection; `flow` is how this packet names it.
    pub fn passes_inward(&mut self, now: Instant, flow: PacketFlow) -> bool {
        self.known.use_entry(now, &flow.reversed()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed_packet::{FlowEnd, FlowKind};

    fn flow(port: u16) -> PacketFlow {
        let end = |last, port| FlowEnd {
            address: [10, 71, 0, last],
            port,
        };
        PacketFlow {
            kind: FlowKind::Protocol(6),
            source: end(1, port),
            destination: end(2, 80),
        }
    }

    #[test]
    fn answers_pass_until_the_connection_is_idle() {
        let mut firewall = FirewallTable::new(Duration(60), 1);
        assert!(!firewall.passes_inward(Instant(0), flow(5000).reversed()));
        assert_eq!(firewall.pass_outward(Instant(0), flow(5000)), Ok(()));
        assert!(!firewall.passes_inward(Instant(1), flow(5001).reversed()));
        assert!(
            !firewall.passes_inward(Instant(1), flow(5000)),
            "the wrong way round"
        );
        assert!(firewall.passes_inward(Instant(59), flow(5000).reversed()));
        assert!(firewall.passes_inward(Instant(118), flow(5000).reversed()));
        assert!(!firewall.passes_inward(Instant(178), flow(5000).reversed()));
    }

    #[test]
    fn a_full_firewall_takes_no_new_connection() {
        let mut firewall = FirewallTable::new(Duration(60), 1);
        assert_eq!(firewall.pass_outward(Instant(0), flow(1)), Ok(()));
        assert_eq!(firewall.pass_outward(Instant(1), flow(2)), Err(TableFull));
        assert_eq!(firewall.pass_outward(Instant(61), flow(2)), Ok(()));
    }
}
