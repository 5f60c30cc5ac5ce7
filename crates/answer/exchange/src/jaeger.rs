//! Reads Jaeger's JSON, which its page downloads and its query service returns: `{"data": [{"traceID", "spans", "processes"}]}`.
//!
//! Spans are converted to those of OpenTelemetry and read like them: each becomes `NAME_START` and `NAME_END`, with the trace as unit.
//! Jaeger's times are whole microseconds. There is no writer.

use crate::otlp::messages::{
    AnyValue, KeyValue, OtlpSpan, Resource, ResourceSpans, ScopeSpans, SpanEvent, TracesData,
};
use crate::{Error, Imported, otlp};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct JaegerResponse {
    data: Vec<JaegerTrace>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct JaegerTrace {
    spans: Vec<JaegerSpan>,
    processes: BTreeMap<String, JaegerProcess>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JaegerProcess {
    service_name: String,
    tags: Vec<Tag>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JaegerSpan {
    #[serde(rename = "traceID")]
    trace: String,
    #[serde(rename = "spanID")]
    span: String,
    operation_name: String,
    references: Vec<Reference>,
    start_time: u64,
    duration: u64,
    tags: Vec<Tag>,
    logs: Option<Vec<JaegerLog>>,
    #[serde(rename = "processID")]
    process: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    ref_type: String,
    #[serde(rename = "spanID")]
    span: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tag {
    key: String,
    value: Json,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JaegerLog {
    timestamp: u64,
    fields: Vec<Tag>,
}

/// Reads a file with one response or several in a row; names and tags are redacted as by [`otlp::read`], unless `contents` is set.
///
/// # Errors
/// If it is not Jaeger JSON.
pub fn read(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let mut imported = Imported::default();
    for answer in serde_json::Deserializer::from_slice(bytes).into_iter::<JaegerResponse>() {
        match answer {
            Ok(answer) => answer
                .data
                .into_iter()
                .for_each(|trace| otlp::import(&spans(trace, contents), contents, &mut imported)),
            Err(cause) if imported.table.is_empty() => {
                return Err(Error::new(
                    "this is not Jaeger JSON",
                    crate::json_mistake(&cause, 0),
                ));
            }
            Err(cause) => {
                imported.mistake(format!(
                    "the rest is not Jaeger JSON: {}",
                    crate::json_mistake(&cause, 0)
                ));
                break;
            }
        }
    }
    Ok(imported)
}

/// Converts a trace to OpenTelemetry's form: the spans of each process together.
fn spans(trace: JaegerTrace, contents: bool) -> TracesData {
    let mut by_process: BTreeMap<String, Vec<OtlpSpan>> = BTreeMap::new();
    for span in trace.spans {
        by_process
            .entry(span.process.clone())
            .or_default()
            .push(otlp_span(span, contents));
    }
    let resource_spans = by_process
        .into_iter()
        .map(|(process, spans)| ResourceSpans {
            resource: trace.processes.get(&process).map(resource),
            scope_spans: vec![ScopeSpans { scope: None, spans }],
        });
    TracesData {
        resource_spans: resource_spans.collect(),
    }
}

/// The resource of a process. Jaeger's clients name the host in `hostname`, OpenTelemetry's in `host.name`.
fn resource(process: &JaegerProcess) -> Resource {
    let host = |tag: &&Tag| matches!(&tag.key[..], "hostname" | "host.name");
    let mut attributes = vec![text("service.name", &process.service_name)];
    attributes.extend(
        process
            .tags
            .iter()
            .find(host)
            .map(|tag| attribute("host.name", &tag.value)),
    );
    Resource { attributes }
}

/// Converts a span.
fn otlp_span(span: JaegerSpan, contents: bool) -> OtlpSpan {
    let parent = span
        .references
        .iter()
        .find(|reference| reference.ref_type == "CHILD_OF");
    OtlpSpan {
        trace_id: id(&span.trace, 16),
        span_id: id(&span.span, 8),
        parent_span_id: parent.map_or_else(Vec::new, |parent| id(&parent.span, 8)),
        name: span.operation_name,
        start_time_unix_nano: span.start_time.saturating_mul(1000),
        end_time_unix_nano: span
            .start_time
            .saturating_add(span.duration)
            .saturating_mul(1000),
        attributes: span
            .tags
            .iter()
            .map(|tag| attribute(&tag.key, &tag.value))
            .collect(),
        events: span
            .logs
            .iter()
            .flatten()
            .map(|log| event(log, contents))
            .collect(),
        ..OtlpSpan::default()
    }
}

/// Converts a log entry of a span. Its name is its field `event`, or `message` if `contents` is set.
fn event(log: &JaegerLog, contents: bool) -> SpanEvent {
    let named = log
        .fields
        .iter()
        .find(|tag| tag.key == "event" || contents && tag.key == "message");
    let name = named.and_then(|tag| tag.value.as_str()).unwrap_or("log");
    SpanEvent {
        time_unix_nano: log.timestamp.saturating_mul(1000),
        name: name.to_owned(),
        attributes: log
            .fields
            .iter()
            .map(|tag| attribute(&tag.key, &tag.value))
            .collect(),
    }
}

/// The bytes of a hexadecimal id, which may lack leading zeroes. Empty if there is none; one byte, which no valid id has, if it is
/// invalid.
fn id(text: &str, bytes: usize) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let fits =
        (1..=2 * bytes).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = fits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    number.map_or_else(
        || vec![0],
        |number| number.to_be_bytes()[16 - bytes..].to_vec(),
    )
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, &Json::from(value))
}

fn attribute(key: &str, value: &Json) -> KeyValue {
    let value = match value {
        Json::Bool(yes) => AnyValue {
            bool_value: Some(*yes),
            ..AnyValue::default()
        },
        Json::Number(number) => {
            let int_value = number.as_i64();
            let double_value = if int_value.is_none() {
                number.as_f64()
            } else {
                None
            };
            AnyValue {
                int_value,
                double_value,
                ..AnyValue::default()
            }
        }
        Json::String(text) => AnyValue {
            string_value: Some(text.clone()),
            ..AnyValue::default()
        },
        other => AnyValue {
            string_value: Some(other.to_string()),
            ..AnyValue::default()
        },
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(value),
    }
}

#[cfg(test)]
mod tests;
