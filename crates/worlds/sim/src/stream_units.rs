//! Data units that come one after the other out of a stream, as a trace shows them.

use crate::context::SimEndpointContext;
use crate::run_trace::Coming;

/// Data units that come one after the other out of a stream.
#[derive(Debug)]
pub(crate) struct Units<'d> {
    context: &'d SimEndpointContext,
    bytes: u64,
    times: u64,
    what: Coming,
    /// How many are there, and whether the next one is waited for.
    there: u64,
    awaited: bool,
}

impl<'d> Units<'d> {
    /// So many of so many bytes each; nothing of them is there.
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

    /// So many bytes of them are there; if that is not all, the next is waited for. Call it before each wait and at last.
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
