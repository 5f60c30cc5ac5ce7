//! The causes of requests' time, and the cost of one of them at one place, summed over requests.

use crate::findings::requests::request_part::{RemainingLimit, RequestPart};
use std::collections::BTreeMap;

/// The share of a cost that counts as nearly all of it.
const NEARLY_ALL: f64 = 0.95;

/// The share of a cost that counts as most of it.
const MOST: f64 = 0.6;
/// At most this share of the requests are few.
const FEW: f64 = 0.2;
/// Few requests stand out if each has at least this many times the mean.
const OUTLYING: f64 = 4.0;

/// The remaining limit is reported if it is due to at least this share of the cost.
const LIMITED: f64 = 0.02;

/// What a request's time is spent on, about in the order in which a request meets the causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestCause {
    /// The server's address is looked up.
    Lookup,
    /// The first packets of the connection were lost.
    ConnectLost,
    /// The connection is opened.
    Connect,
    /// TLS or a login is set up.
    Handshake,
    /// The client prepares the request.
    Client,
    /// The client sends nothing in the middle of its request.
    ClientPause,
    /// Nagle's algorithm holds back the end of a message.
    Held,
    /// Lost packets are retransmitted, or kept the sender's window small.
    Loss,
    /// The receiver of a message has no room for more.
    Window,
    /// A new connection's window grows while its sender waits for acknowledgements.
    SlowStart,
    /// The sender keeps few bytes in flight and waits for their acknowledgements.
    SenderWindow,
    /// The rate of the path limits a long message.
    Rate,
    /// A message waits in queues of the network.
    Queue,
    /// The round trip of an idle network.
    Distance,
    /// A part of the distance: round trips after the first one of a request.
    FurtherTrips,
    /// The request lies unread while the server handles others.
    Queued,
    /// The request lies unread although the server handles no others.
    Away,
    /// The server's thread computes.
    Compute,
    /// A thread is ready to run and has no core.
    NoCore,
    /// The server's thread waits for a lock.
    Lock,
    /// The server's thread waits for a disk.
    Disk,
    /// The server's thread sleeps for a set time.
    Sleep,
    /// The server's thread waits for a process that it started.
    ChildProcess,
    /// A thread was stopped.
    Stopped,
    /// A thread waits for garbage collection.
    Collect,
    /// A thread has no core because the trace itself uses it.
    Observer,
    /// The server takes the time, it is not known what for.
    Server,
    /// The program takes the time that answers what a broker hands on.
    Responder,
    /// The client reads the answer late.
    SlowReader,
    /// The client gave the request up.
    GivenUp,
    /// The server ended the connection instead of answering.
    Ended,
    /// The client waits between a failed attempt and the next.
    BackOff,
}

/// Who takes a part of a request's time, if that is neither a program nor a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacelessTaker {
    SetUp,
    Network,
    Losses,
}

impl PlacelessTaker {
    /// Its name in the table of requests and in findings.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::Network => "network",
            Self::Losses => "losses",
        }
    }
}

impl RequestCause {
    /// Who takes the time of this cause, if that is neither a program nor a host; else `None`.
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

/// The time that one cause takes at one place, summed over requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCauseCost {
    /// The whole time.
    pub(crate) ns: i64,
    /// The number of requests that have some of it.
    pub(crate) requests: u64,
    /// The requests that have most of it: time in ns and row of each.
    pub(crate) rows: Vec<(i64, u32)>,
    /// How the time is distributed over requests.
    sizes: CostSizes,
    /// The distribution for the requests of each name, by index of the name; names without an index together.
    by_name: BTreeMap<Option<u32>, CostSizes>,
    /// The number of requests that were made by servers on behalf of others.
    pub(crate) nested: u64,
    /// How much shorter all requests together would be without it, ns.
    pub(crate) removable_ns: i64,
    /// What would limit requests then, with the time of the cause that would stay because of it, ns.
    limits: BTreeMap<RemainingLimit, i64>,
}

/// A histogram of requests by their cost: the binary logarithm of the cost in ns (rounded down) gives the number of requests and the sum of
/// their costs, ns.
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

    /// The requests with the largest costs that together have that share of all costs: their number and mean cost, ns.
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

    /// The few requests that have most of the cost: their number and mean cost, ns; `None` if costs are spread over many.
    fn few(&self) -> Option<(u64, f64)> {
        let (all, mean) = self.largest(NEARLY_ALL);
        let (requests, each) = self.largest(MOST);
        let are_few = (requests as f64) <= FEW * all as f64 && each >= OUTLYING * mean;
        are_few.then_some((requests, each))
    }
}

/// The cost of the requests of one name, which have most of a cause's cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedCauseCost {
    /// Index of the name.
    pub(crate) name: u32,
    /// The number of them that have nearly all of it, and the mean cost of each, ns.
    pub(crate) of_most: (u64, f64),
    /// The few of them that have most of it, if there are: their number and mean cost, ns.
    pub(crate) of_few: Option<(u64, f64)>,
}

impl RequestCauseCost {
    /// The number of requests that have nearly all of it, and the mean cost of each, ns; others have next to nothing.
    pub(crate) fn of_most(&self) -> (u64, f64) {
        self.sizes.largest(NEARLY_ALL)
    }

    /// The few requests that have most of it: their number and mean cost, ns; `None` if it is spread over many.
    pub(crate) fn of_few(&self) -> Option<(u64, f64)> {
        self.sizes.few()
    }

    /// The name whose requests have most of it, if they have at least that share.
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

    /// What would limit most of the requests without it, if that is due to a noticeable share of its time.
    pub(crate) fn remaining_limit(&self) -> Option<&RemainingLimit> {
        let (limit, ns) = self.limits.iter().max_by_key(|(_, ns)| **ns)?;
        (*ns as f64 >= LIMITED * self.ns as f64).then_some(limit)
    }

    /// Adds a part of a request's time; `name` is the index of the request's name.
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

    /// Adds time between two requests, attributed to the event at `row`.
    pub(super) fn add_gap(&mut self, ns: i64, row: u32, name: Option<u32>) {
        self.removable_ns += ns;
        self.count(ns, row, name);
    }

    /// Adds another cost, of the same requests by another cause.
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
