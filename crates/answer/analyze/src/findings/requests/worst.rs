//! What a cause of requests takes at its worst place, and a finding of it: of which requests, and what the whole would take without
//! it. It knows no kind.

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
use crate::statistics::to_f64;
use std::collections::BTreeSet;

/// A server's time below this, a request, is not worth a finding, ns.
pub(crate) const LEAST_SERVER_NS: f64 = 1e6;
/// The same of waits that are seen: of a disk, a lock, a timer.
pub(crate) const LEAST_WAIT_NS: f64 = 1e5;
/// The same of the network.
pub(crate) const LEAST_NETWORK_NS: f64 = 5e5;

/// Fewer requests than these, and a smaller part of all, are no habit of a program.
const FEW: u64 = 3;
const RARE: u64 = 50;
/// Such a part of the time counts, whoever has it.
const MUCH: f64 = 0.25;
/// So does what people feel, ns.
const FELT_NS: f64 = 1e8;

/// Whether so many of all requests, with that share of the time, may be chance.
pub(crate) fn is_chance(requests: u64, all: u64, share: f64) -> bool {
    requests < FEW && requests * RARE < all && share < MUCH
}

/// The cost of a cause at its worst place.
pub(crate) struct Worst<'c> {
    pub(crate) costs: &'c RequestCosts,
    pub(crate) cause: RequestCause,
    pub(crate) place: &'c str,
    pub(crate) cost: &'c RequestCauseCost,
    pub(crate) share: f64,
    /// How much shorter all requests would be without it, ns, under the limits that remain.
    pub(crate) removable_ns: i64,
    /// The requests of one name, where these have most of it.
    pub(crate) of_name: Option<NamedCauseCost>,
}

impl Worst<'_> {
    /// How many requests have nearly all of it, and how much each of those has, ns: of those of one name where most is theirs.
    pub(crate) fn of_most(&self) -> (u64, f64) {
        self.of_name
            .map_or_else(|| self.cost.of_most(), |named| named.of_most)
    }

    /// Of each request that has a part of it worth a word, ns.
    pub(crate) fn each(&self) -> f64 {
        self.of_most().1
    }

    /// Between whom, in words: `from app to db`; on one host by the programs, `from curl to nginx on web`.
    pub(crate) fn between(&self) -> String {
        match self.place.split_once(" > ") {
            Some((client, server)) if client == server => self.programs_in_words() + server,
            _ => place_in_words(self.place),
        }
    }

    /// Programs on one host that have most of it: `from curl to nginx on `.
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

    /// What it takes in words: `12 % of the time, 3.40 ms each`.
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

    /// Whether next to none of many requests have it, and little of it: that happens.
    fn is_chance(&self) -> bool {
        let (requests, each_ns) = self.of_most();
        // Messages that nobody answers are of the work too.
        let messages = self.costs.requests.iter();
        let messages = messages.filter(|request| request.is_one_way).count() as u64;
        is_chance(requests, self.calls() + messages, self.share) && each_ns < FELT_NS
    }

    /// Of each request that has any of it, ns.
    pub(crate) fn mean(&self) -> f64 {
        self.cost.ns as f64 / to_f64(self.cost.requests.max(1))
    }

    /// Calls between the client and the server that its place names.
    pub(crate) fn calls_at_place(&self) -> impl Iterator<Item = &TracedRequest> {
        let calls = self.costs.requests.iter().filter(|request| request.is_call);
        calls.filter(|request| format_client_server(request) == self.place)
    }

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

    /// What limits them then.
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

    fn calls(&self) -> u64 {
        self.costs
            .requests
            .iter()
            .filter(|request| (request.is_call || request.is_unopened) && !request.is_control)
            .count() as u64
    }

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

    /// What those of its requests said and were answered that have most of it.
    pub(crate) fn messages(&self, log: &FindingEventLog<'_>) -> RequestMessages {
        let units = self
            .cost
            .rows
            .iter()
            .filter_map(|(_, row)| log.number(*row, "unit"))
            .collect();
        RequestMessages::of(log, &units)
    }

    /// Whether who asks and who answers are on one host.
    pub(crate) fn is_within_a_host(&self) -> bool {
        self.place
            .split_once(" > ")
            .is_some_and(|(client, server)| client == server)
    }

    /// Most at once of its server.
    pub(crate) fn at_once(&self) -> usize {
        most_at_once(&self.costs.requests, self.place)
    }
}

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

/// The same of round trips behind the first of a request.
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
    // What is not ten times as long as it takes to look at it is not attributed.
    let least = least.max(10.0 * costs.observer_ns as f64);
    (share >= LEAST && worst.mean() >= least && !worst.is_chance()).then_some(worst)
}

/// A finding of a cause: what it takes, of which requests, and what would be left.
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
    found.because(those)
}

/// A client and a server in words, or what else a place is.
pub(crate) fn place_in_words(place: &str) -> String {
    match place.split_once(" > ") {
        Some((client, server)) if client == server => format!("on {client}"),
        Some((client, server)) => format!("from {client} to {server}"),
        None => place.to_owned(),
    }
}

pub(crate) fn format_client_server(request: &TracedRequest) -> String {
    format!("{} > {}", request.client, request.server)
}
