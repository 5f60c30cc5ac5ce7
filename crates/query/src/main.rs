//! `stackline-query RUN... "SELECT ..."`: SQL over runs by DataFusion. `stackline query` starts it.
//!
//! Tables: `results` (every run's results.parquet) and `events` (every host's file of events), each with the column `run_name`. It
//! reads plain Parquet and nothing else; the same SQL over the same files goes to a cluster.

mod error;
mod run;
mod tables;

use clap::Parser;
use run::Format;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER: &str = "\
Tables: results, events; both have the column run_name.
Examples:
  stackline query RUN 'SELECT keyword, count(*) FROM events GROUP BY keyword ORDER BY 2 DESC'
  stackline query before after 'SELECT run_name, avg(elapsed_s) FROM results GROUP BY run_name'
Exit codes: 0 done, 1 the query failed, 2 wrong input.";

/// SQL over runs
#[derive(Debug, Parser)]
#[command(name = "stackline query", bin_name = "stackline query", version, after_help = AFTER)]
struct Flags {
    /// Runs (directories, or their names under the runs directory), and the query behind them
    #[arg(required = true, num_args = 2.., value_names = ["RUN", "SQL"])]
    words: Vec<String>,
    /// How rows are printed
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Most memory, in MiB; what does not fit goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: usize,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let (sql, runs) = flags.words.split_last().expect("clap asks for two words");
    let runs: Vec<PathBuf> = runs.iter().map(PathBuf::from).collect();
    match run::run(&runs, sql, flags.format, flags.memory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}\nhint: {}", error.message, error.hint);
            ExitCode::from(error.code)
        }
    }
}
