//! The roots of a trace: the requests that its figures are about. A root was not made on behalf of another request, and it was made by the
//! caller (the program that the trace is about), if that is known.

use crate::findings::requests::request::{TracedRequest, is_wait};
use std::collections::BTreeMap;

const DNS: &str = "DNS";

/// Which requests of a trace are its roots.
pub(super) struct RequestRoots<'r> {
    /// When each host looked up names for requests: begin and end, ns.
    lookups: BTreeMap<&'r str, Vec<(u64, u64)>>,
    /// Whether any request is known to be the caller's.
    has_caller: bool,
}

impl<'r> RequestRoots<'r> {
    /// Prepares the decision for all requests of a trace.
    pub(super) fn from_requests(all: &'r [TracedRequest]) -> Self {
        let has_caller = all
            .iter()
            .any(|request| is_attempt(request) && request.is_callers == Some(true));
        Self {
            lookups: lookups(all),
            has_caller,
        }
    }

    /// Whether a request is a root whose time counts: not a stream of events, not one that controls a transfer, not a part of another's
    /// name lookup.
    pub(super) fn has(&self, request: &TracedRequest) -> bool {
        let is_waited_for =
            is_attempt(request) && !request.is_event_stream() && !request.is_control;
        is_waited_for && self.is_root(request) && !is_within(request, &self.lookups)
    }

    /// Whether a request was not made on behalf of another one, and by the caller.
    pub(super) fn is_root(&self, request: &TracedRequest) -> bool {
        let waits = request.unknown.is_some() && is_wait(request);
        request.parent.is_none() && !waits && !(self.has_caller && request.is_background())
    }

    /// The number of requests made by programs other than the caller.
    pub(super) fn count_background(&self, all: &[TracedRequest]) -> u64 {
        let is_beside =
            |one: &&TracedRequest| one.is_call && one.parent.is_none() && one.is_background();
        match self.has_caller {
            true => all.iter().filter(is_beside).count() as u64,
            false => 0,
        }
    }
}

/// Whether a request is a call, or a connection that could not be set up for one.
const fn is_attempt(request: &TracedRequest) -> bool {
    request.is_call || request.is_unopened
}

/// When each host looked up names for requests: that time already belongs to those requests.
fn lookups(all: &[TracedRequest]) -> BTreeMap<&str, Vec<(u64, u64)>> {
    let mut lookups: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for request in all.iter().filter(|request| request.protocol != DNS) {
        let length = request.times.map_or(0, |times| times.lookup.max(0));
        if length > 0 {
            let begin = request.begin_ns();
            lookups
                .entry(&request.client)
                .or_default()
                .push((begin, begin + length.unsigned_abs()));
        }
    }
    lookups
}

/// Whether a request is a DNS query within the lookup of another request.
fn is_within(request: &TracedRequest, lookups: &BTreeMap<&str, Vec<(u64, u64)>>) -> bool {
    let (begin, end) = (request.begin_ns(), request.end_ns);
    let of_client = || lookups.get(request.client.as_str()).into_iter().flatten();
    request.protocol == DNS && of_client().any(|(from, to)| *from <= begin && end <= *to)
}
