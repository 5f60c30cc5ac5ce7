//! Families of metrics as OTLP, so that what is pushed is what is served.

use super::messages::{AnyValue, KeyValue, OtlpScope, Resource};
use super::metric_messages::{
    CUMULATIVE, HistogramDataPoint, MetricsData, NumberDataPoint, OtlpGauge, OtlpHistogram,
    OtlpMetric, OtlpSum, ResourceMetrics, ScopeMetrics,
};
use crate::openmetrics::{MetricFamily, MetricKind, MetricSample, MetricValue};
use prost::Message;

/// The name of the service and of the scope.
const SERVICE: &str = "stackline";

/// The times of pushed metrics, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricTimes {
    /// When counters and histograms were empty.
    pub start_ns: u64,
    /// When the values were so.
    pub now_ns: u64,
}

/// Families as a protobuf message of OTLP. Facts in labels (`info`) are not pushed: the resource has them.
#[must_use]
pub fn metrics_protobuf(families: &[MetricFamily], times: MetricTimes) -> Vec<u8> {
    metrics_data(families, times).encode_to_vec()
}

fn metrics_data(families: &[MetricFamily], times: MetricTimes) -> MetricsData {
    let metrics = families.iter().filter_map(|family| metric(family, times));
    MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", SERVICE),
                    attribute("service.version", env!("CARGO_PKG_VERSION")),
                ],
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(OtlpScope {
                    name: SERVICE.to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                metrics: metrics.collect(),
            }],
        }],
    }
}

/// A family; `None` of facts, and without samples.
fn metric(family: &MetricFamily, times: MetricTimes) -> Option<OtlpMetric> {
    if family.samples.is_empty() {
        return None;
    }
    let mut metric = OtlpMetric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: family.unit.map_or("1", ucum).to_owned(),
        ..OtlpMetric::default()
    };
    let numbers = |start_ns: u64| -> Vec<NumberDataPoint> {
        let samples = family.samples.iter();
        samples
            .filter_map(|sample| number(sample, start_ns, times))
            .collect()
    };
    match family.kind {
        MetricKind::Info => return None,
        MetricKind::Gauge => {
            metric.gauge = Some(OtlpGauge {
                data_points: numbers(0),
            });
        }
        MetricKind::Counter => {
            metric.sum = Some(OtlpSum {
                data_points: numbers(times.start_ns),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            });
        }
        MetricKind::Histogram => {
            let samples = family.samples.iter();
            metric.histogram = Some(OtlpHistogram {
                data_points: samples
                    .filter_map(|sample| histogram(sample, times))
                    .collect(),
                aggregation_temporality: CUMULATIVE,
            });
        }
    }
    Some(metric)
}

fn number(sample: &MetricSample, start_ns: u64, times: MetricTimes) -> Option<NumberDataPoint> {
    let MetricValue::Number(value) = sample.value else {
        return None;
    };
    Some(NumberDataPoint {
        start_time_unix_nano: start_ns,
        time_unix_nano: times.now_ns,
        as_double: Some(value),
        attributes: attributes(sample),
    })
}

fn histogram(sample: &MetricSample, times: MetricTimes) -> Option<HistogramDataPoint> {
    let MetricValue::Histogram {
        bounds,
        counts,
        sum,
    } = &sample.value
    else {
        return None;
    };
    Some(HistogramDataPoint {
        start_time_unix_nano: times.start_ns,
        time_unix_nano: times.now_ns,
        count: counts.iter().sum(),
        sum: Some(*sum),
        bucket_counts: counts.clone(),
        explicit_bounds: bounds.clone(),
        attributes: attributes(sample),
    })
}

fn attributes(sample: &MetricSample) -> Vec<KeyValue> {
    let labels = sample.labels.iter();
    labels.map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(name: &str, value: &str) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue {
            string_value: Some(value.to_owned()),
            ..AnyValue::default()
        }),
    }
}

/// The unit as UCUM writes it.
fn ucum(unit: &'static str) -> &'static str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        "bits_per_second" => "bit/s",
        "ratio" => "1",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_become_points_with_their_attributes() {
        let labels = || vec![("probe", "web".to_owned())];
        let mut runs = MetricFamily::new("stackline_probe_runs", MetricKind::Counter, "Probes.");
        runs.push(labels(), 3.0);
        let mut up = MetricFamily::new("stackline_probe_up", MetricKind::Gauge, "Up.");
        up.push(labels(), 1.0);
        let kind = MetricKind::Histogram;
        let mut times = MetricFamily::new("t_seconds", kind, "Times.").in_unit("seconds");
        times.samples.push(MetricSample {
            labels: labels(),
            value: MetricValue::Histogram {
                bounds: vec![0.1, 1.0],
                counts: vec![2, 1, 4],
                sum: 9.5,
            },
        });
        let empty = MetricFamily::new("empty", MetricKind::Gauge, "Nothing.");
        let info = crate::openmetrics::build_info("1.2.3");
        let at = MetricTimes {
            start_ns: 5,
            now_ns: 7,
        };
        let bytes = metrics_protobuf(&[runs, up, times, empty, info], at);
        let data = MetricsData::decode(&bytes[..]).unwrap();
        let scope = &data.resource_metrics[0].scope_metrics[0];
        let [runs, up, times] = &scope.metrics[..] else {
            panic!("{scope:?}")
        };
        let sum = runs.sum.as_ref().unwrap();
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        assert_eq!(sum.data_points[0].as_double, Some(3.0));
        assert_eq!(sum.data_points[0].start_time_unix_nano, 5);
        assert_eq!(sum.data_points[0].attributes, [attribute("probe", "web")]);
        let gauge = &up.gauge.as_ref().unwrap().data_points[0];
        assert_eq!((gauge.start_time_unix_nano, gauge.time_unix_nano), (0, 7));
        let point = &times.histogram.as_ref().unwrap().data_points[0];
        assert_eq!((point.count, point.sum), (7, Some(9.5)));
        assert_eq!((times.unit.as_str(), up.unit.as_str()), ("s", "1"));
        // The bytes of a field of fixed width: tag 4 of type I64 (protobuf's encoding), little endian.
        let field = [&[4 << 3 | 1][..], &7_u64.to_le_bytes()].concat();
        assert!(bytes.windows(9).any(|some| some == field));
    }
}
