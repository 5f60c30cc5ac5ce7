//! Flags of the commands that show the results of a run, and `show` itself.

use clap::{Args, ValueEnum};
use stackline_report::Percentile;
use std::path::PathBuf;

/// How a table of results is shown, or that it is CSV.
#[derive(Args, Debug)]
pub(crate) struct Shown {
    /// Print CSV on stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Notes below the table: three, or all
    #[arg(long, value_name = "few|all", hide_possible_values = true, default_value = "few", conflicts_with_all = ["json", "csv"])]
    pub(crate) notes: Notes,
    /// Of times in the table, such as median,p90,p99,p99.9,max
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_value = "median,p99", hide_default_value = true, value_parser = percentile, conflicts_with_all = ["json", "csv"])]
    pub(crate) percentiles: Vec<Percentile>,
}

/// Which notes stand below a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Notes {
    Few,
    All,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// A kept run: a directory, its name, the name it was given, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) shown: Shown,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `median`, `p50`, `99`, `p99.9`, `max`.
fn percentile(text: &str) -> Result<Percentile, String> {
    let plain = text.trim().to_ascii_lowercase();
    let name = match plain.trim_start_matches('p').trim_end_matches('%') {
        "50" => "median".to_owned(),
        "100" => "max".to_owned(),
        number if number.starts_with(|first: char| first.is_ascii_digit()) => format!("p{number}"),
        _ => plain,
    };
    let known = Percentile::ALL.into_iter().find(|(_, known)| *known == name);
    known
        .map(|(which, _)| which)
        .ok_or_else(|| "one of median, p90, p99, p99.9 and max; --json has no others".to_owned())
}
