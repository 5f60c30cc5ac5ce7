//! What ports and connections did, interval by interval, as a monitor would have seen it. It changes nothing of what happens.

use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_sim::messages::TcpFacts;
use stackline_sim::usage::UsageInterval;

/// All intervals of a session.
#[derive(Clone, Debug, Default)]
pub struct BlockSiteUsage {
    /// Of ports through which something went.
    pub intervals: Vec<UsageInterval>,
    /// Of the connections that blocks go over, first the servers' ends, then the client's.
    pub connections: Vec<ConnectionUse>,
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

/// What an end of a server's connection knows of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionFacts {
    pub(super) server: usize,
    pub(super) side: PairSide,
    pub(super) facts: TcpFacts,
}

/// Remembers what was known last.
#[derive(Debug, Default)]
pub(super) struct ConnectionWatch {
    pub(super) seen: Vec<ConnectionUse>,
    last: Option<Instant>,
    ends: Vec<ConnectionFacts>,
}

impl ConnectionWatch {
    /// Looks now at the ends of servers' connections.
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
