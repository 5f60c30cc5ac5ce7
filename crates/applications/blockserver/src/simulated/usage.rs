//! What ports and connections did, interval by interval, as a monitor would have seen it. It changes nothing of what happens.

use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::PortCounters;
use stackline_sim::messages::TcpFacts;
use stackline_sim::port_events::counters_since;

/// How often it is looked.
pub(super) const EVERY: Duration = Duration(100_000_000);

/// All intervals of a session.
#[derive(Clone, Debug, Default)]
pub struct BlockSiteUsage {
    /// Of ports through which something went.
    pub ports: Vec<PortUse>,
    /// Of the connections that blocks go over, first the servers' ends, then the client's.
    pub connections: Vec<ConnectionUse>,
}

/// What one port did in an interval.
#[derive(Clone, Debug)]
pub struct PortUse {
    /// Its end.
    pub at: Instant,
    /// Its length.
    pub interval: Duration,
    /// The port, by its number in the network.
    pub port: u32,
    /// What it did.
    pub did: PortCounters,
}

/// What one end of a connection did in an interval.
#[derive(Clone, Debug)]
pub struct ConnectionUse {
    /// Its end.
    pub at: Instant,
    /// Its length.
    pub interval: Duration,
    /// The server, by its place in the scene.
    pub server: usize,
    /// The server's end is the responder's.
    pub side: PairSide,
    /// What it knew of itself at the beginning, and at the end.
    pub facts: [TcpFacts; 2],
}

/// Remembers what was seen last.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) seen: BlockSiteUsage,
    last: Option<Instant>,
    ports: Vec<PortCounters>,
    ends: Vec<(usize, PairSide, TcpFacts)>,
}

impl Watcher {
    /// Looks now: at the counters of all ports, and at the ends of servers' connections.
    pub(super) fn look(
        &mut self,
        now: Instant,
        ports: Vec<PortCounters>,
        ends: Vec<(usize, PairSide, TcpFacts)>,
    ) {
        if let Some(last) = self.last.replace(now) {
            let interval = now.since(last);
            if interval == Duration::ZERO {
                return;
            }
            for ((port, later), before) in (0..).zip(&ports).zip(&self.ports) {
                let did = counters_since(later, before);
                if did != PortCounters::default() {
                    self.seen.ports.push(PortUse {
                        at: now,
                        interval,
                        port,
                        did,
                    });
                }
            }
            let both = ends.iter().zip(&self.ends);
            self.seen
                .connections
                .extend(
                    both.map(|((server, side, later), (_, _, before))| ConnectionUse {
                        at: now,
                        interval,
                        server: *server,
                        side: *side,
                        facts: [*before, *later],
                    }),
                );
        }
        (self.ports, self.ends) = (ports, ends);
    }
}
