//! What of a long message's time its sender's window takes, and not the rate of its way: after losses, and while a connection begins.

use super::RequestAccounts;
use crate::findings::requests::least_time::RemainingTransfer;
use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// What a sender's window takes of a long message's time, ns.
#[derive(Clone, Copy, Default)]
pub(super) struct LimitedByWindows {
    /// It is small since losses.
    pub(super) by_losses: i64,
    /// It begins small.
    pub(super) at_first: i64,
}

impl LimitedByWindows {
    pub(super) fn ns(self) -> i64 {
        self.by_losses + self.at_first
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
        LimitedByWindows {
            by_losses,
            at_first: transfer.slow_start_ns(ns - by_losses),
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
