//! The messages of OTLP metrics (opentelemetry-proto 1.x, `metrics.proto`) that are written, with their field numbers.

use super::messages::{KeyValue, OtlpScope, Resource};
use prost::Message;

/// Sums grow from the start time of their points (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
pub const CUMULATIVE: i32 = 2;

/// The content of a push (`ExportMetricsServiceRequest`).
#[derive(Clone, PartialEq, Message)]
pub struct MetricsData {
    /// The metrics by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// The metrics of one resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// What they are of: a service.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The metrics by what made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// The metrics that one program made.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The program.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<OtlpScope>,
    /// The metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<OtlpMetric>,
}

/// A metric: one of gauge, sum and histogram.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpMetric {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// What it is, in a sentence.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Its unit, as UCUM writes it: `s`, `By`, `bit/s`.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Values that go up and down.
    #[prost(message, optional, tag = "5")]
    pub gauge: Option<OtlpGauge>,
    /// Values that only grow.
    #[prost(message, optional, tag = "7")]
    pub sum: Option<OtlpSum>,
    /// Observations by size.
    #[prost(message, optional, tag = "9")]
    pub histogram: Option<OtlpHistogram>,
}

/// Values that go up and down.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpGauge {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

/// Values that only grow.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpSum {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    /// Whether they are from the start on ([`CUMULATIVE`]).
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// Whether they never fall.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// Observations by size.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpHistogram {
    /// The histograms.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    /// Whether they are from the start on ([`CUMULATIVE`]).
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// A number with its attributes.
#[derive(Clone, PartialEq, Message)]
pub struct NumberDataPoint {
    /// When counting began, ns since 1970; 0 for gauges.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When it was so, ns since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number.
    #[prost(double, optional, tag = "4")]
    pub as_double: Option<f64>,
    /// The attributes.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

/// A histogram with its attributes.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramDataPoint {
    /// When counting began, ns since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// When it was so, ns since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number of observations.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Their sum.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// Observations in each bucket, one more than bounds.
    #[prost(fixed64, repeated, tag = "6")]
    pub bucket_counts: Vec<u64>,
    /// Upper bounds of the buckets, growing.
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
    /// The attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
}
