//! Random specifications with planted causes, diagnosed, and judged by taking each cause away and running again; and others,
//! predicted and run.
//!
//! `cargo bench -p stackline --bench truth [-- --minutes N] [--count N] [--from SEED] [--list] [--only diagnosis|prediction|factors|limits]`: the
//! reliability diagram of what findings say and how many of the causes they name; how many predictions are right, and how many of the
//! runs their intervals hold, of closed forms alone and with what is simulated. `--only factors`: effects of `stackline factors` beside many runs; `limits`: its limits by one run
//! beside simulated ones. `--list` prints a line for each specification. Exits with 1
//! when fewer than 95 % of the findings said with 90 % or more, or of the figures predicted, are right.

mod diagnosis;
mod factors;
mod prediction;
mod runs;
mod seeds;

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
        Some(word) => Err(format!(
            "`{word}` is nothing that is asked of this benchmark"
        )),
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
    if options.only.as_deref() == Some("limits") {
        let until = Instant::now() + Duration::from_secs_f64(60.0 * options.minutes);
        print!("{}", factors::limits(options.from, options.count, until));
        return ExitCode::SUCCESS;
    }
    if options.only.as_deref() == Some("factors") {
        let until = Instant::now() + Duration::from_secs_f64(60.0 * options.minutes);
        let all = factors::judge(options.from, options.count, until);
        print!("{}", all.table());
        let [(held, of), (alleged, inert), (right, ranked)] = all.counts();
        let share = |some: usize, all: usize| some as f64 / all.max(1) as f64;
        let good = (0.93..=0.97).contains(&share(held, of)) && share(alleged, inert) <= 0.05;
        return if good && share(right, ranked) >= SURE {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let wanted = |what: &str| options.only.as_deref().is_none_or(|only| only == what);
    let both = wanted("diagnosis") && wanted("prediction");
    let share = Duration::from_secs_f64(60.0 * options.minutes / if both { 2.0 } else { 1.0 });
    let found = !wanted("diagnosis") || diagnosed(&options, share);
    let predicted = !wanted("prediction") || predicted(&options, share);
    if found && predicted {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn enough(right: usize, wrong: usize) -> bool {
    right as f64 >= SURE * (right + wrong) as f64
}

fn diagnosed(options: &Options, time: Duration) -> bool {
    let all = diagnosis::judge(options.from, options.count, Instant::now() + time);
    if options.list {
        print!("{}", all.lines());
    }
    print!("{}", all.table());
    let (right, wrong, failed) = all.of_the_sure();
    enough(right, wrong) && failed == 0
}

fn predicted(options: &Options, time: Duration) -> bool {
    let right = [false, true].map(|simulate| {
        let all = prediction::judge(
            options.from,
            options.count,
            Instant::now() + time / 2,
            simulate,
        );
        if options.list {
            print!("{}", all.lines());
        }
        println!(
            "\n{}",
            if simulate {
                "With what is simulated:"
            } else {
                "By closed forms:"
            }
        );
        print!("{}", all.table());
        let [right, wrong, _] = all.counts();
        enough(right, wrong)
    });
    right == [true, true]
}
