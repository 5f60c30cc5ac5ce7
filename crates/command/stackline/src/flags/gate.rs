//! Flags of `gate`, and those about gates and reports that `run` shares.

use super::percent::percent;
use crate::exit::{Error, Result};
use clap::Args;
use stackline_analyze::RegressionRule;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline gate --save bench/baseline.json before
  stackline gate bench/baseline.json now --worse 5% --junit gate.xml
  stackline gate before after --worse 3% --error-rate 0.1%

Exit codes: 0 nothing is worse by --worse or more, 4 something is worse, 5 that
cannot be said with so few runs. docs/CI.md states the rule.";

#[derive(Args, Debug)]
#[command(
    override_usage = "stackline gate [OPTIONS] <BASE> <NEW>\n       stackline gate --save <FILE> <RUN>"
)]
pub(crate) struct GateFlags {
    /// What to judge by: a run, or a file that --save wrote; with --save, the run to save
    pub(crate) base: PathBuf,
    /// The run to judge: its directory, directory name or given name, or `last`
    #[arg(required_unless_present = "save", conflicts_with = "save")]
    pub(crate) new: Option<PathBuf>,
    /// Save a run's figures as a small file for a repository, instead of judging
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rule: GateRuleFlags,
    #[command(flatten)]
    pub(crate) reports: CiFlags,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// When a gate fails.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct GateRuleFlags {
    /// Pass only if nothing is worse by this much or more [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    worse: Option<f64>,
    /// Of gates of equal programs, fail at most this share [default: 1%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    error_rate: Option<f64>,
    /// Fail only if something is shown to be worse by more than this [default: 0%]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    tolerate: Option<f64>,
}

impl GateRuleFlags {
    /// Whether any of them was given.
    pub(crate) const fn are_given(&self) -> bool {
        self.worse.is_some() || self.error_rate.is_some() || self.tolerate.is_some()
    }

    /// The rule, if its numbers make one.
    pub(crate) fn rule(&self) -> Result<RegressionRule> {
        let usual = RegressionRule::USUAL;
        let rule = RegressionRule {
            margin: self.worse.unwrap_or(usual.margin),
            error_rate: self.error_rate.unwrap_or(usual.error_rate),
            tolerance: self.tolerate.unwrap_or(usual.tolerance),
        };
        if rule.margin <= 0.0 || rule.margin > 10.0 {
            let message = "--worse takes more than 0 % and at most 1000 %";
            return Err(Error::input(message).hint("no number of runs shows that nothing at all is worse; write `--worse 1%` for a strict gate"));
        }
        if rule.error_rate < 1e-9 || rule.error_rate >= 0.5 {
            let message = "--error-rate takes more than 0 % and less than 50 %";
            return Err(Error::input(message).hint("write `--error-rate 1%`"));
        }
        if rule.tolerance >= rule.margin {
            let message = "--tolerate has to be less than --worse";
            return Err(Error::input(message)
                .hint("what is worse by --worse fails the gate or leaves it undecided"));
        }
        Ok(rule)
    }
}

/// Reports for continuous integration.
#[derive(Args, Debug, Default)]
pub(crate) struct CiFlags {
    /// Write each verdict to a file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write each verdict to a file as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Annotate what did not pass for GitHub, on stderr
    #[arg(long)]
    pub(crate) github: bool,
}
