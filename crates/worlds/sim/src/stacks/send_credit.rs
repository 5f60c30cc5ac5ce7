//! Limits the bytes of a host's sockets that wait in its interface: a sender waits for room there, so that its own host
//! drops nothing.

use crate::run_state::SimRunState;
use stackline_core::time::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Counts the bytes that were handed to an interface and have not left.
#[derive(Debug)]
pub(super) struct SendCredit {
    /// The most bytes that may wait.
    room: u64,
    state: RefCell<SendCreditState>,
}

#[derive(Debug, Default)]
struct SendCreditState {
    /// Bytes that were handed over and have not left.
    outstanding: u64,
    /// When packets will have left, ascending, and their bytes.
    departures: VecDeque<(Instant, u32)>,
    /// A sender waits.
    blocked: bool,
    /// The sender waits for a moment that is not known yet.
    in_the_dark: bool,
}

impl SendCreditState {
    /// The bytes that have not left by now.
    fn outstanding(&mut self, now: Instant) -> u64 {
        while let Some((at, bytes)) = self.departures.front()
            && *at <= now
        {
            self.outstanding = self.outstanding.saturating_sub(u64::from(*bytes));
            self.departures.pop_front();
        }
        self.outstanding
    }

    /// When at most `room` bytes will be left, if that is known.
    fn when(&self, room: u64) -> Option<Instant> {
        let mut left = self.outstanding;
        self.departures.iter().find_map(|(at, bytes)| {
            left = left.saturating_sub(u64::from(*bytes));
            (left <= room).then_some(*at)
        })
    }
}

impl SendCredit {
    /// A limit of `room` bytes.
    pub(super) fn new(room: u64) -> Self {
        Self {
            room,
            state: RefCell::default(),
        }
    }

    /// The limit in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.room
    }

    /// Checks whether there is room to send. Without room, the sender waits until half of it is free again, as in
    /// Linux; the error is the moment to check again, if that is known.
    pub(super) fn room(&self, shared: &SimRunState) -> Result<(), Option<Instant>> {
        let half = self.room / 2;
        let most = if self.state.borrow().blocked {
            half
        } else {
            self.room.saturating_sub(1)
        };
        self.down_to(most, half, shared)
    }

    /// Checks whether at most `most` bytes are left; the error is the moment when at most `then` will be, if that is
    /// known.
    pub(super) fn down_to(
        &self,
        most: u64,
        then: u64,
        shared: &SimRunState,
    ) -> Result<(), Option<Instant>> {
        let mut state = self.state.borrow_mut();
        let enough = state.outstanding(shared.now()) <= most;
        state.blocked = !enough;
        let when = if enough { None } else { state.when(then) };
        let dark = !enough && when.is_none();
        if dark != state.in_the_dark {
            state.in_the_dark = dark;
            let blocked = shared.blocked.get();
            shared
                .blocked
                .set(if dark { blocked + 1 } else { blocked - 1 });
        }
        if enough { Ok(()) } else { Err(when) }
    }

    /// Notes that `bytes` bytes were handed to the interface.
    pub(super) fn handed(&self, bytes: u64) {
        self.state.borrow_mut().outstanding += bytes;
    }

    /// Notes that a packet leaves the host at `at`, or was dropped. Returns whether a sender waits that has to check
    /// again.
    pub(super) fn departed(&self, at: Instant, bytes: u32) -> bool {
        let mut state = self.state.borrow_mut();
        // Nearly always the last place: only dropped packets come out of order.
        let place = state
            .departures
            .iter()
            .rposition(|(earlier, _)| *earlier <= at)
            .map_or(0, |place| place + 1);
        state.departures.insert(place, (at, bytes));
        state.blocked && state.in_the_dark
    }
}
