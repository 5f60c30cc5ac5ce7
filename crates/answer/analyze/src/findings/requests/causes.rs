//! Kinds of findings about requests of traced programs. Most are one cause of [`super::costs`] each: the time that it takes, the number of
//! requests, and what all requests would take without it.

use crate::findings::environment::lost_events::LostEventCount;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, counted, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::costs::{
    PlacelessTaker, RequestCause, RequestCosts, client_name, server_name,
};
use crate::findings::requests::request::TracedRequest;
use crate::statistics::to_f64;

/// If at least this share of the trace's packets and records was lost, the finding that nothing limits is less certain.
const LOST_LEAST: f64 = 0.01;
/// The minimum retransmission timeout, ns (RFC 6298; Linux: 200 ms): no sender retransmits sooner if no later packet shows the loss.
const TIME_OUT_NS: i64 = 200_000_000;

mod broker_causes;
mod client_causes;
mod failures;
mod lock_holders;
mod message_causes;
mod order_causes;
pub(crate) mod program_ends;
mod sender_window;
mod server_causes;
mod set_up;
mod transit_causes;

/// Declares the kinds in the order of the table: constant, name, meaning, module and function that finds it.
macro_rules! kinds {
    ($($constant:ident $name:literal $meaning:literal $room:ident $find:ident)*) => {
        $(pub(crate) const $constant: FindingKind = FindingKind { name: $name, meaning: $meaning, find: &[Find::Run(|log| $room::$find(&$constant, log))] };)*
        /// Their names.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];
        const FINDS: &[fn(&FindingEventLog<'_>) -> Option<Finding>] = &[$(|log| $room::$find(&$constant, log)),*];
    };
}

kinds! {
    PROGRAM_ENDED "program_ended" "in a trace: a program that should have gone on serving ended by itself, or the traced program crashed" program_ends program_ended
    UNANSWERED "unanswered_requests" "in traced requests: nothing answered them until the client gave up" set_up unanswered
    FAILED "failed_requests" "in traced requests: their answers report failure, such as HTTP 4xx and 5xx" failures failed
    ENDED "server_ends_connection" "in traced requests: the server closed or reset their connection instead of answering" failures ended
    BACKS_OFF "client_backs_off" "in traced requests: the client waits between a failed attempt and the next" set_up backs_off
    SLOW_LOOKUP "slow_lookup" "in traced requests: the server's address is looked up, and the answer is late" set_up slow_lookup
    LOST_CONNECT "lost_connect" "in traced requests: the first packet of a connection was lost and retransmitted" set_up lost_connect
    CONNECTION_EACH "connection_per_request" "in traced requests: each uses its own connection" set_up connection_each
    HANDSHAKE_EACH "handshake_per_request" "in traced requests: each has its own security handshake, or the handshake is slow" set_up handshake_each
    REQUEST_LOSS "request_loss" "in traced requests: packets were lost and retransmitted" transit_causes request_loss
    REQUEST_WINDOW "request_window" "in traced requests: the receiver of a message had no buffer space for more of it" transit_causes request_window
    REQUEST_SLOW_START "request_slow_start" "in traced requests, long messages on new connections wait for acknowledgements while their sender's window grows" transit_causes request_slow_start
    SENDER_WINDOW "request_sender_window" "in traced requests, long messages wait for acknowledgements because their sender keeps too few bytes in flight, although the receiver has room and nothing is lost" sender_window sender_window
    REQUEST_RATE "request_rate" "in traced requests, the path's rate limits how fast long messages are transferred" transit_causes request_rate
    REQUEST_QUEUE "request_queue" "in traced requests, short messages take longer than the fastest of them" transit_causes request_queue
    ONE_AT_A_TIME "server_one_at_a_time" "in traced requests: they wait unread while the server works on others" server_causes one_at_a_time
    SERVER_AWAY "server_away" "in traced requests: they wait unread although the server is not working on others" server_causes server_away
    SERVER_COMPUTES "server_computes" "in traced requests: the server's thread is on the CPU" server_causes server_computes
    SERVER_NO_CORE "server_no_core" "in traced requests: the server's thread was ready to run but had no core" server_causes server_no_core
    SERVER_LOCK "server_lock" "in traced requests: the server's thread waits for a lock" server_causes server_lock
    SERVER_DISK "server_disk" "in traced requests: the server's thread waits for a disk" server_causes server_disk
    SERVER_SLEEPS "server_sleeps" "in traced requests: the server's thread sleeps" server_causes server_sleeps
    SERVER_CHILD "server_child" "in traced requests: the server waits for a process that it started" server_causes server_child
    SERVER_STOPPED "server_stopped" "in traced requests: the server's thread was stopped" server_causes server_stopped
    SERVER_COLLECTS "server_collects" "in traced requests: the server is held up by garbage collection" server_causes server_collects
    SERVER_TAKES "server_takes" "in traced requests: the server accounts for the time; the reason is unknown" server_causes server_takes
    RESPONDER_TAKES "responder_takes" "in traced requests: the program that answers messages passed on by a broker accounts for the time" broker_causes responder_takes
    BEHIND_SLOW "request_behind_slow" "in traced requests: they wait for the answer to an earlier, slow one on the same connection" order_causes behind_slow
    CLIENT_PAUSES "client_pauses" "in traced requests: the client pauses in the middle of a request although nothing holds it back" client_causes client_pauses
    CHATTY "chatty_requests" "in traced requests: many short ones are sent one after another, each taking a round trip" transit_causes chatty
    ROUND_TRIPS "request_round_trips" "in traced requests: a single request takes several round trips, as when a driver prepares, describes and executes a statement in separate steps" transit_causes round_trips
    MESSAGES_UNREAD "messages_unread" "in traced messages that nobody answers, such as those of WebSocket: they lie unread at their receiver" message_causes messages_unread
    CLIENT_LATE "client_reads_late" "in traced requests: the answer has arrived, but the client does not read it" client_causes client_late
    REQUEST_HELD "request_held" "in traced requests: Nagle's algorithm waits for a delayed acknowledgement" transit_causes held
}

/// The names of kinds about failures, whose share is of requests or programs and not of time.
pub(crate) const FAILURES: [&str; 4] =
    [PROGRAM_ENDED.name, UNANSWERED.name, ENDED.name, FAILED.name];

/// The shares of requests' time that set-up and the network take, in words.
fn without_place_in_words(costs: &RequestCosts) -> String {
    let set_up = costs.share_of(PlacelessTaker::SetUp);
    let network = costs.share_of(PlacelessTaker::Network);
    match (network >= LEAST, set_up >= LEAST) {
        (true, true) => format!(
            ", of which {} is the network and {} security handshakes, logins or name lookups",
            percent(network),
            percent(set_up)
        ),
        (true, false) => format!(", of which {} is the network", percent(network)),
        (false, true) => format!(
            ", of which {} is security handshakes, logins or name lookups",
            percent(set_up)
        ),
        (false, false) => String::new(),
    }
}

/// The finding about traced requests that nothing limits; `None` if there are no requests or another kind finds something.
pub(crate) fn healthy(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    if costs.roots == 0 || FINDS.iter().any(|find| find(log).is_some()) {
        return None;
    }
    let each = costs.total_ns as f64 / to_f64(costs.roots.max(1));
    let of_network = without_place_in_words(costs);
    let looked = costs.of_cause(RequestCause::Observer) as f64 / costs.total_ns.max(1) as f64;
    let of_network = match looked >= LEAST {
        true => format!(
            "{of_network}; for {} of the time, they waited for cores that the trace itself used",
            percent(looked)
        ),
        false => of_network,
    };
    let sentence = format!(
        "nothing limits {}: {} each{of_network}",
        counted(costs.roots, "request"),
        format_ns(each)
    );
    let messages = costs.requests.iter().filter(|one| one.is_one_way).count() as u64;
    // Where no call that reads was seen, it is not known how long messages lay unread.
    let sentence = match messages > 0 && !log.rows("SOCK_RECEIVED").is_empty() {
        true => format!(
            "{sentence}; none of {} that nobody answers lay unread for long",
            counted(messages, "message")
        ),
        false => sentence,
    };
    let longest = |request: &&TracedRequest| request.times.map_or(0, |times| times.total);
    let roots = || {
        costs
            .requests
            .iter()
            .filter(|request| request.is_call && request.parent.is_none())
    };
    let busiest = roots()
        .map(|request| request.row)
        .take(12)
        .collect::<Vec<_>>();
    let between = roots().max_by_key(longest).map_or_else(String::new, |one| {
        format!("{} > {}", client_name(one), server_name(one))
    });
    // Lost packets or records might have shown a cause.
    let is_whole = LostEventCount::from_log(log).share() < LOST_LEAST;
    let is_of_server =
        |request: &TracedRequest| request.times.is_some_and(|times| times.is_of_server);
    let (confidence, sentence) = match is_whole {
        true if roots().all(is_of_server) => (
            0.7,
            format!(
                "{sentence}; what their clients waited for beforehand cannot be seen at the server"
            ),
        ),
        true => (0.9, sentence),
        false => (
            0.6,
            format!("{sentence}, but packets or records were lost, and some requests with them"),
        ),
    };
    Some(
        kind.of_run(0.0, confidence, sentence)
            .because(log.evidence(between, &busiest)),
    )
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use crate::findings::KINDS;

    #[test]
    fn each_kind_is_looked_for() {
        let is_missing = |name: &&&str| KINDS.iter().all(|kind| kind.name != **name);
        let missing: Vec<_> = NAMES.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
