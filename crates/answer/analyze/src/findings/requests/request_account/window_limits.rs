//! What of a long message's time its sender's window takes, and not the rate of its way: after losses, and while a connection begins.

use super::RequestAccounts;
use crate::findings::requests::least_time::RemainingTransfer;
use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// A path in which nothing is sent for such a part of the time, while acknowledgements are awaited, is not what limits.
const IDLE_PART: i64 = 3;

/// What a sender's window takes of a long message's time, ns.
#[derive(Clone, Copy, Default)]
pub(super) struct LimitedByWindows {
    /// It is small since losses.
    pub(super) by_losses: i64,
    /// It begins small.
    pub(super) at_first: i64,
    /// It stays small for reasons of the sender.
    pub(super) by_sender: i64,
}

impl LimitedByWindows {
    pub(super) fn ns(self) -> i64 {
        self.by_losses + self.at_first + self.by_sender
    }
}

impl RequestAccounts<'_> {
    /// What of a long message's time the rate of its way does not explain, where links were recorded, none was full, and parts of it
    /// were lost: losses kept its sender's window small.
    fn kept_small(
        &self,
        request: &TracedRequest,
        times: RequestTimes,
        is_answer: bool,
        ns: i64,
    ) -> i64 {
        let again = match is_answer {
            true => request.network.again_back,
            false => request.network.again_there,
        };
        let rate = self.rates.get(&(request.unit, is_answer));
        if rate.is_none_or(|rate| rate.is_full() || (again == 0 && rate.drops == 0)) {
            return 0;
        }
        let transfer = self.unhindered_transfer(request, times, is_answer);
        (ns - (transfer.least_ns() - transfer.trip_ns)).max(0)
    }

    /// What of a long message's time its sender's window took, and not the rate of its path.
    pub(super) fn limited_by_windows(
        &self,
        request: &TracedRequest,
        times: RequestTimes,
        is_answer: bool,
        ns: i64,
    ) -> LimitedByWindows {
        let by_losses = self.kept_small(request, times, is_answer, ns);
        let transfer = self.unhindered_transfer(request, times, is_answer);
        let stalled = self.stalled_ns(request, is_answer);
        // A window that stays small is never as large as the rate of the path would let it become.
        let is_small = stalled > ns / IDLE_PART;
        let transfer = RemainingTransfer {
            bit_s: transfer.bit_s.filter(|_| !is_small),
            ..transfer
        };
        let at_first = transfer.slow_start_ns(ns - by_losses);
        let rest = ns - by_losses - at_first;
        LimitedByWindows {
            by_losses,
            at_first,
            // What is sent between two gaps takes its part of each round trip.
            by_sender: if stalled > 0 && stalled - at_first >= rest / IDLE_PART {
                rest.max(0)
            } else {
                0
            },
        }
    }

    /// How long a message's sender stood still until acknowledgements came, where neither losses nor a link that is full are why.
    fn stalled_ns(&self, request: &TracedRequest, is_answer: bool) -> i64 {
        let (stalled_ns, again) = match is_answer {
            true => (request.network.stalled_back_ns, request.network.again_back),
            false => (
                request.network.stalled_there_ns,
                request.network.again_there,
            ),
        };
        let is_lossy = again > 0 || self.history.is_after_loss(request);
        let is_of_path = (self.rates.get(&(request.unit, is_answer)))
            .is_some_and(|rate| rate.is_full() || rate.drops > 0);
        match is_lossy || is_of_path {
            true => 0,
            false => stalled_ns,
        }
    }

    /// The transfer of a message with nothing on its path but distance, its connection's first windows, and the rate of the slowest link where
    /// links were recorded.
    pub(super) fn unhindered_transfer(
        &self,
        request: &TracedRequest,
        times: RequestTimes,
        is_answer: bool,
    ) -> RemainingTransfer {
        let rate = self.rates.get(&(request.unit, is_answer));
        RemainingTransfer {
            bytes: request.message_bytes(is_answer),
            trip_ns: self.trip_ns(request, times),
            bit_s: rate.map(|rate| rate.bit_s),
            begins_slowly: self.history.begins_slowly(request, is_answer),
        }
    }
}
