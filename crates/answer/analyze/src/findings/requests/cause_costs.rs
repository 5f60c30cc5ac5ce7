//! What causes of a request's time there are, and what one of them takes at one place.

use std::collections::BTreeMap;

/// A share of a cost that counts as all of it.
const NEARLY_ALL: f64 = 0.95;

/// What a request's time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestCause {
    Lookup,
    ConnectLost,
    Connect,
    Handshake,
    Client,
    /// The client sends nothing in the midst of its request.
    ClientPause,
    Held,
    Loss,
    Window,
    Rate,
    Queue,
    Distance,
    /// A part of the distance: round trips behind the first of a request.
    FurtherTrips,
    Queued,
    Away,
    Compute,
    NoCore,
    Lock,
    Disk,
    Sleep,
    ChildProcess,
    Stopped,
    Collect,
    /// Whoever looks had the core.
    Observer,
    Server,
    /// Who answers what a broker hands on.
    Responder,
    SlowReader,
    /// Who asked wanted no answer any more.
    GivenUp,
    /// The server ended the connection instead of an answer.
    Ended,
    /// Between an attempt that failed and the next.
    BackOff,
}

/// What one cause takes at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCauseCost {
    pub(crate) ns: i64,
    /// How many requests have some of it.
    pub(crate) requests: u64,
    /// The rows of those that have most.
    pub(crate) rows: Vec<(i64, u32)>,
    /// How many have so much, by the number of its binary digits, and all of theirs, ns.
    by_size: BTreeMap<u32, (u64, i64)>,
    /// How many of them are made by servers for other requests.
    pub(crate) nested: u64,
}

impl RequestCauseCost {
    /// How many requests have nearly all of it, and how much each of those has, ns: others have next to nothing.
    pub(crate) fn of_most(&self) -> (u64, f64) {
        let (mut requests, mut ns) = (0, 0);
        for (count, sum) in self.by_size.values().rev() {
            if ns as f64 >= NEARLY_ALL * self.ns as f64 {
                break;
            }
            (requests, ns) = (requests + count, ns + sum);
        }
        (requests, ns as f64 / requests.max(1) as f64)
    }

    /// So much of a request more.
    pub(super) fn add(&mut self, ns: i64, row: u32) {
        self.ns += ns;
        self.requests += 1;
        let size = self
            .by_size
            .entry(ns.max(0).unsigned_abs().checked_ilog2().unwrap_or(0))
            .or_default();
        *size = (size.0 + 1, size.1 + ns);
        self.rows.push((ns, row));
        if self.rows.len() > 64 {
            self.rows.sort_unstable_by(|a, b| b.cmp(a));
            self.rows.truncate(16);
        }
    }
}
