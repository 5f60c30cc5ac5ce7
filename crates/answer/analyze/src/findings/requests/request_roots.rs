//! Which requests the figures of a trace are of: those that nobody is known to have made for another one, and of these the caller's,
//! where it is known who that is.

use crate::findings::requests::attempts::is_wait;
use crate::findings::requests::request::TracedRequest;
use std::collections::BTreeMap;

const DNS: &str = "DNS";

/// Which requests of a trace are its roots.
pub(super) struct RequestRoots<'r> {
    lookups: BTreeMap<&'r str, Vec<(u64, u64)>>,
    /// The program that the trace is about asked for something.
    has_caller: bool,
}

impl<'r> RequestRoots<'r> {
    /// Of all requests of a trace.
    pub(super) fn of(all: &'r [TracedRequest]) -> Self {
        let has_caller = all
            .iter()
            .any(|request| is_attempt(request) && request.is_callers == Some(true));
        Self {
            lookups: lookups(all),
            has_caller,
        }
    }

    /// Whether a request is one whose time counts.
    pub(super) fn has(&self, request: &TracedRequest) -> bool {
        let is_waited_for =
            is_attempt(request) && !request.is_event_stream() && !request.is_control;
        is_waited_for && self.is_root(request) && !is_within(request, &self.lookups)
    }

    /// Whether no other was made for it, and the caller made it.
    pub(super) fn is_root(&self, request: &TracedRequest) -> bool {
        let waits = request.unknown.is_some() && is_wait(request);
        request.parent.is_none() && !waits && !(self.has_caller && request.is_background())
    }

    /// How many requests programs made that are beside the one that the trace is about.
    pub(super) fn count_background(&self, all: &[TracedRequest]) -> u64 {
        let is_beside =
            |one: &&TracedRequest| one.is_call && one.parent.is_none() && one.is_background();
        match self.has_caller {
            true => all.iter().filter(is_beside).count() as u64,
            false => 0,
        }
    }
}

const fn is_attempt(request: &TracedRequest) -> bool {
    request.is_call || request.is_unopened
}

/// When each host asked after a name for a request: the time is that request's already.
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

fn is_within(request: &TracedRequest, lookups: &BTreeMap<&str, Vec<(u64, u64)>>) -> bool {
    let (begin, end) = (request.begin_ns(), request.end_ns);
    let of_client = || lookups.get(request.client.as_str()).into_iter().flatten();
    request.protocol == DNS && of_client().any(|(from, to)| *from <= begin && end <= *to)
}
