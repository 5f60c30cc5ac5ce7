//! Flags of `stackline plot`.

use clap::{Args, ValueEnum};
use stackline_report::plot::{LogAxes, PlotWidth};
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline plot last
  stackline plot study --x L --y p99 -o curve.svg -o curve.csv
  stackline plot study --x L --by stack --panels R -o curve.pdf --width double
  stackline plot study --x L --heat R -o heat.png
  stackline plot before after --cdf -o calls.html

In a terminal, curves are drawn in the text; in a pipe, the points are printed
as CSV. A metric is a figure of what a row is judged by (mean, median, p99,
max), a name of JSON or CSV (throughput, response, connect, rate,
cpu_s_per_gb), or both: response_p99.";

#[derive(Args, Debug)]
pub(crate) struct PlotFlags {
    /// Kept runs: each a directory, directory name or given name, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) runs: Vec<PathBuf>,
    /// The swept variable of the horizontal axis; by default the one with the most values
    #[arg(long, value_name = "NAME")]
    pub(crate) x: Option<String>,
    /// What is shown; by default, the mean of what rows are judged by
    #[arg(long, value_name = "METRIC")]
    pub(crate) y: Option<String>,
    /// A line for each value of this: a variable, stack, run, application, network, world, part; the rest that varies has panels
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// A panel for each value of this
    #[arg(long, value_name = "NAME")]
    pub(crate) panels: Option<String>,
    /// A heat map over the horizontal variable and this one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["by", "cdf", "percentiles", "log"])]
    pub(crate) heat: Option<String>,
    /// The share of calls that take at most a time
    #[arg(long, conflicts_with_all = ["x", "percentiles"])]
    pub(crate) cdf: bool,
    /// The time of calls at each percentile
    #[arg(long, conflicts_with = "x")]
    pub(crate) percentiles: bool,
    /// Which axes are logarithmic; by default x of a geometric sweep, y of values that cover a factor of 100
    #[arg(long, value_name = "x|y|both|none", hide_possible_values = true)]
    pub(crate) log: Option<LogFlag>,
    /// Draw FILE.svg, .png, .pdf or .html, or write the points as FILE.csv; may be given several times
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Width of a picture: one column of a paper with two (3.3 inches), or both (7 inches)
    #[arg(
        long,
        value_name = "single|double",
        hide_possible_values = true,
        default_value = "single"
    )]
    pub(crate) width: WidthFlag,
    /// Draw in the terminal with ASCII alone; otherwise where the locale is not UTF-8
    #[arg(long)]
    pub(crate) ascii: bool,
}

impl PlotFlags {
    /// Of curves that are there already: wide, for they are of a time.
    pub(crate) const fn of_curves() -> Self {
        Self {
            runs: Vec::new(),
            x: None,
            y: None,
            by: None,
            panels: None,
            heat: None,
            cdf: false,
            percentiles: false,
            log: Some(LogFlag::None),
            output: Vec::new(),
            width: WidthFlag::Double,
            ascii: false,
        }
    }
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFlag {
    X,
    Y,
    Both,
    None,
}

impl LogFlag {
    pub(crate) const fn axes(self) -> LogAxes {
        match self {
            Self::X => LogAxes::X,
            Self::Y => LogAxes::Y,
            Self::Both => LogAxes::Both,
            Self::None => LogAxes::Neither,
        }
    }
}

/// The width of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WidthFlag {
    Single,
    Double,
}

impl WidthFlag {
    pub(crate) const fn width(self) -> PlotWidth {
        match self {
            Self::Single => PlotWidth::Single,
            Self::Double => PlotWidth::Double,
        }
    }
}
