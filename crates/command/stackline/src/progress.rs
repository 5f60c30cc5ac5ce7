//! How far a command's runs are: a bar on a terminal, elsewhere a line on stderr after ten seconds and then every minute.

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

/// When the first line is written where there is no terminal: by then one wonders.
const FIRST: Duration = Duration::from_secs(10);
/// How often one is written after it.
const EACH: Duration = Duration::from_secs(60);

/// A bar with the measurement beside it.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Dropped, it ends the lines.
    lines: Option<Sender<()>>,
}

impl Bar {
    /// Of all counted runs of a plan, each made under so many seeds.
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
        // Opening and closing of connections comes on top of time limits.
        let longest = plan
            .most_time()
            .filter(|_| seeds == 1 && !plan.measurements.is_empty())
            .map(|most| Duration::from_nanos(most.0) + Duration::from_secs(1));
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(most), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {pos}/{len} runs{left}  {wide_msg}")
        {
            bar.set_style(style.with_key(
                "left",
                move |state: &ProgressState, out: &mut dyn Write| {
                    // A text that cannot be written is a bar without it.
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

/// Writes a line after the first time and then after each second one, however long a run takes, until the sender is dropped.
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

/// How far it is, and what is being done.
fn line(bar: &ProgressBar, least: u64, longest: Option<Duration>, since: Duration) -> String {
    let (done, most, now) = (bar.position(), bar.length().unwrap_or(0), bar.message());
    let now = if now.is_empty() {
        String::new()
    } else {
        format!("; now: {now}")
    };
    // How many it takes until a figure is sure enough, nobody knows before.
    let (all, left) = match least < most {
        true => (format!("{least} to {most}"), String::new()),
        false => (most.to_string(), left(done, most, since, longest)),
    };
    format!(
        "{done} of {all} runs done after {}{left}{now}",
        HumanDuration(since)
    )
}

/// The time left: as long for each run as for those that are done, at most what the time limits leave. Nothing until a run is done, since
/// before that nobody can know, and nothing after the last.
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
