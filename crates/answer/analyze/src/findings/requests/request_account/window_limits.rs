//! The time of a long message that its sender's window takes, and not the rate of its path: after losses, in slow start, or because the
//! sender keeps few bytes in flight.

use super::RequestAccounts;
use crate::findings::requests::least_time::RemainingTransfer;
use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// If nothing is sent for more than 1 / this of the time while acknowledgements are awaited, the path is not the limit.
const IDLE_PART: i64 = 3;

/// So many round trips show that a window does not grow.
const SEVERAL_TRIPS: i64 = 2;

/// The time of a long message that its sender's window takes, ns.
#[derive(Clone, Copy, Default)]
pub(super) struct LimitedByWindows {
    /// The window is small because of losses.
    pub(super) by_losses: i64,
    /// The window is small because the connection is new.
    pub(super) at_first: i64,
    /// The window stays small for reasons of the sender.
    pub(super) by_sender: i64,
}

impl LimitedByWindows {
    /// The sum of all three.
    pub(super) fn ns(self) -> i64 {
        self.by_losses + self.at_first + self.by_sender
    }
}

impl RequestAccounts<'_> {
    /// The time of a long message in which losses kept its sender's window small, ns: the part of `ns` that the rate of its path does not
    /// explain. 0 unless links were recorded, the slowest was not full, and parts of the message were lost.
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

    /// The time of a long message that its sender's window takes, of `ns` that it takes beyond distance.
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
        // If the window stays small, it never grows to what the rate of the path allows, so that rate is ignored.
        let is_small = stalled > ns / IDLE_PART;
        let transfer = RemainingTransfer {
            bit_s: transfer.bit_s.filter(|_| !is_small),
            ..transfer
        };
        let at_first = transfer.slow_start_ns(ns - by_losses);
        let rest = (ns - by_losses - at_first).max(0);
        // The time of sending between two stalls is a part of each round trip, so all of the rest is due to the window.
        let by_window = match stalled > 0 && stalled - at_first >= rest / IDLE_PART {
            true => rest,
            false => 0,
        };
        // A window that stays small shows in several round trips of one message; before that it may be growing, also after a pause of the
        // connection (RFC 5681, 4.1).
        let is_growing = by_window < SEVERAL_TRIPS.saturating_mul(transfer.trip_ns);
        LimitedByWindows {
            by_losses,
            at_first: at_first + if is_growing { by_window } else { 0 },
            by_sender: if is_growing { 0 } else { by_window },
        }
    }

    /// How long a message's sender stopped until acknowledgements arrived, ns; 0 if losses or a full link are the reason.
    fn stalled_ns(&self, request: &TracedRequest, is_answer: bool) -> i64 {
        let (stalled_ns, again) = match is_answer {
            true => (request.network.stalled_back_ns, request.network.again_back),
            false => (
                request.network.stalled_there_ns,
                request.network.again_there,
            ),
        };
        let is_lossy = again > 0 || self.history.is_after_loss(request, is_answer);
        let is_of_path = (self.rates.get(&(request.unit, is_answer)))
            .is_some_and(|rate| rate.is_full() || rate.drops > 0);
        match is_lossy || is_of_path {
            true => 0,
            false => stalled_ns,
        }
    }

    /// The transfer of a message that is delayed only by distance, the initial windows of its connection, and the rate of the slowest link
    /// if links were recorded.
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
