//! Flags of `runs`.

use clap::{Args, Subcommand};
use stackline_core::quantity::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline runs
  stackline runs --all bulk_put
  stackline runs note last 'after the kernel update'
  stackline runs remove before after
  stackline runs prune --keep 50 --dry-run

Other commands accept a run's directory name, the name it was given, `last`, or
`last~2` for the third newest.";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsFlags {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// List only runs whose name, specification or note contains this text
    pub(crate) text: Option<String>,
    /// List all runs instead of the newest 20
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Write a note about a run; an empty note removes it
    Note(RunsNote),
    /// Remove runs
    Remove(RunsRemove),
    /// Remove old runs, except those with a note
    Prune(RunsPrune),
}

#[derive(Args, Debug)]
pub(crate) struct RunsNote {
    /// The run: its directory, directory name or given name, or `last`
    pub(crate) run: PathBuf,
    /// The note
    pub(crate) text: String,
}

#[derive(Args, Debug)]
pub(crate) struct RunsRemove {
    /// The runs: each a directory, directory name or given name, or `last`
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "stackline runs prune [OPTIONS] <--keep|--older-than|--most-size> <LIMIT>"
)]
#[command(group(clap::ArgGroup::new("rule").args(["keep", "older_than", "most_size"]).required(true).multiple(true)))]
pub(crate) struct RunsPrune {
    /// Remove all but the newest NUMBER runs
    #[arg(long, value_name = "NUMBER")]
    pub(crate) keep: Option<usize>,
    /// Remove runs that ended longer ago than this, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,
    /// Remove the oldest runs until the rest take up at most this much, such as '2 GB'
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) most_size: Option<u64>,
    /// Only list what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A time as everywhere, or days: `30d`.
fn parse_age(text: &str) -> Result<Duration, String> {
    let days = text.trim().strip_suffix('d').map(str::trim_end);
    match days.and_then(|days| days.parse::<f64>().ok()) {
        Some(days) => {
            Duration::try_from_secs_f64(days * 86_400.0).map_err(|error| error.to_string())
        }
        None => parse_duration(text).map_err(|words| format!("{words}, or in days, as in 30d")),
    }
}
