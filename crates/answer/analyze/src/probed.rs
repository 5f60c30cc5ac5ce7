//! What a probe yielded: its records as rows, each a measurement or a part of one.

use crate::findings::Finding;
use crate::statistics::to_f64;
use crate::summary::Summary;
use stackline_core::run_record::Histogram;
use stackline_runs::probe_series::{ProbedMeasurement, ProbedWork};
use std::collections::BTreeMap;

/// The rows of a probe with their names. Background load has none.
#[must_use]
pub fn probed_rows(summaries: &[Summary]) -> Vec<(String, &Summary)> {
    let mut rows: Vec<(String, &Summary)> = Vec::new();
    for summary in summaries.iter().filter(|summary| !summary.background) {
        let mine = |other: &&Summary| other.measurement == summary.measurement;
        let name = match summaries.iter().filter(mine).count() {
            1 => summary.text.clone(),
            _ => format!("{}: {}", summary.text, summary.part),
        };
        let same = rows.iter().filter(|(other, one)| {
            *other == name || one.measurement != summary.measurement && one.text == summary.text
        });
        let name = match same.count() {
            0 => name,
            before => format!("{name} ({})", before + 1),
        };
        rows.push((name, summary));
    }
    rows
}

/// What a row yielded. `failures` has the reasons by measurement, `findings` what was found in a traced probe.
#[must_use]
pub fn probed_measurement(
    name: &str,
    summary: &Summary,
    failures: &BTreeMap<usize, String>,
    findings: Option<&[Finding]>,
) -> ProbedMeasurement {
    let (timed, times_ns) = match (&summary.response_ns, &summary.connect_ns) {
        (calls, _) if !calls.counts.is_empty() => (Some(ProbedWork::Calls), calls.clone()),
        (_, connects) if !connects.counts.is_empty() => {
            (Some(ProbedWork::Connects), connects.clone())
        }
        _ => (None, Histogram::default()),
    };
    ProbedMeasurement {
        text: name.to_owned(),
        runs: summary.runs,
        failure: failures.get(&summary.measurement).cloned(),
        timed,
        times_ns,
        throughput_bit_s: summary.throughput_bit_s.map(|figures| figures.mean),
        lost: summary.lost,
        findings: findings.map(|all| surest(all, summary.measurement)),
    }
}

/// Each kind of finding of a measurement, and how sure the surest of it is.
fn surest(findings: &[Finding], measurement: usize) -> BTreeMap<String, f64> {
    let mut surest: BTreeMap<String, f64> = BTreeMap::new();
    for finding in findings {
        if finding.measurement.is_none_or(|index| index == measurement) {
            let sure = surest.entry(finding.kind.to_owned()).or_default();
            *sure = sure.max(finding.confidence);
        }
    }
    surest
}

/// The share of records that failed, 0 to 1.
#[must_use]
pub fn share_of(failed: u64, probes: u64) -> f64 {
    to_f64(failed) / to_f64(probes.max(1))
}
