//! The use of ports and connections, interval by interval, as a monitor would have seen it. Watching changes nothing in the simulation.

use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_sim::messages::TcpFacts;
use stackline_sim::usage::UsageInterval;

/// The use in all intervals of a session.
#[derive(Clone, Debug, Default)]
pub struct BlockSiteUsage {
    /// The ports through which something went.
    pub intervals: Vec<UsageInterval>,
    /// The connections that carry blocks: first the servers' ends, then the client's.
    pub connections: Vec<ConnectionUse>,
}

/// What one end of a connection did in an interval.
#[derive(Clone, Debug)]
pub struct ConnectionUse {
    /// When the interval ended.
    pub at: Instant,
    /// The length of the interval.
    pub interval: Duration,
    /// The index of the server in the scene.
    pub server: usize,
    /// Which end; the server's is the responder.
    pub side: PairSide,
    /// Its statistics at the beginning and at the end of the interval.
    pub facts: [TcpFacts; 2],
}

/// The statistics of one end of a server's connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionFacts {
    pub(super) server: usize,
    pub(super) side: PairSide,
    pub(super) facts: TcpFacts,
}

/// Turns successive statistics of connections into intervals.
#[derive(Debug, Default)]
pub(super) struct ConnectionWatch {
    pub(super) seen: Vec<ConnectionUse>,
    last: Option<Instant>,
    ends: Vec<ConnectionFacts>,
}

impl ConnectionWatch {
    /// Records the statistics at this moment.
    pub(super) fn look(&mut self, now: Instant, ends: Vec<ConnectionFacts>) {
        let interval = self.last.map_or(Duration::ZERO, |last| now.since(last));
        if self.last.is_some() && interval == Duration::ZERO {
            return;
        }
        let both = ends.iter().zip(&self.ends);
        self.seen.extend(both.map(|(later, before)| ConnectionUse {
            at: now,
            interval,
            server: later.server,
            side: later.side,
            facts: [before.facts, later.facts],
        }));
        (self.last, self.ends) = (Some(now), ends);
    }
}
