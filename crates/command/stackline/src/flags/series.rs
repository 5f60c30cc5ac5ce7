//! Flags of `stackline series`.

use super::plot::WidthFlag;
use clap::Args;
use clap::ValueEnum;
use stackline_analyze::time_series::SeriesKind;
use stackline_core::quantity::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline series last
  stackline series last --only throughput,cwnd,queue -o run.svg
  stackline series last --measurement 1 --run 1 --every 100ms -o run.csv

In a terminal, series are drawn in the text; in a pipe, they are printed as
CSV. A run has them if it was made with `run --interval 1s` (throughput, calls,
latency, cwnd, rtt, retransmits, lost, jitter) or with `run --trace` (all).";

#[derive(Args, Debug)]
pub(crate) struct SeriesFlags {
    /// A kept run: its directory, directory name or given name, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: PathBuf,
    /// The measurement, counted from 1; by default the first that has series
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) measurement: Option<u32>,
    /// Its run, counted from 1; by default the first that has series
    #[arg(long = "run", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) number: Option<u32>,
    /// Length of an interval of a traced run; by default, a run has about 60
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) every: Option<Duration>,
    /// Some series alone: throughput, calls, latency, cwnd, rtt, retransmits, queue, lost, jitter, cpu
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) only: Vec<SeriesFlag>,
    /// Draw FILE.svg, .png, .pdf or .html, or write the intervals as FILE.csv; may be given several times
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Width of a picture: one column of a paper with two (3.3 inches), or both (7 inches)
    #[arg(
        long,
        value_name = "single|double",
        hide_possible_values = true,
        default_value = "double"
    )]
    pub(crate) width: WidthFlag,
    /// Draw in the terminal with ASCII alone; otherwise where the locale is not UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Read at most so many events at once
    #[arg(long, value_name = "N", default_value_t = stackline_analyze::loaded_run::MOST_EVENTS)]
    pub(crate) most_events: usize,
}

/// A series by the word of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesFlag(pub(crate) SeriesKind);

impl ValueEnum for SeriesFlag {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [SeriesFlag; SeriesKind::ALL.len()] = {
            let mut all = [SeriesFlag(SeriesKind::Throughput); SeriesKind::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = SeriesFlag(SeriesKind::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.word()))
    }
}
