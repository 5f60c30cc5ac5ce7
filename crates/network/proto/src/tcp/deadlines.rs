//! The timers of a connection: its next deadline, and what it does when one expires.

use super::connection::{TcpConnection, TcpState};
use super::sender::TcpTimerPurpose;
use stackline_core::time::{Duration, Instant};

/// How many times a SYN is sent before the connection is given up.
const MOST_SYNS: u32 = 7;
/// How many times the answer to a SYN is sent.
const MOST_ANSWERS: u32 = 6;
/// Time-outs in a row before the connection is given up.
const MOST_TIMEOUTS: u32 = 15;
/// The length of TIME-WAIT, in which late segments are answered. Linux waits a minute, in case a peer reuses its ports.
pub(super) const TIME_WAIT: Duration = Duration(1_000_000_000);

impl TcpConnection {
    /// The next instant at which [`TcpConnection::poll`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.output_pending {
            return Some(Instant(0));
        }
        // Asked behind each event of a simulation, where comparing options with their causes took a quarter of the time.
        const NEVER: u64 = u64::MAX;
        let at = |moment: Option<Instant>| moment.map_or(NEVER, |moment| moment.0);
        let paced = self.sender.pacing.as_ref().and_then(|pacing| pacing.waits);
        let least = at(self.sender.timer.map(|(_, at)| at))
            .min(at(paced))
            .min(at(self.receiver.delayed))
            .min(at(self.receiver.gathering))
            .min(at(self.handshake))
            .min(at(self.end))
            .min(at(self.gives_up_at()));
        (least != NEVER).then_some(Instant(least))
    }

    fn gives_up_at(&self) -> Option<Instant> {
        let timeout = self.options.timeout?;
        (!matches!(
            self.state,
            TcpState::Closed | TcpState::Listen | TcpState::TimeWait
        ))
        .then(|| self.last_received + timeout)
    }

    /// Handles all timers that have expired.
    pub(super) fn handle_timers(&mut self, now: Instant) {
        let due = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
        if let Some((wait, at)) = self.sender.timer
            && at <= now
        {
            self.handle_sender_timer(now, wait);
        }
        if let Some(pacing) = &mut self.sender.pacing
            && pacing.waits.is_some_and(|at| at <= now)
        {
            pacing.waits = None;
            self.output_pending = true;
        }
        if due(self.receiver.delayed) || due(self.receiver.gathering) {
            self.receiver.handle_timer(now);
            self.output_pending = true;
        }
        if due(self.handshake) {
            self.handshake = None;
            self.handle_handshake_timer();
        }
        if due(self.end) {
            self.terminate(false);
        }
        if due(self.gives_up_at()) {
            self.abort();
        }
    }

    fn handle_sender_timer(&mut self, now: Instant, wait: TcpTimerPurpose) {
        self.output_pending = true;
        if wait == TcpTimerPurpose::Timeout {
            if self.sender.timeouts >= MOST_TIMEOUTS {
                return self.terminate(true);
            }
            self.sender.timeouts += 1;
        }
        if let Some(push) = self.sender.timer_expired(now, wait) {
            self.push = Some(push);
        }
    }

    fn handle_handshake_timer(&mut self) {
        let most = if self.state == TcpState::SynSent {
            MOST_SYNS
        } else {
            MOST_ANSWERS
        };
        if self.syns >= most {
            self.terminate(true);
        }
        self.output_pending = true;
    }

    /// Notes that a SYN, or the answer to one, is sent, and sets the timer for the next: after the first time-out, then
    /// twice as long, and so on.
    pub(super) fn syn_leaves(&mut self, now: Instant) {
        let again = self.sender.rtt.syn_expires(now, self.syns);
        if self.syns > 0 {
            self.sender.retransmits += 1;
            self.emit_handshake();
        } else {
            self.syn_sent = now;
        }
        self.syns += 1;
        self.handshake = Some(again);
    }
}
