//! The metrics of `stackline watch`: sums and latest values of its events, from which families are made when they are asked for.
//!
//! Names of programs, interfaces, disks and switch ports become labels, so their number is bounded. Connections are summed by process, of
//! which the slowest have series of their own; the rest are one series, `other`. A sum never goes back: what a process does while it is
//! among the rest is added to `other`, and its own series goes on where it stopped when it is among the slowest again.

mod connection_series;
mod family_table;

use super::{MetricFamily, MetricSample, MetricValue, build_info};
use connection_series::ConnectionSeries;
use family_table::{FAMILIES, FieldScale, LabelSource, WATCHED_FIELDS, WatchedField};
pub use family_table::{WatchFamily, watch_families};
use stackline_events::catalogue::find_value;
use stackline_events::{EventLog, EventRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most series that are kept of what has names; what is left out is counted by a metric.
const MOST_SERIES: usize = 10_000;
/// The longest label, in characters.
const LONGEST_LABEL: usize = 64;
/// A connection is left out after so many intervals without a new sample, as in the table of `watch`.
const STALE: u32 = 20;

/// A series: its family and the values of its labels, in the family's order.
type SeriesKey = (&'static str, Vec<String>);

/// What a watch has observed so far.
#[derive(Clone, Debug)]
pub struct WatchMetrics {
    version: String,
    interval: Duration,
    series: BTreeMap<SeriesKey, f64>,
    /// Values that were left out because there were too many series.
    left_out: u64,
    events: u64,
    connections: ConnectionSeries,
}

impl WatchMetrics {
    /// Nothing observed yet, by a watch that samples at `interval`, of stackline `version`.
    #[must_use]
    pub fn new(interval: Duration, version: &str) -> Self {
        let stays_ns = u64::try_from((interval * STALE).as_nanos()).unwrap_or(u64::MAX);
        Self {
            version: version.to_owned(),
            interval,
            series: BTreeMap::new(),
            left_out: 0,
            events: 0,
            connections: ConnectionSeries::new(stays_ns),
        }
    }

    /// Adds events.
    pub fn add(&mut self, log: &EventLog) {
        for record in log.records() {
            self.events += 1;
            let fields = WATCHED_FIELDS
                .iter()
                .filter(|field| field.keyword == record.keyword);
            for field in fields {
                self.add_field(field, &record);
            }
        }
        self.connections.add(log);
    }

    fn add_field(&mut self, field: &WatchedField, record: &EventRecord<'_>) {
        let Some(value) = scaled(field, record) else {
            return;
        };
        let label = |source: &LabelSource| match source {
            LabelSource::Fixed(text) => (*text).to_owned(),
            LabelSource::Field(name) => label_text(&find_value(record, name).to_string()),
            LabelSource::Host => label_text(record.host),
        };
        let key = (field.family, field.labels.iter().map(label).collect());
        if !self.series.contains_key(&key) && self.series.len() >= MOST_SERIES {
            self.left_out += 1;
            return;
        }
        let known = self.series.entry(key).or_default();
        *known = match field.scale {
            FieldScale::Latest => value,
            _ => *known + value,
        };
    }

    /// The families, in a fixed order; a family without samples is left out.
    #[must_use]
    pub fn families(&self) -> Vec<MetricFamily> {
        let mut own: BTreeMap<&str, Vec<MetricSample>> = self.connections.samples();
        let number = |value: f64| MetricSample {
            labels: Vec::new(),
            value: MetricValue::Number(value),
        };
        for (name, value) in [
            ("stackline_events", count(self.events)),
            ("stackline_left_out_values", count(self.left_out)),
            (
                "stackline_watch_interval_seconds",
                self.interval.as_secs_f64(),
            ),
        ] {
            own.insert(name, vec![number(value)]);
        }
        let described = FAMILIES.iter().filter_map(|family| {
            let samples = match own.remove(family.name) {
                Some(samples) => samples,
                None => self.samples_of(family),
            };
            (!samples.is_empty()).then_some(MetricFamily {
                name: family.name,
                kind: family.kind,
                unit: family.unit,
                help: family.help,
                samples,
            })
        });
        let mut families: Vec<MetricFamily> = described.collect();
        families.push(build_info(&self.version));
        families
    }

    fn samples_of(&self, family: &WatchFamily) -> Vec<MetricSample> {
        let from = (family.name, Vec::new());
        self.series
            .range(from..)
            .take_while(|((name, _), _)| *name == family.name)
            .map(|((_, values), value)| MetricSample {
                labels: family
                    .labels
                    .iter()
                    .copied()
                    .zip(values.iter().cloned())
                    .collect(),
                value: MetricValue::Number(*value),
            })
            .collect()
    }
}

/// What a record adds to a series, in its base unit; `None` where the record has no such value.
fn scaled(field: &WatchedField, record: &EventRecord<'_>) -> Option<f64> {
    let number = |name: &str| {
        let value = find_value(record, name).number()?;
        u64::try_from(value).ok().map(count)
    };
    match field.scale {
        FieldScale::Occurrence => Some(1.0),
        FieldScale::Count | FieldScale::Latest => number(field.field),
        FieldScale::Nanoseconds => Some(number(field.field)? / 1e9),
        FieldScale::ShareOfInterval => {
            Some(number(field.field)? / 1e6 * number("interval_ns")? / 1e9)
        }
    }
}

/// A foreign name as a label: bounded, and without what steers a terminal.
fn label_text(name: &str) -> String {
    stackline_redact::printable(name.as_bytes())
        .chars()
        .take(LONGEST_LABEL)
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating-point numbers"
)]
const fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
