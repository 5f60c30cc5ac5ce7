//! Flags of `runs`, and of `archive`.

use super::choice::choice;
use super::percent::percent;
use super::sharing::Sharing;
use clap::{Args, Subcommand};
use stackline_analyze::change_points::ChangePointRule;
use stackline_analyze::curves::CurveMetric;
use stackline_core::plan::World;
use stackline_core::quantity::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline runs
  stackline runs --all bulk_put
  stackline runs --since 7d --tag nightly --in live
  stackline runs note last 'after the kernel update'
  stackline runs tag last nightly arm
  stackline runs changes --tag nightly --metric p99
  stackline runs again before
  stackline runs add 20260101-120000-wan.stackline.tar.gz
  stackline runs remove before after
  stackline runs prune --keep 50 --dry-run

Other commands accept a run's directory name, the name it was given, the
beginning of either (at least four letters, of one run only), `last`, or
`last~2` for the third newest.";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsFlags {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) which: RunsFilterFlags,
    /// List all runs instead of the newest 20
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which of the kept runs are meant.
#[derive(Args, Debug)]
pub(crate) struct RunsFilterFlags {
    /// Only runs whose name, specification, tags or note contain this text
    pub(crate) text: Option<String>,
    /// Only runs with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only runs in this world
    #[arg(long = "in", value_name = "WORLD", value_parser = choice::<World>())]
    pub(crate) world: Option<World>,
    /// Only runs that started within this time, such as 7d, or since this date (UTC), such as 2026-01-31
    #[arg(long, value_name = "TIME|DATE", value_parser = parse_since)]
    pub(crate) since: Option<RunsSince>,
}

/// From when on runs are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunsSince {
    /// So long before now.
    Ago(Duration),
    /// A date, and perhaps a time of the day, as ISO 8601 writes it.
    Date(String),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Write a note about a run; an empty note removes it
    Note(RunsNote),
    /// Give a run tags, by which it can be listed
    Tag(RunsTag),
    /// Find where a figure of runs of the same measurement changed
    Changes(RunsChanges),
    /// Add archives to the kept runs
    Add(RunsAdd),
    /// Make a run again, and say whether the results are the same
    Again(RunsAgain),
    /// Remove runs
    Remove(RunsRemove),
    /// Remove old or large runs, except those with a note or a tag
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
pub(crate) struct RunsTag {
    /// The run: its directory, directory name or given name, or `last`
    pub(crate) run: PathBuf,
    /// The tags, each a word; without any, the run's tags are printed
    pub(crate) tags: Vec<String>,
    /// Remove these tags instead
    #[arg(long, requires = "tags")]
    pub(crate) remove: bool,
}

/// The largest window in which change points are sought: the work grows with its square.
const LARGEST_WINDOW: u64 = 500;

#[derive(Args, Debug)]
pub(crate) struct RunsChanges {
    #[command(flatten)]
    pub(crate) which: RunsFilterFlags,
    /// The figure, by a name as for `plot --y`: mean, p99, throughput, response_p90
    #[arg(long, value_name = "METRIC", default_value = "mean", value_parser = CurveMetric::parse)]
    pub(crate) metric: CurveMetric,
    /// How many runs are looked at together
    #[arg(long, value_name = "RUNS", default_value_t = ChangePointRule::USUAL.window, value_parser = parse_window)]
    pub(crate) window: usize,
    /// The largest probability of such a change by chance
    #[arg(long, value_name = "PROBABILITY", default_value_t = ChangePointRule::USUAL.max_p, value_parser = parse_probability)]
    pub(crate) max_p: f64,
    /// The least change that is shown, such as 5%
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = percent)]
    pub(crate) magnitude: f64,
    /// Write the figures as CSV for Apache Otava, too
    #[arg(long, value_name = "FILE")]
    pub(crate) otava: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of runs from 2 to [`LARGEST_WINDOW`].
fn parse_window(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of runs from 2 to {LARGEST_WINDOW}, not `{text}`");
    let runs: u64 = text.parse().map_err(|_| wrong())?;
    match (2..=LARGEST_WINDOW).contains(&runs) {
        true => usize::try_from(runs).map_err(|_| wrong()),
        false => Err(wrong()),
    }
}

/// A probability above 0 and below 1.
fn parse_probability(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let within = number.filter(|p| *p > 0.0 && *p < 1.0);
    within.ok_or_else(|| format!("expected a probability such as 0.001, not `{text}`"))
}

#[derive(Args, Debug)]
pub(crate) struct RunsAdd {
    /// Files that `stackline archive` wrote
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
}

#[derive(Args, Debug)]
pub(crate) struct RunsAgain {
    /// The run, as for other commands, or an archive, which is added to the kept runs first
    pub(crate) run: PathBuf,
    /// Also make an archive's live and emulated measurements, which may start programs and reach other hosts
    #[arg(long)]
    pub(crate) trust: bool,
    /// Directory on this machine for the files of `< file` and `> file`
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RunsRemove {
    /// The runs: each a directory, directory name or given name, or `last`
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "stackline runs prune [OPTIONS]\n           <--keep|--older-than|--larger|--most-size> <LIMIT>"
)]
#[command(group(clap::ArgGroup::new("rule").args(["keep", "older_than", "larger", "most_size"]).required(true).multiple(true)))]
pub(crate) struct RunsPrune {
    /// Remove all but the newest NUMBER runs
    #[arg(long, value_name = "NUMBER")]
    pub(crate) keep: Option<usize>,
    /// Remove runs that ended longer ago than this, such as 30d or 12h
    #[arg(long, visible_alias = "older", value_name = "TIME", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,
    /// Remove runs that take up more than this, such as 1GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) larger: Option<u64>,
    /// Remove the oldest runs until the rest take up at most this much, such as '2 GB'
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) most_size: Option<u64>,
    /// Look only at runs with this tag, and remove them although they have it; may be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only list what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ArchiveFlags {
    /// The run: its directory, directory name or given name, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    /// Write the archive here instead of to NAME.stackline.tar.gz in the working directory; - for standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["output"])]
    pub(crate) json: bool,
}

/// A time as everywhere, or days or weeks: `30d`, `2w`.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let day = 86_400.0;
    let text = text.trim();
    let units = [("d", day), ("w", 7.0 * day)];
    let days = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.trim_end();
        Some(number.parse::<f64>().ok()? * seconds)
    });
    match days {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        None => parse_duration(text).map_err(|words| format!("{words}, or in days, as in 30d")),
    }
}

/// An age, or a date with perhaps a time of the day.
pub(super) fn parse_since(text: &str) -> Result<RunsSince, String> {
    let text = text.trim();
    // What matters is only that it can be compared with a run's start, digit by digit.
    let form = "0000-00-00T00:00:00Z";
    let fits = |(given, form): (char, char)| match form {
        '0' => given.is_ascii_digit(),
        other => given == other,
    };
    let is_whole = [10, 16, 19, 20].contains(&text.len());
    if is_whole && text.chars().zip(form.chars()).all(fits) {
        return Ok(RunsSince::Date(text.to_owned()));
    }
    parse_age(text).map(RunsSince::Ago).map_err(|_| {
        format!("`{text}` is neither a time such as 7d or 12h nor a date such as 2026-01-31 or 2026-01-31T12:00")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_dates_are_distinguished() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        assert_eq!(parse_since("7d"), Ok(RunsSince::Ago(days(7))));
        assert_eq!(parse_since("2 w"), Ok(RunsSince::Ago(days(14))));
        assert_eq!(
            parse_since("90 s"),
            Ok(RunsSince::Ago(Duration::from_secs(90)))
        );
        for date in ["2026-01-31", "2026-01-31T12:00", "2026-01-31T12:00:00Z"] {
            assert_eq!(parse_since(date), Ok(RunsSince::Date(date.to_owned())));
        }
        for wrong in [
            "",
            "yesterday",
            "2026-1-31",
            "2026-01-31T12",
            "-7d",
            "1e300d",
        ] {
            assert!(parse_since(wrong).is_err(), "{wrong}");
        }
    }
}
