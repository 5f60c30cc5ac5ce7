//! stackline beside a bare loop of system calls, and beside other tools, in one run: ratios, not promises.
//!
//! ```text
//! cargo bench -p stackline --bench peers [-- WORD... [--rounds N] [--quick] [--json FILE] [--list]]
//! ```
//!
//! A word that is the name of a side (`bare`, `stackline`, `iperf3`...) keeps only such sides; any other word keeps the
//! cases that have it in their name. Sides take turns within a round, so that a slow minute of the host hits all alike.
//! `STACKLINE_BIN` names another program to measure. Only loopback is used, every loop is bounded in time, and every
//! process that was started is ended by its number.

mod support;

use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use support::{args, cases, runner, table};

fn main() -> ExitCode {
    let options = match args::parse(BenchArguments::read()) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}\nhint: {}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let cases: Vec<_> = cases::all(&options)
        .into_iter()
        .filter(|case| options.wants(&case.name))
        .collect();
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", table::host());
    let results: Vec<_> = cases
        .into_iter()
        .filter_map(|case| measure(case, &options))
        .collect();
    eprintln!("\n{}", table::host());
    match options
        .json
        .as_ref()
        .map(|file| std::fs::write(file, table::json(&results, &options).to_string()))
    {
        Some(Err(error)) => {
            eprintln!("error: cannot write the JSON file: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Runs a case and prints it as soon as it is done.
fn measure(case: cases::Case, options: &args::Options) -> Option<runner::Outcome> {
    let outcome = runner::run(case, options)?;
    print!("{}", table::text(&outcome));
    Some(outcome)
}
