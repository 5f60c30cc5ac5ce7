//! The moments that paces intend, and how late operations began after them.

use crate::task::EndpointTask;
use crate::times::DurationSamples;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::Histogram;
use stackline_core::time::{Duration, Instant};

/// The intended moments of one endpoint.
#[derive(Debug)]
pub(crate) struct IntendedMoments {
    /// The last moment that a pace intended.
    last: Option<Instant>,
    /// Whether the next call or connection is timed from the intended moment instead of from its start.
    is_paced: bool,
    /// When the call or connection before ended, where that was read.
    free_since: Option<Instant>,
    /// Of endpoints that take turns: which one this is, from 1, and of how many.
    turn: Option<(u64, u64)>,
    /// How late paced operations began.
    lateness: DurationSamples,
    /// The same without the time that the operation before took; `None` where its end is not read.
    own_lateness: Option<DurationSamples>,
}

impl IntendedMoments {
    /// Those of an endpoint that has not begun. `lateness` collects.
    pub(crate) fn new(task: &EndpointTask, lateness: DurationSamples) -> Self {
        let reads_ends = task.side == PairSide::Initiator
            && task.does("Pace")
            && !task.does("DataRequest")
            && (task.does("RPCCall") || !task.carries_data);
        Self {
            last: None,
            is_paced: false,
            free_since: None,
            turn: None,
            lateness,
            own_lateness: reads_ends.then(DurationSamples::coarse),
        }
    }

    /// Says which replica of the task this is.
    pub(crate) fn set_turn(&mut self, replica: u32, task: &EndpointTask) {
        let turn = (u64::from(replica) + 1, u64::from(task.replicas.max(1)));
        self.turn = Some(turn).filter(|_| task.data.takes_turns);
    }

    /// The next moments count from here; from the clock's start without a moment.
    pub(crate) const fn restart(&mut self, from: Option<Instant>) {
        self.last = from;
        self.is_paced = false;
    }

    /// The moment `time` after the last one, or after `begun`.
    pub(crate) fn next(&mut self, time: Duration, begun: Instant) -> Instant {
        let wait = match (self.last, self.turn) {
            (None, Some((turn, of))) => share(time, turn, of),
            _ => time,
        };
        let moment = self.last.unwrap_or(begun) + wait;
        self.last = Some(moment);
        moment
    }

    /// The next call or connection is timed from the intended moment.
    pub(crate) const fn arm(&mut self) {
        self.is_paced = true;
    }

    /// The moment from which an operation that begins now is timed, if a pace intended one for it.
    pub(crate) fn take(&mut self) -> Option<Instant> {
        let is_paced = std::mem::replace(&mut self.is_paced, false);
        self.last.filter(|_| is_paced)
    }

    /// A call or connection ended.
    pub(crate) const fn free(&mut self, at: Instant) {
        self.free_since = Some(at);
    }

    /// An operation that was intended for `moment` begins `now`.
    pub(crate) fn record(
        &mut self,
        moment: Instant,
        now: Instant,
        between: impl Fn(Instant, Instant) -> Duration,
    ) {
        self.lateness.record(between(moment, now));
        if let Some(own) = &mut self.own_lateness {
            let due = self.free_since.map_or(moment, |free| free.max(moment));
            own.record(between(due, now));
        }
    }

    /// How late operations began, and how much of that was the endpoint's own.
    pub(crate) fn finish(self) -> (Histogram, Histogram) {
        let own = self.own_lateness.map(DurationSamples::finish);
        (self.lateness.finish(), own.unwrap_or_default())
    }
}

/// `turn / of` of a time.
fn share(time: Duration, turn: u64, of: u64) -> Duration {
    let ns = u128::from(time.0) * u128::from(turn) / u128::from(of.max(1));
    Duration(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_take_turns_begin_evenly_apart() {
        let time = Duration(4_000);
        let firsts: Vec<u64> = (1..=4).map(|turn| share(time, turn, 4).0).collect();
        assert_eq!(firsts, [1_000, 2_000, 3_000, 4_000]);
    }

    #[test]
    fn what_the_operation_before_took_is_not_ones_own_lateness() {
        let mut moments = IntendedMoments {
            last: None,
            is_paced: false,
            free_since: None,
            turn: None,
            lateness: DurationSamples::new(2),
            own_lateness: Some(DurationSamples::new(2)),
        };
        let between = |from: Instant, to: Instant| to - from;
        // On time but for 5 ns; then the answer comes 200 ns after the next moment, and the call leaves 3 ns later.
        let first = moments.next(Duration(100), Instant(0));
        moments.record(first, Instant(105), between);
        moments.free(Instant(400));
        let second = moments.next(Duration(100), Instant(0));
        assert_eq!(second, Instant(200));
        moments.record(second, Instant(403), between);
        let (lateness, own) = moments.finish();
        assert_eq!(lateness.counts, [(5, 1), (203, 1)]);
        assert_eq!(own.counts, [(3, 1), (5, 1)]);
    }
}
