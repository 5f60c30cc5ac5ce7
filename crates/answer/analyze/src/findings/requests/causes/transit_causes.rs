//! Causes on the path of requests and answers: losses, windows, rates, queues, Nagle's algorithm, and distance itself where many round
//! trips are made.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::causes::server_causes::slowest_name;
use crate::findings::requests::costs::{LARGE, RequestCause, RequestCosts};
use crate::findings::requests::long_transfers::LongTransfers;
use crate::findings::requests::network::{ContendedQueue, Drops, Slowest};
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::worst::{
    LEAST_NETWORK_NS, Worst, find_worst_further_trips, find_worst_place, format_client_server,
    place_in_words, report_request_cause,
};
use crate::statistics::to_f64;
use stackline_core::units;
use std::collections::BTreeSet;

/// The least time per request of transfers within one host that is worth a finding, ns.
const WITHIN_LEAST: f64 = 1e7;
/// A transfer within one host at this rate or more is as fast as it can be, bit/s.
const WITHIN_BIT_S: f64 = 1e9;
/// The least number of requests in a row for the finding that they could be one: for requests made on behalf of others, for commands (such
/// as those of databases), and for others.
const IN_A_ROW: [u64; 3] = [4, 10, 50];

pub(crate) fn request_loss(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Loss, LEAST_NETWORK_NS)?;
    let sum = |of: fn(&TracedRequest) -> i64| -> i64 { worst.costs.requests.iter().map(of).sum() };
    let (there, back) = (
        sum(|request| request.network.again_there),
        sum(|request| request.network.again_back),
    );
    let again = there + back;
    let (client, server) = worst.place.split_once(" > ").unwrap_or((worst.place, ""));
    let between = match (there, back) {
        (_, 0) => worst.between(),
        (0, _) => place_in_words(&format!("{server} > {client}")),
        _ => format!("between {client} and {server}"),
    };
    let were = if again == 1 { "was" } else { "were" };
    let drops = Drops::from_log(log, &worst.messages(log));
    let place = drops
        .as_ref()
        .map_or_else(String::new, |drops| format!("; {}", drops.words(log)));
    let sentence = format!(
        "packets {between} are lost: {again} {were} retransmitted, and waiting for them takes {}{place}",
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    if let Some(drops) = drops {
        return Some(found.because(drops.evidence(log)));
    }
    Some(found.attempt("find out where they are lost: `stackline watch` on both hosts, `net show` for an emulated network"))
}

pub(crate) fn request_window(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Window, LEAST_NETWORK_NS)?;
    let sentence = format!(
        "the receive buffer of {} is full: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.9, sentence);
    Some(found.attempt("make it read sooner, or give its socket a larger receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem)"))
}

pub(crate) fn request_slow_start(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::SlowStart, LEAST_NETWORK_NS)?;
    let sentence = format!(
        "long messages {} start on new connections, whose congestion windows begin at ten segments and double each round trip: {}",
        worst.sender_in_words(),
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.85, sentence);
    Some(
        found
            .attempt("keep connections open and reuse them")
            .attempt(
                "a larger initial window at the sender (`initcwnd` of `ip route`), or fewer bytes",
            ),
    )
}

pub(crate) fn request_rate(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Rate, LEAST_NETWORK_NS)?;
    // Within a host nothing limits the rate but its processors.
    if worst.is_within_a_host() && worst.each() < WITHIN_LEAST {
        return None;
    }
    let rate = LongTransfers::find_in(&worst).rate_bit_s();
    if worst.is_within_a_host() && rate.is_some_and(|rate| rate >= WITHIN_BIT_S) {
        return None;
    }
    let slowest = Slowest::from_log(log, &worst.messages(log).of_length(LARGE));
    // Nothing goes faster than the slowest link of its path.
    let rate = slowest
        .as_ref()
        .map_or(rate, |slowest| rate.map(|rate| rate.min(slowest.bit_s())));
    let speed = rate.map_or_else(
        || "take long to transfer".to_owned(),
        |rate| format!("are transferred at {}", units::format_rate(rate)),
    );
    let link = slowest
        .as_ref()
        .map_or_else(String::new, |slowest| format!("; {}", slowest.words()));
    let is_full = slowest.as_ref().is_none_or(Slowest::is_full);
    // Where no link was recorded, losses may be what keeps the sender's window small.
    let is_lossy = slowest.is_none() && worst.costs.of_cause(RequestCause::Loss) > 0;
    let why = if is_lossy {
        "; either the path can carry no more, or losses keep the sender's window small"
    } else if is_full {
        ""
    } else {
        ", so no link limits them: the sender holds back (a small window at the beginning or after losses, or no more data to send)"
    };
    let sentence = format!(
        "long messages {} {speed}: {}{link}{why}",
        worst.sender_in_words(),
        worst.time_in_words()
    );
    let mut found = report_request_cause(
        kind,
        log,
        &worst,
        if is_full && !is_lossy { 0.85 } else { 0.6 },
        sentence,
    );
    found
        .evidence
        .extend(slowest.map(|slowest| slowest.evidence(log)));
    Some(found.attempt(if is_full {
        "send less (compress, or request only parts), or use a faster path"
    } else {
        "keep connections open to avoid slow start; check whether the sender is slow to read the data it sends, for example from a disk"
    }))
}

pub(crate) fn request_queue(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Queue, LEAST_NETWORK_NS)?;
    let (each, share) = (format_ns(worst.each()), percent(worst.share));
    let Some(queue) = ContendedQueue::from_log(log, &worst.messages(log)) else {
        let sentence = format!(
            "messages {} take {each} longer on the network than the fastest: {share} of the time; they wait in queues, or are lost",
            worst.between_both()
        );
        let found = report_request_cause(kind, log, &worst, 0.8, sentence);
        return Some(found.attempt(
            "check what else fills the path; shorter queues (fq_codel) keep waits short",
        ));
    };
    let whose = queue
        .words(log)
        .map_or_else(String::new, |whose| format!(": {whose}"));
    let sentence = format!(
        "messages {} wait in queues before {}, {each} each, {share} of the time{whose}",
        worst.between_both(),
        queue.port
    );
    let found =
        report_request_cause(kind, log, &worst, 0.95, sentence).because(queue.evidence(log));
    let less = format!(
        "a shorter queue before {}, or one that separates connections (fq_codel)",
        queue.port
    );
    Some(
        found
            .attempt(less)
            .attempt("reduce or pace the traffic that fills that queue"),
    )
}

pub(crate) fn chatty(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let mut worst = find_worst_place(log, RequestCause::Distance, LEAST_NETWORK_NS)?;
    let rows = RequestRows::from_costs(worst.costs, worst.place);
    let (in_a_row, least) = (rows.longest, row_of_a_habit(&worst));
    // Of each row one round trip remains, and requests that stand alone keep theirs.
    let saved = worst.cost.ns as f64 * to_f64(rows.followers) / to_f64(worst.cost.requests.max(1));
    worst.removable_ns = (saved as i64).min(worst.cost.ns);
    if in_a_row < least || worst.share < 0.3 {
        return None;
    }
    let trips = usual_round_trips(&worst);
    let trips_each = match trips {
        1 => String::new(),
        trips => format!(" ({trips} round trips)"),
    };
    let sentence = format!(
        "up to {in_a_row} requests {} are sent one after another; each spends {} on the network{trips_each}: {} of the time",
        worst.between(),
        format_ns(worst.each()),
        percent(worst.share)
    );
    let confidence = if worst.cost.nested > 0 { 0.9 } else { 0.8 };
    let found = report_request_cause(kind, log, &worst, confidence, sentence);
    let found = found.attempt(format!(
        "ask for everything in one request, or send without waiting for each answer: {} round trips become {}",
        in_a_row * trips,
        if trips == 1 { "one".to_owned() } else { trips.to_string() }
    ));
    Some(if trips > 1 {
        found.attempt(ONE_TRIP)
    } else {
        found
    })
}

/// The advice to make one round trip of several.
const ONE_TRIP: &str = "make the driver send each statement in one step, or prepare it once and reuse it: one round trip each";

/// The median number of round trips of the requests that have most of a cost.
fn usual_round_trips(worst: &Worst<'_>) -> u64 {
    let rows: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let mut trips: Vec<i64> = worst
        .costs
        .requests
        .iter()
        .filter(|request| rows.contains(&request.row))
        .filter_map(|request| request.times)
        .map(|times| times.trips())
        .collect();
    trips.sort_unstable();
    trips
        .get(trips.len() / 2)
        .map_or(1, |trips| trips.unsigned_abs())
}

/// The finding about single requests that take several round trips, unless there is one about many requests in a row.
pub(crate) fn round_trips(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_further_trips(log)?;
    if chatty(kind, log).is_some() {
        return None;
    }
    let which = slowest_name(&worst).map_or_else(String::new, |name| format!(" for {name}"));
    let sentence = format!(
        "requests {} take {} round trips each{which}; those after the first take {}",
        worst.between(),
        usual_round_trips(&worst),
        worst.time_in_words()
    );
    Some(report_request_cause(kind, log, &worst, 0.9, sentence).attempt(ONE_TRIP))
}

/// With at least this network time per request, few requests in a row are noticed, ns.
const FAR_NS: f64 = 5e7;
/// The least number of requests in a row for a finding then.
const FAR_IN_A_ROW: u64 = 4;

/// The least number of requests in a row for a finding at that place.
fn row_of_a_habit(worst: &Worst<'_>) -> u64 {
    let is_command = |request: &&TracedRequest| {
        !request.protocol.starts_with("HTTP") && request.protocol != "gRPC"
    };
    let of_place = || {
        worst
            .costs
            .requests
            .iter()
            .filter(|request| format_client_server(request) == worst.place)
    };
    let kind = match worst.cost.nested > 0 {
        true => 0,
        false => {
            if of_place().all(|request| is_command(&request)) {
                1
            } else {
                2
            }
        }
    };
    let is_far = worst.each() >= FAR_NS;
    IN_A_ROW[kind].min(if is_far { FAR_IN_A_ROW } else { u64::MAX })
}

/// Rows of requests between two hosts: each begins right after the one before it ended, on behalf of the same parent.
#[derive(Clone, Copy, Debug, Default)]
struct RequestRows {
    /// The number of requests in the longest row.
    longest: u64,
    /// The number of requests that are not the first of their row.
    followers: u64,
}

impl RequestRows {
    fn from_costs(costs: &RequestCosts, place: &str) -> Self {
        let mut of_place: Vec<&TracedRequest> = costs
            .requests
            .iter()
            .filter(|request| request.is_call && format_client_server(request) == place)
            .collect();
        of_place.sort_by_key(|request| {
            (
                request.parent,
                request.programs.0.clone(),
                request.begin_ns(),
            )
        });
        let (mut rows, mut row) = (Self::default(), 0_u64);
        for (before, request) in of_place.iter().zip(of_place.iter().skip(1)) {
            let gap = request.begin_ns() as i64 - before.end_ns as i64;
            let network_ns = request.times.map_or(0, |times| {
                let unseen = times
                    .round_trip
                    .filter(|_| times.is_of_client || times.is_of_server);
                let unseen = unseen.unwrap_or(0).saturating_mul(times.trips());
                times.there + times.back + times.connect + unseen
            });
            let follows =
                before.parent == request.parent && gap >= 0 && gap <= network_ns.max(1_000_000);
            row = if follows { row + 1 } else { 0 };
            rows.followers += u64::from(follows);
            rows.longest = rows.longest.max(row + 1);
        }
        rows
    }
}

pub(crate) fn held(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::Held, LEAST_NETWORK_NS)?;
    let sentence = format!(
        "Nagle's algorithm at {} holds back the end of messages until the data before it is acknowledged: {}",
        worst.place,
        worst.time_in_words()
    );
    let found = report_request_cause(kind, log, &worst, 0.95, sentence);
    Some(found.attempt("set TCP_NODELAY, or write each message in one call"))
}
