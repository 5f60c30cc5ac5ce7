//! The metrics of curves: a family such as `response` and a figure of it such as `p99`, by the names of JSON and CSV.

use crate::curves::curve_set::CurveAxis;
use crate::statistics::{SampleStatistics, values_needed};
use crate::summary::{RepeatedWork, RunMetric, Summary};
use stackline_core::units::Quantity;

/// What a curve shows of each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveMetric {
    /// What was measured.
    pub family: MetricFamily,
    /// Which figure of it.
    pub figure: MetricFigure,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricFamily {
    /// What the row is judged by.
    Own,
    /// Throughput over runs.
    Throughput,
    /// Response times of calls.
    Response,
    /// Times of connect plus disconnect.
    Connect,
    /// Calls, else connections, per second.
    Rate,
    /// Times of connections with their calls.
    Transaction,
    /// Such connections per second.
    Transactions,
    /// The measured period.
    Elapsed,
    /// How late paced operations began.
    Lateness,
    /// Jain's index of the parts' throughput.
    Fairness,
    /// CPU seconds per GB.
    CpuPerGb,
    /// CPU microseconds per call or connection.
    CpuPerCall,
    /// Lost units or calls.
    Lost,
    /// The share of these, in percent.
    LostShare,
    /// Units that arrived more than once.
    Duplicated,
    /// Units that arrived after a later one.
    Reordered,
    /// The mean wait of a call for the calls before it.
    Backlog,
}

/// A figure of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricFigure {
    /// The mean, with its interval.
    Mean,
    /// The least value.
    Min,
    /// The largest value.
    Max,
    /// This many percent of the values are not above it.
    Percentile(f64),
}

/// A family: its short name, its name in JSON and CSV, what people read, its quantity and unit.
type FamilyRow = (
    MetricFamily,
    &'static str,
    &'static str,
    &'static str,
    Quantity,
    &'static str,
);

static FAMILIES: [FamilyRow; 16] = [
    (
        MetricFamily::Throughput,
        "throughput",
        "throughput_bit_s",
        "throughput",
        Quantity::Rate,
        "",
    ),
    (
        MetricFamily::Response,
        "response",
        "response_s",
        "response time",
        Quantity::Time,
        "",
    ),
    (
        MetricFamily::Connect,
        "connect",
        "connect_s",
        "connect time",
        Quantity::Time,
        "",
    ),
    (
        MetricFamily::Rate,
        "rate",
        "rate_per_s",
        "rate",
        Quantity::Frequency,
        "",
    ),
    (
        MetricFamily::Transaction,
        "transaction",
        "transaction_s",
        "transaction time",
        Quantity::Time,
        "",
    ),
    (
        MetricFamily::Transactions,
        "transactions",
        "transactions_per_s",
        "transactions",
        Quantity::Frequency,
        "",
    ),
    (
        MetricFamily::Elapsed,
        "elapsed",
        "elapsed_s",
        "measured period",
        Quantity::Time,
        "",
    ),
    (
        MetricFamily::Lateness,
        "lateness",
        "lateness_s",
        "lateness",
        Quantity::Time,
        "",
    ),
    (
        MetricFamily::Fairness,
        "fairness",
        "fairness",
        "fairness (Jain's index)",
        Quantity::Number,
        "",
    ),
    (
        MetricFamily::CpuPerGb,
        "cpu_per_gb",
        "cpu_s_per_gb",
        "CPU",
        Quantity::Number,
        "s/GB",
    ),
    (
        MetricFamily::CpuPerCall,
        "cpu_per_call",
        "cpu_us_per_call",
        "CPU per call",
        Quantity::Number,
        "us",
    ),
    (
        MetricFamily::Lost,
        "lost",
        "lost",
        "lost",
        Quantity::Number,
        "",
    ),
    (
        MetricFamily::LostShare,
        "loss",
        "lost_share",
        "lost share",
        Quantity::Percent,
        "",
    ),
    (
        MetricFamily::Duplicated,
        "duplicates",
        "duplicated",
        "duplicated",
        Quantity::Number,
        "",
    ),
    (
        MetricFamily::Reordered,
        "reorderings",
        "reordered",
        "reordered",
        Quantity::Number,
        "",
    ),
    (
        MetricFamily::Backlog,
        "backlog",
        "backlog_s",
        "wait for earlier calls",
        Quantity::Time,
        "",
    ),
];

/// A value of a row with its interval, if one is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MetricValue {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

impl CurveMetric {
    /// The mean of what each row is judged by.
    pub const OWN: Self = Self {
        family: MetricFamily::Own,
        figure: MetricFigure::Mean,
    };

    /// A metric by its name: `p99`, `throughput`, `response_s_p99.9`, `cpu_s_per_gb`.
    ///
    /// # Errors
    /// If the name is unknown: what the names are.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        if let Some(family) = family_named(&name) {
            let figure = MetricFigure::Mean;
            return Ok(Self { family, figure });
        }
        if let Some(figure) = figure_named(&name) {
            let family = MetricFamily::Own;
            return Ok(Self { family, figure });
        }
        let both = name.rsplit_once('_').and_then(|(family, figure)| {
            let family = family_named(family)?;
            Some(Self {
                family,
                figure: figure_named(figure)?,
            })
        });
        both.ok_or_else(|| format!("there is no metric `{text}`; {}", known_names()))
    }

    /// The vertical axis of this metric, for rows that are judged by `main`.
    #[must_use]
    pub fn axis(self, main: Option<RunMetric>) -> CurveAxis {
        let family = self.family.resolved(main);
        let known = FAMILIES.iter().find(|(one, ..)| *one == family);
        let (_, _, _, name, quantity, unit) = known.unwrap_or(&FAMILIES[0]);
        let name = match self.figure {
            MetricFigure::Mean => (*name).to_owned(),
            figure => format!("{} of {name}", figure.name()),
        };
        CurveAxis {
            name,
            quantity: *quantity,
            unit,
        }
    }

    /// The figure of a summary.
    ///
    /// # Errors
    /// Why it has none.
    pub fn figure_in(self, summary: &Summary) -> Result<f64, String> {
        self.value(summary).map(|found| found.value)
    }

    /// Whether more of it is faster, of rows that are judged by `main`.
    #[must_use]
    pub fn more_is_faster(self, main: Option<RunMetric>) -> bool {
        matches!(
            self.family.resolved(main),
            MetricFamily::Throughput
                | MetricFamily::Rate
                | MetricFamily::Transactions
                | MetricFamily::Fairness
        )
    }

    /// The value of a row, or why it has none.
    pub(super) fn value(self, summary: &Summary) -> Result<MetricValue, String> {
        let family = self.family.resolved(summary.main);
        if let Some(statistics) = statistics(family, summary) {
            return self.figure_of(family, &statistics, summary);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
        let number = |count: Option<u64>| Some(count? as f64);
        let single = match family {
            MetricFamily::CpuPerGb => summary.cpu_s_per_gb.map(|cost| cost.both),
            MetricFamily::CpuPerCall => summary.cpu_us_per_call.map(|cost| cost.both),
            MetricFamily::Lost => number(summary.lost),
            MetricFamily::LostShare => summary.lost_share.map(|share| 100.0 * share),
            MetricFamily::Duplicated => number(summary.duplicated),
            MetricFamily::Reordered => number(summary.reordered),
            MetricFamily::Backlog => summary.backlog_s,
            _ => None,
        };
        let value = single.ok_or_else(|| format!("no {}", family.label()))?;
        match self.figure {
            MetricFigure::Mean => Ok(MetricValue {
                value,
                interval: run_interval(family, summary),
            }),
            figure => Err(format!(
                "{} has no {}, it is one figure",
                family.label(),
                figure.name()
            )),
        }
    }

    fn figure_of(
        self,
        family: MetricFamily,
        s: &SampleStatistics,
        summary: &Summary,
    ) -> Result<MetricValue, String> {
        let alone = |value: f64| MetricValue {
            value,
            interval: None,
        };
        let percent = match self.figure {
            MetricFigure::Mean => {
                let interval = s.ci95.filter(|_| s.n > 1 && summary.runs > 1);
                return Ok(MetricValue {
                    value: s.mean,
                    interval: interval.map(|(low, high)| (low.max(0.0), high)),
                });
            }
            MetricFigure::Min => return Ok(alone(s.min)),
            MetricFigure::Max => return Ok(alone(s.max)),
            MetricFigure::Percentile(percent) => percent,
        };
        let metric = match family {
            MetricFamily::Response => RunMetric::Response,
            MetricFamily::Connect => RunMetric::Connect,
            _ => return over_runs(s, percent).map(alone),
        };
        let too_few = || {
            format!(
                "fewer than the {} values of {}",
                values_needed(percent),
                self.figure.name()
            )
        };
        let value = summary.percentile(metric, percent).ok_or_else(too_few)?;
        Ok(MetricValue {
            value,
            interval: summary.percentile_interval(metric, percent),
        })
    }
}

/// A percentile of values of which a run has one.
fn over_runs(s: &SampleStatistics, percent: f64) -> Result<f64, String> {
    let known = [
        (50.0, s.median),
        (90.0, s.p90),
        (99.0, s.p99),
        (99.9, s.p999),
    ];
    let found = known.iter().find(|(known, _)| *known == percent);
    found.map(|(_, value)| *value).ok_or_else(|| {
        "of what each run has one value of, only median, p90, p99 and p99.9 are known".to_owned()
    })
}

/// The interval of a cost, from the values of the runs.
fn run_interval(family: MetricFamily, summary: &Summary) -> Option<(f64, f64)> {
    let values = match family {
        MetricFamily::CpuPerGb => &summary.run_values.cpu_s_per_gb,
        MetricFamily::CpuPerCall => &summary.run_values.cpu_us_per_call,
        _ => return None,
    };
    let (low, high) = SampleStatistics::from_values(values)?.ci95?;
    Some((low.max(0.0), high))
}

const fn statistics(family: MetricFamily, s: &Summary) -> Option<SampleStatistics> {
    match family {
        MetricFamily::Throughput => s.throughput_bit_s,
        MetricFamily::Response => s.response_s,
        MetricFamily::Connect => s.connect_s,
        MetricFamily::Rate => s.rate_per_s,
        MetricFamily::Transaction => s.transaction_s,
        MetricFamily::Transactions => s.transactions_per_s,
        MetricFamily::Elapsed => s.elapsed_s,
        MetricFamily::Lateness => s.lateness_s,
        MetricFamily::Fairness => s.fairness,
        _ => None,
    }
}

impl MetricFamily {
    /// The family itself; of [`Self::Own`] that of what a row is judged by.
    fn resolved(self, main: Option<RunMetric>) -> Self {
        match (self, main) {
            (Self::Own, Some(RunMetric::Response)) => Self::Response,
            (Self::Own, Some(RunMetric::Connect)) => Self::Connect,
            (Self::Own, _) => Self::Throughput,
            (family, _) => family,
        }
    }

    /// What people read.
    fn label(self) -> &'static str {
        let known = FAMILIES.iter().find(|(one, ..)| *one == self);
        known.map_or("figure", |(_, _, _, label, ..)| *label)
    }
}

impl MetricFigure {
    /// Its name: `median`, `p99.9`, `max`.
    fn name(self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Min => "min".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Percentile(50.0) => "median".to_owned(),
            Self::Percentile(percent) => format!("p{percent}"),
        }
    }
}

/// What a rate counts, where all rows agree.
pub(super) fn counted_work(work: Option<RepeatedWork>) -> Option<&'static str> {
    match work? {
        RepeatedWork::Call => Some("calls"),
        RepeatedWork::Connection => Some("connections"),
    }
}

fn family_named(name: &str) -> Option<MetricFamily> {
    let known = FAMILIES
        .iter()
        .find(|(_, short, long, ..)| *short == name || *long == name);
    known.map(|(family, ..)| *family)
}

fn figure_named(name: &str) -> Option<MetricFigure> {
    let percentile = |number: &str| {
        // The columns of CSV have `p999`.
        let number = if number == "999" { "99.9" } else { number };
        let percent: f64 = number.parse().ok()?;
        (percent > 0.0 && percent < 100.0).then_some(MetricFigure::Percentile(percent))
    };
    match name {
        "mean" => Some(MetricFigure::Mean),
        "min" => Some(MetricFigure::Min),
        "max" => Some(MetricFigure::Max),
        "median" => Some(MetricFigure::Percentile(50.0)),
        _ => percentile(name.strip_prefix('p')?),
    }
}

/// The names of metrics in a sentence.
fn known_names() -> String {
    let families: Vec<&str> = FAMILIES.iter().map(|(_, short, ..)| *short).collect();
    format!(
        "known are mean, median, p90, p99, p99.9, min, max of what a row is judged by; {}; and both, as in response_p99",
        families.join(", ")
    )
}
