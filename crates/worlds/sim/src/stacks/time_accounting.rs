//! Where a sender's time went. A machine that tells only afterwards what held it up books each stretch of time when it is
//! over; one that knows at once says what it turns to.
//!
//! It knows no protocol and never looks ahead: what is not over yet counts as what was booked last.

use stackline_core::run_record::SenderLimitTimes;
use stackline_core::time::{Duration, Instant};

/// What holds a sender with data up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SenderHoldUp {
    /// The network, an application without more, or what a machine does not tell apart from these.
    #[default]
    Network,
    /// The receiver's window: everything that it lets go is on its way.
    ReceiveWindow,
    /// The send buffer: it is full, and all of it is on its way.
    SendBuffer,
    /// The congestion window, while it still doubles in each round trip.
    SlowStart,
    /// The congestion window.
    CongestionWindow,
    /// What was lost is sent again.
    Recovery,
    /// A timer that has to expire before what was lost is sent again.
    Timeout,
}

/// How many there are.
const KINDS: usize = 7;

/// Times with data to send or on its way, by what held the sender up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeAccount {
    /// Since when nothing was booked; none without data.
    since: Option<Instant>,
    last: SenderHoldUp,
    booked: [u64; KINDS],
}

impl TimeAccount {
    /// There is data.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.since.is_none() {
            (self.since, self.last) = (Some(now), SenderHoldUp::Network);
        }
    }

    /// What it was that held the sender up until now.
    pub(super) fn book(&mut self, held: SenderHoldUp, now: Instant) {
        if let Some(since) = self.since {
            self.booked[held as usize] += now.since(since).0;
            (self.since, self.last) = (Some(now), held);
        }
    }

    /// What holds the sender up from now on, where its machine tells at once.
    pub(super) fn turn(&mut self, held: SenderHoldUp, now: Instant) {
        self.begin(now);
        self.book(self.last, now);
        self.last = held;
    }

    /// There is no data any more.
    pub(super) const fn end(&mut self) {
        self.since = None;
    }

    /// Whether there is data to send or on its way.
    pub(super) const fn is_busy(&self) -> bool {
        self.since.is_some()
    }

    /// Time held up by that.
    pub(super) fn by(&self, held: SenderHoldUp, now: Instant) -> Duration {
        let open = self
            .since
            .filter(|_| self.last == held)
            .map_or(0, |since| now.since(since).0);
        Duration(self.booked[held as usize] + open)
    }

    /// Time with data, for whatever reason.
    pub(super) fn busy(&self, now: Instant) -> Duration {
        let open = self.since.map_or(0, |since| now.since(since).0);
        Duration(self.booked.iter().sum::<u64>() + open)
    }

    /// How long nothing was booked while there is data.
    pub(super) fn unbooked(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Times that are neither the receiver's window's nor the send buffer's.
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
