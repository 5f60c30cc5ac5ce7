//! What limits the sender over time: network, receiver's window, or an application that waits for room.

use stackline_core::time::{Duration, Instant};

/// What holds the sender up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing to send.
    #[default]
    Idle,
    /// The network and the congestion window.
    Busy,
    /// The receiver's window.
    ReceiveWindow,
    /// The send buffer is full and all of it is in flight.
    SendBuffer,
}

/// Times by what held the sender up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeAccounting {
    now: Limit,
    since: Instant,
    spent: [u64; 4],
}

impl TimeAccounting {
    pub(super) fn set(&mut self, held: Limit, now: Instant) {
        if held != self.now {
            self.spent[self.now as usize] += now.since(self.since).0;
            (self.now, self.since) = (held, now);
        }
    }

    fn total(&self, held: Limit, now: Instant) -> Duration {
        let running = if self.now == held { now.since(self.since).0 } else { 0 };
        Duration(self.spent[held as usize] + running)
    }

    /// Time with unsent data or data in flight, for any reason.
    pub(super) fn busy(&self, now: Instant) -> Duration {
        [Limit::Busy, Limit::ReceiveWindow, Limit::SendBuffer]
            .into_iter()
            .fold(Duration::ZERO, |sum, held| sum + self.total(held, now))
    }

    pub(super) fn receive_window(&self, now: Instant) -> Duration {
        self.total(Limit::ReceiveWindow, now)
    }

    pub(super) fn send_buffer(&self, now: Instant) -> Duration {
        self.total(Limit::SendBuffer, now)
    }
}
