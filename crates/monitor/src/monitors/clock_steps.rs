//! Steps of the wall clock: it and the monotonic clock are kept at one speed, so what lies between them changes only when
//! somebody sets the wall clock. Events are stamped with the monotonic one and do not step with it.

use super::sample::{Monitor, Round, Started};
use nix::time::{ClockId, clock_gettime};
use stackline_core::time::NANOS_PER_SECOND;
use stackline_events::{Keyword, clock};

/// Changes below this are not told, ns: what computing the two clocks may leave.
const LEAST_NS: u64 = 1_000;
/// How often both are read; the narrowest reading counts.
const TRIES: usize = 5;

/// The monitor.
pub(crate) fn all() -> Vec<Started> {
    vec![("wall clock", Ok(Box::new(Wall { last: None })))]
}

/// How far the wall clock is ahead of the monotonic one, and at most how wrong that is, ns.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    ns: i128,
    error_ns: u64,
}

impl Ahead {
    fn read() -> Result<Self, String> {
        let of = |which| {
            let time = clock_gettime(which).map_err(|error| format!("clock_gettime: {error}"))?;
            Ok::<_, String>(i128::from(time.tv_sec()) * i128::from(NANOS_PER_SECOND) + i128::from(time.tv_nsec()))
        };
        let once = || {
            let before = of(ClockId::CLOCK_MONOTONIC)?;
            let wall = of(ClockId::CLOCK_REALTIME)?;
            let after = of(ClockId::CLOCK_MONOTONIC)?;
            let error_ns = u64::try_from(after - before).unwrap_or(0);
            Ok(Self { ns: wall - before, error_ns })
        };
        let all = (0..TRIES).map(|_| once()).collect::<Result<Vec<_>, String>>()?;
        all.into_iter().min_by_key(|ahead| ahead.error_ns).ok_or_else(|| "it was never read".into())
    }

    /// By how much the wall clock was set in between, ns.
    fn stepped(self, now: Self) -> Option<i64> {
        let by_ns = i64::try_from(now.ns - self.ns).unwrap_or(i64::MAX);
        (by_ns.unsigned_abs() > LEAST_NS + self.error_ns + now.error_ns).then_some(by_ns)
    }
}

struct Wall {
    last: Option<Ahead>,
}

impl Monitor for Wall {
    fn name(&self) -> &'static str {
        "wall clock"
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        static STEP: Keyword = Keyword::new("CLOCK_STEP");
        let now = Ahead::read()?;
        if let Some(by_ns) = self.last.and_then(|last| last.stepped(now)) {
            round.tape.push(STEP.id(), clock::now_ns(), &[by_ns.into()]);
        }
        self.last = Some(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::lines;
    use super::*;
    use stackline_events::Tape;

    #[test]
    fn a_step_is_what_readings_cannot_explain() {
        let ahead = |ns, error_ns| Ahead { ns, error_ns };
        assert_eq!(ahead(5_000_000, 40).stepped(ahead(5_000_900, 60)), None);
        assert_eq!(ahead(5_000_000, 4_000).stepped(ahead(5_004_900, 60)), None, "the reading was interrupted");
        assert_eq!(ahead(5_000_000, 40).stepped(ahead(5_001_101, 60)), Some(1_101));
        assert_eq!(ahead(5_000_000, 40).stepped(ahead(0, 60)), Some(-5_000_000));
    }

    #[test]
    fn the_next_look_tells_a_step_once() {
        let mut tape = Tape::default();
        let mut wall = Wall { last: None };
        wall.look(&mut Round { tape: &mut tape }).unwrap();
        assert!(lines(&tape).is_empty());
        // As if it had been set forward by an hour since.
        wall.last = wall.last.map(|last| Ahead { ns: last.ns - 3_600_000_000_000, error_ns: 1_000_000 });
        wall.look(&mut Round { tape: &mut tape }).unwrap();
        wall.last = wall.last.map(|last| Ahead { error_ns: 1_000_000_000, ..last });
        wall.look(&mut Round { tape: &mut tape }).unwrap();
        let told = lines(&tape);
        assert_eq!(told.len(), 1);
        let by_ns: i64 = told[0].strip_prefix("CLOCK_STEP ").unwrap().parse().unwrap();
        assert!((by_ns - 3_600_000_000_000).abs() < 1_000_000_000);
    }
}
