//! What a sender with [`super::Recovery::Linux`] does at a retransmission time-out (RFC 6298): everything overdue
//! counts as lost, and the window begins with one segment more than is in flight. How long the time-out is:
//! `rtt_and_timeout`.

use super::sender::{TcpRecoveryPhase, TcpSender, TcpTimerPurpose};
use stackline_core::time::Instant;

impl TcpSender {
    /// Handles a time-out while something is in flight.
    pub(super) fn time_out(&mut self, now: Instant) {
        self.times.timed_out(now);
        if self.phase <= TcpRecoveryPhase::Disorder
            || self.una >= self.high
            || (self.phase == TcpRecoveryPhase::Loss && self.backoff == 0)
        {
            self.save_undo();
            self.reduce_window();
            self.ecn.slow();
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.model.timed_out();
        }
        // Segments sent later than a round trip and the reordering wait ago are not overdue yet.
        let patience = (self.newest.rtt + self.settle()).0;
        let recent = if self.newest.end == 0 {
            u64::MAX
        } else {
            now.0.saturating_sub(patience)
        };
        self.board.forget_false_sacks();
        self.board.lose_all(Instant(recent));
        self.congestion.reset(now, self.next);
        self.congestion.window = self.in_flight() + 1;
        (self.phase, self.high) = (TcpRecoveryPhase::Loss, self.next);
        self.probe = None;
        self.backoff = (self.backoff + 1).min(16);
        self.timer = Some((
            TcpTimerPurpose::Timeout,
            self.rtt.expires(now, self.backoff),
        ));
    }
}
