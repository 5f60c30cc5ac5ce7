//! Random specifications with planted causes, simulated, diagnosed, and judged by taking each cause away and simulating again; their
//! advice, followed with other seeds and measured; and others, predicted and run.
//!
//! `cargo bench -p stackline-whatif --bench truth [-- --minutes N] [--count N] [--from SEED] [--list] [--only diagnosis|predictions|forms]`:
//! the reliability diagram of what findings say, how many of the causes they name, how often exactly these and the first of them, and what
//! advice brings; how many predictions are right, and how many of the runs their intervals hold, of closed forms alone and with what is
//! simulated. `--list` prints lines for each specification. Exits with 1 when fewer than 95 % of the findings said with 90 % or more, or of
//! the figures predicted, are right.

mod asked;
mod diagnosis;
mod followed_advice;
mod prediction;
mod runs;
mod verdict_tables;

use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// So many of the findings that are said with 90 % or more, and of the figures predicted, have to be right.
const SURE: f64 = 0.95;

/// What is asked for on the command line.
struct Options {
    minutes: f64,
    count: u64,
    from: u64,
    list: bool,
    only: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    let options = Options {
        minutes: arguments.take_number("--minutes", 10.0)?,
        count: arguments.take_number("--count", u64::MAX)?,
        from: arguments.take_number("--from", 1)?,
        list: arguments.take_flag("--list"),
        only: arguments.take_word("--only")?,
    };
    match arguments.into_words()?.first() {
        Some(word) => Err(format!("this benchmark has no `{word}`")),
        None => Ok(options),
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}");
            return ExitCode::from(2);
        }
    };
    let wanted = |what: &str| options.only.as_deref().is_none_or(|only| only == what);
    let of_each = options.only.as_ref().map_or(1.0 / 3.0, |_| 1.0);
    let time = Duration::from_secs_f64(60.0 * options.minutes * of_each);
    let found = !wanted("diagnosis") || diagnosed(&options, time);
    let by_forms = !wanted("forms") || predicted(&options, time, false);
    let simulated = !wanted("predictions") || predicted(&options, time, true);
    if found && by_forms && simulated {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn enough(right: usize, wrong: usize) -> bool {
    right as f64 >= SURE * (right + wrong) as f64
}

fn diagnosed(options: &Options, time: Duration) -> bool {
    let until = Instant::now() + time;
    let all = diagnosis::JudgedScenarios::judge(options.from, options.count, until);
    if options.list {
        print!("{}", all.lines());
    }
    print!("{}", all.table());
    let (right, wrong, failed) = all.of_the_sure();
    enough(right, wrong) && failed == 0
}

fn predicted(options: &Options, time: Duration, simulates: bool) -> bool {
    let until = Instant::now() + time;
    let all = prediction::judge(options.from, options.count, until, simulates);
    if options.list {
        print!("{}", all.lines());
    }
    let by = if simulates {
        "With what is simulated:"
    } else {
        "By closed forms:"
    };
    print!("\n{by}\n{}", all.table());
    let [right, wrong, _] = all.counts();
    enough(right, wrong)
}
