//! What causes of a request's time there are, and what one of them takes at one place.

use crate::findings::requests::request_part::{RemainingLimit, RequestPart};
use std::collections::BTreeMap;

/// A share of a cost that counts as all of it.
const NEARLY_ALL: f64 = 0.95;

/// Of a cost, what is most of it; what few of the requests are, and how much longer than the mean theirs is.
const MOST: f64 = 0.6;
const FEW: f64 = 0.2;
const OUTLYING: f64 = 4.0;

/// From this share of a cost on it is said what would limit without it.
const LIMITED: f64 = 0.02;

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
    /// A new connection's window grows while its sender waits for acknowledgements.
    SlowStart,
    /// Its sender keeps few bytes under way: it waits for their acknowledgements.
    SenderWindow,
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

/// Who takes a part of a request's time that is neither a program's nor a host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacelessTaker {
    SetUp,
    Network,
    Losses,
}

impl PlacelessTaker {
    /// As the table of requests and findings call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Network => "network",
            Self::Losses => "losses",
        }
    }
}

impl RequestCause {
    /// Who takes its time, where that is no program and no host.
    pub(crate) const fn placeless_taker(self) -> Option<PlacelessTaker> {
        match self {
            Self::Lookup | Self::Handshake => Some(PlacelessTaker::SetUp),
            Self::Connect | Self::SlowStart | Self::Rate | Self::Queue | Self::Distance => {
                Some(PlacelessTaker::Network)
            }
            Self::ConnectLost | Self::Loss => Some(PlacelessTaker::Losses),
            _ => None,
        }
    }
}

/// What one cause takes at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCauseCost {
    pub(crate) ns: i64,
    /// How many requests have some of it.
    pub(crate) requests: u64,
    /// The rows of those that have most.
    pub(crate) rows: Vec<(i64, u32)>,
    sizes: CostSizes,
    /// The same of the requests of each name, by its index; of names without an index together.
    by_name: BTreeMap<Option<u32>, CostSizes>,
    /// How many of them are made by servers for other requests.
    pub(crate) nested: u64,
    /// How much shorter all requests would be without it, ns.
    pub(crate) removable_ns: i64,
    /// What would limit requests then, and how much of its time those have, ns.
    limits: BTreeMap<RemainingLimit, i64>,
}

/// How many requests have so much of a cost, by the number of its binary digits, and all of theirs, ns.
#[derive(Clone, Debug, Default)]
struct CostSizes(BTreeMap<u32, (u64, i64)>);

impl CostSizes {
    fn add(&mut self, ns: i64) {
        let digits = ns.max(0).unsigned_abs().checked_ilog2().unwrap_or(0);
        let size = self.0.entry(digits).or_default();
        *size = (size.0 + 1, size.1 + ns);
    }

    fn merge(&mut self, more: Self) {
        for (digits, (count, ns)) in more.0 {
            let known = self.0.entry(digits).or_default();
            *known = (known.0 + count, known.1 + ns);
        }
    }

    fn total_ns(&self) -> i64 {
        self.0.values().map(|(_, ns)| ns).sum()
    }

    /// The requests with the largest costs that together have that share of all: how many, and the mean of theirs, ns.
    fn largest(&self, share: f64) -> (u64, f64) {
        let enough = share * self.total_ns() as f64;
        let (mut requests, mut ns) = (0, 0);
        for (count, sum) in self.0.values().rev() {
            if ns as f64 >= enough {
                break;
            }
            (requests, ns) = (requests + count, ns + sum);
        }
        (requests, ns as f64 / requests.max(1) as f64)
    }

    /// Requests that have most of it though they are few; `None` where all have about as much.
    fn few(&self) -> Option<(u64, f64)> {
        let (all, mean) = self.largest(NEARLY_ALL);
        let (requests, each) = self.largest(MOST);
        let are_few = (requests as f64) <= FEW * all as f64 && each >= OUTLYING * mean;
        are_few.then_some((requests, each))
    }
}

/// Requests of one name that have most of a cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedCauseCost {
    /// Index of the name.
    pub(crate) name: u32,
    /// How many of them have nearly all of theirs, and how much each of those has, ns.
    pub(crate) of_most: (u64, f64),
    /// Those of them that have most of it though they are few: how many, and how much each has, ns.
    pub(crate) of_few: Option<(u64, f64)>,
}

impl RequestCauseCost {
    /// How many requests have nearly all of it, and how much each of those has, ns: others have next to nothing.
    pub(crate) fn of_most(&self) -> (u64, f64) {
        self.sizes.largest(NEARLY_ALL)
    }

    /// Requests that have most of it though they are few: how many, and how much each has, ns; `None` where all have about as much.
    pub(crate) fn of_few(&self) -> Option<(u64, f64)> {
        self.sizes.few()
    }

    /// The name whose requests have that share of it.
    pub(crate) fn of_name(&self, share: f64) -> Option<NamedCauseCost> {
        let by_name = self.by_name.iter();
        let (name, sizes) = by_name.max_by_key(|(_, sizes)| sizes.total_ns())?;
        let is_most = sizes.total_ns() as f64 >= share * self.ns as f64;
        is_most.then_some(NamedCauseCost {
            name: (*name)?,
            of_most: sizes.largest(NEARLY_ALL),
            of_few: sizes.few(),
        })
    }

    /// What would limit most of the requests without it, where that is a good deal of its time.
    pub(crate) fn remaining_limit(&self) -> Option<&RemainingLimit> {
        let (limit, ns) = self.limits.iter().max_by_key(|(_, ns)| **ns)?;
        (*ns as f64 >= LIMITED * self.ns as f64).then_some(limit)
    }

    /// A part of a request more.
    pub(super) fn add(&mut self, part: &RequestPart<'_>, name: Option<u32>) {
        self.nested += u64::from(part.depth > 0);
        self.removable_ns += part.removable_ns;
        if let Some(limit) = &part.limit {
            let stays_ns = match limit {
                RemainingLimit::Unknown => part.ns,
                _ => part.ns - part.removable_ns,
            };
            *self.limits.entry(limit.clone()).or_default() += stays_ns;
        }
        self.count(part.ns, part.request.row, name);
    }

    /// Time between requests more.
    pub(super) fn add_gap(&mut self, ns: i64, row: u32, name: Option<u32>) {
        self.removable_ns += ns;
        self.count(ns, row, name);
    }

    /// All of another cost more: that of the same requests by another cause.
    pub(super) fn merge(&mut self, more: Self) {
        self.ns += more.ns;
        self.requests = self.requests.max(more.requests);
        self.nested = self.nested.max(more.nested);
        self.removable_ns += more.removable_ns;
        for (limit, ns) in more.limits {
            *self.limits.entry(limit).or_default() += ns;
        }
        self.sizes.merge(more.sizes);
        for (name, sizes) in more.by_name {
            self.by_name.entry(name).or_default().merge(sizes);
        }
        self.rows.extend(more.rows);
        self.rows.sort_unstable_by(|a, b| b.cmp(a));
        self.rows.dedup_by_key(|(_, row)| *row);
    }

    fn count(&mut self, ns: i64, row: u32, name: Option<u32>) {
        self.ns += ns;
        self.requests += 1;
        self.sizes.add(ns);
        self.by_name.entry(name).or_default().add(ns);
        self.rows.push((ns, row));
        if self.rows.len() > 64 {
            self.rows.sort_unstable_by(|a, b| b.cmp(a));
            self.rows.truncate(16);
        }
    }
}
