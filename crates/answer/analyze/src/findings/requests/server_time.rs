//! The time that a server has for a request: that of requests of its own which it waits for, and what its thread waits for while the
//! answer leaves already.

use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// A request that a server waited for, for so long, ns.
#[derive(Clone, Copy)]
pub(super) struct AwaitedRequest<'r> {
    pub(super) request: &'r TracedRequest,
    pub(super) times: RequestTimes,
    pub(super) ns: i64,
}

/// The time that a server has for a request, ns.
#[derive(Clone, Copy)]
pub(super) struct ServerTime {
    pub(super) ns: i64,
    /// How long it waited meanwhile for requests of its own.
    pub(super) waited: i64,
}

impl ServerTime {
    /// What of it is that of its own requests.
    pub(super) fn nested(self) -> i64 {
        self.waited.min(self.ns.max(0))
    }

    /// How long its thread waited for other things than the network beyond what there is time for before the answer begins: that was
    /// while the answer left. Where it waited for the network too, that held the answer up as long.
    pub(super) fn waits_in_answer(self, request: &TracedRequest) -> i64 {
        let Some(work) = request.work.filter(|_| request.responder.is_none()) else {
            return 0;
        };
        let of_network = (work.socket - self.waited).max(0);
        (work.waits() - (self.ns - self.nested()).max(0) - of_network).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestServerWork;

    fn waits(ns: i64, waited: i64, disk: i64, socket: i64) -> i64 {
        let request = TracedRequest {
            work: Some(RequestServerWork {
                disk,
                socket,
                ..RequestServerWork::default()
            }),
            ..TracedRequest::default()
        };
        ServerTime { ns, waited }.waits_in_answer(&request)
    }

    #[test]
    fn a_wait_that_there_is_no_time_for_before_the_answer_is_within_it() {
        assert_eq!(waits(10, 0, 400, 0), 390);
        // There was time for all of it before.
        assert_eq!(waits(500, 0, 400, 0), 0);
        // The network held the answer up as long, or for some of it.
        assert_eq!(waits(10, 0, 400, 500), 0);
        assert_eq!(waits(10, 0, 400, 100), 290);
        // What it waited for at a socket before were requests of its own.
        assert_eq!(waits(110, 100, 400, 100), 390);
        assert_eq!(
            ServerTime { ns: 10, waited: 0 }.waits_in_answer(&TracedRequest::default()),
            0
        );
    }
}
