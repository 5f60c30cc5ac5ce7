//! The cost of a cause of requests' time at its worst place, and the finding about it: which requests have it, and what all requests would
//! take without it. Used by all kinds of findings about traced requests.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{CauseTimeShare, Finding, LEAST, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::cause_costs::NamedCauseCost;
use crate::findings::requests::costs::{
    RequestCause, RequestCauseCost, RequestCosts, most_at_once,
};
use crate::findings::requests::network::RequestMessages;
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::request_part::RemainingLimit;
use crate::findings::requests::server_choice::ServerChoice;
use crate::statistics::to_f64;
use std::collections::BTreeSet;

/// The least mean time per request of a server that is worth a finding, ns.
pub(crate) const LEAST_SERVER_NS: f64 = 1e6;
/// The same for waits that the trace shows directly (disk, lock, timer), ns.
pub(crate) const LEAST_WAIT_NS: f64 = 1e5;
/// The same for the network, ns.
pub(crate) const LEAST_NETWORK_NS: f64 = 5e5;

/// Fewer requests than this may be chance, if they are also rare.
const FEW: u64 = 5;
/// Requests are rare if they are less than one in this many.
const RARE: u64 = 10;
/// A cause with at least this share of the time is never chance.
const MUCH: f64 = 0.25;
/// A cause that costs each request at least this is never chance, as people notice it, ns.
const FELT_NS: f64 = 1e8;

/// Whether a cause of `requests` of `all` requests with that share of the time may be chance.
pub(crate) fn is_chance(requests: u64, all: u64, share: f64) -> bool {
    requests < FEW && requests * RARE < all && share < MUCH
}

/// The cost of a cause at its worst place.
pub(crate) struct Worst<'c> {
    /// The costs of all causes.
    pub(crate) costs: &'c RequestCosts,
    /// The cause.
    pub(crate) cause: RequestCause,
    /// The place: a server, a client, or both as `a > b`.
    pub(crate) place: &'c str,
    /// The cost of the cause at that place.
    pub(crate) cost: &'c RequestCauseCost,
    /// Its share of the time of all roots, 0 to 1.
    pub(crate) share: f64,
    /// How much shorter all requests would be without it, ns, under the limits that remain.
    pub(crate) removable_ns: i64,
    /// The cost of the requests of one name, if these have most of it.
    pub(crate) of_name: Option<NamedCauseCost>,
}

impl Worst<'_> {
    /// The number of requests that have nearly all of it, and the mean cost of each, ns; of those of one name if most is theirs.
    pub(crate) fn of_most(&self) -> (u64, f64) {
        self.of_name
            .map_or_else(|| self.cost.of_most(), |named| named.of_most)
    }

    /// The mean cost of the requests that have nearly all of it, ns.
    pub(crate) fn each(&self) -> f64 {
        self.of_most().1
    }

    /// The place in words: `from app to db`; on one host with the programs, `from curl to nginx on web`.
    pub(crate) fn between(&self) -> String {
        match self.place.split_once(" > ") {
            Some((client, server)) if client == server => self.programs_in_words() + server,
            _ => place_in_words(self.place),
        }
    }

    /// The programs on one host that have most of it, in words: `from curl to nginx on `.
    fn programs_in_words(&self) -> String {
        let rows: BTreeSet<u32> = self.cost.rows.iter().map(|(_, row)| *row).collect();
        let having = self.costs.requests.iter();
        let having = having.filter(|request| rows.contains(&request.row));
        let (clients, servers): (BTreeSet<&str>, BTreeSet<&str>) = having
            .map(|request| (request.programs.0.as_str(), request.programs.1.as_str()))
            .unzip();
        let only = |programs: &BTreeSet<&str>| {
            let name = programs.first().filter(|name| !name.is_empty());
            name.filter(|_| programs.len() == 1)
                .map(ToString::to_string)
        };
        let from = only(&clients).map_or_else(String::new, |client| format!("from {client} "));
        match only(&servers) {
            Some(server) => format!("{from}to {server} on "),
            None => format!("{from}on "),
        }
    }

    /// Its two ends, from the one that sends most bytes: `from db to app`.
    pub(crate) fn sender_in_words(&self) -> String {
        let bytes = self.calls_at_place().map(|request| request.bytes);
        let (there, back) = bytes.fold((0_i64, 0_i64), |(there, back), bytes| {
            (there.saturating_add(bytes.0), back.saturating_add(bytes.1))
        });
        match self.place.split_once(" > ") {
            Some((client, server)) if back > there => {
                place_in_words(&format!("{server} > {client}"))
            }
            _ => self.between(),
        }
    }

    /// Its two ends without a direction: `between app and db`.
    pub(crate) fn between_both(&self) -> String {
        match self.place.split_once(" > ") {
            Some((client, server)) if client != server => format!("between {client} and {server}"),
            _ => self.between(),
        }
    }

    /// The time that it takes, in words: `12 % of the time, 3.40 ms each`.
    pub(crate) fn time_in_words(&self) -> String {
        let few = match &self.of_name {
            Some(named) => named.of_few,
            None => self.cost.of_few(),
        };
        let few = few.map_or_else(String::new, |(requests, each)| {
            format!("; {requests} of them {}", format_ns(each))
        });
        format!(
            "{} of the time, {} each{few}",
            percent(self.share),
            format_ns(self.each())
        )
    }

    /// Whether it may be chance: only very few of many requests have it, and little time.
    fn is_chance(&self) -> bool {
        let (requests, each_ns) = self.of_most();
        // Messages that nobody answers count among all requests too.
        let messages = self.costs.requests.iter();
        let messages = messages.filter(|request| request.is_one_way).count() as u64;
        is_chance(requests, self.calls() + messages, self.share) && each_ns < FELT_NS
    }

    /// The mean cost of all requests that have any of it, ns.
    pub(crate) fn mean(&self) -> f64 {
        self.cost.ns as f64 / to_f64(self.cost.requests.max(1))
    }

    /// Calls between the client and the server that its place names.
    pub(crate) fn calls_at_place(&self) -> impl Iterator<Item = &TracedRequest> {
        let calls = self.costs.requests.iter().filter(|request| request.is_call);
        calls.filter(|request| format_client_server(request) == self.place)
    }

    /// What the cause takes, for the finding.
    fn takes(&self) -> CauseTimeShare {
        CauseTimeShare {
            requests: self.of_most().0,
            of_requests: self.calls(),
            total_s: self.cost.ns as f64 / 1e9,
            each_s: self.each() / 1e9,
            of_s: self.costs.total_ns as f64 / 1e9,
            without_s: self.without_ns() / 1e9,
            limited_by: self.remaining_limit_in_words(),
        }
    }

    /// What all requests would take without it, ns.
    fn without_ns(&self) -> f64 {
        (self.costs.total_ns - self.removable_ns).max(0) as f64
    }

    /// What would limit all requests then, in words; empty if that is not known to differ.
    fn remaining_limit_in_words(&self) -> String {
        match self.cost.remaining_limit() {
            Some(RemainingLimit::Link(link)) => format!("the limit would then be {link}"),
            Some(RemainingLimit::Windows) => {
                "the limits would then be distance and the initial windows of connections"
                    .to_owned()
            }
            Some(RemainingLimit::Beside) => {
                "other requests made at the same time would then be the limit".to_owned()
            }
            Some(RemainingLimit::Unknown) => {
                "at best, as the capacity of the path is unknown".to_owned()
            }
            None => String::new(),
        }
    }

    /// The number of all calls and attempts to connect, without those that control transfers.
    fn calls(&self) -> u64 {
        self.costs
            .requests
            .iter()
            .filter(|request| (request.is_call || request.is_unopened) && !request.is_control)
            .count() as u64
    }

    /// How many requests have nearly all of it and how much each, of how many, and what was not counted, in words.
    pub(crate) fn of_all(&self) -> String {
        let all = self.calls();
        let elsewhere = self.costs.of_cause(self.cause) - self.cost.ns;
        let more = match elsewhere > self.cost.ns / 20 {
            true => format!(
                "; the same elsewhere, {} in total",
                format_ns(elsewhere as f64)
            ),
            false => String::new(),
        };
        let background = match self.costs.background {
            0 => String::new(),
            count => format!("; not counted: {count} from other programs"),
        };
        let control = match self.costs.control {
            0 => String::new(),
            1 => "; not counted: 1 that lasts as long as the transfer that it controls".to_owned(),
            count => format!(
                "; not counted: {count} that last as long as the transfers that they control"
            ),
        };
        format!(
            "{} of {} requests, {} each{more}{background}{control}",
            self.of_most().0,
            all,
            format_ns(self.each())
        )
    }

    /// The messages of the requests that have most of it.
    pub(crate) fn messages(&self, log: &FindingEventLog<'_>) -> RequestMessages {
        let units = self
            .cost
            .rows
            .iter()
            .filter_map(|(_, row)| log.number(*row, "unit"))
            .collect();
        RequestMessages::from_log(log, &units)
    }

    /// Whether client and server are on one host.
    pub(crate) fn is_within_a_host(&self) -> bool {
        self.place
            .split_once(" > ")
            .is_some_and(|(client, server)| client == server)
    }

    /// The most requests that the server at the place had at once.
    pub(crate) fn at_once(&self) -> usize {
        most_at_once(&self.costs.requests, self.place)
    }
}

/// The place where a cause takes most time; `None` if that is less than [`LEAST`] of the time, less than `least` ns per request, chance, or
/// not clearly more than the cost of tracing.
pub(crate) fn find_worst_place<'c>(
    log: &'c FindingEventLog<'_>,
    cause: RequestCause,
    least: f64,
) -> Option<Worst<'c>> {
    let costs = log.costs()?;
    let of_cause = costs.costs.iter().filter(|((of, _), _)| *of == cause);
    let ((_, place), cost) = of_cause.max_by_key(|(_, cost)| cost.ns)?;
    worst_of(costs, cause, place, cost, least)
}

/// The same for round trips after the first one of a request.
pub(crate) fn find_worst_further_trips<'c>(log: &'c FindingEventLog<'_>) -> Option<Worst<'c>> {
    let costs = log.costs()?;
    let (place, cost) = costs.further_trips.iter().max_by_key(|(_, cost)| cost.ns)?;
    worst_of(
        costs,
        RequestCause::FurtherTrips,
        place,
        cost,
        LEAST_NETWORK_NS,
    )
}

fn worst_of<'c>(
    costs: &'c RequestCosts,
    cause: RequestCause,
    place: &'c str,
    cost: &'c RequestCauseCost,
    least: f64,
) -> Option<Worst<'c>> {
    let share = cost.ns as f64 / costs.total_ns.max(1) as f64;
    let worst = Worst {
        costs,
        cause,
        place,
        cost,
        share,
        removable_ns: cost.removable_ns,
        of_name: None,
    };
    // A cost of less than ten times the cost of tracing is not attributed.
    let least = least.max(10.0 * costs.observer_ns as f64);
    (share >= LEAST && worst.mean() >= least && !worst.is_chance()).then_some(worst)
}

/// A finding about a cause at its worst place: what it takes, of which requests, and what all would take without it.
pub(crate) fn report_request_cause(
    kind: &FindingKind,
    log: &FindingEventLog<'_>,
    worst: &Worst<'_>,
    confidence: f64,
    sentence: String,
) -> Finding {
    let costs = worst.costs;
    let mut rows = worst.cost.rows.clone();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).take(12).collect();
    let doubt = if costs.requests.iter().all(|request| request.exact) {
        1.0
    } else {
        0.9
    };
    let those = log.evidence(worst.of_all(), &rows);
    let found = kind.of_run(worst.share.min(1.0), confidence * doubt, sentence);
    let found = Finding {
        takes: Some(worst.takes()),
        ..found
    };
    let found = found.because(those);
    match ServerChoice::find(&costs.requests, worst.place) {
        Some(choice) => choice.report(found, log),
        None => found,
    }
}

/// A place in words: a client and a server, or the name itself.
pub(crate) fn place_in_words(place: &str) -> String {
    match place.split_once(" > ") {
        Some((client, server)) if client == server => format!("on {client}"),
        Some((client, server)) => format!("from {client} to {server}"),
        None => place.to_owned(),
    }
}

/// The hosts of a request's client and server as a place: `a > b`.
pub(crate) fn format_client_server(request: &TracedRequest) -> String {
    format!("{} > {}", request.client, request.server)
}
