//! Both text forms of metrics, to the letter, and as a strict reader takes them.

use super::*;
use crate::openmetrics::build_info;
use proptest::prelude::*;
use stackline_testing::metrics_text::{read_openmetrics, read_prometheus};

fn families() -> Vec<MetricFamily> {
    let mut bytes = MetricFamily::new(
        "stackline_sent_bytes",
        MetricKind::Counter,
        "Bytes that were \"sent\".\nAll \\ of them.",
    )
    .in_unit("bytes");
    bytes.push(vec![("interface", "eth0".into())], 1500.0);
    bytes.push(vec![("interface", "a\"b\\c\nd".into())], 0.5);
    let mut load = MetricFamily::new("stackline_load_ratio", MetricKind::Gauge, "Load.");
    load.push(Vec::new(), f64::INFINITY);
    let mut times = MetricFamily::new(
        "stackline_response_seconds",
        MetricKind::Histogram,
        "Response times.",
    )
    .in_unit("seconds");
    times.samples.push(MetricSample {
        labels: vec![("probe", "web".into())],
        value: MetricValue::Histogram {
            bounds: vec![0.005, 1.0],
            counts: vec![2, 1, 4],
            sum: 12.25,
        },
    });
    vec![bytes, load, times, build_info("0.1.0")]
}

#[test]
fn openmetrics_has_units_suffixes_escapes_and_an_end() {
    assert_eq!(
        openmetrics_text(&families()),
        r##"# TYPE stackline_sent_bytes counter
# UNIT stackline_sent_bytes bytes
# HELP stackline_sent_bytes Bytes that were \"sent\".\nAll \\ of them.
stackline_sent_bytes_total{interface="eth0"} 1500
stackline_sent_bytes_total{interface="a\"b\\c\nd"} 0.5
# TYPE stackline_load_ratio gauge
# HELP stackline_load_ratio Load.
stackline_load_ratio +Inf
# TYPE stackline_response_seconds histogram
# UNIT stackline_response_seconds seconds
# HELP stackline_response_seconds Response times.
stackline_response_seconds_bucket{probe="web",le="0.005"} 2
stackline_response_seconds_bucket{probe="web",le="1.0"} 3
stackline_response_seconds_bucket{probe="web",le="+Inf"} 7
stackline_response_seconds_count{probe="web"} 7
stackline_response_seconds_sum{probe="web"} 12.25
# TYPE stackline_build info
# HELP stackline_build The version of stackline that serves these metrics.
stackline_build_info{version="0.1.0"} 1
# EOF
"##
    );
}

#[test]
fn the_older_format_names_samples_and_has_no_units_no_infos_and_no_end() {
    let text = prometheus_text(&families());
    for line in [
        "# TYPE stackline_sent_bytes_total counter",
        "# HELP stackline_sent_bytes_total Bytes that were \"sent\".\\nAll \\\\ of them.",
        "# TYPE stackline_build_info gauge",
        "stackline_response_seconds_bucket{probe=\"web\",le=\"1.0\"} 3",
    ] {
        assert!(
            text.lines().any(|written| written == line),
            "{line}: {text}"
        );
    }
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

#[test]
fn a_strict_reader_takes_both_forms_and_finds_the_same() {
    let (open, older) = (
        read_openmetrics(&openmetrics_text(&families())).unwrap(),
        read_prometheus(&prometheus_text(&families())).unwrap(),
    );
    assert_eq!(open.len(), 4);
    for (one, other) in open.iter().zip(&older) {
        assert_eq!(one.samples, other.samples);
    }
}

proptest! {
    #[test]
    fn any_label_and_any_number_is_read_as_it_was_written(label in ".{0,40}", value in any::<f64>()) {
        let mut family = MetricFamily::new("a", MetricKind::Gauge, "A.");
        family.push(vec![("b", label.clone())], value);
        let read = read_openmetrics(&openmetrics_text(&[family])).unwrap();
        let sample = &read[0].samples[0];
        prop_assert_eq!(&sample.labels["b"], &label);
        prop_assert!(sample.value == value || (sample.value.is_nan() && value.is_nan()));
    }
}
