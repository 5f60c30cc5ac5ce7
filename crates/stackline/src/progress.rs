//! How far a command's runs are: a bar on a terminal, elsewhere a line on stderr every minute.

use crate::output;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use stackline_core::plan::Plan;
use stackline_core::schedule::ScheduledRun;
use stackline_runner::Progress;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const MINUTE: Duration = Duration::from_secs(60);

/// A bar with the measurement beside it.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// When the last line was written, or the runs began.
    last: Instant,
}

impl Bar {
    /// Of all counted runs of a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let runs: u64 = plan.measurements.iter().map(|m| u64::from(m.runs)).sum();
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} runs{left}  {wide_msg}") {
            bar.set_style(style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
                // A text that cannot be written is a bar without it.
                let _ = out.write_str(&left(state.pos(), state.eta()));
            }));
        }
        Self { bar, last: Instant::now() }
    }

    /// Where nobody sees the bar.
    fn line(&mut self) {
        if self.bar.is_hidden() && self.last.elapsed() >= MINUTE {
            self.last = Instant::now();
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            output::say(&format_args!("{done} of {all} runs are done{}", left(done, self.bar.eta())));
        }
    }
}

/// The time left; nothing until a run is done, since before that nobody can know.
fn left(done: u64, eta: Duration) -> String {
    if done == 0 { String::new() } else { format!(", about {} left", HumanDuration(eta)) }
}

impl Progress for Bar {
    fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        let text = &scheduled.measurement.text;
        self.bar.set_message(if scheduled.counted { text.clone() } else { format!("warm-up: {text}") });
    }

    fn advance(&mut self) {
        self.bar.inc(1);
        self.line();
    }

    fn warn(&mut self, words: &str) {
        self.bar.suspend(|| output::say(&format_args!("warning: {words}")));
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_not_known_before_a_run_is_done() {
        assert_eq!(left(0, Duration::ZERO), "");
        assert_eq!(left(1, Duration::from_secs(90)), ", about 2 minutes left");
    }
}
