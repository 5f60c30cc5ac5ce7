//! Requests that their clients gave up, or whose deadline passed, at the worst place: how many, after how long, and how many were retried.

use crate::findings::event_log::FindingEventLog;
use crate::findings::requests::attempts::Retry;
use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::ends_in_words::both_ends;
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::worst::{LEAST_NETWORK_NS, Worst, find_worst_place};

/// The least number of requests that show a habit.
pub(super) const HABIT: u64 = 3;

/// Whether `some` of `all` requests are a habit: at least [`HABIT`], or at least half.
pub(super) const fn is_habit(some: u64, all: u64) -> bool {
    some >= HABIT || some * 2 >= all
}

/// The requests that a client gave up at their worst place, and how many of them it made again.
pub(super) struct GivenUpRequests<'c> {
    /// The cost of `GivenUp` at its worst place.
    pub(super) worst: Worst<'c>,
    /// The requests that were given up there.
    pub(super) failed: Vec<&'c TracedRequest>,
    /// The number of all calls and attempts to connect between the same programs.
    pub(super) all: u64,
    /// The number of those given up that were retried.
    again: u64,
}

impl<'c> GivenUpRequests<'c> {
    pub(super) fn from_log(log: &'c FindingEventLog<'_>) -> Option<Self> {
        let worst = find_worst_place(log, RequestCause::GivenUp, LEAST_NETWORK_NS)?;
        let requests = &worst.costs.requests;
        let of_place = |request: &&TracedRequest| {
            (request.is_call || request.is_unopened) && both_ends(request) == worst.place
        };
        let all = requests.iter().filter(of_place).count() as u64;
        let is_again = |retry: &&Retry| {
            let failed = &requests[retry.failed];
            (failed.unknown.is_some() || failed.exceeds_deadline())
                && both_ends(failed) == worst.place
        };
        let again = worst.costs.retries.iter().filter(is_again).count() as u64;
        if !is_habit(worst.cost.requests, all) && again == 0 {
            return None;
        }
        let has_none = |one: &TracedRequest| {
            let is_others = one.is_ended_by_server() || one.is_under_way();
            one.exceeds_deadline() || (one.has_no_good_answer() && !one.has_failed() && !is_others)
        };
        let failed = requests.iter().filter(|one| of_place(one) && has_none(one));
        Some(Self {
            failed: failed.collect(),
            worst,
            all,
            again,
        })
    }

    pub(super) fn are_all(&self, is: impl Fn(&TracedRequest) -> bool) -> bool {
        !self.failed.is_empty() && self.failed.iter().all(|request| is(request))
    }

    /// Whether all of them exceeded a deadline: the server says so, or the client reset the stream several times after the same time.
    pub(super) fn exceeds_deadlines(&self) -> bool {
        let is_said = self.failed.iter().any(|one| one.exceeds_deadline());
        let is_habit = self.failed.len() as u64 >= HABIT && self.deadline_ns().is_some();
        let are_ends = self.are_all(|one| one.exceeds_deadline() || one.is_cancelled_call());
        are_ends && (is_said || is_habit)
    }

    /// The deadline, ns, if there is one: most of them took about the same time.
    pub(super) fn deadline_ns(&self) -> Option<f64> {
        let asked = |one: &TracedRequest| {
            let times = one.times?;
            Some(times.total - times.lookup - times.connect - times.handshake - times.client)
        };
        let mut waited: Vec<i64> = self.failed.iter().filter_map(|one| asked(one)).collect();
        waited.sort_unstable();
        let (least, usual) = (
            *waited.first()? as f64,
            *waited.get(waited.len() / 2)? as f64,
        );
        (least > 0.0 && usual <= ALIKE * least).then(|| two_digits(least))
    }

    /// Whether the server's thread has read one of them.
    pub(super) fn were_read(&self) -> bool {
        self.failed.iter().any(|one| one.work.is_some())
    }

    /// Whether no program has read any of them, although programs of the server's host are traced: the client is one.
    pub(super) fn were_left_unread(&self) -> bool {
        let is_seen = |one: &TracedRequest| one.client == one.server && one.client_pid.is_some();
        let is_unread = |one: &TracedRequest| one.server_pid.is_none() && one.work.is_none();
        self.are_all(|one| is_seen(one) && is_unread(one) && !one.is_unopened)
    }

    pub(super) fn again_in_words(&self) -> String {
        match self.again {
            0 => String::new(),
            again => format!("; number retried: {again}"),
        }
    }
}

/// Times are due to one deadline if their median is at most this many times the least.
const ALIKE: f64 = 1.1;

/// Rounds a time down to two digits, as a measured time is somewhat longer than the deadline: 151.6 ms for 150 ms.
fn two_digits(ns: f64) -> f64 {
    let unit = 10_f64.powf(ns.log10().floor() - 1.0);
    (ns / unit).floor() * unit
}

/// The programs between which calls exceed their deadlines, as a place, if the finding `unanswered_requests` reports that.
pub(super) fn deadline_ends(log: &FindingEventLog<'_>) -> Option<String> {
    let given_up = GivenUpRequests::from_log(log).filter(GivenUpRequests::exceeds_deadlines)?;
    Some(given_up.worst.place.to_owned())
}
