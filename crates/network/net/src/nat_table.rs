//! Address translation of a router (NAT44) as a machine: which port of the router's address stands for which inner end.
//!
//! A port-restricted cone (RFC 3489, section 5; in the words of RFC 4787 endpoint-independent mapping with address and
//! port-dependent filtering): an inner end keeps its port whatever it sends to, and only ends that it has sent to get
//! through to it. A port is preserved where it is free. A session is a pair of an inner and an outer end; it is
//! forgotten when it is idle, and the port is free again after its last session.

use crate::flow_table::{FlowTable, TableFull};
use crate::routed_packet::{FlowEnd, FlowKind, PacketFlow};
use alloc::collections::BTreeMap;
use stackline_core::time::{Duration, Instant};

/// The first port that is given where the inner port is in use already; those below are for services.
const FIRST_PORT: u16 = 1024;

/// The translations of one router.
#[derive(Clone, Debug)]
pub struct NatTable {
    /// The sessions, each as its inner end's packets name it; the value is the outer port of the mapping.
    sessions: FlowTable<PacketFlow, u16>,
    /// By inner end: its port outside, and how many sessions use it.
    outward: BTreeMap<(FlowKind, FlowEnd), PortMapping>,
    /// By port outside: the inner end.
    inward: BTreeMap<(FlowKind, u16), FlowEnd>,
    /// Where the search for a free port begins.
    next_port: u16,
}

#[derive(Clone, Copy, Debug)]
struct PortMapping {
    port: u16,
    sessions: u32,
}

impl NatTable {
    /// An empty table.
    #[must_use]
    pub const fn new(timeout: Duration, entries: u32) -> Self {
        Self {
            sessions: FlowTable::new(timeout, entries),
            outward: BTreeMap::new(),
            inward: BTreeMap::new(),
            next_port: FIRST_PORT,
        }
    }

    /// The port that stands for the source of a packet on its way out.
    ///
    /// # Errors
    /// The table is full, or every port is in use.
    pub fn outward(&mut self, now: Instant, flow: PacketFlow) -> Result<u16, TableFull> {
        if let Some(port) = self.sessions.use_entry(now, &flow) {
            return Ok(*port);
        }
        // A session that has been idle for too long is a new one.
        if self.sessions.remove(&flow).is_some() {
            release(&mut self.outward, &mut self.inward, &flow);
        }
        let Self {
            sessions,
            outward,
            inward,
            ..
        } = self;
        // Room first, because it may free ports; the port is known only afterwards.
        sessions.put(now, flow, 0, |gone, _| release(outward, inward, gone))?;
        let inner = (flow.kind, flow.source);
        let Some(port) = self.mapped(inner).or_else(|| self.free_port(inner)) else {
            self.sessions.remove(&flow);
            return Err(TableFull);
        };
        let mapping = PortMapping { port, sessions: 0 };
        self.outward.entry(inner).or_insert(mapping).sessions += 1;
        self.inward.insert((flow.kind, port), flow.source);
        self.sessions.remove(&flow);
        // There is room: it has just been made.
        self.sessions.put(now, flow, port, |_, _| {})?;
        Ok(port)
    }

    /// The inner end that a packet from outside is for, which came from `remote` to this port of the router; `None` if
    /// that end has not asked `remote` for anything lately.
    pub fn inward(
        &mut self,
        now: Instant,
        kind: FlowKind,
        remote: FlowEnd,
        port: u16,
    ) -> Option<FlowEnd> {
        let inner = *self.inward.get(&(kind, port))?;
        let session = PacketFlow {
            kind,
            source: inner,
            destination: remote,
        };
        self.sessions.use_entry(now, &session).map(|_| inner)
    }

    /// The port outside of a flow as its inner end names it, if it is in the table; it counts as used.
    pub fn port_of(&mut self, now: Instant, flow: &PacketFlow) -> Option<u16> {
        self.sessions.use_entry(now, flow).copied()
    }

    fn mapped(&self, inner: (FlowKind, FlowEnd)) -> Option<u16> {
        self.outward.get(&inner).map(|mapping| mapping.port)
    }

    /// The inner port itself if it is free outside, else the next free one.
    fn free_port(&mut self, inner: (FlowKind, FlowEnd)) -> Option<u16> {
        let (kind, end) = inner;
        let is_free = |port: &u16| !self.inward.contains_key(&(kind, *port));
        if is_free(&end.port) {
            return Some(end.port);
        }
        let mut ports = (self.next_port..=u16::MAX).chain(FIRST_PORT..self.next_port);
        let found = ports.find(is_free)?;
        self.next_port = found.checked_add(1).unwrap_or(FIRST_PORT);
        Some(found)
    }
}

/// One session of a mapping less; without sessions its port is free.
fn release(
    outward: &mut BTreeMap<(FlowKind, FlowEnd), PortMapping>,
    inward: &mut BTreeMap<(FlowKind, u16), FlowEnd>,
    flow: &PacketFlow,
) {
    let inner = (flow.kind, flow.source);
    let Some(mapping) = outward.get_mut(&inner) else {
        return;
    };
    mapping.sessions = mapping.sessions.saturating_sub(1);
    if mapping.sessions == 0 {
        inward.remove(&(flow.kind, mapping.port));
        outward.remove(&inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: FlowKind = FlowKind::Protocol(17);
    const SECOND: u64 = 1_000_000_000;

    fn end(last: u8, port: u16) -> FlowEnd {
        FlowEnd {
            address: [10, 71, 0, last],
            port,
        }
    }

    fn flow(source: FlowEnd, destination: FlowEnd) -> PacketFlow {
        PacketFlow {
            kind: UDP,
            source,
            destination,
        }
    }

    fn table() -> NatTable {
        NatTable::new(Duration(30 * SECOND), 3)
    }

    #[test]
    fn a_port_is_kept_where_it_is_free() {
        let mut nat = table();
        let server = end(9, 53);
        assert_eq!(
            nat.outward(Instant(0), flow(end(1, 5000), server)),
            Ok(5000)
        );
        assert_eq!(
            nat.outward(Instant(0), flow(end(2, 5000), server)),
            Ok(1024)
        );
        let other = end(8, 53);
        let again = nat.outward(Instant(0), flow(end(2, 5000), other));
        assert_eq!(again, Ok(1024), "the same port whatever the destination");
    }

    #[test]
    fn only_those_who_were_asked_get_through() {
        let mut nat = table();
        let (client, server) = (end(1, 5000), end(9, 53));
        assert_eq!(nat.inward(Instant(0), UDP, server, 5000), None);
        nat.outward(Instant(0), flow(client, server)).unwrap();
        assert_eq!(nat.inward(Instant(1), UDP, server, 5000), Some(client));
        assert_eq!(
            nat.inward(Instant(1), UDP, end(9, 54), 5000),
            None,
            "another port"
        );
        assert_eq!(
            nat.inward(Instant(1), UDP, end(8, 53), 5000),
            None,
            "another host"
        );
        let tcp = FlowKind::Protocol(6);
        assert_eq!(nat.inward(Instant(1), tcp, server, 5000), None);
    }

    #[test]
    fn an_idle_translation_is_forgotten() {
        let mut nat = table();
        let (client, server) = (end(1, 5000), end(9, 53));
        nat.outward(Instant(0), flow(client, server)).unwrap();
        let inward =
            |nat: &mut NatTable, s: u64| nat.inward(Instant(s * SECOND), UDP, server, 5000);
        assert_eq!(inward(&mut nat, 29), Some(client), "and it is used again");
        assert_eq!(inward(&mut nat, 58), Some(client));
        assert_eq!(inward(&mut nat, 88), None);
        // The client asks again: a translation as before.
        assert_eq!(
            nat.outward(Instant(90 * SECOND), flow(client, server)),
            Ok(5000)
        );
        assert_eq!(inward(&mut nat, 91), Some(client));
    }

    #[test]
    fn a_full_table_takes_no_more_until_one_is_idle() {
        let mut nat = table();
        for port in [1, 2, 3] {
            let session = flow(end(1, 5000 + port), end(9, 53));
            assert_eq!(
                nat.outward(Instant(u64::from(port)), session),
                Ok(5000 + port)
            );
        }
        let more = flow(end(2, 6000), end(9, 53));
        assert_eq!(nat.outward(Instant(SECOND), more), Err(TableFull));
        let later = Instant(30 * SECOND + 1);
        assert_eq!(nat.outward(later, more), Ok(6000));
        assert_eq!(
            nat.inward(later, UDP, end(9, 53), 5001),
            None,
            "forgotten for it"
        );
        assert_eq!(nat.inward(later, UDP, end(9, 53), 5003), Some(end(1, 5003)));
    }
}
