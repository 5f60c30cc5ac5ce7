//! A part of a request's time, attributed to one cause and one place, with what would limit the request without that cause.

use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::ends_in_words::address;
use crate::findings::requests::request::{TracedRequest, server_name};

/// A part of a request's time.
#[derive(Clone, Debug)]
pub(crate) struct RequestPart<'r> {
    /// The request.
    pub(crate) request: &'r TracedRequest,
    /// What the time is spent on.
    pub(crate) cause: RequestCause,
    /// Where: a server, a client, or both as `a > b`.
    pub(crate) place: String,
    /// The time of this part.
    pub(crate) ns: i64,
    /// How much shorter the request would be without its cause, under the limits that remain, ns.
    pub(crate) removable_ns: i64,
    /// What would limit the request then, if that is less than the whole part.
    pub(crate) limit: Option<RemainingLimit>,
    /// The length of the chain of requests on whose behalf this one was made; 0 for a root.
    pub(crate) depth: u32,
}

/// What limits a message when one cause of its time is removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemainingLimit {
    /// The rate of the slowest link, as `a>b (20 Mbit/s)`.
    Link(String),
    /// Distance, and the initial windows of connections.
    Windows,
    /// Other requests that a server makes at the same time.
    Beside,
    /// Unknown, as the capacity of its path is not known.
    Unknown,
}

impl RequestPart<'_> {
    /// The part of the distance that is due to round trips after the first one of the request; `None` for other causes or a single one.
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

    /// Who takes the time, in words: a program with its host, the network, losses, or the set-up.
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
