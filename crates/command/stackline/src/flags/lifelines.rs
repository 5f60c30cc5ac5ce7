//! Flags of `stackline lifelines`. They read no run.

use super::Took;
use super::choice::choice;
use clap::Args;
use stackline_analyze::assemble::LifelineGroupKey;
use stackline_core::quantity::parse_size;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline run wan.stackline --trace
  # a run, by name or directory
  stackline lifelines 20260101-120000-first
  stackline lifelines RUN --by server --slowest 3
  # events of other programs
  stackline lifelines RUN --unit 2 --bytes 48KiB

Percentiles of times are exact. docs/EVENTS.md describes monitor points and the meaning of outcomes.";

#[derive(Args, Debug)]
pub(crate) struct LifelinesFlags {
    /// A run with events: its directory, directory name or given name, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    /// Number of the data field, counted from 1, that holds the unit id in events of other programs
    #[arg(long, value_name = "FIELD", default_value_t = 1, value_parser = unit_field)]
    pub(crate) unit: usize,
    /// Expect the unit's stream, offset and bytes in fields 2 to 4 of other programs' events, as in stackline's own
    #[arg(long)]
    pub(crate) ranges: bool,
    /// Also show times for each server, host, stack or flow
    #[arg(long, value_name = "WHAT", value_parser = choice::<LifelineGroupKey>())]
    pub(crate) by: Option<LifelineGroupKey>,
    /// Only units of this measurement, numbered from 1 in the order of the specification
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) measurement: Option<u32>,
    #[command(flatten)]
    pub(crate) took: Took,
    /// Read at most this many events at once, at about 35 bytes of memory each; if there are more, read only those of whole runs
    #[arg(long, value_name = "NUMBER", default_value_t = stackline_analyze::loaded_run::assembly::MOST_EVENTS)]
    pub(crate) most_events: usize,
    /// Number of slowest units to draw, each as a lifeline
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) slowest: usize,
    /// Size of a unit if events do not include it, such as 48KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: Option<u64>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: also print every lifeline with its passages
    #[arg(long, requires = "json")]
    pub(crate) lines: bool,
    /// Write the lifelines as data, with a gnuplot script, to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) gnuplot: Option<PathBuf>,
}

fn unit_field(text: &str) -> Result<usize, String> {
    let most = stackline_events::table::FIELDS;
    text.parse()
        .ok()
        .filter(|field| (1..=most).contains(field))
        .ok_or_else(|| format!("expected a number from 1 to {most}"))
}
