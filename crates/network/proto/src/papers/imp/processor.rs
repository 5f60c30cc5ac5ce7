//! The processor of an IMP: one thing after the other, each takes its cycles. What comes over lines and goes onto them is served before
//! what hosts want, as interrupts did; nothing that was begun is set aside.

use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// Work in the order in which it came, lines before hosts.
#[derive(Debug)]
pub(super) struct ImpProcessor<J> {
    lines: VecDeque<(J, Duration)>,
    hosts: VecDeque<(J, Duration)>,
    /// What it does, and when it is done.
    current: Option<(J, Instant)>,
    /// How long it worked so far.
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

    /// One more for a line.
    pub(super) fn put(&mut self, now: Instant, job: J, takes: Duration) {
        self.lines.push_back((job, takes));
        self.begin(now);
    }

    /// One more for a host.
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

    /// What is done by now.
    pub(super) fn take(&mut self, now: Instant) -> Option<J> {
        let (_, done) = self.current.as_ref().filter(|(_, done)| *done <= now)?;
        let done = *done;
        let job = self.current.take().map(|(job, _)| job);
        self.begin(done);
        job
    }

    /// When the next is done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|(_, done)| *done)
    }

    /// All that it began so far.
    pub(super) const fn busy(&self) -> Duration {
        self.busy
    }
}
