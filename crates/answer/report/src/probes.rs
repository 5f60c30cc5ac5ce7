//! Probes as text and JSON: a line for each, a series over time, alerts and what a webhook is sent of them.

use crate::csv;
use crate::figure::percent;
use crate::grid::{Align, line, width, widths};
use serde_json::{Map, Value, json};
use stackline_analyze::SampleStatistics;
use stackline_analyze::alerts::AlertChange;
use stackline_analyze::probe_rows::ProbeSpanRow;
use stackline_core::expectation::BoundUnit;
use stackline_core::units::{
    counted, format_rate, format_size, format_time, per_second, three_digits,
};
use stackline_runs::iso_utc;
use stackline_runs::probe_series::{KeptSeries, ProbeRecord, ProbedMeasurement};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The width of a line.
const WIDTH: usize = 80;
/// The column of the figures of a probe.
const NAME_WIDTH: usize = 30;
/// What stands for a figure that is not known.
const ABSENT: &str = "-";

/// The version of the shape in which Alertmanager calls webhooks.
const WEBHOOK_VERSION: &str = "4";
/// The time at which an alert ends that has not ended, as Go writes it.
const NOT_ENDED: &str = "0001-01-01T00:00:00Z";

fn moment(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

fn cut(text: &str, most: usize) -> String {
    match width(text) > most {
        true => text.chars().take(most - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

/// A line for each measurement of a probe, with the time of the day (UTC).
#[must_use]
pub fn probe_lines(record: &ProbeRecord) -> String {
    let at = iso_utc(record.at());
    let day_time = at.get(11..19).unwrap_or_default();
    let each = record.measurements.iter().map(|one| {
        let name = cut(&one.text, NAME_WIDTH);
        let text = format!("{day_time}  {name:<NAME_WIDTH$}  {}", probed_figures(one));
        // A failure is said in whole.
        match one.failure {
            Some(_) => text + "\n",
            None => cut(&text, WIDTH) + "\n",
        }
    });
    each.collect()
}

fn probed_figures(one: &ProbedMeasurement) -> String {
    let mut figures = Vec::new();
    if let Some(times) = SampleStatistics::from_histogram(&one.times_ns, 1e-9) {
        figures.push(format!(
            "median {}, p99 {}",
            format_time(times.median),
            format_time(times.p99)
        ));
    }
    figures.extend(one.throughput_bit_s.map(format_rate));
    figures.extend(
        one.lost
            .filter(|lost| *lost > 0)
            .map(|lost| format!("{lost} lost")),
    );
    let findings = one.findings.iter().flatten();
    let surest = findings.max_by(|a, b| a.1.total_cmp(b.1));
    figures.extend(surest.map(|(kind, _)| kind.clone()));
    if let Some(reason) = &one.failure {
        figures.push(format!("failed: {reason}"));
    }
    match figures.is_empty() {
        true => "nothing was measured".to_owned(),
        false => figures.join(", "),
    }
}

/// A series of a measurement: a row for each span of time.
#[must_use]
pub fn probe_table(name: &str, rows: &[ProbeSpanRow], span_ms: u64) -> String {
    let has_times = rows.iter().any(|row| row.times_s.is_some());
    let has_rates = rows.iter().any(|row| row.throughput_bit_s.is_some());
    let mut head = vec!["time (UTC)", "probes", "failed"];
    if has_times {
        head.extend(["n", "median", "p99", "max"]);
    }
    if has_rates {
        head.push("throughput");
    }
    let mut cells: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    cells.extend(
        rows.iter()
            .map(|row| span_cells(row, span_ms, has_times, has_rates)),
    );
    let widths = widths(&cells);
    let mut align = vec![Align::Right; widths.len()];
    align[0] = Align::Left;
    let lines = cells.iter().map(|row| line(row, &widths, &align) + "\n");
    let mut text = format!("{name}\n{}", lines.collect::<String>());
    if let Some(reason) = rows.iter().rev().find_map(|row| row.reason.as_ref()) {
        text += &format!("last failure: {reason}\n");
    }
    let mut kinds: Vec<String> = Vec::new();
    for (kind, _) in rows.iter().flat_map(|row| &row.findings) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    if !kinds.is_empty() {
        text += &format!("found: {}\n", kinds.join(", "));
    }
    text
}

fn span_cells(row: &ProbeSpanRow, span_ms: u64, has_times: bool, has_rates: bool) -> Vec<String> {
    let at = iso_utc(moment(row.from_ms));
    let digits = match span_ms {
        0..60_000 => 19,
        60_000..86_400_000 => 16,
        _ => 10,
    };
    let at = at.get(..digits).unwrap_or(&at).replace('T', " ");
    let mut cells = vec![at, row.probes.to_string(), row.failed.to_string()];
    let time = |value: fn(&SampleStatistics) -> f64| {
        let value = row.times_s.as_ref().map(value);
        value.map_or_else(|| ABSENT.to_owned(), format_time)
    };
    if has_times {
        cells.push(row.times_s.map_or(0, |times| times.n).to_string());
        cells.extend([
            time(|times| times.median),
            time(|times| times.p99),
            time(|times| times.max),
        ]);
    }
    if has_rates {
        let rate = row.throughput_bit_s.map(|rates| format_rate(rates.mean));
        cells.push(rate.unwrap_or_else(|| ABSENT.to_owned()));
    }
    cells
}

/// Every probe of a series as CSV, by time: a line for each measurement. Times are in seconds; of a failed probe they are empty.
#[must_use]
pub fn probe_csv(records: &[ProbeRecord]) -> String {
    let head = [
        "time",
        "measurement",
        "n",
        "median_s",
        "p99_s",
        "max_s",
        "throughput_bit_s",
        "lost",
        "failure",
    ];
    let line = |record: &ProbeRecord, one: &ProbedMeasurement| {
        let times = SampleStatistics::from_histogram(&one.times_ns, 1e-9);
        let time = |value: fn(&SampleStatistics) -> f64| times.as_ref().map(value);
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        csv::line(&[
            iso_utc(record.at()),
            one.text.clone(),
            times.map_or(0, |times| times.n).to_string(),
            number(time(|times| times.median)),
            number(time(|times| times.p99)),
            number(time(|times| times.max)),
            number(one.throughput_bit_s),
            one.lost.map_or_else(String::new, |lost| lost.to_string()),
            one.failure.clone().unwrap_or_default(),
        ])
    };
    let lines = records.iter().flat_map(|record| {
        let measurements = record.measurements.iter();
        measurements.map(move |one| line(record, one))
    });
    std::iter::once(csv::line(&head.map(str::to_owned)))
        .chain(lines)
        .collect()
}

/// The rows of a measurement as JSON.
#[must_use]
pub fn probe_rows_json(name: &str, rows: &[ProbeSpanRow], span_ms: u64) -> Value {
    let rows = rows.iter().map(|row| {
        json!({
            "from": iso_utc(moment(row.from_ms)),
            "probes": row.probes,
            "failed": row.failed,
            "times_s": row.times_s,
            "throughput_bit_s": row.throughput_bit_s,
            "lost": row.lost,
            "findings": row.findings,
            "reason": row.reason,
        })
    });
    json!({
        "measurement": name,
        "span_s": span_ms as f64 / 1e3,
        "rows": rows.collect::<Vec<Value>>(),
    })
}

/// A probe as JSON, with the alerts that it changed.
#[must_use]
pub fn probe_json(record: &ProbeRecord, is_written: bool, changes: &[AlertChange]) -> Value {
    let measurements = record.measurements.iter().map(|one| {
        json!({
            "measurement": one.text,
            "runs": one.runs,
            "failure": one.failure,
            "timed": one.timed,
            "times_s": SampleStatistics::from_histogram(&one.times_ns, 1e-9),
            "throughput_bit_s": one.throughput_bit_s,
            "lost": one.lost,
            "findings": one.findings,
        })
    });
    let alerts = changes.iter().map(|change| {
        json!({
            "alert": change.alert,
            "measurement": change.row,
            "state": state(change),
            "since": iso_utc(moment(change.since_ms)),
            "value": change.value,
        })
    });
    json!({
        "at": iso_utc(record.at()),
        "at_ms": record.at_ms,
        "took_s": record.took_ms as f64 / 1e3,
        "skipped": record.skipped,
        "written": is_written,
        "measurements": measurements.collect::<Vec<Value>>(),
        "alerts": alerts.collect::<Vec<Value>>(),
    })
}

const fn state(change: &AlertChange) -> &'static str {
    if change.is_firing {
        "firing"
    } else {
        "resolved"
    }
}

/// The figure of an alert with its unit.
#[must_use]
pub fn alert_value(change: &AlertChange) -> String {
    match change.unit {
        BoundUnit::Time => format_time(change.value),
        BoundUnit::Rate => format_rate(change.value),
        BoundUnit::PerSecond => per_second(change.value),
        BoundUnit::Share => percent(change.value),
        BoundUnit::Plain => three_digits(change.value),
    }
}

/// What an alert's change is called in one line.
#[must_use]
pub fn alert_line(change: &AlertChange) -> String {
    format!(
        "alert {}: {} (now {}): {}",
        state(change),
        change.alert,
        alert_value(change),
        change.row
    )
}

/// What a command is given of an alert: names of environment variables and their values, without NUL.
#[must_use]
pub fn alert_variables(change: &AlertChange, probe: &str) -> Vec<(&'static str, String)> {
    let variables = [
        ("STACKLINE_ALERT", change.alert.clone()),
        ("STACKLINE_ALERT_STATE", state(change).to_owned()),
        ("STACKLINE_ALERT_SINCE", iso_utc(moment(change.since_ms))),
        ("STACKLINE_ALERT_VALUE", alert_value(change)),
        ("STACKLINE_MEASUREMENT", change.row.clone()),
        ("STACKLINE_PROBE", probe.to_owned()),
    ];
    let without_nul = |(name, value): (&'static str, String)| (name, value.replace('\0', " "));
    variables.into_iter().map(without_nul).collect()
}

/// What a webhook is sent of an alert: the shape in which Alertmanager calls webhooks (version 4), which many receivers read.
#[must_use]
pub fn alert_webhook(change: &AlertChange, probe: &str) -> Value {
    let labels = json!({
        "alertname": change.alert,
        "probe": probe,
        "measurement": change.row,
        "job": "stackline",
    });
    let annotations = json!({
        "summary": format!("{} of {}", change.alert, change.row),
        "value": alert_value(change),
    });
    let ended = match change.is_firing {
        true => NOT_ENDED.to_owned(),
        false => iso_utc(moment(change.at_ms)),
    };
    json!({
        "version": WEBHOOK_VERSION,
        "groupKey": format!("{probe}/{}/{}", change.row, change.alert),
        "truncatedAlerts": 0,
        "status": state(change),
        "receiver": "stackline",
        "groupLabels": { "alertname": change.alert },
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [{
            "status": state(change),
            "labels": labels,
            "annotations": annotations,
            "startsAt": iso_utc(moment(change.since_ms)),
            "endsAt": ended,
            "generatorURL": "",
            "fingerprint": fingerprint(&labels),
        }],
    })
}

/// By which a receiver knows an alert again: 16 digits of the SHA-256 of its labels.
fn fingerprint(labels: &Value) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, labels.to_string().as_bytes());
    let digits = digest.as_ref().iter().take(8);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// The kept series: name, records, the last one, size, whether a process writes it.
#[must_use]
pub fn series_table(series: &[(KeptSeries, Vec<ProbeRecord>)]) -> String {
    let head = ["series", "probes", "failed", "last (UTC)", "size", "state"];
    let mut cells: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    for (one, records) in series {
        let failed = records.iter().filter(|record| record.has_failed()).count();
        let last = records.last().map(|last| iso_utc(last.at()));
        let last = last.map(|last| last.get(..19).unwrap_or(&last).replace('T', " "));
        cells.push(vec![
            one.name.clone(),
            records.len().to_string(),
            failed.to_string(),
            last.unwrap_or_else(|| ABSENT.to_owned()),
            format_size(one.bytes),
            series_state(one).to_owned(),
        ]);
    }
    let widths = widths(&cells);
    let align = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Left,
    ];
    cells
        .iter()
        .map(|row| line(row, &widths, &align) + "\n")
        .collect()
}

const fn series_state(series: &KeptSeries) -> &'static str {
    if series.is_written {
        "running"
    } else {
        "ended"
    }
}

/// The kept series as JSON.
#[must_use]
pub fn series_json(series: &[(KeptSeries, Vec<ProbeRecord>)]) -> Value {
    let each = series.iter().map(|(one, records)| {
        let mut object = Map::new();
        let failed = records.iter().filter(|record| record.has_failed()).count();
        let at = |record: Option<&ProbeRecord>| record.map(|record| iso_utc(record.at()));
        object.insert("name".into(), json!(one.name));
        object.insert("path".into(), json!(one.path.display().to_string()));
        object.insert("probes".into(), json!(records.len()));
        object.insert("failed".into(), json!(failed));
        object.insert("first".into(), json!(at(records.first())));
        object.insert("last".into(), json!(at(records.last())));
        object.insert("bytes".into(), json!(one.bytes));
        object.insert("state".into(), json!(series_state(one)));
        Value::Object(object)
    });
    Value::Array(each.collect())
}

/// What is said of a series at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTotals {
    /// Probes that were made.
    pub probes: u64,
    /// Those of them in which a measurement failed.
    pub failed: u64,
    /// Times at which a probe was due and none was made.
    pub skipped: u64,
    /// Records that could not be written.
    pub unwritten: u64,
}

impl ProbeTotals {
    /// The totals in one line: `5 probes, 1 failed`.
    #[must_use]
    pub fn line(&self) -> String {
        let mut words = vec![counted(self.probes, "probe")];
        let others = [
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.unwritten, "not written"),
        ];
        let said = others.into_iter().filter(|(n, _)| *n > 0);
        words.extend(said.map(|(n, what)| format!("{n} {what}")));
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::run_record::Histogram;
    use stackline_runs::probe_series::ProbedWork;

    fn change(is_firing: bool) -> AlertChange {
        AlertChange {
            alert: "p99 > 50 ms for 5m".to_owned(),
            row: "rr 32*1000 over tcp".to_owned(),
            is_firing,
            since_ms: 1_000,
            at_ms: 301_000,
            value: 0.0612,
            unit: BoundUnit::Time,
        }
    }

    #[test]
    fn an_alert_is_one_line() {
        assert_eq!(
            alert_line(&change(true)),
            "alert firing: p99 > 50 ms for 5m (now 61.2 ms): rr 32*1000 over tcp"
        );
        let variables = alert_variables(&change(false), "web");
        assert!(variables.contains(&("STACKLINE_ALERT_STATE", "resolved".to_owned())));
        assert!(variables.contains(&("STACKLINE_ALERT_SINCE", "1970-01-01T00:00:01Z".to_owned())));
    }

    #[test]
    fn a_webhook_gets_the_shape_of_alertmanager() {
        let firing = alert_webhook(&change(true), "web");
        assert_eq!(firing["version"], "4");
        assert_eq!(firing["alerts"][0]["startsAt"], "1970-01-01T00:00:01Z");
        assert_eq!(firing["alerts"][0]["endsAt"], NOT_ENDED);
        let resolved = alert_webhook(&change(false), "web");
        assert_eq!(resolved["status"], "resolved");
        assert_eq!(resolved["alerts"][0]["endsAt"], "1970-01-01T00:05:01Z");
        // By it a receiver knows that both are of one alert.
        assert_eq!(
            firing["alerts"][0]["fingerprint"],
            resolved["alerts"][0]["fingerprint"]
        );
    }

    #[test]
    fn a_probe_has_a_line_of_80_columns_for_each_measurement() {
        let measured = |failure: Option<&str>| ProbedMeasurement {
            text: "request_response 32*1000 over tcp(nodelay)".to_owned(),
            runs: 1,
            failure: failure.map(str::to_owned),
            timed: Some(ProbedWork::Calls),
            times_ns: Histogram {
                counts: vec![(31_200, 1000)],
                sum: 31_200_000,
                squares: 0.0,
                min_max: Some((31_200, 31_200)),
            },
            ..ProbedMeasurement::default()
        };
        let record = ProbeRecord {
            at_ms: 62_000,
            measurements: vec![measured(None), measured(Some("the server is down"))],
            ..ProbeRecord::default()
        };
        let lines = probe_lines(&record);
        assert_eq!(
            lines,
            "00:01:02  request_response 32*1000 ov...  median 31.2 us, p99 31.2 us\n\
             00:01:02  request_response 32*1000 ov...  median 31.2 us, p99 31.2 us, failed: the server is down\n"
        );
        assert!(lines.lines().next().unwrap().len() <= WIDTH);
    }

    #[test]
    fn a_table_has_the_columns_that_have_values() {
        let row = ProbeSpanRow {
            from_ms: 3_600_000,
            probes: 60,
            failed: 2,
            times_s: SampleStatistics::from_values(&[0.001, 0.003]),
            reason: Some("refused".to_owned()),
            ..ProbeSpanRow::default()
        };
        assert_eq!(
            probe_table("rr", &[row], 3_600_000),
            "rr\n\
             time (UTC)        probes  failed  n   median      p99      max\n\
             1970-01-01 01:00      60       2  2  2.00 ms  2.98 ms  3.00 ms\n\
             last failure: refused\n"
        );
    }

    #[test]
    fn totals_say_what_is_not_zero() {
        let totals = ProbeTotals {
            probes: 5,
            skipped: 2,
            ..ProbeTotals::default()
        };
        assert_eq!(totals.line(), "5 probes, 2 skipped");
    }
}
