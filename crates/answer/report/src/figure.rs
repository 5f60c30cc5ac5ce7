//! Formats numbers with their spread and unit: `18.1 ± 0.2 Gbit/s`, `17.2..18.9 Gbit/s`.

use stackline_analyze::{RepeatedWork, RunMetric, Summary, values_needed};
use stackline_core::units;
use std::collections::BTreeSet;

/// The text for an absent value.
pub(crate) const ABSENT: &str = "-";

/// A value of a metric with its unit.
pub(crate) fn value(metric: RunMetric, value: f64) -> String {
    match metric {
        RunMetric::Throughput => units::format_rate(value),
        RunMetric::Response
        | RunMetric::Connect
        | RunMetric::ResponseP50
        | RunMetric::ResponseP90
        | RunMetric::ResponseP99 => units::format_time(value),
        RunMetric::CpuPerGb => cpu_per_gb(value),
        RunMetric::CpuPerCall => cpu_per(RepeatedWork::Call, value),
        RunMetric::CpuPerConnection => cpu_per(RepeatedWork::Connection, value),
    }
}

/// A mean and half the width of its interval, in the unit of the mean: three digits of the mean, or up to two more if the half width
/// would otherwise be shown as 0. An interval that reaches below zero is written as one from 0.
pub(crate) fn with_half_width(metric: RunMetric, mean: f64, half: Option<f64>) -> String {
    let text = value(metric, mean);
    let (Some(half), Some((_, unit))) = (half, text.split_once(' ')) else {
        return text;
    };
    let factor = factor(unit);
    let digits = digits(mean / factor, half / factor);
    if half > mean {
        // Rates and times cannot be negative.
        return format!(
            "{:.digits$} (0..{:.digits$}) {unit}",
            mean / factor,
            (mean + half) / factor
        );
    }
    format!(
        "{:.digits$} ± {:.digits$} {unit}",
        mean / factor,
        half / factor
    )
}

/// A range from the least to the largest value; a common unit is written once, and of two rates the first has only its prefix.
pub(crate) fn range(metric: RunMetric, low: f64, high: f64) -> String {
    let (first, second) = (value(metric, low), value(metric, high));
    match (first.split_once(' '), second.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number}..{second}"),
        _ => format!(
            "{}..{second}",
            first.strip_suffix("bit/s").unwrap_or(&first)
        ),
    }
}

/// A figure of a distribution that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Percentile {
    /// The percentile: this many percent of the values are not above it.
    Percent(f64),
    /// The largest value.
    Max,
}

impl Percentile {
    /// What is shown by default.
    pub const USUAL: [Self; 2] = [Self::Percent(50.0), Self::Percent(99.0)];

    /// Its name: `median`, `p99.9` or `max`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Percent(50.0) => "median".to_owned(),
            Self::Percent(percent) => format!("p{percent}"),
            Self::Max => "max".to_owned(),
        }
    }

    /// The names of several, such as `median / p99`.
    pub(crate) fn names(several: &[Self]) -> String {
        several
            .iter()
            .map(|one| one.name())
            .collect::<Vec<_>>()
            .join(" / ")
    }

    /// Its value for the times of a summary; `None` if there are too few.
    pub(crate) fn value_in(self, metric: RunMetric, summary: &Summary) -> Option<f64> {
        let statistics = || {
            if metric == RunMetric::Connect {
                summary.connect_s
            } else {
                summary.response_s
            }
        };
        match self {
            Self::Percent(percent) => summary.percentile(metric, percent),
            Self::Max => statistics().map(|statistics| statistics.max),
        }
    }

    /// Why it is absent with `n` values; `None` if these are enough.
    pub(crate) fn too_few(self, n: u64) -> Option<String> {
        let Self::Percent(percent) = self else {
            return None;
        };
        let needed = values_needed(percent);
        (n < needed).then(|| format!("{needed} values needed, but only {n} measured"))
    }
}

/// Values of one metric; a common unit is written once.
pub(crate) fn format_values(metric: RunMetric, values: &[Option<f64>]) -> String {
    let values: Vec<String> = values
        .iter()
        .map(|one| one.map_or_else(|| ABSENT.to_owned(), |one| value(metric, one)))
        .collect();
    let units: BTreeSet<_> = values
        .iter()
        .filter_map(|value| value.split_once(' '))
        .map(|(_, unit)| unit)
        .collect();
    let (Some(unit), 1) = (units.first(), units.len()) else {
        return values.join(" / ");
    };
    let number = |value: &String| {
        value
            .split_once(' ')
            .map_or(value.clone(), |(number, _)| number.to_owned())
    };
    format!(
        "{} {unit}",
        values.iter().map(number).collect::<Vec<_>>().join(" / ")
    )
}

/// A share in percent: `12 %`, `0.30 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", units::three_digits(share * 100.0))
}

/// CPU seconds per GB: `0.172 s/GB`.
pub(crate) fn cpu_per_gb(seconds: f64) -> String {
    format!("{} s/GB", fine(seconds))
}

/// CPU microseconds per call or connection: `12.5 us/call`, `40.0 us/conn`.
pub(crate) fn cpu_per(work: RepeatedWork, microseconds: f64) -> String {
    let what = match work {
        RepeatedWork::Call => "call",
        RepeatedWork::Connection => "conn",
    };
    format!("{} us/{what}", fine(microseconds))
}

/// Three digits, also for values below one, without changing the unit.
fn fine(value: f64) -> String {
    match value.abs() {
        0.0 => units::three_digits(value),
        v if v < 0.099_95 => format!("{value:.4}"),
        v if v < 0.999_5 => format!("{value:.3}"),
        _ => units::three_digits(value),
    }
}

/// The factor of a unit that [`value`] printed.
fn factor(unit: &str) -> f64 {
    let rate = unit
        .strip_suffix("/s")
        .and_then(|unit| units::find_factor(units::RATE_UNITS, unit));
    rate.or_else(|| units::find_factor(units::TIME_UNITS, unit))
        .unwrap_or(1.0)
}

/// Digits after the point: for three digits of the mean, or up to two more if the half width would be shown as 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 4"
)]
fn digits(mean: f64, half: f64) -> usize {
    let usual = match mean.abs() {
        mean if mean >= 99.95 => 0,
        mean if mean >= 9.995 => 1,
        _ => 2,
    };
    let needed = if half > 0.0 {
        (-half.log10()).ceil().clamp(0.0, 4.0) as usize
    } else {
        0
    };
    usual.max(needed.min(usual + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let rate = |mean, half| with_half_width(RunMetric::Throughput, mean, half);
        assert_eq!(rate(18.14e9, Some(0.21e9)), "18.1 ± 0.2 Gbit/s");
        assert_eq!(rate(18.14e9, None), "18.1 Gbit/s");
        assert_eq!(rate(940.0e6, Some(0.4e6)), "940.0 ± 0.4 Mbit/s");
        let time = |mean, half| with_half_width(RunMetric::Response, mean, half);
        assert_eq!(time(81.2e-6, Some(0.4e-6)), "81.2 ± 0.4 us");
        assert_eq!(time(81.2e-6, Some(12e-6)), "81.2 ± 12.0 us");
        assert_eq!(time(81.2e-6, Some(90e-6)), "81.2 (0..171.2) us");
        assert_eq!(time(1.5, Some(0.0)), "1.50 ± 0.00 s");
        assert_eq!(time(0.0, Some(0.0)), "0.00 ± 0.00 s");
        assert_eq!(time(81.2e-6, Some(1e-12)), "81.200 ± 0.000 us");
    }

    #[test]
    fn cpu() {
        assert_eq!(cpu_per_gb(0.171_6), "0.172 s/GB");
        assert_eq!(cpu_per_gb(0.012_34), "0.0123 s/GB");
        assert_eq!(cpu_per_gb(45.3), "45.3 s/GB");
        assert_eq!(cpu_per(RepeatedWork::Call, 1642.0), "1642 us/call");
        assert_eq!(cpu_per(RepeatedWork::Connection, 9.34), "9.34 us/conn");
    }

    #[test]
    fn ranges() {
        assert_eq!(
            range(RunMetric::Throughput, 17.2e9, 18.9e9),
            "17.2..18.9 Gbit/s"
        );
        assert_eq!(
            range(RunMetric::Throughput, 14.2e6, 1.35e9),
            "14.2 M..1.35 Gbit/s"
        );
        assert_eq!(
            range(RunMetric::Response, 6.4e-6, 0.012),
            "6.40 us..12.0 ms"
        );
        let times = |values: &[Option<f64>]| format_values(RunMetric::Response, values);
        assert_eq!(times(&[Some(43.2e-6), Some(79.3e-6)]), "43.2 / 79.3 us");
        assert_eq!(times(&[Some(43.2e-6), Some(0.002)]), "43.2 us / 2.00 ms");
        assert_eq!(
            (times(&[Some(43.2e-6), None]), times(&[None])),
            ("43.2 / - us".into(), "-".into())
        );
    }
}
