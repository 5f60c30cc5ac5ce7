//! Metrics for monitoring systems such as Prometheus: families of samples as text, and the listener that serves them.
//!
//! A family is collected when it is asked for: whoever serves metrics keeps its own state and makes the families of it. The official
//! library keeps atomics of its own instead and has no families whose series come and go, so the two text forms are written here.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`text`] | families as OpenMetrics 1.0 or as Prometheus' text format 0.0.4 |
//! | [`format_choice`] | which of the two a client gets, by its `Accept` |
//! | [`listen_address`] | where a command's `--listen` listens: on this machine only unless an address is written |
//! | [`listener`] | serves families over HTTP to hostile clients |
//! | [`watch_metrics`] | the families of `stackline watch`, from its events |

pub mod format_choice;
pub mod listen_address;
pub mod listener;
pub mod text;
pub mod watch_metrics;

pub use listen_address::parse_listen_address;
pub use listener::MetricsListener;
pub use text::{openmetrics_text, prometheus_text};

/// A family of metrics: samples that differ in their labels.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// The name, with its unit at the end where it has one and without `_total` or `_info`: letters, digits and `_`.
    pub name: &'static str,
    /// What its samples are.
    pub kind: MetricKind,
    /// The base unit, such as `seconds` or `bytes`: the last word of the name.
    pub unit: Option<&'static str>,
    /// One sentence that says what it is.
    pub help: &'static str,
    /// The samples; each has other values of its labels.
    pub samples: Vec<MetricSample>,
}

/// What the samples of a family are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A sum that only grows, from the start of its program on.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Observations counted by size.
    Histogram,
    /// Facts in labels; the value is 1.
    Info,
}

/// A sample of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// The labels by name. Names are ours, values may be any text.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// That of a counter, a gauge, or an info (1).
    Number(f64),
    /// That of a histogram.
    Histogram {
        /// The upper bounds of the buckets, growing; that of the last bucket, infinity, is left out.
        bounds: Vec<f64>,
        /// How many observations each bucket has that no earlier one has; one more than `bounds`.
        counts: Vec<u64>,
        /// The sum of all observations.
        sum: f64,
    },
}

impl MetricFamily {
    /// A family without samples.
    #[must_use]
    pub const fn new(name: &'static str, kind: MetricKind, help: &'static str) -> Self {
        Self {
            name,
            kind,
            unit: None,
            help,
            samples: Vec::new(),
        }
    }

    /// The same with the unit in which its name ends.
    #[must_use]
    pub const fn in_unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Adds a sample that is a number.
    pub fn push(&mut self, labels: Vec<(&'static str, String)>, value: f64) {
        let value = MetricValue::Number(value);
        self.samples.push(MetricSample { labels, value });
    }
}

/// A family with the version of the program, by which a dashboard sees which one is running.
#[must_use]
pub fn build_info(version: &str) -> MetricFamily {
    let help = "The version of stackline that serves these metrics.";
    let mut family = MetricFamily::new("stackline_build", MetricKind::Info, help);
    family.push(vec![("version", version.to_owned())], 1.0);
    family
}
