//! The processor of an IMP: it does one job after the other, and each takes its cycles. Jobs of lines are served before
//! jobs of hosts, as interrupts did; a job that was begun is not preempted.

use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// The queues of jobs, in order of arrival, lines before hosts; each with the time that it takes.
#[derive(Debug)]
pub(super) struct ImpProcessor<J> {
    lines: VecDeque<(J, Duration)>,
    hosts: VecDeque<(J, Duration)>,
    /// The present job, and when it is done.
    current: Option<(J, Instant)>,
    /// The time of all jobs begun so far.
    busy: Duration,
}

impl<J> ImpProcessor<J> {
    pub(super) const fn new() -> Self {
        Self {
            lines: VecDeque::new(),
            hosts: VecDeque::new(),
            current: None,
            busy: Duration::ZERO,
        }
    }

    /// Queues a job of a line.
    pub(super) fn put(&mut self, now: Instant, job: J, takes: Duration) {
        self.lines.push_back((job, takes));
        self.begin(now);
    }

    /// Queues a job of a host.
    pub(super) fn put_host(&mut self, now: Instant, job: J, takes: Duration) {
        self.hosts.push_back((job, takes));
        self.begin(now);
    }

    fn begin(&mut self, now: Instant) {
        if self.current.is_none()
            && let Some((job, takes)) = self.lines.pop_front().or_else(|| self.hosts.pop_front())
        {
            self.busy += takes;
            self.current = Some((job, now + takes));
        }
    }

    /// The job that is done by now, if any; the next one begins.
    pub(super) fn take(&mut self, now: Instant) -> Option<J> {
        let (_, done) = self.current.as_ref().filter(|(_, done)| *done <= now)?;
        let done = *done;
        let job = self.current.take().map(|(job, _)| job);
        self.begin(done);
        job
    }

    /// When the present job is done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|(_, done)| *done)
    }

    /// The time of all jobs begun so far.
    pub(super) const fn busy(&self) -> Duration {
        self.busy
    }
}
