//! One direction of a QUIC stream, as packets or a log show it: when its bytes left and arrived, and what was retransmitted.

use crate::exchange::ExchangeMessage;
use crate::stream_progress::{Arrivals, StreamPointProgress};
use stackline_dissect::left_out::LeftOut;

/// One direction of a stream.
#[derive(Clone, Debug, Default)]
pub struct QuicStreamDirection {
    /// When bytes left their sender.
    left: StreamPointProgress,
    /// When bytes arrived at their receiver, in order.
    arrived: Arrivals,
    /// The number of frames that were retransmitted.
    again: u64,
    /// The longest time from the first transmission of a byte to a retransmission, ns.
    again_ns: u64,
    /// How long its sender sent nothing in the midst of it although all before had arrived, ns.
    paused_ns: u64,
}

impl QuicStreamDirection {
    /// Bytes between two offsets leave.
    pub fn leave(&mut self, from: u64, end: u64, at_ns: u64) {
        if end > from && end <= self.left.end() {
            self.again += 1;
            let first_ns = self.left.moment_of(from).map_or(at_ns, |first| first.at_ns);
            self.again_ns = self.again_ns.max(at_ns.saturating_sub(first_ns));
        }
        self.left.pass(end, at_ns, 0);
    }

    /// Its sender sent nothing on it for that long, although all before had arrived and there was room. Only between its first and its last
    /// byte is that a pause.
    pub const fn pause(&mut self, ns: u64) {
        if self.left.end() > 0 {
            self.paused_ns = self.paused_ns.saturating_add(ns);
        }
    }

    /// Bytes between two offsets arrive.
    pub fn arrive(&mut self, from: u64, end: u64, at_ns: u64) {
        self.arrived.segment(from, end, at_ns);
    }

    /// How many bytes have left.
    #[must_use]
    pub const fn left_end(&self) -> u64 {
        self.left.end()
    }

    /// How many bytes have arrived without a hole.
    #[must_use]
    pub const fn arrived_end(&self) -> u64 {
        self.arrived.progress().end()
    }

    /// Adds what the other end saw: one end knows when bytes left, the other when they arrived.
    pub fn join(&mut self, other: Self) {
        if other.left.end() > 0 {
            (self.left, self.again, self.again_ns) = (other.left, other.again, other.again_ns);
            self.paused_ns = other.paused_ns;
        }
        if other.arrived.progress().end() > 0 {
            self.arrived = other.arrived;
        }
    }

    /// Adds what was left out because a limit was reached.
    pub fn left_out(&self, into: &mut LeftOut) {
        self.left.left_out(into);
        self.arrived.left_out(into);
    }

    /// The message that its sender sent on it; `end` is its length, or what passed where that is not known.
    #[must_use]
    pub fn message(&self, end: Option<u64>) -> ExchangeMessage {
        let end = end.unwrap_or_else(|| self.left_end().max(self.arrived_end()));
        let pair = |progress: &StreamPointProgress| {
            Some((progress.moment_of(0)?.at_ns, progress.whole(end)?.at_ns))
        };
        ExchangeMessage {
            end,
            left: pair(&self.left),
            arrived: pair(self.arrived.progress()),
            again: self.again,
            again_ns: self.again_ns,
            paused_ns: self.paused_ns,
            ..ExchangeMessage::default()
        }
    }
}
