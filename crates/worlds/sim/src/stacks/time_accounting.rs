//! Accounts for a sender's time: how long each reason held it up. A machine that learns the reason only afterwards calls
//! [`TimeAccount::book`] at the end of each interval; one that knows the reason at once calls [`TimeAccount::turn`] at its beginning.
//!
//! It knows no protocol. An interval that has not ended counts for the reason that was given last.

use stackline_core::run_record::SenderLimitTimes;
use stackline_core::time::{Duration, Instant};

/// The reason why a sender with data does not send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SenderHoldUp {
    /// The network, an application that has no more data, or anything that a machine does not tell apart from these.
    #[default]
    Network,
    /// The receiver's window: all that it allows is in flight.
    ReceiveWindow,
    /// The send buffer: it is full, and all of it is in flight.
    SendBuffer,
    /// The congestion window, while it still doubles in each round trip.
    SlowStart,
    /// The congestion window.
    CongestionWindow,
    /// Recovery: lost packets are being retransmitted.
    Recovery,
    /// A retransmission timer that has to expire before lost packets are retransmitted.
    Timeout,
}

/// The number of variants of [`SenderHoldUp`].
const KINDS: usize = 7;

/// The time with data to send or in flight, divided by what held the sender up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeAccount {
    /// When the interval that is not booked yet began; `None` without data.
    since: Option<Instant>,
    /// The reason that was given last.
    last: SenderHoldUp,
    /// Booked times in ns, by reason.
    booked: [u64; KINDS],
}

impl TimeAccount {
    /// There is data from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.since.is_none() {
            (self.since, self.last) = (Some(now), SenderHoldUp::Network);
        }
    }

    /// Books the interval until now for `held`.
    pub(super) fn book(&mut self, held: SenderHoldUp, now: Instant) {
        if let Some(since) = self.since {
            self.booked[held as usize] += now.since(since).0;
            (self.since, self.last) = (Some(now), held);
        }
    }

    /// Books the interval until now for the previous reason; from now on the reason is `held`.
    pub(super) fn turn(&mut self, held: SenderHoldUp, now: Instant) {
        self.begin(now);
        self.book(self.last, now);
        self.last = held;
    }

    /// There is no data any more: the clock stops.
    pub(super) const fn end(&mut self) {
        self.since = None;
    }

    /// Whether there is data to send or in flight.
    pub(super) const fn is_busy(&self) -> bool {
        self.since.is_some()
    }

    /// The time held up by `held`, up to now.
    pub(super) fn by(&self, held: SenderHoldUp, now: Instant) -> Duration {
        let open = self
            .since
            .filter(|_| self.last == held)
            .map_or(0, |since| now.since(since).0);
        Duration(self.booked[held as usize] + open)
    }

    /// The time with data, whatever the reason.
    pub(super) fn busy(&self, now: Instant) -> Duration {
        let open = self.since.map_or(0, |since| now.since(since).0);
        Duration(self.booked.iter().sum::<u64>() + open)
    }

    /// How long ago the last booking was; 0 without data.
    pub(super) fn unbooked(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The times of all reasons but the receiver's window and the send buffer, which a run record reports separately.
    pub(super) fn limits(&self, now: Instant) -> SenderLimitTimes {
        let seconds = |held| self.by(held, now).seconds();
        SenderLimitTimes {
            application_s: seconds(SenderHoldUp::Network),
            slow_start_s: seconds(SenderHoldUp::SlowStart),
            congestion_window_s: seconds(SenderHoldUp::CongestionWindow),
            recovery_s: seconds(SenderHoldUp::Recovery),
            timeout_s: seconds(SenderHoldUp::Timeout),
            nagle_s: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spent: &TimeAccount, at: u64) -> [u64; 4] {
        let by = |held| spent.by(held, Instant(at)).0;
        [
            spent.busy(Instant(at)).0,
            by(SenderHoldUp::Network),
            by(SenderHoldUp::ReceiveWindow),
            by(SenderHoldUp::SendBuffer),
        ]
    }

    #[test]
    fn time_is_what_was_said_of_it_when_it_was_over() {
        let mut spent = TimeAccount::default();
        spent.begin(Instant(100));
        spent.begin(Instant(150));
        spent.book(SenderHoldUp::Network, Instant(200));
        spent.book(SenderHoldUp::SendBuffer, Instant(500));
        spent.book(SenderHoldUp::ReceiveWindow, Instant(600));
        assert_eq!(times(&spent, 600), [500, 100, 100, 300]);
        // What goes on counts as what was said last.
        assert_eq!(times(&spent, 650), [550, 100, 150, 300]);
    }

    #[test]
    fn time_goes_to_what_was_noted_at_its_beginning() {
        let mut spent = TimeAccount::default();
        spent.turn(SenderHoldUp::ReceiveWindow, Instant(100));
        assert_eq!(times(&spent, 130), [30, 0, 30, 0]);
        spent.turn(SenderHoldUp::Network, Instant(150));
        spent.turn(SenderHoldUp::Network, Instant(160));
        assert_eq!(times(&spent, 200), [100, 50, 50, 0]);
    }

    #[test]
    fn without_data_no_time_is_spent() {
        let mut spent = TimeAccount::default();
        spent.book(SenderHoldUp::ReceiveWindow, Instant(50));
        assert_eq!(times(&spent, 80), [0; 4]);
        spent.begin(Instant(100));
        spent.book(SenderHoldUp::ReceiveWindow, Instant(120));
        spent.end();
        assert!(!spent.is_busy());
        assert_eq!(times(&spent, 900), [20, 0, 20, 0]);
        spent.begin(Instant(1000));
        assert_eq!(times(&spent, 1010), [30, 10, 20, 0]);
    }
}
