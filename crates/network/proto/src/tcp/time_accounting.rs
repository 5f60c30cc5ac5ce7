//! Accounts for the sender's time: every moment since the connection began belongs to exactly one state, so that the
//! times of all states add up to the whole. The accounting decides nothing.

use stackline_core::time::{Duration, Instant};

/// The state: what keeps the sender from sending more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TcpSendLimit {
    /// There is nothing to send, and nothing in flight.
    #[default]
    Idle,
    /// The application: everything that it has written is in flight.
    Application,
    /// The receiver's window.
    ReceiveWindow,
    /// The send buffer is full and all of it is in flight.
    SendBuffer,
    /// The congestion window, while it still doubles in each round trip.
    SlowStart,
    /// The congestion window.
    CongestionWindow,
    /// Lost data is being sent again.
    Recovery,
    /// A timer that has to expire before what was lost is sent again.
    Timeout,
    /// Nagle's algorithm: the rest is smaller than a segment.
    Nagle,
}

/// The number of states of [`TcpSendLimit`].
const STATES: usize = 9;

/// The times spent in each state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeAccounting {
    /// The present state.
    now: TcpSendLimit,
    /// When the present state began.
    since: Instant,
    /// When something was last sent or acknowledged.
    progress: Instant,
    /// Ended time in each state, in ns.
    spent: [u64; STATES],
}

/// The times of some states, for callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpLimitTimes {
    /// Everything written was in flight: more data had to come from the application, or an answer from the peer.
    pub application: Duration,
    /// The congestion window in slow start.
    pub slow_start: Duration,
    /// The congestion window otherwise.
    pub congestion_window: Duration,
    /// Lost data is being sent again.
    pub recovery: Duration,
    /// A timer had to expire before something lost was sent again.
    pub timeout: Duration,
    /// Nagle's algorithm.
    pub nagle: Duration,
}

impl TimeAccounting {
    pub(super) fn set(&mut self, limit: TcpSendLimit, now: Instant) {
        if limit != self.now {
            self.spent[self.now as usize] += now.since(self.since).0;
            (self.now, self.since) = (limit, now);
        }
    }

    /// Notes that something was sent or acknowledged.
    pub(super) const fn progress(&mut self, now: Instant) {
        self.progress = now;
    }

    /// Counts the time since the last progress as [`TcpSendLimit::Timeout`]: a timer for lost data has expired, and
    /// nothing else was waited for.
    pub(super) fn timed_out(&mut self, now: Instant) {
        let waited = self.progress.max(self.since);
        self.spent[self.now as usize] += waited.since(self.since).0;
        self.spent[TcpSendLimit::Timeout as usize] += now.since(waited).0;
        (self.since, self.progress) = (now, now);
    }

    fn total(&self, limit: TcpSendLimit, now: Instant) -> Duration {
        let running = if self.now == limit {
            now.since(self.since).0
        } else {
            0
        };
        Duration(self.spent[limit as usize] + running)
    }

    /// Time with unsent data or data in flight, for any reason.
    pub(super) fn busy(&self, now: Instant) -> Duration {
        let all: u64 = self.spent.iter().sum::<u64>() + now.since(self.since).0;
        Duration(all - self.total(TcpSendLimit::Idle, now).0)
    }

    pub(super) fn receive_window(&self, now: Instant) -> Duration {
        self.total(TcpSendLimit::ReceiveWindow, now)
    }

    pub(super) fn send_buffer(&self, now: Instant) -> Duration {
        self.total(TcpSendLimit::SendBuffer, now)
    }

    pub(super) fn spent(&self, now: Instant) -> TcpLimitTimes {
        TcpLimitTimes {
            application: self.total(TcpSendLimit::Application, now),
            slow_start: self.total(TcpSendLimit::SlowStart, now),
            congestion_window: self.total(TcpSendLimit::CongestionWindow, now),
            recovery: self.total(TcpSendLimit::Recovery, now),
            timeout: self.total(TcpSendLimit::Timeout, now),
            nagle: self.total(TcpSendLimit::Nagle, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_in_one_state() {
        let mut times = TimeAccounting::default();
        times.set(TcpSendLimit::SlowStart, Instant(100));
        times.set(TcpSendLimit::ReceiveWindow, Instant(250));
        times.set(TcpSendLimit::Idle, Instant(300));
        times.set(TcpSendLimit::Application, Instant(1000));
        let now = Instant(1010);
        assert_eq!(
            (times.busy(now), times.receive_window(now)),
            (Duration(210), Duration(50))
        );
        assert_eq!(
            (times.spent(now).slow_start, times.spent(now).application),
            (Duration(150), Duration(10))
        );
    }

    #[test]
    fn a_timer_takes_what_was_waited_for_it() {
        let mut times = TimeAccounting::default();
        times.set(TcpSendLimit::CongestionWindow, Instant(100));
        times.progress(Instant(140));
        times.timed_out(Instant(340));
        let spent = times.spent(Instant(350));
        assert_eq!(
            (spent.congestion_window, spent.timeout),
            (Duration(50), Duration(200))
        );
        assert_eq!(times.busy(Instant(350)), Duration(250));
    }
}
