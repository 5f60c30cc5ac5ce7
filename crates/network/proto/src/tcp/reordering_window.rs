//! The length of RACK's reordering window, in quarters of the least round trip (RFC 8985, 6.2, step 4): how long a
//! segment is waited for that may only be late. It grows by a quarter in each round trip in which the receiver reports
//! duplicates, and falls back to one quarter after a number of recoveries without them.

/// Recoveries without a duplicate after which the window is one quarter again.
const PERSISTS: u8 = 16;

/// The length of the reordering window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReorderingWindow {
    /// The length of the window, in quarters of the least round trip.
    quarters: u8,
    /// Recoveries until the window falls back to one quarter.
    persists: u8,
    /// Until this place is acknowledged, further duplicates do not lengthen the window.
    round: Option<u64>,
}

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self {
            quarters: 1,
            persists: 0,
            round: None,
        }
    }
}

impl ReorderingWindow {
    /// The length of the window, in quarters of the least round trip.
    pub(super) fn quarters(&self) -> u64 {
        u64::from(self.quarters)
    }

    /// Whether the window is longer than one quarter: the receiver has reported duplicates.
    pub(super) fn has_grown(&self) -> bool {
        self.quarters > 1
    }

    /// Handles an acknowledgement of everything up to `una`, when `next` is the next place to send. `duplicate`: the
    /// receiver reports a duplicate.
    pub(super) fn acknowledged(&mut self, una: u64, next: u64, duplicate: bool) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
        if duplicate && self.round.is_none() {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persists = PERSISTS;
        }
    }

    /// Notes that a recovery has ended.
    pub(super) fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_once_a_round_trip_and_persists_for_sixteen_recoveries() {
        let mut window = ReorderingWindow::default();
        window.acknowledged(1, 100, false);
        assert_eq!(window.quarters(), 1);
        for una in [1, 50, 99] {
            window.acknowledged(una, 100 + una, true);
        }
        assert_eq!(window.quarters(), 2);
        window.acknowledged(101, 300, true);
        assert_eq!(window.quarters(), 3);
        (0..15).for_each(|_| window.recovered());
        assert_eq!(window.quarters(), 3);
        window.recovered();
        assert_eq!(window.quarters(), 1);
    }
}
