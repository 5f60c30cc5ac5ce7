//! The progress of a command's runs: a bar on a terminal; elsewhere a line on stderr after ten seconds and then every
//! minute.

use crate::output;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use stackline_core::plan::{Measurement, Plan};
use stackline_core::run_schedule::ScheduledRun;
use stackline_runner::RunProgress;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time of the first line where there is no terminal: a user begins to wonder then.
const FIRST: Duration = Duration::from_secs(10);
/// Interval between further lines.
const EACH: Duration = Duration::from_secs(60);

/// Where progress bars are drawn: on stderr, if it is a terminal.
pub(crate) fn draw_target() -> ProgressDrawTarget {
    if stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// A progress bar with the current measurement's text.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Dropping it ends the thread that prints lines.
    lines: Option<Sender<()>>,
}

impl Bar {
    /// A bar for all counted runs of a plan, each made with `seeds` seeds.
    pub(crate) fn new(plan: &Plan, seeds: u64) -> Self {
        let least: u64 = plan
            .measurements
            .iter()
            .map(|m| u64::from(m.runs))
            .sum::<u64>()
            .saturating_mul(seeds);
        let most =
            |m: &Measurement| u64::from(m.until.map_or(m.runs, |until| until.at_most.max(m.runs)));
        let most: u64 = plan
            .measurements
            .iter()
            .map(most)
            .sum::<u64>()
            .saturating_mul(seeds);
        // One second is added because opening and closing connections is not part of the time limits.
        let longest = plan
            .most_time()
            .filter(|_| seeds == 1 && !plan.measurements.is_empty())
            .map(|most| Duration::from_nanos(most.0) + Duration::from_secs(1));
        let bar = ProgressBar::with_draw_target(Some(most), draw_target());
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {pos}/{len} runs{left}  {wide_msg}")
        {
            bar.set_style(style.with_key(
                "left",
                move |state: &ProgressState, out: &mut dyn Write| {
                    // If the text cannot be written the bar is drawn without it.
                    let left = if least < most {
                        " at most".to_owned()
                    } else {
                        left(state.pos(), most, state.elapsed(), longest)
                    };
                    let _ = out.write_str(&left);
                },
            ));
        }
        let lines = bar
            .is_hidden()
            .then(|| say_lines(bar.clone(), least, longest, [FIRST, EACH]));
        Self { bar, lines }
    }
}

/// Prints a line after the time `first` and then after every time `each`, however long a run takes, until the sender
/// is dropped.
fn say_lines(
    bar: ProgressBar,
    least: u64,
    longest: Option<Duration>,
    [first, each]: [Duration; 2],
) -> Sender<()> {
    let (ended, wait) = channel();
    thread::spawn(move || {
        let (begun, mut next) = (Instant::now(), first);
        while wait.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
            next = each;
            output::say(&line(&bar, least, longest, begun.elapsed()));
        }
    });
    ended
}

/// The line: how many runs are done, and which one is being made.
fn line(bar: &ProgressBar, least: u64, longest: Option<Duration>, since: Duration) -> String {
    let (done, most, now) = (bar.position(), bar.length().unwrap_or(0), bar.message());
    let now = if now.is_empty() {
        String::new()
    } else {
        format!("; now: {now}")
    };
    // With `until`, the number of runs that is needed is not known in advance.
    let (all, left) = match least < most {
        true => (format!("{least} to {most}"), String::new()),
        false => (most.to_string(), left(done, most, since, longest)),
    };
    format!(
        "{done} of {all} runs done after {}{left}{now}",
        HumanDuration(since)
    )
}

/// The estimated time left: the runs so far are extrapolated, limited by the time limits. Empty until a run is done,
/// and after the last.
fn left(done: u64, all: u64, since: Duration, longest: Option<Duration>) -> String {
    if done == 0 || done >= all {
        return String::new();
    }
    let usual = since.mul_f64((all - done) as f64 / done as f64);
    let left = longest.map_or(usual, |longest| usual.min(longest.saturating_sub(since)));
    format!(", about {} left", HumanDuration(left))
}

impl RunProgress for Bar {
    fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        let text = &scheduled.measurement.text;
        self.bar.set_message(if scheduled.counted {
            text.clone()
        } else {
            format!("warm-up: {text}")
        });
    }

    fn advance(&mut self) {
        self.bar.inc(1);
    }

    fn warn(&mut self, words: &str) {
        self.bar
            .suspend(|| output::say(&format_args!("warning: {words}")));
    }

    fn finish(&mut self) {
        self.lines = None;
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_not_known_before_a_run_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(left(0, 3, Duration::ZERO, None), "");
        assert_eq!(left(5, 9, seconds(70), None), ", about 56 seconds left");
        let limit = Some(seconds(98));
        assert_eq!(left(5, 9, seconds(70), limit), ", about 28 seconds left");
        assert_eq!(left(9, 9, seconds(98), limit), "");
    }

    #[test]
    fn a_line_says_what_is_done_and_what_is_going_on() {
        let bar = ProgressBar::with_draw_target(Some(3), ProgressDrawTarget::hidden());
        assert_eq!(
            line(&bar, 3, None, Duration::from_secs(10)),
            "0 of 3 runs done after 10 seconds"
        );
        bar.set_message("3 bulk_put");
        assert_eq!(
            line(&bar, 3, None, Duration::from_secs(120)),
            "0 of 3 runs done after 2 minutes; now: 3 bulk_put"
        );
        bar.inc(2);
        assert_eq!(
            line(&bar, 1, None, Duration::from_secs(60)),
            "2 of 1 to 3 runs done after 60 seconds; now: 3 bulk_put"
        );
    }
}
