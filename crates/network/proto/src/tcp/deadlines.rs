//! Deadlines of a connection, and what it does at them.

use super::connection::{TcpConnection, TcpPollCause, TcpState};
use super::sender::TcpTimerPurpose;
use stackline_core::time::{Duration, Instant};

/// Retransmissions of a SYN, of its answer, and of other segments before the connection is given up.
const MOST_SYNS: u32 = 7;
const MOST_ANSWERS: u32 = 6;
const MOST_TIMEOUTS: u32 = 15;
/// How long TIME-WAIT answers what is late. Linux waits a minute, for the sake of a peer whose last ports come back.
pub(super) const TIME_WAIT: Duration = Duration(1_000_000_000);

impl TcpConnection {
    /// The next instant at which [`TcpConnection::poll`] has something to do, and why.
    #[must_use]
    pub fn deadline(&self) -> Option<(Instant, TcpPollCause)> {
        if self.output_pending {
            return Some((Instant(0), TcpPollCause::Send));
        }
        let sender = self.sender.timer.map(|(wait, at)| {
            let cause = match wait {
                TcpTimerPurpose::Timeout => TcpPollCause::Retransmission,
                TcpTimerPurpose::TailProbe => TcpPollCause::TailProbe,
                TcpTimerPurpose::Reordering => TcpPollCause::Reordering,
                TcpTimerPurpose::WindowProbe => TcpPollCause::WindowProbe,
            };
            (at, cause)
        });
        let acknowledgement =
            |at: Option<Instant>| at.map(|at| (at, TcpPollCause::DelayedAcknowledgement));
        let given_up = self.gives_up_at().map(|at| (at, TcpPollCause::End));
        let paced = self.sender.pacing.as_ref().and_then(|pacing| pacing.waits);
        let all = [
            sender,
            paced.map(|at| (at, TcpPollCause::Send)),
            acknowledgement(self.receiver.delayed),
            acknowledgement(self.receiver.gathering),
            self.handshake.map(|at| (at, TcpPollCause::Retransmission)),
            self.end.map(|at| (at, TcpPollCause::End)),
            given_up,
        ];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn gives_up_at(&self) -> Option<Instant> {
        let timeout = self.options.timeout?;
        (!matches!(
            self.state,
            TcpState::Closed | TcpState::Listen | TcpState::TimeWait
        ))
        .then(|| self.last_received + timeout)
    }

    /// Does what is due.
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

    /// A SYN, or the answer to one, leaves; again after a first time-out, then after twice as long, and so on.
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
