//! Traces the data units that a receiver takes one after the other out of a stream.

use crate::context::SimEndpointContext;
use crate::run_trace::Coming;

/// Counts the data units that have arrived in a stream, for the trace.
#[derive(Debug)]
pub(crate) struct Units<'d> {
    context: &'d SimEndpointContext,
    bytes: u64,
    times: u64,
    what: Coming,
    /// The number of units that have arrived.
    there: u64,
    /// Whether the wait for the next unit was recorded.
    awaited: bool,
}

impl<'d> Units<'d> {
    /// A counter of `times` units of `bytes` bytes each, none of which has arrived.
    pub(crate) const fn new(
        context: &'d SimEndpointContext,
        bytes: u64,
        times: u64,
        what: Coming,
    ) -> Self {
        Self {
            context,
            bytes,
            times,
            what,
            there: 0,
            awaited: false,
        }
    }

    /// Records that `bytes` bytes have arrived in all; if units are missing, that the next one is awaited. Call it
    /// before each wait and at the end.
    #[inline]
    pub(crate) fn are(&mut self, bytes: u64) {
        if self.context.is_traced() {
            self.record(bytes);
        }
    }

    fn record(&mut self, bytes: u64) {
        let whole = bytes.checked_div(self.bytes).unwrap_or(0);
        while self.there < whole {
            self.context.trace(|line, at| {
                line.comes(at, self.what, self.bytes, None);
                line.moved(0, self.bytes);
            });
            (self.there, self.awaited) = (self.there + 1, false);
        }
        let waits = self.there < self.times && self.what != Coming::Response;
        if waits && !std::mem::replace(&mut self.awaited, true) {
            self.context.trace(|line, at| line.awaits(at, self.bytes));
        }
    }
}
