//! The processor of an IMP: one thing after the other, each takes its cycles. What has no time goes by at once.

use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// Work in the order in which it came.
#[derive(Debug)]
pub(super) struct Processor<J> {
    jobs: VecDeque<(J, Duration)>,
    /// When the first of them is done.
    done: Instant,
    /// How long it worked so far.
    busy: Duration,
}

impl<J> Processor<J> {
    pub(super) const fn new() -> Self {
        Self { jobs: VecDeque::new(), done: Instant(0), busy: Duration::ZERO }
    }

    /// One more.
    pub(super) fn put(&mut self, now: Instant, job: J, takes: Duration) {
        if self.jobs.is_empty() {
            self.done = now + takes;
        }
        self.busy += takes;
        self.jobs.push_back((job, takes));
    }

    /// What is done by now.
    pub(super) fn take(&mut self, now: Instant) -> Option<J> {
        if self.jobs.is_empty() || self.done > now {
            return None;
        }
        let (job, _) = self.jobs.pop_front()?;
        if let Some((_, next)) = self.jobs.front() {
            self.done += *next;
        }
        Some(job)
    }

    /// When the next is done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.jobs.is_empty()).then_some(self.done)
    }

    /// All that was put in so far.
    pub(super) const fn busy(&self) -> Duration {
        self.busy
    }
}
