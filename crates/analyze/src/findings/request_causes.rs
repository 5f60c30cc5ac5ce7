//! Kinds of findings about requests of programs that are not ours: each is one cause of [`super::request_costs`], with what it takes,
//! of how many requests, and what the whole would take without it.

use super::attempts::{Retry, failure};
use super::finding::{Evidence, Finding, LEAST, Takes, counted, percent};
use super::kind::{Find, Kind};
use super::log::Log;
use super::observed::time;
use super::request_costs::{Cause, Cost, Costs, LARGE, client_name, most_at_once, server_name};
use super::request_network::{Drops, Messages, Queue, Slowest};
use super::requests::Request;
use crate::statistics::real;
use stackline_core::units;
use std::collections::BTreeSet;

/// A server's time below this, a request, is not worth a finding, ns.
const SERVER_LEAST: f64 = 1e6;
/// The same of the way.
const WAY_LEAST: f64 = 5e5;
/// The same of the way within a host.
const WITHIN_LEAST: f64 = 1e7;
/// From so many requests on a habit is one.
const HABIT: u64 = 3;
/// Requests in a row of which it is worth to say that they could be one: of those made for another one, of commands of a database, of
/// others.
const IN_A_ROW: [u64; 3] = [4, 10, 50];

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
    /// Of each request that has it, ns.
    fn each(&self) -> f64 {
        self.cost.ns as f64 / real(self.cost.requests.max(1))
    }

    fn takes(&self) -> Takes {
        Takes {
            requests: self.cost.requests,
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
        format!("{} of {} requests, {} each{more}", self.cost.requests, all, time(self.each()))
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
    (share >= LEAST && worst.each() >= least).then_some(worst)
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

fn unanswered(log: &Log<'_>) -> Option<Finding> {
    given_up(log).or_else(|| cut_off(log))
}

/// Those that the client gave up, by the time that it waited for them.
fn given_up(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::GivenUp, WAY_LEAST)?;
    let of_place = |request: &&Request| (request.is_call || request.is_unopened) && pair(request) == worst.place;
    let all = worst.costs.requests.iter().filter(of_place).count() as u64;
    let requests = &worst.costs.requests;
    let is_again =
        |retry: &&Retry| requests[retry.failed].unknown.is_some() && pair(&requests[retry.failed]) == worst.place;
    let again = worst.costs.retries.iter().filter(is_again).count() as u64;
    let none = worst.cost.requests;
    if !is_habit(none, all) && again == 0 {
        return None;
    }
    let then = if again > 0 { format!(", and asks again {again} times") } else { String::new() };
    let sentence = format!(
        "{none} of {all} attempts {} get no answer, the client gives up after {} each{then}: {} of the time",
        worst.place,
        time(worst.each()),
        percent(worst.share)
    );
    let found = found(&UNANSWERED, log, &worst, 0.95, sentence);
    Some(
        found.attempt("see whether the server is up and what it does for so long").attempt(
            "let the client wait for longer than the server takes: it works on what nobody waits for any more",
        ),
    )
}

/// Those of which it is not known how long the client would have waited.
fn cut_off(log: &Log<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    let (none, all) = (costs.unanswered.len() as u64, costs.unanswered.len() as u64 + costs.roots);
    let share = real(none) / real(all.max(1));
    (share >= LEAST && is_habit(none, all)).then(|| {
        let sentence = format!("{none} of {all} requests got no answer");
        let evidence =
            log.evidence("the last of them went unanswered until their connection ended".into(), &costs.unanswered);
        UNANSWERED
            .of_run(share, 0.9, sentence)
            .because(evidence)
            .attempt("see whether the server is up, and what it logs")
    })
}

/// So many of so many are worth a word.
const fn is_habit(some: u64, all: u64) -> bool {
    some >= HABIT || some * 2 >= all
}

fn backs_off(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::BackOff, WAY_LEAST)?;
    let requests = &worst.costs.requests;
    let rows: BTreeSet<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let failures: BTreeSet<&str> =
        requests.iter().filter(|request| rows.contains(&request.row)).filter_map(failure).collect();
    let longest = worst.cost.rows.iter().map(|(ns, _)| *ns).max().unwrap_or(0);
    let sentence = format!(
        "{} waits after attempts that failed ({}) before it asks again: {} of the time, {} times, {} each, {} at most",
        worst.place,
        failures.into_iter().collect::<Vec<_>>().join(", "),
        percent(worst.share),
        worst.cost.requests,
        time(worst.each()),
        time(longest as f64)
    );
    let found = found(&BACKS_OFF, log, &worst, 0.9, sentence);
    Some(found.attempt("see why the attempts fail").attempt("a back-off that begins shorter, or has a limit"))
}

fn slow_lookup(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Lookup, WAY_LEAST)?;
    let again: Vec<&Request> = worst
        .costs
        .requests
        .iter()
        .filter(|request| request.protocol == "DNS" && request.network.again_there > 0)
        .collect();
    let why = match again.first() {
        Some(asked) => format!("; {} was asked after again, as no answer came", asked.name),
        None => String::new(),
    };
    let sentence = format!(
        "{} asks after the server's address for {} of the time, {} each{why}",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&SLOW_LOOKUP, log, &worst, 0.95, sentence);
    Some(found.attempt("ask a name server that answers sooner, keep answers, or put the address into /etc/hosts"))
}

fn lost_connect(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::ConnectLost, WAY_LEAST)?;
    let sentence = format!(
        "the first packets of connections {} are lost and sent again: {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&LOST_CONNECT, log, &worst, 0.95, sentence);
    Some(found.attempt("see whether the server's queue of connections is full (`nstat -az TcpExtListenDrops`), or the way loses packets"))
}

fn connection_each(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Connect, WAY_LEAST / 10.0)?;
    let of_place = || worst.costs.requests.iter().filter(|request| request.is_call && pair(request) == worst.place);
    let all = of_place().count() as u64;
    let own = of_place().filter(|request| request.times.is_some_and(|times| times.has_connect)).count() as u64;
    if own < HABIT || own * 5 < all * 4 {
        return None;
    }
    let sentence = format!(
        "{own} of {all} requests {} have a connection of their own: setting it up takes {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&CONNECTION_EACH, log, &worst, 0.95, sentence);
    Some(found.attempt("keep connections open (keep-alive, a pool)"))
}

fn handshake_each(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Handshake, WAY_LEAST / 10.0)?;
    let of_place = || worst.costs.requests.iter().filter(|request| request.is_call && pair(request) == worst.place);
    let (all, own) = (
        of_place().count() as u64,
        of_place().filter(|request| request.times.is_some_and(|t| t.has_handshake)).count() as u64,
    );
    let trip = of_place().filter_map(|request| request.times?.round_trip).min().unwrap_or(0);
    let is_slow = worst.each() > 3.0 * trip as f64 + 2e7;
    if (own < HABIT || own * 5 < all * 4) && !is_slow {
        return None;
    }
    let what = if is_slow { "is slow" } else { "is made for each request" };
    let sentence = format!(
        "the set-up of security or of a login {} {what}: {} of the time, {} each, round trips of {}",
        worst.place,
        percent(worst.share),
        time(worst.each()),
        time(trip as f64)
    );
    let found = found(&HANDSHAKE_EACH, log, &worst, 0.95, sentence);
    Some(found.attempt(if is_slow {
        "see what the server computes for it: the length of its key, password hashes"
    } else {
        "keep connections open, or resume sessions"
    }))
}

fn pair(request: &Request) -> String {
    format!("{} > {}", request.client, request.server)
}

fn request_loss(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Loss, WAY_LEAST)?;
    let again: i64 =
        worst.costs.requests.iter().map(|request| request.network.again_there + request.network.again_back).sum();
    let drops = Drops::of(log, &worst.messages(log));
    let place = drops.as_ref().map_or_else(String::new, |drops| format!("; {}", drops.words(log)));
    let sentence = format!(
        "packets {} are lost: {again} were sent again, and waiting for them takes {} of the time, {} each{place}",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&REQUEST_LOSS, log, &worst, 0.95, sentence);
    if let Some(drops) = drops {
        return Some(found.because(drops.evidence(log)));
    }
    Some(found.attempt("find where they are lost: `stackline watch` on both hosts, `net show` of an emulated network"))
}

fn request_window(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Window, WAY_LEAST)?;
    let late = worst.costs.of_cause(Cause::SlowReader) as f64 / worst.costs.total_ns.max(1) as f64;
    let why = if late > LEAST { "; it reads late" } else { "" };
    let sentence = format!(
        "{} had no room for what was sent to it for {} of the time, {} each{why}",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&REQUEST_WINDOW, log, &worst, 0.9, sentence);
    Some(found.attempt("let it read sooner, or give its socket a larger receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem)"))
}

fn request_rate(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Rate, WAY_LEAST)?;
    // Within a host nothing limits the rate but its processors.
    if worst.is_within_a_host() && worst.each() < WITHIN_LEAST {
        return None;
    }
    let of_place = worst.costs.requests.iter().filter(|request| pair(request) == worst.place);
    let bytes: i64 = of_place.map(|request| request.bytes.0.max(request.bytes.1)).sum();
    let rate = bytes as f64 * 8e9 / (worst.cost.ns.max(1) as f64);
    let slowest = Slowest::of(log, &worst.messages(log).of_length(LARGE));
    let link = slowest.as_ref().map_or_else(String::new, |slowest| format!("; {}", slowest.words()));
    let is_full = slowest.as_ref().is_none_or(Slowest::is_full);
    let why = if is_full {
        ""
    } else {
        ": no link limits them, the sender holds back (its window at the beginning or after losses, or it has no more at hand)"
    };
    let sentence = format!(
        "long messages {} travel at {}: {} of the time, {} each{link}{why}",
        worst.place,
        units::rate(rate),
        percent(worst.share),
        time(worst.each())
    );
    let mut found = found(&REQUEST_RATE, log, &worst, if is_full { 0.85 } else { 0.6 }, sentence);
    found.evidence.extend(slowest.map(|slowest| slowest.evidence(log)));
    Some(found.attempt(if is_full {
        "send less (compress, ask for parts), or use a faster way"
    } else {
        "keep connections open, so that they need not begin slowly; see how the sender reads what it sends"
    }))
}

fn request_queue(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Queue, WAY_LEAST)?;
    let (each, share) = (time(worst.each()), percent(worst.share));
    let Some(queue) = Queue::of(log, &worst.messages(log)) else {
        let sentence = format!(
            "messages {} take {each} longer on their way than the quickest: {share} of the time; they wait in queues of the network, or are lost on it",
            worst.place
        );
        let found = found(&REQUEST_QUEUE, log, &worst, 0.8, sentence);
        return Some(found.attempt("see what else fills the way; shorter queues (fq_codel) keep waits short"));
    };
    let whose = queue.words(log).map_or_else(String::new, |whose| format!(": {whose}"));
    let sentence =
        format!("messages {} wait {each} in queues: {share} of the time, before {}{whose}", worst.place, queue.port);
    let found = found(&REQUEST_QUEUE, log, &worst, 0.95, sentence).because(queue.evidence(log));
    let less = format!("a shorter queue before {}, or one that parts connections (fq_codel)", queue.port);
    Some(found.attempt(less).attempt("send less of what fills it, or pace it"))
}

fn one_at_a_time(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Queued, SERVER_LEAST)?;
    let at_once = worst.at_once();
    let sentence = format!(
        "requests wait unread at {} while it works on others, {at_once} at a time: {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&ONE_AT_A_TIME, log, &worst, if at_once <= 2 { 0.95 } else { 0.85 }, sentence);
    Some(found.attempt("give it more workers, or make each request shorter"))
}

fn server_away(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Away, SERVER_LEAST)?;
    let sentence = format!(
        "requests wait unread at {} though it works on no other: {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&SERVER_AWAY, log, &worst, 0.8, sentence);
    Some(found.attempt("see what it does meanwhile: collects garbage, is stopped, accepts connections late, works on what was not traced"))
}

fn of_server(kind: &Kind, log: &Log<'_>, cause: Cause, does: &str, confidence: f64, attempt: &str) -> Option<Finding> {
    let worst = worst(log, cause, SERVER_LEAST)?;
    let which = slowest_name(&worst).map_or_else(String::new, |name| format!(" for {name}"));
    let sentence =
        format!("{} {does}{which}: {} of the time, {} each", worst.place, percent(worst.share), time(worst.each()));
    Some(found(kind, log, &worst, confidence, sentence).attempt(attempt))
}

/// What the requests that cost most ask for, where that is one name.
fn slowest_name(worst: &Worst<'_>) -> Option<String> {
    let named =
        |row: &u32| worst.costs.requests.iter().find(|request| request.row == *row).map(|request| request.name.clone());
    let rows: Vec<u32> = worst.cost.rows.iter().map(|(_, row)| *row).collect();
    let first = rows.first().and_then(named).filter(|name| !name.is_empty())?;
    rows.iter().all(|row| named(row).as_ref() == Some(&first)).then_some(first)
}

fn server_computes(log: &Log<'_>) -> Option<Finding> {
    of_server(
        &SERVER_COMPUTES,
        log,
        Cause::Compute,
        "computes",
        0.95,
        "profile it, keep results, or give it a faster core",
    )
}

fn server_no_core(log: &Log<'_>) -> Option<Finding> {
    of_server(
        &SERVER_NO_CORE,
        log,
        Cause::NoCore,
        "could run and has no core",
        0.95,
        "give it cores of its own: others use them",
    )
}

fn server_lock(log: &Log<'_>) -> Option<Finding> {
    of_server(&SERVER_LOCK, log, Cause::Lock, "waits for a lock", 0.9, "hold the lock for less, or have several")
}

fn server_disk(log: &Log<'_>) -> Option<Finding> {
    let attempt =
        "see whether it must write through (fsync) for each, keep what it reads in memory, or use a faster disk";
    of_server(&SERVER_DISK, log, Cause::Disk, "waits for its disk", 0.95, attempt)
}

fn server_sleeps(log: &Log<'_>) -> Option<Finding> {
    of_server(
        &SERVER_SLEEPS,
        log,
        Cause::Sleep,
        "sleeps",
        0.95,
        "find the timer: a back-off, a poll, a limit of its rate",
    )
}

fn server_child(log: &Log<'_>) -> Option<Finding> {
    let does = "waits for a process that it started";
    of_server(
        &SERVER_CHILD,
        log,
        Cause::ChildProcess,
        does,
        0.9,
        "start it once and keep it, or do its work within the server",
    )
}

fn server_stopped(log: &Log<'_>) -> Option<Finding> {
    of_server(
        &SERVER_STOPPED,
        log,
        Cause::Stopped,
        "was stopped",
        0.95,
        "see who stops it: a signal, a debugger, a freezer",
    )
}

fn server_collects(log: &Log<'_>) -> Option<Finding> {
    of_server(
        &SERVER_COLLECTS,
        log,
        Cause::Collect,
        "is held up while it collects garbage",
        0.95,
        "give it more memory, make less garbage, or choose a collector that does not stop it",
    )
}

fn server_takes(log: &Log<'_>) -> Option<Finding> {
    let knows = log.costs()?.requests.iter().any(|request| request.work.is_some());
    let (does, confidence, attempt) = match knows {
        true => (
            "waits for something that was not seen",
            0.8,
            "see what it waits for: what it asks over Unix sockets or of hosts that were not traced, a pipe, a thread of its own",
        ),
        false => (
            "takes its time, what with packets do not show",
            0.9,
            "run `stackline trace` on the server's machine, as root: its threads show what it does",
        ),
    };
    of_server(&SERVER_TAKES, log, Cause::Server, does, confidence, attempt)
}

fn chatty(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Distance, WAY_LEAST)?;
    let (in_a_row, least) = (longest_row(worst.costs, worst.place), row_of_a_habit(&worst));
    if in_a_row < least || worst.share < 0.3 {
        return None;
    }
    let sentence = format!(
        "up to {in_a_row} requests {} go one after the other, each waits {} for its way: {} of the time",
        worst.place,
        time(worst.each()),
        percent(worst.share)
    );
    let confidence = if worst.cost.nested > 0 { 0.9 } else { 0.8 };
    let found = found(&CHATTY, log, &worst, confidence, sentence);
    Some(found.attempt(format!(
        "ask for all in one request, or do not wait for each answer: {in_a_row} round trips become one"
    )))
}

/// From how many requests in a row on they are worth a word.
fn row_of_a_habit(worst: &Worst<'_>) -> u64 {
    let is_command = |request: &&Request| !request.protocol.starts_with("HTTP") && request.protocol != "gRPC";
    let of_place = || worst.costs.requests.iter().filter(|request| pair(request) == worst.place);
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
    IN_A_ROW[kind]
}

/// The longest row of requests between two hosts each of which begins right behind the one before, with one parent.
fn longest_row(costs: &Costs, place: &str) -> u64 {
    let mut of_place: Vec<&Request> =
        costs.requests.iter().filter(|request| request.is_call && pair(request) == place).collect();
    of_place.sort_by_key(|request| (request.parent, request.programs.0.clone(), request.begin_ns()));
    let (mut longest, mut row) = (0, 0_u64);
    for (before, request) in of_place.iter().zip(of_place.iter().skip(1)) {
        let gap = request.begin_ns() as i64 - before.end_ns as i64;
        let way = request.times.map_or(0, |times| times.there + times.back + times.connect);
        let follows = before.parent == request.parent && gap >= 0 && gap <= way.max(1_000_000);
        row = if follows { row + 1 } else { 0 };
        longest = longest.max(row + 1);
    }
    longest
}

fn client_late(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::SlowReader, SERVER_LEAST)?;
    let sentence = format!(
        "answers wait unread at {}: {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&CLIENT_LATE, log, &worst, 0.9, sentence);
    Some(found.attempt("see what the client does meanwhile; read in a thread of its own"))
}

fn held(log: &Log<'_>) -> Option<Finding> {
    let worst = worst(log, Cause::Held, WAY_LEAST)?;
    let sentence = format!(
        "Nagle's algorithm at {} holds the end of messages back until what is before it is acknowledged: {} of the time, {} each",
        worst.place,
        percent(worst.share),
        time(worst.each())
    );
    let found = found(&REQUEST_HELD, log, &worst, 0.95, sentence);
    Some(found.attempt("set TCP_NODELAY, or write each message with one call"))
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
