//! Flags of `gate`, and those about gates and reports that `run` shares.

use super::choice::choice;
use super::percentage::percent;
use crate::exit::{Error, Result};
use clap::Args;
use stackline_analyze::baseline_runs::GateScope;
use stackline_analyze::{RegressionRule, RunMetric};
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline gate --save bench/baseline.json before
  stackline gate bench/baseline.json now --worse 5% --junit gate.xml
  stackline gate before after --worse 3% --error-rate 0.1%
  stackline gate before after --figures mean,p99

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
    pub(crate) scope: GateScopeFlags,
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

/// What a gate judges.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GateScopeFlags {
    /// Figures to judge: mean, and percentiles of response times [default: mean]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', hide_possible_values = true, value_parser = choice::<GateFigureName>())]
    figures: Vec<GateFigureName>,
    /// Of runs made with --trace, also judge where their calls' or units' time went, segment by segment
    #[arg(long)]
    segments: bool,
}

/// A figure that a gate can judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateFigureName {
    /// Means of throughput, response time and connect time.
    Mean,
    /// The median of response times.
    P50,
    /// Their 90th percentile.
    P90,
    /// Their 99th percentile.
    P99,
}

stackline_core::named_values!(GateFigureName,
    Mean = "mean", "Means of throughput, response time and connect time";
    P50 = "p50", "The median of response times";
    P90 = "p90", "Their 90th percentile";
    P99 = "p99", "Their 99th percentile");

impl GateScopeFlags {
    /// Whether any of them was given.
    pub(crate) fn are_given(&self) -> bool {
        !self.figures.is_empty() || self.segments
    }

    /// What is judged.
    pub(crate) fn scope(&self) -> GateScope {
        let has = |name| self.figures.contains(&name);
        let mut metrics = Vec::new();
        if self.figures.is_empty() || has(GateFigureName::Mean) {
            metrics.extend(RunMetric::MAIN);
        }
        let percentiles = [
            (GateFigureName::P50, RunMetric::ResponseP50),
            (GateFigureName::P90, RunMetric::ResponseP90),
            (GateFigureName::P99, RunMetric::ResponseP99),
        ];
        let asked = percentiles.into_iter().filter(|(name, _)| has(*name));
        metrics.extend(asked.map(|(_, metric)| metric));
        GateScope {
            metrics,
            segments: self.segments,
        }
    }
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
