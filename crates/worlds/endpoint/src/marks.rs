//! Times at the marks of one endpoint (a mark is a named point of a program): from the start of its clock to each mark,
//! from each mark to the next one passed, and from one pass of a mark to its next pass, whatever marks lie between.

use crate::times::DurationSamples;
use stackline_core::run_record::Histogram;
use stackline_core::time::{Duration, Instant};

/// The times at all marks of one program.
#[derive(Debug, Default)]
pub(crate) struct ProgramMarks {
    /// By mark: the times since the start.
    since_start: Vec<DurationSamples>,
    /// The times between two marks, at index `from * marks + to`; `from` may be `to`. Memory is taken when the two
    /// first follow each other.
    between: Vec<Option<DurationSamples>>,
    /// By mark: when it was passed last.
    passed: Vec<Option<Instant>>,
    /// The mark that was passed last, and when.
    last: Option<(usize, Instant)>,
}

impl ProgramMarks {
    /// Makes room for this many marks; `times` makes a collector.
    pub(crate) fn make_room(&mut self, marks: usize, times: impl Fn() -> DurationSamples) {
        if self.since_start.len() < marks {
            self.since_start = (0..marks).map(|_| times()).collect();
            self.between = (0..marks * marks).map(|_| None).collect();
            self.passed = vec![None; marks];
        }
    }

    /// Records that a mark is passed at `now`, `since` the start. `between` gives the time from an earlier instant to
    /// `now`, `times` makes a collector.
    pub(crate) fn pass(
        &mut self,
        mark: usize,
        now: Instant,
        since: Duration,
        between: impl Fn(Instant) -> Duration,
        times: impl Fn() -> DurationSamples,
    ) {
        let marks = self.since_start.len();
        let Some(mine) = self.since_start.get_mut(mark) else {
            return;
        };
        mine.record(since);
        let other = self
            .last
            .replace((mark, now))
            .filter(|(before, _)| *before != mark);
        let same = self.passed[mark].replace(now).map(|at| (mark, at));
        for (before, at) in other.into_iter().chain(same) {
            self.between[before * marks + mark]
                .get_or_insert_with(&times)
                .record(between(at));
        }
    }

    /// The recorded times by name: `first` for a mark since the start, `first -> second` between two marks.
    pub(crate) fn finish(self, names: &[String]) -> Vec<(String, Histogram)> {
        let pairs = names
            .iter()
            .flat_map(|from| names.iter().map(move |to| format!("{from} -> {to}")));
        let between = pairs
            .zip(self.between)
            .filter_map(|(name, times)| Some((name, times?.finish())));
        let since = names
            .iter()
            .cloned()
            .zip(self.since_start.into_iter().map(DurationSamples::finish));
        since
            .filter(|(_, times)| times.n() > 0)
            .chain(between)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_timed_also_where_other_marks_lie_between() {
        let mut marks = ProgramMarks::default();
        marks.make_room(2, || DurationSamples::new(8));
        for (mark, at) in [(0, 5), (1, 7), (0, 15), (1, 18), (0, 30)] {
            let now = Instant(at);
            marks.pass(
                mark,
                now,
                Duration(at),
                |before| Duration(at - before.0),
                || DurationSamples::new(8),
            );
        }
        let found = marks.finish(&["a".into(), "b".into()]);
        let times = |name: &str| {
            let (_, found) = found.iter().find(|(mark, _)| mark == name).unwrap();
            found.counts.iter().map(|(ns, _)| *ns).collect::<Vec<_>>()
        };
        assert_eq!((times("a"), times("b")), (vec![5, 15, 30], vec![7, 18]));
        assert_eq!(
            (times("a -> b"), times("b -> a")),
            (vec![2, 3], vec![8, 12])
        );
        assert_eq!((times("a -> a"), times("b -> b")), (vec![10, 15], vec![11]));
    }
}
