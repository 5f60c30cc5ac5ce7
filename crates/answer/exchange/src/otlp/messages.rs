//! The messages of OTLP's traces (opentelemetry-proto 1.x), as far as a span can hold what a lifeline does, with the field
//! numbers of protobuf and the names of OTLP/JSON. A message of a collector that holds more is read all the same.

use prost::Message;
use serde::{Deserialize, Serialize};

/// What a file of traces holds (`TracesData`, `ExportTraceServiceRequest`).
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TracesData {
    /// By what they are about.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of one resource.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSpans {
    /// A host, a service.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// By what made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// What spans are about.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// `host.name`, `service.name`, ...
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Spans of one instrumentation.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopeSpans {
    /// What made them.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<OtlpScope>,
    /// The spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<OtlpSpan>,
}

/// What made spans.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpScope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// One span.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpSpan {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "hex")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(with = "hex")]
    pub span_id: Vec<u8>,
    /// 8 bytes, or none.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(with = "hex")]
    pub parent_span_id: Vec<u8>,
    /// What it is.
    #[prost(string, tag = "5")]
    pub name: String,
    /// 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// ns since 1970.
    #[prost(fixed64, tag = "7")]
    #[serde(with = "nanos")]
    pub start_time_unix_nano: u64,
    /// ns since 1970.
    #[prost(fixed64, tag = "8")]
    #[serde(with = "nanos")]
    pub end_time_unix_nano: u64,
    /// What is known of it.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// What happened in it.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<SpanEvent>,
    /// How it ended.
    #[prost(message, optional, tag = "15")]
    pub status: Option<OtlpStatus>,
}

/// What happened in a span.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpanEvent {
    /// ns since 1970.
    #[prost(fixed64, tag = "1")]
    #[serde(with = "nanos")]
    pub time_unix_nano: u64,
    /// What.
    #[prost(string, tag = "2")]
    pub name: String,
    /// What else.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// How a span ended.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OtlpStatus {
    /// Why.
    #[prost(string, tag = "2")]
    pub message: String,
    /// 0 unset, 1 well, 2 not.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// An attribute.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A value; of lists and maps nothing is kept.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnyValue {
    /// A text.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// Yes or no.
    #[prost(bool, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool_value: Option<bool>,
    /// A whole number, in JSON a text.
    #[prost(int64, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none", with = "whole")]
    pub int_value: Option<i64>,
    /// Another number.
    #[prost(double, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub double_value: Option<f64>,
}

/// Ids are hexadecimal in OTLP/JSON, not base64 as protobuf's own JSON would have them.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::super::hex_of(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |at: usize| {
            text.get(at..at + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
        bytes.ok_or_else(|| D::Error::custom("an id is not hexadecimal"))
    }
}

/// 64-bit numbers are texts in JSON; some write them as numbers.
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
                .map_err(|_| D::Error::custom("a time is not a whole number")),
        }
    }
}

/// The same, where there may be none.
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
                .map_err(|_| D::Error::custom("a number is not a whole one")),
        }
    }
}
