//! The progress of a command's runs: a bar on a terminal; elsewhere a line on stderr after ten seconds and then every
//! minute.

use crate::output;
use crate::run_estimate::RunEstimate;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use stackline_core::plan::{Measurement, Plan, describe_swept_values};
use stackline_core::run_schedule::ScheduledRun;
use stackline_runner::RunProgress;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The estimate, which the bar and the printed lines read.
type SharedEstimate = Arc<Mutex<RunEstimate>>;

/// A progress bar with the current measurement's text.
pub(crate) struct Bar {
    bar: ProgressBar,
    estimate: SharedEstimate,
    /// When the last counted run ended, or the first one began.
    since: Instant,
    /// Dropping it ends the thread that prints lines.
    lines: Option<Sender<()>>,
}

impl Bar {
    /// A bar for all counted runs of a plan, each made with `seeds` seeds.
    pub(crate) fn new(plan: &Plan, seeds: u64) -> Self {
        let estimate = RunEstimate::new(plan, seeds);
        let [least, most] = estimate.planned();
        let estimate = Arc::new(Mutex::new(estimate));
        let bar = ProgressBar::with_draw_target(Some(most), draw_target());
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {pos}/{len} runs{left}  {wide_msg}")
        {
            let shown = Arc::clone(&estimate);
            bar.set_style(
                style.with_key("left", move |_: &ProgressState, out: &mut dyn Write| {
                    let may_be_more = least < most;
                    let at_most = if may_be_more { " at most" } else { "" };
                    // If the text cannot be written the bar is drawn without it.
                    let _ = write!(out, "{at_most}{}", left(&shown, may_be_more));
                }),
            );
        }
        let lines = bar
            .is_hidden()
            .then(|| say_lines(bar.clone(), Arc::clone(&estimate), [FIRST, EACH]));
        Self {
            bar,
            estimate,
            since: Instant::now(),
            lines,
        }
    }

    fn with_estimate(&self, change: impl FnOnce(&mut RunEstimate)) {
        change(&mut self.estimate.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Prints a line after the time `first` and then after every time `each`, however long a run takes, until the sender
/// is dropped.
fn say_lines(
    bar: ProgressBar,
    estimate: SharedEstimate,
    [first, each]: [Duration; 2],
) -> Sender<()> {
    let (ended, wait) = channel();
    thread::spawn(move || {
        let (begun, mut next) = (Instant::now(), first);
        while wait.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
            next = each;
            output::say(&line(&bar, &estimate, begun.elapsed()));
        }
    });
    ended
}

/// The line: how many runs are done, and which one is being made.
fn line(bar: &ProgressBar, estimate: &SharedEstimate, since: Duration) -> String {
    let (done, now) = (bar.position(), bar.message());
    let now = if now.is_empty() {
        String::new()
    } else {
        format!("; now: {now}")
    };
    let [least, most] = estimate
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .planned();
    // With `until`, the number of runs that is needed is not known in advance.
    let all = match least < most {
        true => format!("{least} to {most}"),
        false => most.to_string(),
    };
    format!(
        "{done} of {all} runs done after {}{}{now}",
        HumanDuration(since),
        left(estimate, least < most)
    )
}

/// The estimated time left. Empty until a run is done, and after the last that is certain.
fn left(estimate: &SharedEstimate, may_be_more: bool) -> String {
    let left = estimate
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .left();
    let Some(left) = left else {
        return String::new();
    };
    let about = if may_be_more { "at least" } else { "about" };
    format!(", {about} {} left", HumanDuration(left))
}

/// What is being measured; the swept values first, since a long text is cut.
fn what(measurement: &Measurement) -> String {
    let swept = describe_swept_values(&measurement.variables, &measurement.variable_units);
    let colon = if swept.is_empty() { "" } else { ": " };
    format!("{swept}{colon}{}", measurement.text)
}

impl RunProgress for Bar {
    fn begin(&mut self, scheduled: &ScheduledRun<'_>) {
        self.with_estimate(|estimate| estimate.begin(scheduled.index));
        let text = what(scheduled.measurement);
        self.bar.set_message(if scheduled.counted {
            text
        } else {
            format!("warm-up: {text}")
        });
    }

    fn advance(&mut self) {
        let now = Instant::now();
        let took = now.duration_since(std::mem::replace(&mut self.since, now));
        self.with_estimate(|estimate| estimate.advance(took));
        self.bar.inc(1);
    }

    fn taken_over(&mut self, measurement: usize) {
        self.since = Instant::now();
        self.with_estimate(|estimate| estimate.taken_over(measurement));
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
    use stackline_runner::spec_source::SpecSource;
    use stackline_spec::Overrides;

    /// A hidden bar of a plan, which prints no lines.
    fn bar(text: &str) -> Bar {
        let source = SpecSource::made("test", text.to_owned());
        let plan = source.plan(&Overrides::default()).unwrap();
        let estimate = RunEstimate::new(&plan, 1);
        let [_, most] = estimate.planned();
        Bar {
            bar: ProgressBar::with_draw_target(Some(most), ProgressDrawTarget::hidden()),
            estimate: Arc::new(Mutex::new(estimate)),
            since: Instant::now(),
            lines: None,
        }
    }

    #[test]
    fn a_line_says_what_is_done_and_what_is_going_on() {
        let bar = bar("3 bulk_put 1 kB 1 MB");
        let line = |seconds| line(&bar.bar, &bar.estimate, Duration::from_secs(seconds));
        assert_eq!(line(10), "0 of 3 runs done after 10 seconds");
        bar.bar.set_message("3 bulk_put");
        assert_eq!(
            line(120),
            "0 of 3 runs done after 2 minutes; now: 3 bulk_put"
        );
        bar.bar.inc(2);
        bar.with_estimate(|estimate| {
            estimate.begin(0);
            estimate.advance(Duration::from_secs(30));
            estimate.taken_over(0);
        });
        let expected = "2 of 3 runs done after 60 seconds, about 30 seconds left; now: 3 bulk_put";
        assert_eq!(line(60), expected);
    }

    #[test]
    fn with_until_the_time_is_that_of_the_least_number_of_runs() {
        let bar = bar("3 until 2% at most 9 rr 32*5");
        bar.with_estimate(|estimate| {
            estimate.begin(0);
            estimate.advance(Duration::from_secs(30));
        });
        bar.bar.inc(1);
        let line = line(&bar.bar, &bar.estimate, Duration::from_secs(30));
        assert_eq!(
            line,
            "1 of 3 to 9 runs done after 30 seconds, at least 60 seconds left"
        );
    }

    #[test]
    fn swept_values_come_before_the_text() {
        let source = SpecSource::made("test", "1 rr N*5; N = 64".to_owned());
        let plan = source.plan(&Overrides::default()).unwrap();
        let shown = what(&plan.measurements[0]);
        assert!(shown.starts_with("N = 64 B: 1 "), "{shown}");
    }
}
