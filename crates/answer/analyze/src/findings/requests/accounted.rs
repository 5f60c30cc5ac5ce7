//! The time of requests by cause, for code that shows requests (lifelines, the page): the same attribution that findings and the table of
//! requests use. Roots are the requests that were not made on behalf of others.

use crate::findings::input::AnalysisInput;
use crate::findings::requests::behind_bytes::part_waits;
use crate::findings::requests::request_account::{RequestAccounts, RequestCause};
use crate::findings::requests::request_roots::RequestRoots;
use crate::findings::requests::traced_requests::requests;
use crate::findings::rows::EventRows;
use crate::lifeline_percentiles::TimeSpread;
use crate::lifelines::Lifelines;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A cause of requests' time, and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AccountedCause {
    /// Its number in the order in which a request meets the causes.
    pub order: u32,
    /// The cause in words: `wait for retransmission`.
    pub cause: &'static str,
    /// Where: a server, a client, or both as `a > b`.
    pub place: String,
    /// The layer that it belongs to, in the words by which the page chooses colours.
    pub layer: &'static str,
}

/// A request that was answered or given up, and the parts of its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountedRequest {
    /// The id (unit) of the request.
    pub unit: i64,
    /// The unit of the request on whose behalf it was made.
    pub parent: Option<i64>,
    /// Whether it is a root, whose time is part of totals: it was not made on behalf of another request, and the caller made it.
    pub is_root: bool,
    /// When it began, with the set-up of its connection, in reference time, ns.
    pub begin_ns: u64,
    /// Its whole time, with the set-up of its connection if it opened one, ns; without time that belongs to earlier requests on its
    /// connection.
    pub total_ns: i64,
    /// The parts of its time in the order of causes, ns; they add up to at most `total_ns`.
    pub parts: Vec<(AccountedCause, i64)>,
}

/// The distribution, over roots that have it, of the time of one cause at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountedSpread {
    /// The cause and its place.
    #[serde(flatten)]
    pub cause: AccountedCause,
    /// The distribution of the times.
    pub ns: TimeSpread,
    /// Its share of the time of all roots, 0 to 1.
    pub share: f64,
}

/// The time of all roots by cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountedTimes {
    /// The causes, the one that takes most time first.
    pub causes: Vec<AccountedSpread>,
    /// The distribution of the whole times of roots.
    pub whole: TimeSpread,
}

/// Attributes the time of each request of a run whose times are known.
#[must_use]
pub fn account_requests(input: &AnalysisInput<'_>) -> Vec<AccountedRequest> {
    let log = EventRows::from_input(input);
    let mut all = requests(&log);
    part_waits(&mut all);
    let accounts = RequestAccounts::from_requests(&all, &log);
    let roots = RequestRoots::from_requests(&all);
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

/// The time of the requests of a run by cause: of all its roots, or of those among the shown lifelines; `None` if there are none.
#[must_use]
pub fn account_shown_requests(
    input: &AnalysisInput<'_>,
    shown: Option<&Lifelines>,
) -> Option<AccountedTimes> {
    let units = |shown: &Lifelines| -> BTreeSet<i64> {
        let lines = shown.lines.iter();
        lines.filter_map(|line| line.unit.number()).collect()
    };
    let shown = shown.map(units);
    let all = account_requests(input);
    let of_lines = all.iter().filter(|request| {
        shown
            .as_ref()
            .is_none_or(|shown| shown.contains(&request.unit))
    });
    spread_requests(of_lines)
}

/// The time of the roots among these requests by cause; `None` if there are no roots.
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
            ns: TimeSpread::from_values(&mut times)?,
            share: ns as f64 / all.max(1) as f64,
        })
    };
    Some(AccountedTimes {
        causes: causes.into_iter().filter_map(spread).collect(),
        whole: TimeSpread::from_values(&mut totals)?,
    })
}

/// A cause at a place in words, with its layer.
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
