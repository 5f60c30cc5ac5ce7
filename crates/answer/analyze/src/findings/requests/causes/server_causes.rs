//! Causes at the server: requests that wait unread, and what its threads do or wait for.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, counted, percent};
use crate::findings::kind::FindingKind;
use crate::findings::requests::behind_bytes::may_wait_behind;
use crate::findings::requests::causes::TIME_OUT_NS;
use crate::findings::requests::causes::lock_holders::describe_holding;
use crate::findings::requests::costs::{PlacelessTaker, RequestCause, RequestCosts};
use crate::findings::requests::ends_in_words::client_in_words;
use crate::findings::requests::request::{RequestTimes, TracedRequest, server_name};
use crate::findings::requests::transaction_waits::find_transaction_wait;
use crate::findings::requests::unassigned::count_unassigned;
use crate::findings::requests::worst::{
    LEAST_SERVER_NS, LEAST_WAIT_NS, Worst, find_worst_place, report_request_cause,
};

pub(crate) fn one_at_a_time(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Queued, LEAST_SERVER_NS)?;
    let at_once = worst.at_once();
    let sentence = format!(
        "requests wait unread at {} while it handles others, {at_once} at a time: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(
        kind,
        log,
        &worst,
        if at_once <= 2 { 0.95 } else { 0.85 },
        sentence,
    );
    Some(found.attempt("give it more workers, or make each request take less time"))
}

pub(crate) fn server_away(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Away, LEAST_SERVER_NS)?;
    let sentence = format!(
        "requests wait unread at {} although it is handling no others: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.8, sentence);
    Some(found.attempt("check what it does meanwhile: it may collect garbage, be stopped, accept connections late, or do work that was not traced"))
}

/// The least share of the time for a finding about short waits.
const OFTEN: f64 = 0.2;
/// The same for locks, which threads of one process hand to each other often.
const MOSTLY: f64 = 0.5;

/// The least mean time per request of computing or without a core, unless these take much of the time, ns: every program computes, and a trace
/// makes it compute more.
const LEAST_CPU_NS: f64 = 2e6;

/// The least mean time per request for a finding, ns. Waits that the trace shows directly are evidence even if they are short and frequent.
const fn least_of(cause: RequestCause) -> f64 {
    match cause {
        RequestCause::Disk
        | RequestCause::Lock
        | RequestCause::Sleep
        | RequestCause::ChildProcess => LEAST_WAIT_NS,
        _ => LEAST_SERVER_NS,
    }
}

/// The finding about one cause at the worst server; `does` says in words what the server does.
fn of_server(
    kind: &FindingKind,
    log: &FindingEventLog<'_>,
    cause: RequestCause,
    does: &str,
    confidence: f64,
    attempt: &str,
) -> Option<Finding> {
    let worst = find_worst_place(log, cause, least_of(cause))?;
    let often = match cause {
        RequestCause::Lock => MOSTLY,
        _ => OFTEN,
    };
    let least = match cause {
        RequestCause::Compute | RequestCause::NoCore => LEAST_CPU_NS,
        _ => LEAST_SERVER_NS,
    };
    if worst.mean() < least && worst.share < often {
        return None;
    }
    let which = slowest_name(&worst).map_or_else(String::new, |name| format!(" during {name}"));
    let worst = Worst {
        of_name: worst.cost.of_name(NAMED),
        ..worst
    };
    let sentence = format!("{} {does}{which}: {}", worst.place, worst.time_in_words());
    Some(report_request_cause(kind, log, &worst, confidence, sentence).attempt(attempt))
}

/// The least share of a cost that requests of one name must have for the name to be mentioned.
const NAMED: f64 = 0.8;

/// The name of the requests that have most of a cost, if it is one name.
pub(super) fn slowest_name<'n>(worst: &Worst<'n>) -> Option<&'n str> {
    let named = worst.cost.of_name(NAMED)?;
    worst
        .costs
        .names
        .get(named.name as usize)
        .map(String::as_str)
}

pub(crate) fn server_computes(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    of_server(
        kind,
        log,
        RequestCause::Compute,
        "computes",
        0.95,
        "profile it, cache results, or give it a faster core",
    )
}

pub(crate) fn server_no_core(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    of_server(
        kind,
        log,
        RequestCause::NoCore,
        "is ready to run but gets no core",
        0.95,
        "give it dedicated cores if others use its cores, or a larger quota (see `nr_throttled` in cpu.stat of its control group)",
    )
}

pub(crate) fn server_lock(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    waits_for_transaction(kind, log).or_else(|| waits_for_lock(kind, log))
}

/// The finding about statements that wait for the transaction of another connection. A database's thread may wait for that in any system
/// call, so the trace shows it as a lock or as unknown time of the server.
fn waits_for_transaction(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let found = TRANSACTION_WAITS
        .into_iter()
        .filter_map(|cause| of_transaction(kind, log, cause));
    found.max_by(|one, other| one.share.total_cmp(&other.share))
}

/// What a wait for a transaction may show as: some unknown time of the server, a lock, or a timed wait of an event loop.
const TRANSACTION_WAITS: [RequestCause; 3] = [
    RequestCause::Sleep,
    RequestCause::Lock,
    RequestCause::Server,
];

fn of_transaction(
    kind: &FindingKind,
    log: &FindingEventLog<'_>,
    cause: RequestCause,
) -> Option<Finding> {
    let worst = find_worst_place(log, cause, LEAST_SERVER_NS)?;
    let requests = &worst.costs.requests;
    // Only the requests that have nearly all of the time; others have next to nothing.
    let mut rows = worst.cost.rows.clone();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    rows.truncate(usize::try_from(worst.of_most().0).unwrap_or(usize::MAX));
    let wait = find_transaction_wait(requests, &rows)?;
    let client = client_in_words(&requests[wait.ends_with]);
    let whose = match wait.is_of_same_program {
        true => format!("the transaction of another connection of {client}"),
        false => format!("the transaction of {client}'s connection"),
    };
    let which = slowest_name(&worst).map_or_else(String::new, |name| format!(" during {name}"));
    let (what, attempt) = match wait.is_for_pool {
        true => ("its pool has no other free connection", POOL_ATTEMPT),
        false => ("a row lock", LOCK_ATTEMPT),
    };
    let sentence = format!(
        "{} waits for {whose} ({what}){which}: {}; {} of {} waits end when that transaction commits or rolls back",
        worst.place,
        worst.time_in_words(),
        wait.hits,
        wait.waits
    );
    let found = report_request_cause(kind, log, &worst, wait.confidence(), sentence);
    Some(found.attempt(attempt))
}

const LOCK_ATTEMPT: &str =
    "keep transactions short: commit before slow work, and change contended rows last";
const POOL_ATTEMPT: &str =
    "let the pool open more connections to the database, or keep transactions short";

fn waits_for_lock(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let cause = RequestCause::Lock;
    let holding = find_worst_place(log, cause, LEAST_WAIT_NS)
        .as_ref()
        .and_then(describe_holding);
    let attempt = holding.as_ref().map_or(
        "hold the lock for less time, or use several locks",
        |holding| holding.attempt,
    );
    let mut found = of_server(kind, log, cause, "waits for a lock", 0.9, attempt)?;
    if let Some(holding) = holding {
        found.sentence += &holding.words;
    }
    Some(found)
}

pub(crate) fn server_disk(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let attempt =
        "check whether it must sync each write (fsync), cache what it reads, or use a faster disk";
    of_server(
        kind,
        log,
        RequestCause::Disk,
        "waits for the disk",
        0.95,
        attempt,
    )
}

pub(crate) fn server_sleeps(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    // A wait for a transaction is reported as a lock, also where an event loop looks up meanwhile (`TRANSACTION_WAITS`).
    if of_transaction(kind, log, RequestCause::Sleep).is_some() {
        return None;
    }
    of_server(
        kind,
        log,
        RequestCause::Sleep,
        "sleeps (a timed wait)",
        0.95,
        "find the timer: a back-off, a poll, a rate limit",
    )
}

pub(crate) fn server_child(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let does = "waits for a process that it started";
    of_server(
        kind,
        log,
        RequestCause::ChildProcess,
        does,
        0.9,
        "start that process once and keep it running, or do its work within the server",
    )
}

pub(crate) fn server_stopped(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    of_server(
        kind,
        log,
        RequestCause::Stopped,
        "was stopped",
        0.95,
        "find out what stops it: a signal, a debugger, a freezer",
    )
}

pub(crate) fn server_collects(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    of_server(
        kind,
        log,
        RequestCause::Collect,
        "pauses to collect garbage",
        0.95,
        "give it more memory, create less garbage, or choose a collector that does not pause it",
    )
}

/// Whether most of the servers' time is pauses in the middle of answers seen at the clients alone: the end of what was sent before may
/// have been lost, which the client's side does not show.
fn has_silent_answers(costs: &RequestCosts) -> bool {
    let silent = |request: &TracedRequest| {
        let paused = request.network.paused_back_ns;
        let is_of_client = request.times.is_some_and(|times| times.is_of_client);
        if is_of_client && paused >= TIME_OUT_NS {
            paused
        } else {
            0
        }
    };
    let silent: i64 = costs.requests.iter().map(silent).sum();
    silent * 2 > costs.of_cause(RequestCause::Server)
}

/// What is said of a server that accounts for the time.
struct TakingServer {
    /// What it does.
    does: &'static str,
    confidence: f64,
    attempt: String,
}

impl TakingServer {
    /// `knows`: its threads were recorded; `untraced`: its process; `is_silent`: most of its time is pauses in answers, seen at clients alone.
    fn find<'r, R: Iterator<Item = &'r TracedRequest>>(
        knows: bool,
        untraced: Option<i64>,
        is_silent: bool,
        requests: impl Fn() -> R,
    ) -> Self {
        // Without a round trip of their connection, as over UDP, one capture does not distinguish the path from the server.
        let is_path_unknown = requests().all(|request| {
            let times = request.times.as_ref();
            let knows_path = |times: &RequestTimes| {
                times.is_transit_known || times.is_of_server || times.round_trip.is_some()
            };
            request.client != request.server && times.is_some_and(|times| !knows_path(times))
        });
        let (does, confidence, attempt) = match (knows, untraced) {
        _ if is_silent => (
            "pauses in the middle of answers, or the end of what it sent was lost on the way (the client's side alone does not show which)",
            0.6,
            "capture at the server as well: a retransmission there shows a loss".to_owned(),
        ),
        (true, _) => (
            "waits for something that the trace does not show",
            0.8,
            "check what it waits for: an answer over a Unix socket or from a host that was not traced, a pipe, another thread".to_owned(),
        ),
        (false, Some(pid)) => (
            "accounts for the time",
            0.9,
            format!("it is process {pid} on this machine: as root, run `stackline trace --pid {pid}` while the client sends requests, without `--see`, to see what its threads wait for"),
        ),
        (false, None) if is_path_unknown => (
            "or the path to it accounts for the time",
            0.6,
            "capture at both ends, or run `stackline trace` on the server's machine: that separates the path from the server".to_owned(),
        ),
        (false, None) => (
            "accounts for the time",
            0.9,
            "run `stackline trace` on the server's machine, as root: it shows what the threads wait for".to_owned(),
        ),
    };
        Self {
            does,
            confidence,
            attempt,
        }
    }
}

/// The share of these requests' work that the servers behind theirs took, by its log, 0 to 1; 0 where the log does not say.
fn upstream_share<'r>(requests: impl Iterator<Item = &'r TracedRequest>) -> f64 {
    let (mut upstream_ns, mut work_ns) = (0, 0);
    for request in requests {
        if let (Some(upstream), Some(times)) = (request.upstream_ns, &request.times) {
            // The log counts in ms, and from another moment on.
            upstream_ns += upstream.clamp(0, times.work);
            work_ns += times.work;
        }
    }
    upstream_ns as f64 / work_ns.max(1) as f64
}

/// A server whose log gives those behind it at least this share of its time waits for them.
const MOSTLY_UPSTREAM: f64 = 0.5;

/// A server's unassigned requests are mentioned only if they are at least 1 / this of the requests that it had.
const MANY: u64 = 20;

pub(crate) fn server_takes(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Server, LEAST_SERVER_NS)?;
    // A wait for a transaction is reported as a lock.
    if of_transaction(kind, log, RequestCause::Server).is_some() {
        return None;
    }
    let of_place = || {
        let requests = worst.costs.requests.iter();
        requests.filter(|request| server_name(request) == worst.place)
    };
    let upstream = upstream_share(of_place());
    if upstream >= MOSTLY_UPSTREAM {
        let does = "waits for the servers behind it, as its log says,";
        let attempt = "look at the servers behind it: import a capture of its host, which shows its requests to them";
        let mut found = of_server(kind, log, RequestCause::Server, does, 0.9, attempt)?;
        found.sentence += &format!("; they take {} of it", percent(upstream));
        return Some(found);
    }
    let knows = of_place().any(|request| request.work.is_some());
    let untraced = of_place().find_map(|request| request.server_pid);
    let is_silent = has_silent_answers(worst.costs);
    let TakingServer {
        does,
        confidence,
        attempt,
    } = TakingServer::find(knows, untraced, is_silent, of_place);
    let mut found = of_server(kind, log, RequestCause::Server, does, confidence, &attempt)?;
    found.sentence += match (knows, untraced) {
        _ if is_silent => "",
        (true, _) => "",
        (false, Some(_)) => "; its threads were not observed, so what it does is unknown",
        (false, None) => "; packets and calls do not show what it does",
    };
    if may_wait_behind(
        &worst.costs.requests,
        of_place(),
        (worst.each() / 2.0) as i64,
    ) {
        found.confidence = found.confidence.min(0.6);
        found.sentence += "; or its answers wait behind a long one on the same connection (a trace at the server would show which)";
    }
    // Unassigned requests may be where the server's time went.
    let unassigned = count_unassigned(&worst.costs.requests, worst.place);
    // Very few of many cannot explain the time.
    if unassigned * MANY >= of_place().count() as u64 && unassigned > 0 {
        found.confidence = found.confidence.min(0.6);
        found.sentence += &format!(
            "; or the time is spent on {} that it made meanwhile: the trace does not show on whose behalf",
            counted(unassigned, "request")
        );
    }
    let network_share = worst.costs.share_of(PlacelessTaker::Network);
    if network_share > found.share {
        found.sentence += &format!("; {} is spent on the network", percent(network_share));
    }
    Some(found)
}
