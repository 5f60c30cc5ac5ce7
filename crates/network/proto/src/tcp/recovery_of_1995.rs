//! Loss recovery as hosts of 1995 had it (4.3BSD-Reno, RFC 5681 section 3.2): duplicate acknowledgements are counted,
//! the third one sends one segment again, and the window is inflated until new data is acknowledged. Further losses in
//! a window need three more duplicates or a time-out, after which everything is sent again from one segment on. Nothing
//! reports what arrived behind a gap, and nothing is undone.

use super::scoreboard::TcpAckEffect;
use super::sender::{TcpRecoveryPhase, TcpSender};
use core::cmp::Ordering;
use stackline_core::time::{Duration, Instant};

/// Duplicate acknowledgements after which a segment counts as lost.
const DUPLICATES: u32 = 3;

/// The content of an acknowledgement for a sender that counts duplicates.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenoAcknowledgement {
    /// Everything before this place has arrived.
    pub(super) upto: u64,
    /// It carries no data and does not change the window.
    pub(super) bare: bool,
    /// The age of the timestamp that it echoes.
    pub(super) echoed: Option<Duration>,
    /// It says that a queue has marked a packet.
    pub(super) marked: bool,
}

impl TcpSender {
    /// Handles an acknowledgement of at most what was sent.
    pub(super) fn counts(&mut self, now: Instant, heard: &RenoAcknowledgement) {
        if heard.upto > self.una {
            self.advance(now, heard);
        } else if heard.bare && self.board.out > 0 {
            self.duplicate();
        } else {
            self.duplicates = 0;
        }
        if heard.marked && self.phase == TcpRecoveryPhase::Open && self.una >= self.high {
            self.halve();
            (self.congestion.window, self.high) = (self.congestion.threshold, self.next);
        }
    }

    /// Handles an acknowledgement of new data.
    fn advance(&mut self, now: Instant, heard: &RenoAcknowledgement) {
        let mut arrived = TcpAckEffect::default();
        self.una = heard.upto;
        self.board.acknowledge(heard.upto, &mut arrived);
        // Data that waited behind a gap gives no round-trip sample.
        let first = arrived
            .first
            .filter(|_| self.phase == TcpRecoveryPhase::Open)
            .map(|sent| now.since(sent));
        if let Some(sample) = first.or(heard.echoed) {
            self.rtt.sample(now, sample, self.una, self.next);
            self.backoff = 0;
        }
        (self.duplicates, self.again) = (0, false);
        if self.phase == TcpRecoveryPhase::Recovery {
            self.congestion.window = self.congestion.window.min(self.congestion.threshold);
            self.phase = TcpRecoveryPhase::Loss;
        } else {
            // One acknowledgement counts as one segment, whatever it covers.
            self.congestion.grow(now, 1);
        }
        if self.board.lost == 0 && (self.una >= self.high || !self.timed_out) {
            (self.phase, self.timed_out) = (TcpRecoveryPhase::Open, false);
        }
        self.times.progress(now);
        self.arm(now);
    }

    /// Handles a duplicate acknowledgement.
    fn duplicate(&mut self) {
        self.duplicates += 1;
        match self.duplicates.cmp(&DUPLICATES) {
            Ordering::Less => {}
            Ordering::Equal => {
                self.halve();
                self.board.lose_first();
                self.congestion.window = self.congestion.threshold + DUPLICATES;
                (self.phase, self.again) = (TcpRecoveryPhase::Recovery, true);
                // The timer begins when the segment is sent again.
                self.timer = None;
            }
            Ordering::Greater => self.congestion.window += 1,
        }
    }

    /// Sets the threshold to half of what may be in flight: of the smaller of both windows.
    fn halve(&mut self) {
        let offered =
            (self.window / u64::from(self.mss.max(1))).clamp(1, u64::from(u32::MAX)) as u32;
        self.congestion.window = self.congestion.window.min(offered);
        self.congestion.reduce();
        self.ecn.slow();
    }

    /// Handles a time-out (go-back-N): everything not acknowledged is sent again, as the window opens from one segment.
    pub(super) fn goes_back(&mut self, now: Instant) {
        self.times.timed_out(now);
        self.halve();
        self.board.lose_all(Instant(u64::MAX));
        self.congestion.reset(now, self.next);
        self.congestion.window = 1;
        (self.phase, self.high, self.timed_out) = (TcpRecoveryPhase::Loss, self.next, true);
        (self.duplicates, self.again) = (0, false);
        self.backoff = (self.backoff + 1).min(16);
        self.timer = Some((
            super::sender::TcpTimerPurpose::Timeout,
            self.rtt.expires(now, self.backoff),
        ));
    }

    /// Reduces the window to the initial one after a pause.
    pub(super) fn begins_again(&mut self, idle: Duration) {
        if idle >= self.rtt.timeout(0) {
            self.congestion.window = self.congestion.window.min(self.first_window);
        }
    }
}
