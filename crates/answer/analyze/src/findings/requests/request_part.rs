//! A part of a request's time: its cause, its place, and what would limit without it.

use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::ends_in_words::address;
use crate::findings::requests::request::{TracedRequest, server_name};

/// A part of a request's time.
#[derive(Clone, Debug)]
pub(crate) struct RequestPart<'r> {
    pub(crate) request: &'r TracedRequest,
    pub(crate) cause: RequestCause,
    /// A server, a client, or both: `a > b`.
    pub(crate) place: String,
    pub(crate) ns: i64,
    /// How much shorter the request would be without its cause, under the limits that remain, ns.
    pub(crate) removable_ns: i64,
    /// What would limit then, where that is less than all of it.
    pub(crate) limit: Option<RemainingLimit>,
    /// How many requests it was made for, one behind the other.
    pub(crate) depth: u32,
}

/// What limits a message when a cause of its time is taken out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemainingLimit {
    /// The rate of the slowest link, as `a>b (20 Mbit/s)`.
    Link(String),
    /// Distance, and the first windows of connections.
    Windows,
    /// Other requests that a server makes at the same time.
    Beside,
    /// How much its path carries is not known.
    Unknown,
}

impl RequestPart<'_> {
    /// What of a distance is for round trips behind the first of its request.
    pub(crate) fn further_trips(&self) -> Option<Self> {
        let trips = self.request.times.map_or(1, |times| times.trips());
        let is_several = self.cause == RequestCause::Distance && trips > 1;
        let ns = self.ns / trips * (trips - 1);
        is_several.then(|| Self {
            cause: RequestCause::FurtherTrips,
            ns,
            removable_ns: ns,
            ..self.clone()
        })
    }

    /// Who takes it: a program and its host, the network, losses on it, or the set-up.
    pub(crate) fn taker(&self) -> String {
        if let Some(taker) = self.cause.placeless_taker() {
            return taker.name().to_owned();
        }
        match self.cause {
            RequestCause::GivenUp if self.request.is_unopened => address(self.request),
            RequestCause::GivenUp | RequestCause::Ended => server_name(self.request),
            RequestCause::Responder => self.place.trim_end_matches(',').to_owned(),
            _ => self.place.clone(),
        }
    }
}
