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

fn main() -> ExitCode {
    let mut options = Options {
        minutes: 10.0,
        count: u64::MAX,
        from: 1,
        list: false,
        only: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next();
        let number = |word: Option<String>| word.and_then(|word| word.parse::<f64>().ok());
        match (word.as_str(), ()) {
            ("--bench", ()) => {}
            ("--list", ()) => options.list = true,
            ("--only", ()) => options.only = value(),
            ("--minutes", ()) => options.minutes = number(value()).unwrap_or(options.minutes),
            ("--count", ()) => options.count = number(value()).map_or(options.count, |n| n as u64),
            ("--from", ()) => options.from = number(value()).map_or(options.from, |n| n as u64),
            (other, ()) => {
                eprintln!("error: nobody knows `{other}`");
                return ExitCode::from(2);
            }
        }
    }
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
