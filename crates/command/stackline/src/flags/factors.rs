//! Flags of `stackline factors`. They touch nothing.

use super::SpecTextFlags;
use super::choice::choice;
use clap::Args;
use stackline_core::quantity::parse_duration;
use stackline_factors::{EffectScale, Wish};
use stackline_whatif::specification::response_figures::RunResponse;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which factors matter.
#[derive(Args, Debug)]
pub(crate) struct Factors {
    #[command(flatten)]
    pub(crate) text: SpecTextFlags,
    /// A factor and its levels; may be repeated, and is added to those declared in the specification
    #[arg(short, long = "factor", value_name = "FACTOR")]
    pub(crate) factors: Vec<String>,
    #[command(flatten)]
    pub(crate) experiment: FactorExperiment,
    /// Runs of each combination; by default, as many as in the specification, but at least 2 (5 if simulated)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) replicates: Option<u32>,
    /// Number of runs with every factor at the geometric mean of its levels, to see whether the response curves in between
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) centre: u32,
    /// The responses; by default, a run's main response, then all its others
    #[arg(long = "response", value_name = "NAME", value_delimiter = ',', value_parser = choice::<RunResponse>())]
    pub(crate) responses: Vec<RunResponse>,
    /// The measurement on this line of the specification, if it has several
    #[arg(long, value_name = "NUMBER")]
    pub(crate) line: Option<usize>,
    /// Skip finding the next limit if a factor no longer mattered
    #[arg(long)]
    pub(crate) no_limits: bool,
    /// Resume the interrupted experiment in the directory that it printed
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Print the specification of the combination with this number, and run nothing
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["resume", "pictures"])]
    pub(crate) combination: Option<usize>,
    /// Run unmodified programs on hosts of this network, which is emulated, and use their request times
    #[arg(long, value_name = "NETWORK", conflicts_with = "expression")]
    pub(crate) on: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
    /// With --on: programs, each as HOST -- COMMAND..., as in `trace`; the first HOST takes the place of the specification
    #[arg(
        value_name = "HOST -- COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,
}

impl Factors {
    /// The programs, if some are run: HOST -- COMMAND... for each. The first word stands where a specification does otherwise.
    pub(crate) fn programs(&self) -> Vec<OsString> {
        let first = self
            .text
            .spec
            .as_ref()
            .filter(|_| self.on.is_some())
            .map(|word| word.clone().into_os_string());
        // The `--` behind it was taken for the end of flags.
        first
            .into_iter()
            .flat_map(|host| [host, "--".into()])
            .chain(self.words.iter().cloned())
            .collect()
    }
}

/// How factors are varied and results evaluated, whatever is run.
#[derive(Args, Debug)]
pub(crate) struct FactorExperiment {
    /// `full`, `screening`, `one-at-a-time` or `fraction=RUNS`; by default the best one with at most 64 combinations
    #[arg(long, value_name = "KIND", value_parser = wish)]
    pub(crate) design: Option<Wish>,
    /// Choose the design that fits in this time, and report what it sacrifices
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["design", "replicates"])]
    pub(crate) budget: Option<Duration>,
    /// Whether effects add (differences) or multiply (ratios); by default, the better fit
    #[arg(long, value_name = "MODEL", value_parser = choice::<EffectScale>())]
    pub(crate) model: Option<EffectScale>,
    /// Prices, such as 'bandwidth x 10 = 300, cpu x 2 = 120', to find the sets of changes that gain the most for their price
    #[arg(long, value_name = "PRICES")]
    pub(crate) cost: Option<String>,
    /// Find the best set within this budget
    #[arg(
        long,
        value_name = "AMOUNT",
        requires = "cost",
        allow_negative_numbers = true
    )]
    pub(crate) spend: Option<f64>,
    /// Write plots of effects and interactions, a half-normal plot and a tornado chart to this directory, as SVG
    /// and as a web page
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
}

fn wish(text: &str) -> Result<Wish, String> {
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is not a valid number of combinations"))
    };
    match text.split_once('=') {
        Some(("fraction", runs)) => Ok(Wish::Fraction(number(runs)?)),
        None if text == "full" => Ok(Wish::Full),
        None if text == "screening" => Ok(Wish::Screening),
        None if text == "one-at-a-time" => Ok(Wish::OneAtATime),
        _ => Err(format!(
            "unknown design `{text}`; expected `full`, `fraction=16`, `screening` or `one-at-a-time`"
        )),
    }
}
