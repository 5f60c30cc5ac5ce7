//! Effects of `stackline factors` on random specifications beside those of many runs.
//!
//! `cargo bench -p stackline --bench factors [-- --minutes N] [--count N] [--from SEED] [--limits]`: how often intervals hold the truth,
//! how often a factor that does nothing is alleged, how often the first of the ranking is the first; `--limits`: its limits by one run beside
//! simulated ones. Exits with 1 when that is not as good as promised.

mod effects;
mod runs;

use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// So many rankings have to be right.
const RANKED: f64 = 0.95;

/// What is asked for on the command line.
struct Options {
    minutes: f64,
    count: u64,
    from: u64,
    limits: bool,
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    let options = Options {
        minutes: arguments.take_number("--minutes", 10.0)?,
        count: arguments.take_number("--count", u64::MAX)?,
        from: arguments.take_number("--from", 1)?,
        limits: arguments.take_flag("--limits"),
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
    let until = Instant::now() + Duration::from_secs_f64(60.0 * options.minutes);
    if options.limits {
        print!("{}", effects::limits(options.from, options.count, until));
        return ExitCode::SUCCESS;
    }
    let all = effects::judge(options.from, options.count, until);
    print!("{}", all.table());
    let [(held, of), (alleged, inert), (right, ranked)] = all.counts();
    let share = |some: usize, all: usize| some as f64 / all.max(1) as f64;
    let good = (0.93..=0.97).contains(&share(held, of)) && share(alleged, inert) <= 0.05;
    if good && share(right, ranked) >= RANKED {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
