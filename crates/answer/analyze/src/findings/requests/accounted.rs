//! What the time of requests went into, by the account that findings and the table of requests have, for whoever shows requests:
//! lifelines and the page.

use crate::findings::input::AnalysisInput;
use crate::findings::requests::in_order::part_overlaps;
use crate::findings::requests::request_account::{RequestAccounts, RequestCause};
use crate::findings::requests::request_roots::RequestRoots;
use crate::findings::requests::traced_requests::requests;
use crate::findings::rows::EventRows;
use crate::lifeline_percentiles::TimeSpread;
use serde::Serialize;
use std::collections::BTreeMap;

/// What took a part of requests' time, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AccountedCause {
    /// Its number in the order in which a request meets causes.
    pub order: u32,
    /// What took it: `wait for retransmission`.
    pub cause: &'static str,
    /// A server, a client, or both: `a > b`.
    pub place: String,
    /// Where that stands, in words of the page's colours.
    pub layer: &'static str,
}

/// A request that was answered or given up, and what its time went into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountedRequest {
    /// Its unit.
    pub unit: i64,
    /// The unit of the request that it was made for.
    pub parent: Option<i64>,
    /// Whether figures of the whole are of it: no other was made for it, and the caller made it.
    pub is_root: bool,
    /// When it began, with the set-up of its connection, in reference time, ns.
    pub begin_ns: u64,
    /// All of it, with the set-up of its connection where it is the first there, ns. What others before it on its connection have
    /// is theirs.
    pub total_ns: i64,
    /// Its parts in the order of causes, which add up to no more than that, ns.
    pub parts: Vec<(AccountedCause, i64)>,
}

/// The times of all roots that have a part by one cause at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountedSpread {
    /// The cause and its place.
    #[serde(flatten)]
    pub cause: AccountedCause,
    /// The times.
    pub ns: TimeSpread,
    /// Its part of the time of all roots, 0 to 1.
    pub share: f64,
}

/// What the time of requests went into, all together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountedTimes {
    /// What took most first.
    pub causes: Vec<AccountedSpread>,
    /// All of each request's time.
    pub whole: TimeSpread,
}

/// All requests of a run that have times.
#[must_use]
pub fn account_requests(input: &AnalysisInput<'_>) -> Vec<AccountedRequest> {
    let log = EventRows::of(input);
    let mut all = requests(&log);
    part_overlaps(&mut all);
    let accounts = RequestAccounts::of(&all, &log);
    let roots = RequestRoots::of(&all);
    let mut found = Vec::new();
    for request in all.iter().filter(|one| one.is_call || one.is_unopened) {
        let Some(times) = request.own_times.or(request.times) else {
            continue;
        };
        let mut parts: BTreeMap<AccountedCause, i64> = BTreeMap::new();
        accounts.list_parts(request, times, &mut |part| {
            *parts
                .entry(describe_cause(part.cause, part.place))
                .or_default() += part.ns;
        });
        parts.retain(|_, ns| *ns > 0);
        found.push(AccountedRequest {
            unit: request.unit,
            parent: request.parent,
            is_root: roots.has(request),
            begin_ns: request
                .end_ns
                .saturating_sub(times.whole().max(0).unsigned_abs()),
            total_ns: times.whole(),
            parts: parts.into_iter().collect(),
        });
    }
    found
}

/// What the time of roots went into. Nothing where there are none.
#[must_use]
pub fn spread_requests<'a>(
    roots: impl Iterator<Item = &'a AccountedRequest>,
) -> Option<AccountedTimes> {
    let mut by_cause: BTreeMap<&AccountedCause, Vec<i64>> = BTreeMap::new();
    let mut totals = Vec::new();
    for request in roots.filter(|request| request.is_root) {
        totals.push(request.total_ns);
        for (cause, ns) in &request.parts {
            by_cause.entry(cause).or_default().push(*ns);
        }
    }
    let all: i128 = totals.iter().map(|ns| i128::from(*ns)).sum();
    let sum = |times: &[i64]| times.iter().map(|ns| i128::from(*ns)).sum::<i128>();
    let mut causes: Vec<(i128, &AccountedCause, Vec<i64>)> = by_cause
        .into_iter()
        .map(|(cause, times)| (sum(&times), cause, times))
        .collect();
    causes.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let spread = |(ns, cause, mut times): (i128, &AccountedCause, Vec<i64>)| {
        Some(AccountedSpread {
            cause: cause.clone(),
            ns: TimeSpread::of(&mut times)?,
            share: ns as f64 / all.max(1) as f64,
        })
    };
    Some(AccountedTimes {
        causes: causes.into_iter().filter_map(spread).collect(),
        whole: TimeSpread::of(&mut totals)?,
    })
}

/// A cause in words, and where it stands.
fn describe_cause(cause: RequestCause, place: String) -> AccountedCause {
    use RequestCause as Cause;
    let (words, layer) = match cause {
        Cause::Lookup => ("name lookup", "between"),
        Cause::ConnectLost => ("wait for a lost SYN", "protocol"),
        Cause::Connect => ("connection set-up", "between"),
        Cause::Handshake => ("handshake", "between"),
        Cause::Client => ("client before request", "application"),
        Cause::ClientPause => ("client pauses", "application"),
        Cause::Held => ("held for an acknowledgement", "protocol"),
        Cause::Loss => ("wait for retransmission", "protocol"),
        Cause::Window => ("no room at the receiver", "protocol"),
        Cause::SlowStart => ("slow start", "protocol"),
        Cause::SenderWindow => ("sender's window", "protocol"),
        Cause::Rate => ("rate of the path", "network"),
        Cause::Queue => ("queues", "queue"),
        Cause::Distance | Cause::FurtherTrips => ("distance", "network"),
        Cause::Queued => ("unread behind others", "socket"),
        Cause::Away => ("unread", "socket"),
        Cause::Compute => ("computing", "application"),
        Cause::NoCore => ("without a core", "socket"),
        Cause::Lock => ("lock", "application"),
        Cause::Disk => ("disk", "application"),
        Cause::Sleep => ("sleep", "application"),
        Cause::ChildProcess => ("child process", "application"),
        Cause::Stopped => ("stopped", "application"),
        Cause::Collect => ("garbage collection", "application"),
        Cause::Observer => ("core taken by the trace", "socket"),
        Cause::Server => ("server", "application"),
        Cause::Responder => ("responder", "application"),
        Cause::SlowReader => ("unread at the client", "application"),
        Cause::GivenUp => ("no answer", "other"),
        Cause::Ended => ("ended by the server", "other"),
        Cause::BackOff => ("back-off", "application"),
    };
    AccountedCause {
        order: cause as u32,
        cause: words,
        place: place.trim_end_matches(',').to_owned(),
        layer,
    }
}
