//! The processor of a simulated host, as programs use it: it does one piece of work at a time, and copying for the
//! interface goes first.
//!
//! A piece of work is not preempted by another one; it is delayed by the time that the interface takes of the processor
//! meanwhile. The network computes the copying and says how much time it has taken.

use crate::program_costs::HostWorkCosts;
use stackline_core::network::{NetworkHost, WorkKind};
use stackline_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// One host's processor.
#[derive(Debug)]
pub(crate) struct SimProcessor<T> {
    /// The kind of work that goes before the other.
    first: Option<WorkKind>,
    /// The time of a switch to another program.
    switch: Duration,
    /// The program that ran last.
    last: Option<u32>,
    /// The waiting work: the kind that goes first, then the rest.
    waiting: [VecDeque<WaitingSimWork<T>>; 2],
    running: Option<RunningSimWork<T>>,
    /// The end of work that was reported last.
    alarm: Option<Instant>,
    /// Time of all work that has ended, ns.
    spent_ns: u64,
}

/// What a processor has to report.
#[derive(Debug)]
pub(crate) enum SimProcessorTurn<T> {
    /// This work has ended. New work of its program competes with what waits, so ask again once the program has run.
    Done(T),
    /// The processor works until then, or longer.
    Until(Instant),
    /// There is nothing new.
    Nothing,
}

#[derive(Debug)]
struct WaitingSimWork<T> {
    program: u32,
    takes: Duration,
    what: T,
}

#[derive(Debug)]
struct RunningSimWork<T> {
    what: T,
    began: Instant,
    takes: Duration,
    ends: Instant,
    /// The time that copying had taken of the processor when `ends` was computed, ns.
    copied_ns: u64,
}

impl<T> SimProcessor<T> {
    /// The processor of a host, idle.
    pub(crate) fn new(host: &NetworkHost) -> Self {
        let switch = HostWorkCosts::from_host(host).map_or(Duration::ZERO, |costs| costs.switch());
        let waiting = [VecDeque::new(), VecDeque::new()];
        Self {
            first: host.work.first,
            switch,
            last: None,
            waiting,
            running: None,
            alarm: None,
            spent_ns: 0,
        }
    }

    /// Queues work of a program that takes `takes`. All programs that want work at an instant queue it before the
    /// processor begins with one of them.
    pub(crate) fn want(&mut self, program: u32, kind: WorkKind, takes: Duration, what: T) {
        let behind = self.first.is_some_and(|first| first != kind);
        self.waiting[usize::from(behind)].push_back(WaitingSimWork {
            program,
            takes,
            what,
        });
    }

    /// Called at the end of work, or when the processor is idle and work waits: returns work that has ended, or when to
    /// call again.
    pub(crate) fn turn(&mut self, now: Instant, copied_ns: u64) -> SimProcessorTurn<T> {
        if let Some(what) = self.done(now, copied_ns) {
            return SimProcessorTurn::Done(what);
        }
        self.begin(now, copied_ns);
        self.alarm()
            .map_or(SimProcessorTurn::Nothing, SimProcessorTurn::Until)
    }

    /// Begins the next piece of work if the processor is idle. `copied_ns` is the time that copying has taken by now.
    fn begin(&mut self, now: Instant, copied_ns: u64) {
        if self.running.is_none()
            && let Some(WaitingSimWork {
                program,
                takes,
                what,
            }) = self.waiting.iter_mut().find_map(VecDeque::pop_front)
        {
            let is_another = self
                .last
                .replace(program)
                .is_some_and(|last| last != program);
            let takes = if is_another {
                takes + self.switch
            } else {
                takes
            };
            self.running = Some(RunningSimWork {
                what,
                began: now,
                takes,
                ends: now + takes,
                copied_ns,
            });
        }
    }

    /// Whether no work is being done; some may wait.
    pub(crate) const fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// When to call [`SimProcessor::done`] next, if that was not reported yet.
    fn alarm(&mut self) -> Option<Instant> {
        let ends = self.running.as_ref()?.ends;
        (self.alarm.replace(ends) != Some(ends)).then_some(ends)
    }

    /// The work that has ended by now, if any.
    fn done(&mut self, now: Instant, copied_ns: u64) -> Option<T> {
        let running = self
            .running
            .as_mut()
            .filter(|running| running.ends <= now)?;
        let copied = copied_ns.saturating_sub(running.copied_ns);
        if copied > 0 {
            // Copying had the processor for that long meanwhile.
            (running.ends, running.copied_ns) = (now + Duration(copied), copied_ns);
            return None;
        }
        let RunningSimWork { what, takes, .. } = self.running.take()?;
        self.alarm = None;
        self.spent_ns += takes.0;
        Some(what)
    }

    /// The time spent on programs by now, ns.
    pub(crate) fn spent_ns(&self, now: Instant) -> u64 {
        let running = self.running.as_ref();
        self.spent_ns
            + running.map_or(0, |running| {
                (now.0.saturating_sub(running.began.0)).min(running.takes.0)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{NetworkInterface, ProgramCosts};

    const MS: u64 = 1_000_000;

    fn processor(work: ProgramCosts, speed: f64) -> SimProcessor<char> {
        let interface = NetworkInterface {
            cpu_speed: Some(speed),
            ..NetworkInterface::default()
        };
        SimProcessor::new(&NetworkHost {
            work,
            interface,
            ..NetworkHost::default()
        })
    }

    /// What ends when, with so much copied from a moment on.
    fn run(processor: &mut SimProcessor<char>, copying: (u64, u64)) -> Vec<(u64, char)> {
        let (mut ended, mut at) = (Vec::new(), Instant(0));
        loop {
            let copied = if at.0 > copying.0 { copying.1 } else { 0 };
            match processor.turn(at, copied) {
                SimProcessorTurn::Done(what) => ended.push((at.0 / MS, what)),
                SimProcessorTurn::Until(ends) => at = ends,
                SimProcessorTurn::Nothing => return ended,
            }
        }
    }

    #[test]
    fn one_after_another() {
        let mut processor = processor(ProgramCosts::default(), 1.0);
        processor.want(1, WorkKind::Operations, Duration(MS), 'a');
        processor.want(1, WorkKind::Messages, Duration(2 * MS), 'b');
        processor.want(1, WorkKind::Operations, Duration(3 * MS), 'c');
        assert_eq!(run(&mut processor, (0, 0)), [(1, 'a'), (3, 'b'), (6, 'c')]);
        assert_eq!(processor.spent_ns(Instant(9 * MS)), 6 * MS);
    }

    #[test]
    fn what_goes_first_overtakes_what_waits() {
        let mut processor = processor(
            ProgramCosts {
                first: Some(WorkKind::Messages),
                ..ProgramCosts::default()
            },
            1.0,
        );
        for (kind, what) in [
            (WorkKind::Operations, 'a'),
            (WorkKind::Operations, 'b'),
            (WorkKind::Messages, 'c'),
        ] {
            processor.want(1, kind, Duration(MS), what);
        }
        assert_eq!(run(&mut processor, (0, 0)), [(1, 'c'), (2, 'a'), (3, 'b')]);
    }

    #[test]
    fn copying_goes_before_programs() {
        let mut processor = processor(ProgramCosts::default(), 1.0);
        processor.want(1, WorkKind::Operations, Duration(4 * MS), 'a');
        processor.want(1, WorkKind::Operations, Duration(MS), 'b');
        assert_eq!(run(&mut processor, (2 * MS, 3 * MS)), [(7, 'a'), (8, 'b')]);
    }

    #[test]
    fn going_to_another_program_takes_time_at_its_speed() {
        let work = ProgramCosts {
            per_switch: Duration(2 * MS),
            ..ProgramCosts::default()
        };
        let mut processor = processor(work, 2.0);
        for (program, what) in [(1, 'a'), (1, 'b'), (2, 'c'), (1, 'd')] {
            processor.want(program, WorkKind::Operations, Duration(MS), what);
        }
        assert_eq!(
            run(&mut processor, (0, 0)),
            [(1, 'a'), (2, 'b'), (4, 'c'), (6, 'd')]
        );
    }
}
