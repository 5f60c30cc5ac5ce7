//! How many quarters of the least round trip RACK waits for what may only be late (RFC 8985, 6.2, step 4): one more with each round
//! trip in which the receiver reports duplicates, one again after a number of recoveries without.

/// Recoveries without a duplicate after which it begins anew.
const PERSISTS: u8 = 16;

/// The length of the reordering window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReorderingWindow {
    quarters: u8,
    persists: u8,
    /// Until this place is acknowledged duplicates count no more.
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
    /// In quarters of the least round trip.
    pub(super) fn quarters(&self) -> u64 {
        u64::from(self.quarters)
    }

    /// Whether the receiver has reported duplicates of late.
    pub(super) fn has_grown(&self) -> bool {
        self.quarters > 1
    }

    /// Everything up to `una` is acknowledged and `next` leaves next; the receiver may report a duplicate.
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

    /// A recovery is over.
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
