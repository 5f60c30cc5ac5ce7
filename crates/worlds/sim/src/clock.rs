//! A host's clock: the time that an endpoint reads. A faulty clock changes what is read, never when anything happens.

use stackline_core::network::ClockModel;
use stackline_core::time::{Duration, Instant};

/// What a clock without offset reads at the beginning, in ns, so that a clock that is behind reads nothing negative.
const ORIGIN: i128 = 1 << 62;

/// Converts true time to what the host's clock reads.
#[derive(Clone, Debug)]
pub(crate) struct SimHostClock {
    /// The faults of the clock; `None` when it is right.
    fault: Option<ClockModel>,
}

impl SimHostClock {
    pub(crate) fn new(clock: &ClockModel) -> Self {
        let right = *clock == ClockModel::default();
        Self {
            fault: (!right).then(|| clock.clone()),
        }
    }

    /// What the clock reads at a true instant.
    pub(crate) fn reading(&self, at: Instant) -> Instant {
        let Some(clock) = &self.fault else { return at };
        let reads = clock.reading_ns(at).saturating_add(ORIGIN);
        Instant(u64::try_from(reads.max(0)).unwrap_or(u64::MAX))
    }

    /// What the clock reads at a true instant, in ns since the beginning without [`ORIGIN`]; may be negative.
    pub(crate) fn reading_ns(&self, at: Instant) -> i128 {
        self.fault
            .as_ref()
            .map_or(i128::from(at.0), |clock| clock.reading_ns(at))
    }

    /// The time between two true instants as the clock measures it; zero when the clock was set back by more.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Duration {
        self.reading(to) - self.reading(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_clock_reads_the_truth() {
        assert_eq!(
            SimHostClock::new(&ClockModel::default()).between(Instant(5), Instant(9)),
            Duration(4)
        );
    }

    #[test]
    fn drift_and_steps_are_read_and_the_offset_cancels() {
        let fault = ClockModel {
            offset_ns: -77,
            drift_ppm: 100.0,
            steps: vec![(Duration(500_000), 1_000)],
        };
        let clock = SimHostClock::new(&fault);
        assert_eq!(
            clock.between(Instant(0), Instant(400_000)),
            Duration(400_040)
        );
        assert_eq!(
            clock.between(Instant(0), Instant(1_000_000)),
            Duration(1_001_100)
        );
        let back = SimHostClock::new(&ClockModel {
            steps: vec![(Duration(10), -1_000)],
            ..fault
        });
        assert_eq!(back.between(Instant(0), Instant(20)), Duration::ZERO);
    }
}
