//! How much may be sent while losses are repaired: proportional rate reduction (RFC 6937), tail loss probes (RFC 8985),
//! and undoing a needless reduction (RFC 3522). `rack` says what is lost, `timeout_recovery` what a time-out does.

use super::options::Recovery;
use super::sender::{TcpRecoveryPhase, TcpSender, TcpTimerPurpose, Undo};
use super::sequence_numbers::TcpStreamRange;
use stackline_core::time::{Duration, Instant};

impl TcpSender {
    /// Ends the phase: everything is acknowledged that was sent when it began.
    pub(super) fn leave_phase(&mut self) {
        match self.phase {
            // Held until something above is acknowledged: the CWR flag has then reached the
            // receiver.
            TcpRecoveryPhase::Reduction if self.una == self.high => return,
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery if self.pacing.is_none() => {
                self.congestion.window = self.congestion.threshold;
            }
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery => {}
            TcpRecoveryPhase::Loss => {}
            TcpRecoveryPhase::Open | TcpRecoveryPhase::Disorder => return,
        }
        if self.phase >= TcpRecoveryPhase::Recovery {
            self.reordering_window.recovered();
        }
        self.phase = TcpRecoveryPhase::Open;
        self.undo = None;
    }

    /// Begins to repair losses.
    pub(super) fn enter_recovery(&mut self) {
        if self.phase != TcpRecoveryPhase::Reduction {
            self.begin_reduction();
        }
        (self.phase, self.high) = (TcpRecoveryPhase::Recovery, self.next);
        self.probe = None;
    }

    /// Begins to reduce the window, and remembers the old one.
    fn begin_reduction(&mut self) {
        self.save_undo();
        self.prior = self.congestion.window;
        (self.delivered, self.sent_in_reduction) = (0, 0);
        self.reduce_window();
        self.ecn.slow();
        self.high = self.next;
    }

    /// Reduces the window after a congestion mark, as after a loss, with nothing to send again.
    pub(super) fn slow_down(&mut self) {
        self.begin_reduction();
        self.undo = None;
        self.phase = TcpRecoveryPhase::Reduction;
    }

    /// Computes the reduced threshold; a paced sender's model saves the window.
    pub(super) fn reduce_window(&mut self) {
        let window = self.congestion.window;
        self.congestion.reduce();
        if let Some(pacing) = &mut self.pacing {
            pacing.model.save(window);
        }
    }

    /// Remembers window and threshold in case the reduction proves needless.
    pub(super) fn save_undo(&mut self) {
        let (window, threshold) = (self.congestion.window, self.congestion.threshold);
        self.undo = Some(Undo {
            window,
            threshold,
            sent_again: None,
        });
    }

    /// Sets the window during a reduction (RFC 6937): it reaches the threshold when a whole window has arrived.
    pub(super) fn reduce(&mut self, advanced: bool, arrived: u32, lost: u32) {
        self.delivered += arrived;
        let (threshold, in_flight) = (self.congestion.threshold, self.in_flight());
        let sent = self.sent_in_reduction;
        let may = if in_flight > threshold {
            // Rounded up as in RFC 6937.
            let due = (u64::from(threshold) * u64::from(self.delivered))
                .div_ceil(u64::from(self.prior.max(1)));
            due.saturating_sub(u64::from(sent)) as u32
        } else {
            // The slow start reduction bound: one segment more while nothing new is lost.
            let more =
                self.delivered.saturating_sub(sent).max(arrived) + u32::from(advanced && lost == 0);
            more.min(threshold - in_flight)
        };
        // The first lost segment is sent at once.
        let may = may.max(u32::from(sent == 0));
        self.congestion.window = (in_flight + may).max(1);
    }

    /// Undoes the reduction if the acknowledged data arrived before anything was sent again, as its echoed timestamp
    /// shows.
    pub(super) fn try_undo(&mut self, now: Instant, echoed: Option<Duration>) {
        let Some(Undo {
            window,
            threshold,
            sent_again: Some(sent_again),
        }) = self.undo
        else {
            return;
        };
        let Some(echoed) = echoed else { return };
        // Timestamps are in whole ms, hence 2 ms of tolerance.
        if echoed.0 < now.since(sent_again).0 + 2_000_000 || self.phase < TcpRecoveryPhase::Recovery
        {
            return;
        }
        self.congestion.window = self.congestion.window.max(window);
        self.congestion.threshold = self.congestion.threshold.max(threshold);
        self.undo = None;
        // If the receiver has also reported duplicates, the segment that filled the gap was late and not lost: that is
        // reordering.
        self.reordered |= self.una < self.high && self.reordering_window.has_grown();
        self.board
            .nothing_is_lost(self.phase == TcpRecoveryPhase::Loss);
        self.phase = TcpRecoveryPhase::Open;
    }

    /// Ends a tail loss probe when everything up to its end is acknowledged.
    pub(super) fn probe_acknowledged(&mut self, upto: u64) {
        let Some((end, again)) = self.probe else {
            return;
        };
        if upto < end {
            return;
        }
        self.probe = None;
        if again && self.phase <= TcpRecoveryPhase::Disorder {
            // The probe repaired a loss that no acknowledgement shows.
            self.slow_down();
        }
    }

    /// Handles the sender's timer. Returns a probe that has to be sent although the window may be full.
    pub(super) fn timer_expired(&mut self, now: Instant, wait: TcpTimerPurpose) -> Option<Push> {
        self.timer = None;
        match wait {
            TcpTimerPurpose::TailProbe => {
                self.timer = Some((
                    TcpTimerPurpose::Timeout,
                    self.rtt.expires(now, self.backoff),
                ));
                (self.board.out > 0).then_some(Push::TailProbe)
            }
            TcpTimerPurpose::Reordering => {
                self.check_reordering(now);
                None
            }
            TcpTimerPurpose::Timeout => {
                if self.board.out > 0 && self.recovery == Recovery::Reno {
                    self.goes_back(now);
                } else if self.board.out > 0 {
                    self.time_out(now);
                }
                None
            }
            TcpTimerPurpose::WindowProbe => {
                self.backoff = (self.backoff + 1).min(16);
                Some(Push::WindowProbe)
            }
        }
    }

    /// The next lost segment that may be sent again now.
    pub(super) fn lost(&mut self) -> Option<TcpStreamRange> {
        if self.board.lost == 0 || (self.in_flight() >= self.congestion.window && !self.again) {
            return None;
        }
        let range = self.board.next_lost()?;
        // The first segment goes even beyond a window that has shrunk: it probes the window.
        (range.start < self.edge() || range.start <= self.una).then_some(range)
    }

    /// Notes that a range is sent again.
    pub(super) fn sends_again(&mut self, range: TcpStreamRange, now: Instant) {
        self.paces(now, range.len());
        self.again = false;
        self.board.send_again(range, now);
        self.times.progress(now);
        self.retransmits += 1;
        self.last_sent = now;
        if let Some(undo) = &mut self.undo {
            undo.sent_again = undo.sent_again.or(Some(now));
        }
        if matches!(
            self.phase,
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery
        ) {
            self.sent_in_reduction += 1;
        }
        if self
            .timer
            .is_none_or(|(wait, _)| wait == TcpTimerPurpose::TailProbe)
        {
            self.timer = Some((
                TcpTimerPurpose::Timeout,
                self.rtt.expires(now, self.backoff),
            ));
        }
    }
}

/// A probe that a timer sends although a window may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// New data, or the last segment again.
    TailProbe,
    /// As much data as fits into the peer's window, or none: the peer has to answer.
    WindowProbe,
}
