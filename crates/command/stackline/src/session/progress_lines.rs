//! The progress of a request as lines of the session.

use super::answers::answer;
use serde_json::json;
use stackline_core::plan::{Measurement, Plan};
use stackline_core::run_schedule::ScheduledRun;
use stackline_runner::RunProgress;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two lines.
const EACH: Duration = Duration::from_millis(100);

/// Prints how far a request is, at most ten times a second.
#[derive(Debug)]
pub(super) struct SessionProgress {
    id: u64,
    done: u64,
    total: u64,
    /// What is being done.
    now: String,
    begun: Instant,
    /// When the last line was printed.
    said: Instant,
}

impl SessionProgress {
    /// Of that many steps.
    pub(super) fn new(id: u64, total: u64) -> Self {
        let begun = Instant::now();
        Self {
            id,
            done: 0,
            total,
            now: String::new(),
            begun,
            said: begun,
        }
    }

    /// Of all counted runs of a plan; with `until`, of as many as there may be.
    pub(super) fn of_runs(id: u64, plan: &Plan) -> Self {
        let most = |m: &Measurement| m.until.map_or(m.runs, |until| until.at_most.max(m.runs));
        let runs = plan.measurements.iter().map(|m| u64::from(most(m)));
        Self::new(id, runs.sum())
    }

    /// One step is done.
    pub(super) fn step(&mut self) {
        self.done += 1;
        self.say();
    }

    /// Prints a line, unless the last one is younger than a tenth of a second.
    fn say(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.said) < EACH {
            return;
        }
        self.said = now;
        answer(&json!({"id": self.id, "progress": {
            "done": self.done,
            "total": self.total,
            "now": self.now,
            "elapsed_s": self.begun.elapsed().as_secs_f64(),
        }}));
    }
}

impl RunProgress for SessionProgress {
    fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        let text = &scheduled.measurement.text;
        if self.now != *text {
            self.now.clone_from(text);
        }
        self.say();
    }

    fn advance(&mut self) {
        self.step();
    }

    fn warn(&mut self, words: &str) {
        answer(&json!({"id": self.id, "warning": words}));
    }

    fn finish(&mut self) {}
}

/// Progress within one specification of a study: the study counts whole ones, and shows that it is alive.
pub(super) struct WithinStudy(pub(super) Arc<Mutex<SessionProgress>>);

impl RunProgress for WithinStudy {
    fn begin(&mut self, _: &ScheduledRun<'_>) {}

    fn advance(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).say();
    }

    fn warn(&mut self, _: &str) {}

    fn finish(&mut self) {}
}
