//! The messages of OTLP traces (opentelemetry-proto 1.x) that are needed for lifelines, with their field numbers in protobuf and their
//! names in OTLP/JSON. Other fields of a message are ignored.

use prost::Message;
use serde::{Deserialize, Serialize};

/// The content of a trace file (`TracesData`, `ExportTraceServiceRequest`); in JSON also parts of such a message alone.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "WrittenTraces")]
pub struct TracesData {
    /// The spans by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// A JSON object as exporters write it: the whole message, or only the spans of one resource (as Java logs them), of one instrumentation
/// scope, or bare spans.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenTraces {
    #[serde(alias = "batches", alias = "resource_spans")]
    resource_spans: Vec<ResourceSpans>,
    resource: Option<Resource>,
    #[serde(alias = "scope_spans", alias = "instrumentationLibrarySpans")]
    scope_spans: Vec<ScopeSpans>,
    #[serde(alias = "instrumentationLibrary")]
    scope: Option<OtlpScope>,
    spans: Vec<OtlpSpan>,
    /// The content of responses of Jaeger's and Tempo's services.
    #[serde(alias = "trace")]
    result: Option<Box<TracesData>>,
}

impl From<WrittenTraces> for TracesData {
    fn from(written: WrittenTraces) -> Self {
        let (mut resource_spans, mut scope_spans) = (written.resource_spans, written.scope_spans);
        resource_spans.extend(
            written
                .result
                .into_iter()
                .flat_map(|data| data.resource_spans),
        );
        if !written.spans.is_empty() {
            scope_spans.push(ScopeSpans {
                scope: written.scope,
                spans: written.spans,
            });
        }
        if !scope_spans.is_empty() {
            resource_spans.push(ResourceSpans {
                resource: written.resource,
                scope_spans,
            });
        }
        Self { resource_spans }
    }
}

/// The spans of one resource.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSpans {
    /// The resource: a host, a service.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The spans by the instrumentation that made them.
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "scope_spans", alias = "instrumentationLibrarySpans")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// What spans describe: a host, a service.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// Attributes such as `host.name` and `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The spans of one instrumentation scope.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopeSpans {
    /// The instrumentation that made the spans.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<OtlpScope>,
    /// The spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<OtlpSpan>,
}

/// The instrumentation that made spans.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpScope {
    /// The instrumentation's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The instrumentation's version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// A span.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpSpan {
    /// The trace id, 16 bytes; empty if the exporter has no ids.
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "hex")]
    pub trace_id: Vec<u8>,
    /// The span's id, 8 bytes, or empty.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "hex")]
    pub span_id: Vec<u8>,
    /// The parent span's id, 8 bytes, or empty.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(with = "hex")]
    pub parent_span_id: Vec<u8>,
    /// The span's name.
    #[prost(string, tag = "5")]
    pub name: String,
    /// The kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// The start, ns since 1970.
    #[prost(fixed64, tag = "7")]
    #[serde(with = "nanos")]
    pub start_time_unix_nano: u64,
    /// The end, ns since 1970.
    #[prost(fixed64, tag = "8")]
    #[serde(with = "nanos")]
    pub end_time_unix_nano: u64,
    /// The span's attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// The events within the span.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<SpanEvent>,
    /// Whether the span succeeded.
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<OtlpStatus>,
}

/// An event within a span.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpanEvent {
    /// The time, ns since 1970.
    #[prost(fixed64, tag = "1")]
    #[serde(with = "nanos")]
    pub time_unix_nano: u64,
    /// The event's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The event's attributes.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// Whether a span succeeded.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpStatus {
    /// The reason of a failure.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The code: 0 unset, 1 success, 2 failure.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// An attribute.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyValue {
    /// The attribute's name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The attribute's value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute. Lists and maps are not kept.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnyValue {
    /// A text.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// A boolean.
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool_value: Option<bool>,
    /// An integer; in JSON it is a text.
    #[prost(int64, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none", with = "whole")]
    pub int_value: Option<i64>,
    /// A floating-point number.
    #[prost(double, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub double_value: Option<f64>,
}

/// Reads and writes ids. They are hexadecimal in OTLP/JSON; the JSON of protobuf itself, which some exporters write, has them in base64.
/// An id that is neither becomes one byte, which is neither a valid id nor an absent one.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    /// The value of an invalid id.
    const NEITHER: [u8; 1] = [0];

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::super::hex_of(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = Option::<String>::deserialize(from)?.unwrap_or_default();
        let bytes = match text.len() {
            12 | 24 => of_base64(&text),
            _ => of_digits(&text),
        };
        let bytes = bytes.unwrap_or_else(|| NEITHER.to_vec());
        // The specification forbids an id of zeroes; it stands for an absent id.
        let is_none = bytes.len() > 1 && bytes.iter().all(|byte| *byte == 0);
        Ok(if is_none { Vec::new() } else { bytes })
    }

    fn of_digits(text: &str) -> Option<Vec<u8>> {
        let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
        (0..text.len()).step_by(2).map(pair).collect()
    }

    fn of_base64(text: &str) -> Option<Vec<u8>> {
        let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
        for letter in text.trim_end_matches('=').bytes() {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            (bits, count) = (bits << 6 | u32::from(value), count + 6);
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        Some(bytes)
    }
}

/// Reads and writes 64-bit times, which are texts in JSON; some exporters write numbers.
mod nanos {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    pub(super) enum Either<T> {
        Text(String),
        Number(T),
    }

    pub(super) fn serialize<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&ns.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        match Either::deserialize(from)? {
            Either::Number(ns) => Ok(ns),
            Either::Text(text) => text
                .parse()
                .map_err(|_| D::Error::custom("a time is not an integer")),
        }
    }
}

/// The same for optional integers.
mod whole {
    use super::nanos::Either;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(number: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => to.serialize_str(&number.to_string()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        match Option::<Either<i64>>::deserialize(from)? {
            None => Ok(None),
            Some(Either::Number(number)) => Ok(Some(number)),
            Some(Either::Text(text)) => text
                .parse()
                .map(Some)
                .map_err(|_| D::Error::custom("a number is not an integer")),
        }
    }
}
