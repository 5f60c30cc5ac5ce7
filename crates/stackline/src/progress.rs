//! How far a command's runs are, as a bar on a terminal; elsewhere nothing.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stackline_core::plan::Plan;
use stackline_core::schedule::ScheduledRun;
use stackline_runner::Progress;
use std::io::{IsTerminal, stderr};

/// A bar with the measurement beside it.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Of all counted runs of a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let runs: u64 = plan.measurements.iter().map(|m| u64::from(m.runs)).sum();
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }
}

impl Progress for Bar {
    fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        let text = &scheduled.measurement.text;
        self.0.set_message(if scheduled.counted { text.clone() } else { format!("warm-up: {text}") });
    }

    fn advance(&mut self) {
        self.0.inc(1);
    }

    fn warn(&mut self, words: &str) {
        self.0.suspend(|| output::say(&format_args!("warning: {words}")));
    }

    fn finish(&mut self) {
        self.0.finish_and_clear();
    }
}
