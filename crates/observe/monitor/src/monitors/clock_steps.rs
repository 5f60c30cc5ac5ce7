//! The monitor of steps of the wall clock. The wall clock and the monotonic clock run at the same speed, so their difference changes
//! only when the wall clock is set. Events are stamped with the monotonic clock and do not step with it.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled};
use nix::time::{ClockId, clock_gettime};
use stackline_core::time::NANOS_PER_SECOND;
use stackline_events::catalogue::rows::ClockStep;
use stackline_events::{EventLog, clock};

/// Smaller changes are not recorded, ns: the kernel's rounding of the two clocks may cause them.
const LEAST_NS: u64 = 1_000;
/// How often both clocks are read for one sample; the narrowest reading counts.
const TRIES: usize = 5;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    create_sampled(Ahead::read, record)
}

/// How far the wall clock is ahead of the monotonic clock, and the greatest error of that, ns.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    ns: i128,
    error_ns: u64,
}

impl Ahead {
    fn read() -> Result<Self, String> {
        let read_ns = |which| {
            let time = clock_gettime(which).map_err(|error| format!("clock_gettime: {error}"))?;
            Ok::<_, String>(
                i128::from(time.tv_sec()) * i128::from(NANOS_PER_SECOND)
                    + i128::from(time.tv_nsec()),
            )
        };
        let once = || {
            let before = read_ns(ClockId::CLOCK_MONOTONIC)?;
            let wall = read_ns(ClockId::CLOCK_REALTIME)?;
            let after = read_ns(ClockId::CLOCK_MONOTONIC)?;
            let error_ns = u64::try_from(after - before).unwrap_or(0);
            Ok(Self {
                ns: wall - before,
                error_ns,
            })
        };
        let all = (0..TRIES)
            .map(|_| once())
            .collect::<Result<Vec<_>, String>>()?;
        all.into_iter()
            .min_by_key(|ahead| ahead.error_ns)
            .ok_or_else(|| "no clock was read".into())
    }

    /// The step between two readings, ns, if their errors do not explain the difference.
    fn step_ns(self, now: Self) -> Option<i64> {
        let step_ns = i64::try_from(now.ns - self.ns).unwrap_or(i64::MAX);
        (step_ns.unsigned_abs() > LEAST_NS + self.error_ns + now.error_ns).then_some(step_ns)
    }
}

fn record(_: SampleInterval, before: &Ahead, now: &mut Ahead, log: &mut EventLog) {
    if let Some(step_ns) = before.step_ns(*now) {
        let by_ns = step_ns.into();
        ClockStep { by_ns }.write(log, clock::now_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::lines;
    use super::*;

    #[test]
    fn a_step_exceeds_the_errors_of_both_readings() {
        let ahead = |ns, error_ns| Ahead { ns, error_ns };
        assert_eq!(ahead(5_000_000, 40).step_ns(ahead(5_000_900, 60)), None);
        assert_eq!(
            ahead(5_000_000, 4_000).step_ns(ahead(5_004_900, 60)),
            None,
            "the reading was interrupted"
        );
        assert_eq!(
            ahead(5_000_000, 40).step_ns(ahead(5_001_101, 60)),
            Some(1_101)
        );
        assert_eq!(ahead(5_000_000, 40).step_ns(ahead(0, 60)), Some(-5_000_000));
    }

    #[test]
    fn a_step_is_recorded_once() {
        let (interval, mut log) = (
            SampleInterval {
                end_ns: 2,
                length_ns: 1,
            },
            EventLog::default(),
        );
        let first = Ahead::read().unwrap();
        // As if the clock had been set forward by an hour since.
        let earlier = Ahead {
            ns: first.ns - 3_600_000_000_000,
            error_ns: 1_000_000,
        };
        record(interval, &earlier, &mut Ahead::read().unwrap(), &mut log);
        record(
            interval,
            &Ahead {
                error_ns: 1_000_000_000,
                ..first
            },
            &mut Ahead::read().unwrap(),
            &mut log,
        );
        let rows = lines(&log);
        assert_eq!(rows.len(), 1);
        let step_ns: i64 = rows[0]
            .strip_prefix("CLOCK_STEP ")
            .unwrap()
            .parse()
            .unwrap();
        assert!((step_ns - 3_600_000_000_000).abs() < 1_000_000_000);
    }
}
