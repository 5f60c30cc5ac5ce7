//! The metrics of a series of probes: what the latest probe yielded, and what all of this process did.

use crate::openmetrics::{MetricFamily, MetricKind, MetricSample, MetricValue, build_info};
use stackline_core::run_record::Histogram;
use stackline_runs::probe_series::{ProbeRecord, ProbedMeasurement};
use std::collections::BTreeMap;

/// Upper bounds of the classes of times, in ns: 1, 2.5 and 5 of each decade from 10 us to 100 s.
const BOUNDS_NS: [u64; 22] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    50_000_000_000,
    100_000_000_000,
];
/// Most reasons of failures of a measurement that have a series of their own; all others are `other`.
const MOST_REASONS: usize = 20;
/// Most characters of a reason.
const LONGEST_REASON: usize = 120;

/// The reason of a failure as a label: without the measurement, which has a label of its own, and cut behind a word.
fn failure_reason(failure: &str, measurement: &str) -> String {
    let behind = failure.split_once(measurement);
    let reason = behind.map_or(failure, |(_, reason)| reason.trim_start_matches([':', ' ']));
    if reason.chars().count() <= LONGEST_REASON {
        return reason.to_owned();
    }
    let cut: String = reason.chars().take(LONGEST_REASON).collect();
    let words = cut
        .rsplit_once(' ')
        .map_or(cut.as_str(), |(words, _)| words);
    format!("{words} ...")
}

/// What could not be done besides measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTroubles {
    /// Records that could not be written.
    pub unwritten: u64,
    /// What was pushed and is lost: dropped, or refused by its server.
    pub unpushed: u64,
    /// Reports of alerts that are lost.
    pub unreported: u64,
}

/// An alert for a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertMetric {
    /// The alert as written.
    pub alert: String,
    /// The measurement.
    pub measurement: String,
    /// Whether it fires.
    pub is_firing: bool,
}

/// The metrics of a series.
#[derive(Clone, Debug)]
pub struct ProbeMetrics {
    probe: String,
    measurements: BTreeMap<String, MeasuredTotals>,
    skipped: u64,
    troubles: ProbeTroubles,
    alerts: Vec<AlertMetric>,
}

/// What is known of a measurement.
#[derive(Clone, Debug, Default)]
struct MeasuredTotals {
    probes: u64,
    failures: BTreeMap<String, u64>,
    /// Times in each class.
    times: Vec<u64>,
    times_s: f64,
    latest: ProbedMeasurement,
}

impl ProbeMetrics {
    /// The metrics of the series of that name before its first probe.
    #[must_use]
    pub const fn new(probe: String) -> Self {
        Self {
            probe,
            measurements: BTreeMap::new(),
            skipped: 0,
            troubles: ProbeTroubles {
                unwritten: 0,
                unpushed: 0,
                unreported: 0,
            },
            alerts: Vec::new(),
        }
    }

    /// Takes what a probe yielded.
    pub fn observe(&mut self, record: &ProbeRecord) {
        self.skipped += record.skipped;
        for one in &record.measurements {
            let totals = self.measurements.entry(one.text.clone()).or_default();
            totals.probes += 1;
            if let Some(failure) = &one.failure {
                let reason = failure_reason(failure, &one.text);
                let is_known = totals.failures.contains_key(&reason);
                let reason = match is_known || totals.failures.len() < MOST_REASONS {
                    true => reason,
                    false => "other".to_owned(),
                };
                *totals.failures.entry(reason).or_default() += 1;
            }
            totals.add_times(&one.times_ns);
            totals.latest = one.clone();
        }
    }

    /// Takes where the alerts are, and what could not be done so far.
    pub fn set(&mut self, alerts: Vec<AlertMetric>, troubles: ProbeTroubles) {
        (self.alerts, self.troubles) = (alerts, troubles);
    }

    /// All families.
    #[must_use]
    pub fn families(&self) -> Vec<MetricFamily> {
        let mut families = vec![build_info(env!("CARGO_PKG_VERSION"))];
        families.extend(self.measured());
        let help = "Whether an alert fires (1) or not (0).";
        let mut firing = MetricFamily::new("stackline_probe_alert_firing", MetricKind::Gauge, help);
        for one in &self.alerts {
            let mut labels = self.labels(&one.measurement);
            labels.push(("alert", one.alert.clone()));
            firing.push(labels, f64::from(u8::from(one.is_firing)));
        }
        families.push(firing);
        let counters = [
            (
                "stackline_probe_skipped",
                "Probes that were not made because an earlier one still went on.",
                self.skipped,
            ),
            (
                "stackline_probe_unwritten",
                "Records that could not be written to the series.",
                self.troubles.unwritten,
            ),
            (
                "stackline_probe_unpushed",
                "Pushes to the collector that are lost.",
                self.troubles.unpushed,
            ),
            (
                "stackline_probe_unreported",
                "Reports of alerts, to commands and webhooks, that are lost.",
                self.troubles.unreported,
            ),
        ];
        for (name, help, count) in counters {
            let mut family = MetricFamily::new(name, MetricKind::Counter, help);
            family.push(vec![("probe", self.probe.clone())], count as f64);
            families.push(family);
        }
        families
    }

    fn measured(&self) -> [MetricFamily; 6] {
        let (counter, gauge) = (MetricKind::Counter, MetricKind::Gauge);
        let up = "Whether the latest probe succeeded (1) or failed (0).";
        let mut up = MetricFamily::new("stackline_probe_up", gauge, up);
        let runs = "Probes that were made.";
        let mut runs = MetricFamily::new("stackline_probe_runs", counter, runs);
        let failures = "Probes that failed, by reason.";
        let mut failures = MetricFamily::new("stackline_probe_failures", counter, failures);
        let times = "Times of calls, else of connects, of all probes.";
        let kind = MetricKind::Histogram;
        let times = MetricFamily::new("stackline_probe_response_seconds", kind, times);
        let mut times = times.in_unit("seconds");
        let rate = "Throughput of the latest probe.";
        let name = "stackline_probe_throughput_bits_per_second";
        let mut rate = MetricFamily::new(name, gauge, rate).in_unit("bits_per_second");
        let finding = "How sure a finding about the latest probe is, 0 to 1.";
        let mut finding = MetricFamily::new("stackline_probe_finding", gauge, finding);
        for (name, totals) in &self.measurements {
            let latest = &totals.latest;
            let is_up = latest.failure.is_none();
            up.push(self.labels(name), f64::from(u8::from(is_up)));
            runs.push(self.labels(name), totals.probes as f64);
            for (reason, count) in &totals.failures {
                let mut labels = self.labels(name);
                labels.push(("reason", reason.clone()));
                failures.push(labels, *count as f64);
            }
            if !totals.times.is_empty() {
                times.samples.push(MetricSample {
                    labels: self.labels(name),
                    value: MetricValue::Histogram {
                        bounds: BOUNDS_NS.map(|bound| bound as f64 / 1e9).to_vec(),
                        counts: totals.times.clone(),
                        sum: totals.times_s,
                    },
                });
            }
            if let Some(value) = latest.throughput_bit_s {
                rate.push(self.labels(name), value);
            }
            for (kind, sure) in latest.findings.iter().flatten() {
                let mut labels = self.labels(name);
                labels.push(("kind", kind.clone()));
                finding.push(labels, *sure);
            }
        }
        [up, runs, failures, times, rate, finding]
    }

    fn labels(&self, measurement: &str) -> Vec<(&'static str, String)> {
        vec![
            ("probe", self.probe.clone()),
            ("measurement", measurement.to_owned()),
        ]
    }
}

impl MeasuredTotals {
    fn add_times(&mut self, times: &Histogram) {
        if times.counts.is_empty() {
            return;
        }
        self.times.resize(BOUNDS_NS.len() + 1, 0);
        for (value, n) in &times.counts {
            self.times[BOUNDS_NS.partition_point(|bound| bound < value)] += n;
        }
        self.times_s += times.sum as f64 / 1e9;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openmetrics::openmetrics_text;

    fn probe(ms: Option<u64>) -> ProbeRecord {
        let times_ns = ms.map_or_else(Histogram::default, |ms| Histogram {
            counts: vec![(ms * 1_000_000, 10)],
            sum: ms * 10_000_000,
            squares: 0.0,
            min_max: None,
        });
        ProbeRecord {
            measurements: vec![ProbedMeasurement {
                text: "rr \"x\"".to_owned(),
                failure: ms.is_none().then(|| "refused".to_owned()),
                times_ns,
                findings: Some([("queue_drop".to_owned(), 0.75)].into()),
                ..ProbedMeasurement::default()
            }],
            skipped: 1,
            ..ProbeRecord::default()
        }
    }

    #[test]
    fn times_add_up_and_the_latest_probe_says_whether_it_is_up() {
        let mut metrics = ProbeMetrics::new("web".to_owned());
        for ms in [Some(10), Some(11), None] {
            metrics.observe(&probe(ms));
        }
        let alert = AlertMetric {
            alert: "p99 > 5 ms".to_owned(),
            measurement: "rr \"x\"".to_owned(),
            is_firing: true,
        };
        let troubles = ProbeTroubles {
            unwritten: 2,
            ..ProbeTroubles::default()
        };
        metrics.set(vec![alert], troubles);
        let text = openmetrics_text(&metrics.families());
        let labels = "probe=\"web\",measurement=\"rr \\\"x\\\"\"";
        for line in [
            format!("stackline_probe_up{{{labels}}} 0"),
            format!("stackline_probe_runs_total{{{labels}}} 3"),
            format!("stackline_probe_failures_total{{{labels},reason=\"refused\"}} 1"),
            // A value belongs to the class whose bound it equals.
            format!("stackline_probe_response_seconds_bucket{{{labels},le=\"0.01\"}} 10"),
            format!("stackline_probe_response_seconds_bucket{{{labels},le=\"0.025\"}} 20"),
            format!("stackline_probe_response_seconds_count{{{labels}}} 20"),
            format!("stackline_probe_finding{{{labels},kind=\"queue_drop\"}} 0.75"),
            format!("stackline_probe_alert_firing{{{labels},alert=\"p99 > 5 ms\"}} 1"),
            "stackline_probe_skipped_total{probe=\"web\"} 3".to_owned(),
            "stackline_probe_unwritten_total{probe=\"web\"} 2".to_owned(),
        ] {
            let is_there = text
                .lines()
                .any(|one| one.strip_suffix(".0").unwrap_or(one) == line || one == line);
            assert!(is_there, "{line}\n{text}");
        }
    }

    #[test]
    fn a_reason_is_without_the_measurement_and_ends_with_a_word() {
        let failure = "line 1: 1 rr 0*20: initiator: cannot connect to 127.0.0.1:1: refused";
        let reason = "initiator: cannot connect to 127.0.0.1:1: refused";
        assert_eq!(failure_reason(failure, "1 rr 0*20"), reason);
        let long = failure_reason(&"many words ".repeat(30), "1 rr 0*20");
        assert!(
            long.ends_with(" many ...") && long.len() < LONGEST_REASON + 4,
            "{long}"
        );
    }

    #[test]
    fn many_reasons_become_one() {
        let mut metrics = ProbeMetrics::new("web".to_owned());
        for number in 0..100 {
            let mut record = probe(None);
            record.measurements[0].failure = Some(format!("{number} {}", "x".repeat(500)));
            metrics.observe(&record);
        }
        let families = metrics.families();
        let failures = families
            .iter()
            .find(|one| one.name == "stackline_probe_failures");
        let samples = &failures.unwrap().samples;
        assert_eq!(samples.len(), MOST_REASONS + 1);
        assert!(
            samples
                .iter()
                .any(|one| one.value == MetricValue::Number(80.0))
        );
    }
}
