//! Flags of `run`.

use super::choice::choice;
use super::gate::{CiFlags, GateRuleFlags, GateScopeFlags};
use super::results_table::TableFlags;
use super::sharing::Sharing;
use super::spec_text::SpecTextFlags;
use clap::Args;
use stackline_core::interval_record::{LEAST_INTERVAL, LONGEST_INTERVAL};
use stackline_core::quantity::parse_moment;
use stackline_core::run_schedule::RunOrder;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug, Default)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) text: SpecTextFlags,
    #[command(flatten)]
    pub(crate) shown: TableFlags,
    /// Directory of the files of `< file` and `> file`
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Name of the run, instead of the specification's
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
    /// Simulated: repeat every run with seeds like 1..100
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds, conflicts_with_all = ["seed", "check_determinism", "capture"])]
    pub(crate) seeds: Option<Seeds>,
    /// Simulated: check that each run is the same twice
    #[arg(long)]
    pub(crate) check_determinism: bool,
    /// Order of the runs: sweeps, random or declared
    #[arg(long, value_name = "ORDER", value_parser = choice::<RunOrder>(), hide_possible_values = true, conflicts_with = "seeds")]
    pub(crate) order: Option<RunOrder>,
    /// Make what is missing of a kept run that ended early
    #[arg(long, value_name = "RUN", conflicts_with_all = ["spec", "expression", "over", "world", "hosts", "seed", "cpu", "name", "seeds", "check_determinism", "order", "trace", "interval", "capture", "share"])]
    pub(crate) resume: Option<PathBuf>,
    /// Keep events of all layers and machines
    #[arg(long)]
    pub(crate) trace: bool,
    /// Keep and print the sums of intervals, such as 1s
    #[arg(short = 'i', long, value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<Duration>,
    /// Keep packets of a port ('khons>edge'), a host or all, as pcapng; after:PLACE is behind the queues
    #[arg(long, value_name = "PLACE")]
    pub(crate) capture: Vec<String>,
    /// Then judge it by this run, or a file of `gate --save`; takes the options of `gate`
    #[arg(long, value_name = "BASE")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rule: GateRuleFlags,
    #[command(flatten)]
    pub(crate) scope: GateScopeFlags,
    #[command(flatten)]
    pub(crate) reports: CiFlags,
}

/// The length of the intervals whose sums are kept; a number alone is in seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = parse_moment(text)?;
    let (least, most) = (LEAST_INTERVAL.seconds(), LONGEST_INTERVAL.seconds());
    match (least..=most).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("expected a time from 1 ms to 1 h, such as 100ms or 1s".into()),
    }
}

/// A range of seeds, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) std::ops::RangeInclusive<u64>);

fn seeds(text: &str) -> Result<Seeds, String> {
    let bad = || {
        "expected two whole numbers in ascending order with .. between them, such as 1..100"
            .to_string()
    };
    let (first, last) = text.split_once("..").ok_or_else(bad)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
    let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
    if first <= last && last - first < 1_000_000 {
        Ok(Seeds(first..=last))
    } else {
        Err(bad())
    }
}
