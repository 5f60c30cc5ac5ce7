//! Expectations of a measurement: bounds of its figures, and findings that must or must not be made.

use alloc::format;
use alloc::string::{String, ToString};
use serde::{Deserialize, Serialize};

/// One expectation, as `expect p99 < 20 ms` states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Its text as written, with the swept variables filled in.
    pub text: String,
    /// The line of the specification that it stands on, counted from 1.
    pub line: usize,
    /// Index of the part that it is about; absent where it is about all parts together, or about a finding.
    pub part: Option<usize>,
    /// What is expected.
    pub condition: ExpectedCondition,
}

/// What an expectation states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedCondition {
    /// A figure is within a bound, which is in the base unit of the figure.
    Figure(ExpectedFigure, FigureBound),
    /// A kind of finding is made.
    Finding(String),
    /// A kind of finding is not made.
    NoFinding(String),
}

/// What a figure must be. All values are in seconds, bit/s, per second or shares from 0 to 1, as the figure has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureBound {
    /// Less than this.
    Below(f64),
    /// Not more than this.
    AtMost(f64),
    /// More than this.
    Above(f64),
    /// Not less than this.
    AtLeast(f64),
    /// From the first to the second, both included.
    Within(f64, f64),
}

/// A figure of the results that may be bounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedFigure {
    /// Mean response time of the calls; where none are made, mean time of the connects.
    Mean,
    /// The least of these times.
    Min,
    /// The largest of these times.
    Max,
    /// A percentile of these times, above 0 and below 100.
    Percentile(f64),
    /// Throughput of data units.
    Throughput,
    /// Calls, else connections, per second.
    Rate,
    /// Mean time of a connect plus its disconnect.
    Connect,
    /// Mean time of a connection with its calls.
    Transaction,
    /// Such connections per second.
    Transactions,
    /// Measured period of a run.
    Elapsed,
    /// Share of data units or calls that were lost.
    Loss,
    /// Data units or calls that were lost, in all counted runs.
    Lost,
    /// Data units that arrived more than once.
    Duplicated,
    /// Data units that arrived after a later one.
    Reordered,
    /// How equally parts share the throughput (Jain's index).
    Fairness,
    /// How late paced operations began, on average.
    Lateness,
    /// Processor time of both sides per GB of data units.
    CpuPerGb,
    /// Processor time of both sides per call, else per connection.
    CpuPerCall,
}

/// The unit in which a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundUnit {
    /// A time, in seconds.
    Time,
    /// A rate of data, in bit/s.
    Rate,
    /// A frequency, per second.
    PerSecond,
    /// A share from 0 to 1, written in per cent.
    Share,
    /// A plain number.
    Plain,
}

impl BoundUnit {
    /// What such a figure is, in words.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Rate => "a rate of data",
            Self::PerSecond => "a number per second",
            Self::Share => "a share",
            Self::Plain => "a plain number",
        }
    }

    /// A number with this unit, as an example: `20 ms`.
    #[must_use]
    pub fn example(self, number: f64) -> String {
        match self {
            Self::Time => format!("{number} ms"),
            Self::Rate => format!("{number} Mbit/s"),
            Self::PerSecond => format!("{number}/s"),
            Self::Share => format!("{number}%"),
            Self::Plain => format!("{number}"),
        }
    }
}

/// The figures with a name of their own; percentiles are written `p99`, `p99.9`.
pub const FIGURES: &[(&str, ExpectedFigure)] = &[
    ("mean", ExpectedFigure::Mean),
    ("median", ExpectedFigure::Percentile(50.0)),
    ("min", ExpectedFigure::Min),
    ("max", ExpectedFigure::Max),
    ("throughput", ExpectedFigure::Throughput),
    ("rate", ExpectedFigure::Rate),
    ("connect", ExpectedFigure::Connect),
    ("transaction", ExpectedFigure::Transaction),
    ("transactions", ExpectedFigure::Transactions),
    ("elapsed", ExpectedFigure::Elapsed),
    ("loss", ExpectedFigure::Loss),
    ("lost", ExpectedFigure::Lost),
    ("duplicated", ExpectedFigure::Duplicated),
    ("reordered", ExpectedFigure::Reordered),
    ("fairness", ExpectedFigure::Fairness),
    ("lateness", ExpectedFigure::Lateness),
    ("cpu_per_gb", ExpectedFigure::CpuPerGb),
    ("cpu_per_call", ExpectedFigure::CpuPerCall),
];

impl ExpectedFigure {
    /// The figure of that name, in lower case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = FIGURES.iter().find(|(known, _)| *known == name);
        known.map(|(_, figure)| *figure).or_else(|| {
            let digits = name.strip_prefix('p')?;
            let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
            let percent: f64 = digits.parse().ok().filter(|_| is_number)?;
            (percent > 0.0 && percent < 100.0).then_some(Self::Percentile(percent))
        })
    }

    /// Its name in a specification.
    #[must_use]
    pub fn name(self) -> String {
        let known = FIGURES.iter().find(|(_, figure)| *figure == self);
        match (known, self) {
            (Some((name, _)), _) => (*name).to_string(),
            (None, Self::Percentile(percent)) => format!("p{percent}"),
            (None, _) => String::new(),
        }
    }

    /// The unit in which it is written.
    #[must_use]
    pub const fn unit(self) -> BoundUnit {
        match self {
            Self::Mean
            | Self::Min
            | Self::Max
            | Self::Percentile(_)
            | Self::Connect
            | Self::Transaction
            | Self::Elapsed
            | Self::Lateness
            | Self::CpuPerGb
            | Self::CpuPerCall => BoundUnit::Time,
            Self::Throughput => BoundUnit::Rate,
            Self::Rate | Self::Transactions => BoundUnit::PerSecond,
            Self::Loss => BoundUnit::Share,
            Self::Lost | Self::Duplicated | Self::Reordered | Self::Fairness => BoundUnit::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_by_its_name() {
        for (name, figure) in FIGURES {
            assert_eq!(ExpectedFigure::named(name), Some(*figure));
            assert_eq!(figure.name(), *name);
        }
        let percentile = ExpectedFigure::named("p99.9").unwrap();
        assert_eq!(percentile, ExpectedFigure::Percentile(99.9));
        assert_eq!(percentile.name(), "p99.9");
        assert_eq!(ExpectedFigure::named("p50").unwrap().name(), "median");
        for none in [
            "p0", "p100", "p", "pinf", "p-1", "px", "Mean", "speed", "pnan",
        ] {
            assert_eq!(ExpectedFigure::named(none), None, "{none}");
        }
    }
}
