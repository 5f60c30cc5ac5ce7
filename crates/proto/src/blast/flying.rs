//! A blast on its way: which round of it is being sent, and what of that round has not left yet.
//!
//! It knows neither the strategy nor the time by which an answer is due: its [sender](super::sender) says what a round is
//! to bring.

use super::marks::Marks;
use super::options::Blast;
use super::sender::{Run, Why};
use stackline_core::time::Instant;

/// What is left to send of a round.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Done,
    /// Everything from here on.
    From(u32),
    /// These, from here on.
    Those(Marks, u32),
}

/// A blast on its way.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub(super) blast: Blast,
    pub(super) round: u16,
    /// Why it is sent.
    pub(super) why: Why,
    /// What is missing is believed of rounds from this one on: earlier ones were answered by sending it.
    pub(super) news_from: u16,
    pub(super) work: Work,
    /// The packet that asked last.
    pub(super) asked: u32,
    /// Packets of the round, and when and as which question of all its question left.
    pub(super) packets: u32,
    pub(super) asked_at: Option<(Instant, u64)>,
    /// Packets known to have arrived.
    pub(super) arrived: u32,
    pub(super) complete: bool,
}

impl Flying {
    /// A blast of so many packets of which nothing has left.
    pub(super) const fn new(blast: Blast, packets: u32) -> Self {
        let (asked_at, work) = (None, Work::From(0));
        let why = Why::New;
        Self { blast, round: 0, why, news_from: 0, work, asked: 0, packets, asked_at, arrived: 0, complete: false }
    }

    /// Whether an answer to that round of it is waited for.
    pub(super) fn waits(&self, round: u16) -> bool {
        !self.complete && matches!(self.work, Work::Done) && self.round == round
    }

    /// A new round begins.
    pub(super) fn begin(&mut self, work: Work, packets: u32, why: Why) {
        self.why = why;
        self.round = self.round.wrapping_add(1);
        (self.work, self.packets, self.asked_at) = (work, packets, None);
    }

    /// Takes the next packets of the round.
    pub(super) fn take(&mut self, most: u32, total: u32, connection: u32, packet: u32) -> Run {
        let (first, count, next) = match &self.work {
            Work::Done => (0, 0, None),
            Work::From(from) => {
                let count = most.min(total - from);
                (*from, count, (from + count < total).then_some(from + count))
            }
            Work::Those(marks, from) => {
                let first = marks.next(*from, true).unwrap_or(0);
                let until = marks.next(first, false).unwrap_or(total);
                let count = most.min(until - first);
                (first, count, marks.next(first + count, true))
            }
        };
        match (&mut self.work, next) {
            (Work::From(from) | Work::Those(_, from), Some(next)) => *from = next,
            (work, _) => {
                self.asked = first + count - 1;
                *work = Work::Done;
            }
        }
        let asks = next.is_none();
        Run { connection, blast: self.blast, round: self.round, first, count, asks, packet, why: self.why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn flying() -> Flying {
        Flying::new(Blast { number: 3, start: 5000, length: 950, last: false }, 10)
    }

    /// First packet, count and whether it asks, of each run of at most `most` packets.
    fn runs(flying: &mut Flying, most: u32) -> Vec<(u32, u32, bool)> {
        let mut runs = Vec::new();
        while !matches!(flying.work, Work::Done) {
            let run = flying.take(most, 10, 77, 100);
            runs.push((run.first, run.count, run.asks));
        }
        runs
    }

    #[test]
    fn a_round_leaves_in_runs_whose_last_packet_asks() {
        let mut flying = flying();
        assert_eq!(runs(&mut flying, 4), [(0, 4, false), (4, 4, false), (8, 2, true)]);
        assert_eq!(flying.asked, 9);
        flying.begin(Work::From(7), 3, Why::Missing);
        assert_eq!(runs(&mut flying, 128), [(7, 3, true)]);
    }

    #[test]
    fn what_is_missing_leaves_without_what_is_between() {
        let mut missing = Marks::none(10);
        for index in [1, 5, 7, 8] {
            missing.put(index);
        }
        let mut flying = flying();
        flying.begin(Work::Those(missing, 1), 4, Why::Missing);
        assert_eq!(runs(&mut flying, 128), [(1, 1, false), (5, 1, false), (7, 2, true)]);
        assert_eq!((flying.asked, flying.round), (8, 1));
    }

    #[test]
    fn only_the_round_that_has_left_is_waited_for() {
        let mut flying = flying();
        assert!(!flying.waits(0));
        runs(&mut flying, 128);
        assert!(flying.waits(0) && !flying.waits(1));
        flying.begin(Work::From(0), 10, Why::Timeout);
        assert!(!flying.waits(0) && !flying.waits(1));
        runs(&mut flying, 128);
        assert!(flying.waits(1));
        flying.complete = true;
        assert!(!flying.waits(1));
    }
}
