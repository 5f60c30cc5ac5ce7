//! Families of metrics as text: OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>), and Prometheus' text format
//! 0.0.4 for clients that do not ask for it.

use super::{MetricFamily, MetricKind, MetricSample, MetricValue};
use std::fmt::Write as _;

/// The two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricsTextForm {
    OpenMetrics,
    Prometheus,
}

/// Writes families in OpenMetrics 1.0, with `# EOF` at the end.
#[must_use]
pub fn openmetrics_text(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families {
        write_family(family, MetricsTextForm::OpenMetrics, &mut text);
    }
    text + "# EOF\n"
}

/// Writes families in Prometheus' text format 0.0.4.
#[must_use]
pub fn prometheus_text(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families {
        write_family(family, MetricsTextForm::Prometheus, &mut text);
    }
    text
}

fn write_family(family: &MetricFamily, form: MetricsTextForm, text: &mut String) {
    let is_open = form == MetricsTextForm::OpenMetrics;
    let (kind, suffix) = match family.kind {
        MetricKind::Counter => ("counter", "_total"),
        MetricKind::Gauge => ("gauge", ""),
        MetricKind::Histogram => ("histogram", ""),
        // The older format has no infos: they are gauges there.
        MetricKind::Info => (if is_open { "info" } else { "gauge" }, "_info"),
    };
    // OpenMetrics describes the family, the older format its samples.
    let described = match form {
        MetricsTextForm::OpenMetrics => family.name.to_owned(),
        MetricsTextForm::Prometheus => format!("{}{suffix}", family.name),
    };
    let _ = writeln!(text, "# TYPE {described} {kind}");
    if let (true, Some(unit)) = (is_open, family.unit) {
        let _ = writeln!(text, "# UNIT {described} {unit}");
    }
    let help = match form {
        MetricsTextForm::OpenMetrics => escaped(family.help),
        MetricsTextForm::Prometheus => family.help.replace('\\', "\\\\").replace('\n', "\\n"),
    };
    let _ = writeln!(text, "# HELP {described} {help}");
    for sample in &family.samples {
        write_sample(family.name, suffix, sample, text);
    }
}

fn write_sample(name: &str, suffix: &str, sample: &MetricSample, text: &mut String) {
    match &sample.value {
        MetricValue::Number(value) => {
            write_line(name, suffix, &sample.labels, None, &number(*value), text);
        }
        MetricValue::Histogram {
            bounds,
            counts,
            sum,
        } => {
            let mut count = 0_u64;
            for (at, bound) in bounds.iter().enumerate() {
                count = count.saturating_add(counts.get(at).copied().unwrap_or(0));
                let bound = bound_text(*bound);
                let count = count.to_string();
                write_line(name, "_bucket", &sample.labels, Some(&bound), &count, text);
            }
            let beyond = counts.iter().skip(bounds.len());
            let count = beyond
                .fold(count, |sum, count| sum.saturating_add(*count))
                .to_string();
            write_line(name, "_bucket", &sample.labels, Some("+Inf"), &count, text);
            write_line(name, "_count", &sample.labels, None, &count, text);
            write_line(name, "_sum", &sample.labels, None, &number(*sum), text);
        }
    }
}

/// Writes one line. `below` is the upper bound of a bucket.
fn write_line(
    name: &str,
    suffix: &str,
    labels: &[(&'static str, String)],
    below: Option<&str>,
    value: &str,
    text: &mut String,
) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .chain(below.map(|bound| format!("le=\"{bound}\"")))
        .collect();
    let _ = match labels.is_empty() {
        true => writeln!(text, "{name}{suffix} {value}"),
        false => writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(",")),
    };
}

/// A text with its backslashes, quotes and line ends escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A number as both formats write it.
fn number(value: f64) -> String {
    match () {
        () if value.is_nan() => "NaN".to_owned(),
        () if value == f64::INFINITY => "+Inf".to_owned(),
        () if value == f64::NEG_INFINITY => "-Inf".to_owned(),
        () => format!("{value}"),
    }
}

/// A bucket's bound: whole ones have a fraction, as the specification's canonical numbers do, so that it is the same label everywhere.
fn bound_text(bound: f64) -> String {
    match bound.is_finite() {
        true => format!("{bound:?}"),
        false => number(bound),
    }
}

#[cfg(test)]
mod tests;
