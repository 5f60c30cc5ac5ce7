//! Kinds of findings about requests of programs that are not ours: each is one cause of [`super::request_costs`], with what it takes,
//! of how many requests, and what the whole would take without it.

use super::finding::{Evidence, Finding, LEAST, Takes, counted, percent};
use super::kind::{Find, Kind};
use super::log::Log;
use super::observed::time;
use super::request_costs::{Cause, Cost, Costs, client_name, most_at_once, server_name};
use super::request_network::Messages;
use super::requests::Request;
use crate::statistics::real;

mod ends;
mod set_up;
mod way;

use ends::{
    client_late, one_at_a_time, server_away, server_child, server_collects, server_computes, server_disk, server_lock,
    server_no_core, server_sleeps, server_stopped, server_takes,
};
use set_up::{backs_off, connection_each, handshake_each, lost_connect, slow_lookup, unanswered};
use way::{chatty, held, request_loss, request_queue, request_rate, request_window};

/// A server's time below this, a request, is not worth a finding, ns.
const SERVER_LEAST: f64 = 1e6;
/// The same of the way.
const WAY_LEAST: f64 = 5e5;

/// The kinds, in the order of the table, and what finds each.
macro_rules! kinds {
    ($($constant:ident $name:literal $meaning:literal $find:ident)*) => {
        $(pub(super) const $constant: Kind = Kind { name: $name, meaning: $meaning, find: &[Find::Run($find)] };)*
        const FINDS: &[fn(&Log<'_>) -> Option<Finding>] = &[$($find),*];
    };
}

kinds! {
    UNANSWERED "unanswered_requests" "of requests that were traced: nothing answered them until the client gave up" unanswered
    BACKS_OFF "client_backs_off" "of requests that were traced: the client waits between an attempt that failed and the next" backs_off
    SLOW_LOOKUP "slow_lookup" "of requests that were traced: the server's address is asked for, and the answer is late" slow_lookup
    LOST_CONNECT "lost_connect" "of requests that were traced: the first packet of a connection was lost and sent again" lost_connect
    CONNECTION_EACH "connection_per_request" "of requests that were traced: each has a connection of its own" connection_each
    HANDSHAKE_EACH "handshake_per_request" "of requests that were traced: security is set up for each, or takes long" handshake_each
    REQUEST_LOSS "request_loss" "of requests that were traced: packets of them were lost and sent again" request_loss
    REQUEST_WINDOW "request_window" "of requests that were traced: the receiver of a message had no room for more of it" request_window
    REQUEST_RATE "request_rate" "of requests that were traced: long messages take as long as the way's rate lets them" request_rate
    REQUEST_QUEUE "request_queue" "of requests that were traced: short messages take longer than the quickest of them" request_queue
    ONE_AT_A_TIME "server_one_at_a_time" "of requests that were traced: they wait unread while the server works on others" one_at_a_time
    SERVER_AWAY "server_away" "of requests that were traced: they wait unread though the server works on nothing" server_away
    SERVER_COMPUTES "server_computes" "of requests that were traced: the server's thread computes" server_computes
    SERVER_NO_CORE "server_no_core" "of requests that were traced: the server's thread could run and had no core" server_no_core
    SERVER_LOCK "server_lock" "of requests that were traced: the server's thread waits for a lock" server_lock
    SERVER_DISK "server_disk" "of requests that were traced: the server's thread waits for a disk" server_disk
    SERVER_SLEEPS "server_sleeps" "of requests that were traced: the server's thread sleeps" server_sleeps
    SERVER_CHILD "server_child" "of requests that were traced: the server waits for a process that it started" server_child
    SERVER_STOPPED "server_stopped" "of requests that were traced: the server's thread was stopped" server_stopped
    SERVER_COLLECTS "server_collects" "of requests that were traced: the server is held up while it collects garbage" server_collects
    SERVER_TAKES "server_takes" "of requests that were traced: the server takes the time; what with is not known" server_takes
    CHATTY "chatty_requests" "of requests that were traced: many short ones, one after the other, each a round trip" chatty
    CLIENT_LATE "client_reads_late" "of requests that were traced: the answer is there and the client does not read it" client_late
    REQUEST_HELD "request_held" "of requests that were traced: Nagle's algorithm waits for a delayed acknowledgement" held
}

/// The cost of a cause at its worst place.
struct Worst<'c> {
    costs: &'c Costs,
    cause: Cause,
    place: &'c str,
    cost: &'c Cost,
    share: f64,
}

impl Worst<'_> {
    /// Of each request that has a part of it worth a word, ns.
    fn each(&self) -> f64 {
        self.cost.of_most().1
    }

    /// Of each request that has any of it, ns.
    fn mean(&self) -> f64 {
        self.cost.ns as f64 / real(self.cost.requests.max(1))
    }

    fn takes(&self) -> Takes {
        Takes {
            requests: self.cost.of_most().0,
            of_requests: self.calls(),
            total_s: self.cost.ns as f64 / 1e9,
            each_s: self.each() / 1e9,
            of_s: self.costs.total_ns as f64 / 1e9,
        }
    }

    fn calls(&self) -> u64 {
        self.costs.requests.iter().filter(|request| request.is_call).count() as u64
    }

    fn of_all(&self) -> String {
        let all = self.calls();
        let elsewhere = self.costs.of_cause(self.cause) - self.cost.ns;
        let more = match elsewhere > self.cost.ns / 20 {
            true => format!("; the same elsewhere, {} in all", time(elsewhere as f64)),
            false => String::new(),
        };
        format!("{} of {} requests, {} each{more}", self.cost.of_most().0, all, time(self.each()))
    }

    /// What those of its requests said and were answered that have most of it.
    fn messages(&self, log: &Log<'_>) -> Messages {
        let units = self.cost.rows.iter().filter_map(|(_, row)| log.number(*row, "unit")).collect();
        Messages::of(log, &units)
    }

    /// Whether who asks and who answers are on one host.
    fn is_within_a_host(&self) -> bool {
        self.place.split_once(" > ").is_some_and(|(client, server)| client == server)
    }

    /// Most at once of its server.
    fn at_once(&self) -> usize {
        most_at_once(&self.costs.requests, self.place)
    }
}

fn worst<'c>(log: &'c Log<'_>, cause: Cause, least: f64) -> Option<Worst<'c>> {
    let costs = log.costs()?;
    let of_cause = costs.costs.iter().filter(|((of, _), _)| *of == cause);
    let ((_, place), cost) = of_cause.max_by_key(|(_, cost)| cost.ns)?;
    let share = cost.ns as f64 / costs.total_ns.max(1) as f64;
    let worst = Worst { costs, cause, place, cost, share };
    // What is not ten times as long as it takes to look at it is not attributed.
    let least = least.max(10.0 * costs.observer_ns as f64);
    (share >= LEAST && worst.mean() >= least).then_some(worst)
}

/// A finding of a cause: what it takes, of which requests, and what would be left.
fn found(kind: &Kind, log: &Log<'_>, worst: &Worst<'_>, confidence: f64, sentence: String) -> Finding {
    let costs = worst.costs;
    let mut rows = worst.cost.rows.clone();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).take(12).collect();
    let left = (1.0 - worst.share) * costs.total_ns as f64;
    let without = format!(
        "without it the requests would take {} instead of {}, all times added up",
        time(left),
        time(costs.total_ns as f64)
    );
    let doubt = if costs.requests.iter().all(|request| request.exact) { 1.0 } else { 0.9 };
    let those = log.evidence(worst.of_all(), &rows);
    let (from_ns, to_ns) = (those.from_ns, those.to_ns);
    let found = kind.of_run(worst.share.min(1.0), confidence * doubt, sentence);
    let found = Finding { takes: Some(worst.takes()), ..found };
    found.because(those).because(Evidence { what: without, from_ns, to_ns, ..Evidence::default() })
}

fn pair(request: &Request) -> String {
    format!("{} > {}", request.client, request.server)
}

/// What is said of requests that nothing limits.
pub(super) fn healthy(kind: &Kind, log: &Log<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    if costs.roots == 0 || FINDS.iter().any(|find| find(log).is_some()) {
        return None;
    }
    let way = [Cause::Distance, Cause::Connect, Cause::Handshake, Cause::Lookup]
        .map(|cause| costs.of_cause(cause))
        .iter()
        .sum::<i64>();
    let share = way as f64 / costs.total_ns.max(1) as f64;
    let each = costs.total_ns as f64 / real(costs.roots.max(1));
    let of_way = if share >= LEAST { format!(", of which {} is their way", percent(share)) } else { String::new() };
    let looked = costs.of_cause(Cause::Observer) as f64 / costs.total_ns.max(1) as f64;
    let of_way = match looked >= LEAST {
        true => format!("{of_way}; for {} they waited for cores that whoever looks had", percent(looked)),
        false => of_way,
    };
    let sentence = format!(
        "nothing that could be changed holds {} up: {} each{of_way}",
        counted(costs.roots, "request"),
        time(each)
    );
    let longest = |request: &&Request| request.times.map_or(0, |times| times.total);
    let roots = || costs.requests.iter().filter(|request| request.is_call && request.parent.is_none());
    let busiest = roots().map(|request| request.row).take(12).collect::<Vec<_>>();
    let between = roots()
        .max_by_key(longest)
        .map_or_else(String::new, |one| format!("{} > {}", client_name(one), server_name(one)));
    Some(kind.of_run(0.0, 0.9, sentence).because(log.evidence(between, &busiest)))
}
