//! Random specifications with planted causes, diagnosed, and judged by taking each cause away and running again.
//!
//! `cargo bench -p stackline --bench truth [-- --minutes N] [--count N] [--from SEED] [--list]`: the reliability diagram of what
//! findings say, and how many of the causes they name. `--list` prints a line for each specification. Exits with 1 when fewer than
//! 95 % of the findings said with 90 % or more are right.

mod diagnosis;
mod runs;

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// So many of the findings that are said with 90 % or more have to be right.
const SURE: f64 = 0.95;

/// What is asked for on the command line.
struct Options {
    minutes: f64,
    count: u64,
    from: u64,
    list: bool,
}

fn main() -> ExitCode {
    let mut options = Options { minutes: 10.0, count: u64::MAX, from: 1, list: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok());
        match (word.as_str(), ()) {
            ("--bench", ()) => {}
            ("--list", ()) => options.list = true,
            ("--minutes", ()) => options.minutes = number().unwrap_or(options.minutes),
            ("--count", ()) => options.count = number().map_or(options.count, |n| n as u64),
            ("--from", ()) => options.from = number().map_or(options.from, |n| n as u64),
            (other, ()) => {
                eprintln!("error: nobody knows `{other}`");
                return ExitCode::from(2);
            }
        }
    }
    let until = Instant::now() + Duration::from_secs_f64(60.0 * options.minutes);
    let all = diagnosis::judge(options.from, options.count, until);
    if options.list {
        print!("{}", all.lines());
    }
    print!("{}", all.table());
    let (right, wrong, failed) = all.of_the_sure();
    let enough = right as f64 >= SURE * (right + wrong) as f64;
    if enough && failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
