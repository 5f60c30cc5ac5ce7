//! RACK, loss detection by time (RFC 8985): a segment that was sent before the newest one that has arrived, and is
//! overdue, counts as lost.

use super::scoreboard::{Scoreboard, TcpNewestArrival, TcpSegmentFate};
use super::sender::{TcpRecoveryPhase, TcpSender, TcpTimerPurpose};
use super::sequence_numbers::TcpStreamRange;
use stackline_core::time::{Duration, Instant};

impl Scoreboard {
    /// Marks segments as lost that were sent before the newest one that has arrived, and longer ago than its round trip
    /// and `settle` (RFC 8985, 6.2). Returns when to check again, if a segment sent before it is not overdue yet.
    pub(super) fn detect(
        &mut self,
        now: Instant,
        newest: &TcpNewestArrival,
        settle: Duration,
    ) -> Option<Instant> {
        let patience = newest.rtt + settle;
        let mut again = None;
        let mut wait = |at: Instant| again = Some(again.map_or(at, |other: Instant| other.max(at)));
        let mut at = self.runs.partition_point(|run| run.end <= self.judged);
        while let Some(&run) = self.runs.get(at) {
            if run.fate == TcpSegmentFate::InFlight && !run.again {
                let (end, segments) = match run.sent.cmp(&newest.sent) {
                    core::cmp::Ordering::Less => (run.end, run.segments),
                    core::cmp::Ordering::Equal => run.boundary_to(newest.end.saturating_sub(1)),
                    core::cmp::Ordering::Greater => (run.start, 0),
                };
                if segments == 0 {
                    break;
                }
                if run.sent + patience > now {
                    wait(newest.sent.min(run.sent) + patience);
                    break;
                }
                at = self.lose(at, (run.start, end, segments));
                self.judged = end;
                if end < run.end {
                    break;
                }
            } else {
                self.judged = run.end;
            }
            at += 1;
        }
        while let Some(&(range, sent)) = self.retransmissions.front() {
            if (sent, range.end) >= (newest.sent, newest.end) {
                break;
            }
            if sent + patience > now {
                wait(sent + patience);
                break;
            }
            self.retransmissions.pop_front();
            self.lose_retransmission(range, sent);
        }
        again
    }

    /// Marks the parts of a retransmission of time `sent` as lost that are still in flight.
    fn lose_retransmission(&mut self, range: TcpStreamRange, sent: Instant) {
        let mut at = self.runs.partition_point(|run| run.end <= range.start);
        while let Some(&run) = self.runs.get(at) {
            if run.start >= range.end {
                break;
            }
            if run.fate == TcpSegmentFate::InFlight && run.again && run.sent == sent {
                let ((start, first), (end, last)) =
                    (run.boundary_from(range.start), run.boundary_to(range.end));
                if start < end {
                    at = self.lose(at, (start, end, last - first));
                }
            }
            at += 1;
        }
    }
}

impl TcpSender {
    /// The reordering wait: how long a segment may still be in flight after a later one has arrived.
    pub(super) fn settle(&self) -> Duration {
        if !self.reordered
            && (self.phase >= TcpRecoveryPhase::Recovery || self.board.sacked >= self.reordering)
        {
            return Duration::ZERO;
        }
        let quarter = self.rtt.minimum().unwrap_or(Duration::ZERO).0 / 4;
        let least = quarter.saturating_mul(self.reordering_window.quarters());
        Duration(least.min(self.rtt.smoothed().0))
    }

    /// Updates losses and the phase after an acknowledgement. Returns when to check again for segments that may only be
    /// reordered.
    pub(super) fn detect_losses(&mut self, now: Instant) -> Option<Instant> {
        if self.una >= self.high {
            self.leave_phase();
        }
        let wait = self.board.detect(now, &self.newest, self.settle());
        if self.board.lost > 0 && self.phase < TcpRecoveryPhase::Recovery {
            self.enter_recovery();
        } else if self.phase <= TcpRecoveryPhase::Disorder {
            self.phase = if self.board.sacked > 0 {
                TcpRecoveryPhase::Disorder
            } else {
                TcpRecoveryPhase::Open
            };
        }
        wait
    }

    /// Handles the timer for reordering: segments that are still missing are lost.
    pub(super) fn check_reordering(&mut self, now: Instant) {
        let before = self.board.lost;
        let wait = self.board.detect(now, &self.newest, self.settle());
        let lost = self.board.lost - before;
        if lost > 0 && self.phase < TcpRecoveryPhase::Recovery {
            self.enter_recovery();
            if self.pacing.is_none() {
                self.reduce(false, 1, lost);
            }
        }
        self.timer = match wait {
            Some(at) if lost == 0 => Some((TcpTimerPurpose::Reordering, at)),
            _ => Some((
                TcpTimerPurpose::Timeout,
                self.rtt.expires(now, self.backoff),
            )),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::scoreboard::TcpAckEffect;
    use crate::tcp::scoreboard::tests::{range, sent};

    #[test]
    fn segments_before_the_newest_arrival_are_lost_once() {
        let mut board = sent(10);
        board.sack(range(6, 8), &mut TcpAckEffect::default());
        let newest = TcpNewestArrival {
            sent: Instant(3),
            end: 8001,
            rtt: Duration(100),
        };
        assert_eq!(
            board.detect(Instant(103), &newest, Duration(50)),
            Some(Instant(150))
        );
        assert_eq!(board.lost, 0);
        assert_eq!(board.detect(Instant(153), &newest, Duration(50)), None);
        assert_eq!((board.lost, board.in_flight()), (6, 2));
        for n in 0..6 {
            assert_eq!(board.next_lost(), Some(range(n, n + 1)));
            board.send_again(range(n, n + 1), Instant(200 + n));
            board.check(1, 10_001);
        }
        assert_eq!((board.next_lost(), board.in_flight()), (None, 8));
        // The third of them arrives, so the two before it are lost again.
        board.sack(range(2, 3), &mut TcpAckEffect::default());
        let newest = TcpNewestArrival {
            sent: Instant(202),
            end: 3001,
            rtt: Duration(100),
        };
        assert_eq!(board.detect(Instant(302), &newest, Duration::ZERO), None);
        assert_eq!(board.lost, 4);
        board.check(1, 10_001);
    }
}
