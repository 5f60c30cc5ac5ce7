//! The processor of a simulated host, as programs find it: one piece of work at a time, and copying into the interface before all of them.
//!
//! A piece of work is not set aside for another one; it takes as much longer as the interface takes of the processor meanwhile. Who
//! copies and how long that lasts is the network's business: it says what has been spent on it.

use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// One host's processor.
#[derive(Debug)]
pub(crate) struct Processor<T> {
    first: Option<WorkKind>,
    /// What goes first, then what waits behind it.
    waiting: [VecDeque<(Duration, T)>; 2],
    running: Option<Running<T>>,
    /// Time that ended work took, ns.
    spent_ns: u64,
}

#[derive(Debug)]
struct Running<T> {
    what: T,
    began: Instant,
    takes: Duration,
    ends: Instant,
    /// What copying had taken of the processor when its end was computed.
    copied_ns: u64,
}

impl<T> Processor<T> {
    /// Idle; whoever came first goes first, but for work of that kind.
    pub(crate) const fn new(first: Option<WorkKind>) -> Self {
        Self { first, waiting: [VecDeque::new(), VecDeque::new()], running: None, spent_ns: 0 }
    }

    /// Asks for so much of it. `copied_ns` is what copying has taken by now.
    pub(crate) fn want(&mut self, now: Instant, kind: WorkKind, takes: Duration, what: T, copied_ns: u64) {
        let behind = self.first.is_some_and(|first| first != kind);
        self.waiting[usize::from(behind)].push_back((takes, what));
        self.begin(now, copied_ns);
    }

    /// When to call [`Processor::done`] next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.running.as_ref().map(|running| running.ends)
    }

    /// What has ended by now; the next piece begins.
    pub(crate) fn done(&mut self, now: Instant, copied_ns: u64) -> Option<T> {
        let running = self.running.as_mut().filter(|running| running.ends <= now)?;
        let copied = copied_ns.saturating_sub(running.copied_ns);
        if copied > 0 {
            // The interface had the processor for so long.
            (running.ends, running.copied_ns) = (now + Duration(copied), copied_ns);
            return None;
        }
        let Running { what, takes, .. } = self.running.take()?;
        self.spent_ns += takes.0;
        self.begin(now, copied_ns);
        Some(what)
    }

    /// Time spent on programs by now, ns.
    pub(crate) fn spent_ns(&self, now: Instant) -> u64 {
        let running = self.running.as_ref();
        self.spent_ns + running.map_or(0, |running| (now.0.saturating_sub(running.began.0)).min(running.takes.0))
    }

    fn begin(&mut self, now: Instant, copied_ns: u64) {
        if self.running.is_none()
            && let Some((takes, what)) = self.waiting.iter_mut().find_map(VecDeque::pop_front)
        {
            self.running = Some(Running { what, began: now, takes, ends: now + takes, copied_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What ends when, with so much copied from a moment on.
    fn run(processor: &mut Processor<char>, copying: (u64, u64)) -> Vec<(u64, char)> {
        let mut ended = Vec::new();
        while let Some(at) = processor.deadline() {
            let copied = if at.0 > copying.0 { copying.1 } else { 0 };
            ended.extend(processor.done(at, copied).map(|what| (at.0 / MS, what)));
        }
        ended
    }

    #[test]
    fn one_after_another() {
        let mut processor = Processor::new(None);
        processor.want(Instant(0), WorkKind::Operations, Duration(MS), 'a', 0);
        processor.want(Instant(0), WorkKind::Messages, Duration(2 * MS), 'b', 0);
        processor.want(Instant(0), WorkKind::Operations, Duration(3 * MS), 'c', 0);
        assert_eq!(run(&mut processor, (0, 0)), [(1, 'a'), (3, 'b'), (6, 'c')]);
        assert_eq!(processor.spent_ns(Instant(9 * MS)), 6 * MS);
    }

    #[test]
    fn what_goes_first_overtakes_what_waits_and_nothing_that_runs() {
        let mut processor = Processor::new(Some(WorkKind::Messages));
        for (kind, what) in [(WorkKind::Operations, 'a'), (WorkKind::Operations, 'b'), (WorkKind::Messages, 'c')] {
            processor.want(Instant(0), kind, Duration(MS), what, 0);
        }
        assert_eq!(run(&mut processor, (0, 0)), [(1, 'a'), (2, 'c'), (3, 'b')]);
    }

    #[test]
    fn copying_goes_before_programs() {
        let mut processor = Processor::new(None);
        processor.want(Instant(0), WorkKind::Operations, Duration(4 * MS), 'a', 0);
        processor.want(Instant(0), WorkKind::Operations, Duration(MS), 'b', 0);
        assert_eq!(run(&mut processor, (2 * MS, 3 * MS)), [(7, 'a'), (8, 'b')]);
    }
}
