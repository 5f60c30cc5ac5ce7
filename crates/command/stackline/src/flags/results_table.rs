//! Flags of the commands that show the results of a run, and `show` itself.

use clap::{Args, ValueEnum};
use stackline_report::Percentile;
use std::path::PathBuf;

/// How results are shown: as a table or as CSV.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TableFlags {
    /// Print CSV on stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Notes below the table: three, or all
    #[arg(long, value_name = "few|all", hide_possible_values = true, default_value = "few", conflicts_with_all = ["json", "csv"])]
    pub(crate) notes: NotesFlag,
    /// Percentiles of times to show, as median,95,p99.99
    #[arg(long, value_name = "P,...", value_delimiter = ',', value_parser = percentile)]
    pub(crate) percentiles: Vec<Percentile>,
}

/// How many notes are printed: a few, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NotesFlag {
    #[default]
    Few,
    All,
}

impl NotesFlag {
    /// The most notes that are printed; `None` for all.
    pub(crate) fn most(self) -> Option<usize> {
        (self == Self::Few).then_some(3)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// A kept run: its directory, directory name or given name, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) shown: TableFlags,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `median`, `p50`, `99`, `p99.99`, `max`.
pub(crate) fn percentile(text: &str) -> Result<Percentile, String> {
    let plain = text.trim().to_ascii_lowercase();
    let number = plain
        .strip_prefix('p')
        .unwrap_or(&plain)
        .trim_end_matches('%')
        .trim_end();
    match (plain.as_str(), number.parse::<f64>()) {
        ("median", _) => Ok(Percentile::Percent(50.0)),
        ("max", _) => Ok(Percentile::Max),
        (_, Ok(100.0)) => Ok(Percentile::Max),
        (_, Ok(percent)) if percent > 0.0 && percent < 100.0 => Ok(Percentile::Percent(percent)),
        _ => {
            Err("expected a number above 0 and up to 100, such as 95, p99.9 or p99.99; or `median` or `max`".into())
        }
    }
}
