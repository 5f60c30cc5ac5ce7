//! Reads and writes OTLP (OpenTelemetry), as protobuf and as JSON.
//!
//! Writing: a lifeline (the events of one unit) becomes a trace; lifelines of requests become parts of the trace of the request that
//! caused them. The time between two events of a lifeline is a span of the host where it ends, and each event is an event of the span
//! that ends with it, with its data. So lifelines of any length stay below a collector's limit of 128 events a span, and what was written
//! is read back event by event.
//!
//! Reading: each span becomes two events, `NAME_START` and `NAME_END`, with the span's own events between them; the unit is the trace, so
//! spans of any instrumented program become lifelines.
//!
//! Metrics are written only: families as a collector takes them.

mod export;
pub mod messages;
pub mod metric_messages;
mod metrics;
mod request_spans;

pub use export::{slowest_spans, spans};
pub use metrics::{MetricTimes, metrics_protobuf};

use crate::{Error, Imported, json_mistake, json_mistake_place};
use messages::{AnyValue, KeyValue, OtlpSpan, TracesData};
use prost::Message;
use stackline_events::EventValue;
use stackline_events::table::FIELDS;
use stackline_redact::{attribute, foreign_names};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The scope name of spans that stackline wrote.
const SCOPE: &str = "stackline";
/// The prefix of attributes that hold the data fields of stackline's own events; the field's index follows.
const DATA: &str = "stackline.data.";

/// Writes spans as protobuf.
#[must_use]
pub fn protobuf(data: &TracesData) -> Vec<u8> {
    data.encode_to_vec()
}

/// Writes spans as JSON on one line, as a collector's file exporter does.
///
/// # Errors
/// If a value cannot be written.
pub fn json(data: &TracesData) -> Result<String, Error> {
    serde_json::to_string(data).map_err(|cause| Error::new("cannot write the spans", cause))
}

/// Reads protobuf or JSON, which begins with a brace or a bracket; JSON objects follow one another, usually one per line. Names and
/// attributes are redacted by `stackline-redact`, unless `contents` is set.
///
/// # Errors
/// If it is neither.
pub fn read(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(begins, Some(b'{' | b'[')) {
        read_json(bytes, contents)
    } else {
        read_protobuf(bytes, contents)
    }
}

fn read_protobuf(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let data = TracesData::decode(bytes)
        .map_err(|cause| Error::new("this is not OTLP protobuf", cause))?;
    let mut imported = Imported::default();
    import(&data, contents, &mut imported);
    Ok(imported)
}

/// Reads objects in a row, or an array of them. After an object that cannot be read, it continues at the next line that begins an object.
fn read_json(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let refused = |mistake: &str| Error::new("this is not OTLP/JSON", mistake);
    let mut imported = Imported::default();
    if bytes.trim_ascii_start().starts_with(b"[") {
        let all: Vec<TracesData> =
            serde_json::from_slice(bytes).map_err(|cause| refused(&json_mistake(&cause, 0)))?;
        all.iter()
            .for_each(|data| import(data, contents, &mut imported));
        return Ok(imported);
    }
    let (mut first_mistake, mut from) = (None, 0);
    while from < bytes.len() {
        let mut failed = None;
        for data in serde_json::Deserializer::from_slice(&bytes[from..]).into_iter::<TracesData>() {
            match data {
                Ok(data) => import(&data, contents, &mut imported),
                Err(cause) => failed = Some(cause),
            }
        }
        let Some(cause) = failed else { break };
        let lines = bytes[..from].iter().filter(|byte| **byte == b'\n').count();
        let mistake = json_mistake(&cause, lines);
        imported.mistake(format!("an object is not OTLP/JSON: {mistake}"));
        first_mistake.get_or_insert(mistake);
        // The error of an object that was cut off lies within the next one, so the search starts a little before it.
        let place = from + json_mistake_place(&bytes[from..], &cause);
        let wrong = place.saturating_sub(2).max(from + 1);
        let next = bytes[wrong..].windows(2).position(|two| two == b"\n{");
        from = next.map_or(bytes.len(), |next| wrong + next + 1);
    }
    match first_mistake {
        Some(mistake) if imported.table.is_empty() => Err(refused(&mistake)),
        _ => Ok(imported),
    }
}

/// The FNV-1a hash, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adds the events of all spans.
pub(crate) fn import(data: &TracesData, contents: bool, imported: &mut Imported) {
    for resource in &data.resource_spans {
        let attributes = resource
            .resource
            .iter()
            .flat_map(|resource| &resource.attributes);
        let named: BTreeMap<&str, String> = attributes
            .filter_map(|a| Some((a.key.as_str(), shown(a)?)))
            .collect();
        let service = named.get("service.name").map_or("", String::as_str);
        let host = ["host.name", "host.id", "service.name"]
            .iter()
            .find_map(|name| named.get(name));
        let host = host
            .filter(|host| !host.is_empty())
            .map_or("unknown", String::as_str);
        for scope in &resource.scope_spans {
            let ours = scope
                .scope
                .as_ref()
                .is_some_and(|scope| scope.name == SCOPE);
            for span in &scope.spans {
                match ours {
                    true => import_ours(span, host, imported),
                    false => import_span(span, host, service, contents, imported),
                }
            }
        }
    }
}

/// Restores an event that stackline wrote.
fn import_ours(span: &OtlpSpan, host: &str, imported: &mut Imported) {
    for event in &span.events {
        if event.name.is_empty() || i64::try_from(event.time_unix_nano).is_err() {
            imported.mistake(format!(
                "an event of the span {:?} has no name, or its time is after the year 2262",
                span.name
            ));
            continue;
        }
        let mut data: Vec<String> = Vec::new();
        for attribute in &event.attributes {
            let field = attribute
                .key
                .strip_prefix(DATA)
                .and_then(|field| field.parse::<usize>().ok());
            let (Some(field), Some(value)) =
                (field.filter(|field| *field < FIELDS), shown(attribute))
            else {
                continue;
            };
            if data.len() <= field {
                data.resize(field + 1, String::new());
            }
            data[field] = value;
        }
        let values: Vec<EventValue<'_>> =
            data.iter().map(|field| EventValue::parse(field)).collect();
        imported
            .table
            .push(&event.name, host, event.time_unix_nano, &values);
    }
}

/// Whether a span's trace id is valid or absent, and its times are in order and before 2262.
fn has_trace_and_times(span: &OtlpSpan) -> bool {
    let times = [span.start_time_unix_nano, span.end_time_unix_nano];
    let late = times
        .into_iter()
        .chain(span.events.iter().map(|event| event.time_unix_nano))
        .any(|at| i64::try_from(at).is_err());
    matches!(span.trace_id.len(), 0 | 16) && !late && times[1] >= times[0]
}

/// Adds the events of a foreign span. Data: the unit (the trace), the span, its parent, the name, then attributes as `name=value`.
fn import_span(
    span: &OtlpSpan,
    host: &str,
    service: &str,
    contents: bool,
    imported: &mut Imported,
) {
    let name = |name: &str| {
        if contents {
            name.to_owned()
        } else {
            foreign_names::redact_foreign_name(name)
        }
    };
    let (span_name, service) = (name(&span.name), name(service));
    if !has_trace_and_times(span) {
        imported.mistake(format!(
            "the span {span_name:?} has an invalid trace ID, ends before it begins, or is after the year 2262"
        ));
        return;
    }
    let ids = ids_of(span, host);
    imported.without_ids += u64::from(span.trace_id.is_empty());
    let said = |key: &str| {
        span.attributes
            .iter()
            .find(|attribute| attribute.key == key)
            .and_then(shown)
    };
    let system = said("db.system.name")
        .or_else(|| said("db.system"))
        .unwrap_or_default();
    let kept = |KeyValue { key, value }: &KeyValue| {
        let said = value.as_ref().and_then(shown_value)?;
        let is_text = value
            .as_ref()
            .is_some_and(|value| value.string_value.is_some());
        let said = match contents || !is_text && !attribute::names_secret(key) {
            true => said,
            false => attribute::redact_attribute(key, &said, &system).into_owned(),
        };
        Some(format!("{key}={said}"))
    };
    let mut put = |(called, end): (&str, &str), at_ns: u64, attributes: &[KeyValue]| {
        let keyword = crate::keyword_of_others(&[&service, called], end, &mut imported.left_out);
        let named = attributes.iter().filter_map(kept);
        let data: Vec<String> = ids
            .iter()
            .cloned()
            .chain([span_name.clone()])
            .chain(named)
            .collect();
        let values: Vec<EventValue<'_>> =
            data.iter().map(|field| EventValue::parse(field)).collect();
        imported.table.push(&keyword, host, at_ns, &values);
    };
    put(
        (&span_name, "_START"),
        span.start_time_unix_nano,
        &span.attributes,
    );
    for event in &span.events {
        put(
            (&name(&event.name), ""),
            event.time_unix_nano,
            &event.attributes,
        );
    }
    put((&span_name, "_END"), span.end_time_unix_nano, &[]);
}

/// The ids of the trace, the span and its parent as hexadecimal digits; empty if shorter than 8 bytes.
fn ids_of(span: &OtlpSpan, host: &str) -> [String; 3] {
    let mut ids = [&span.trace_id, &span.span_id, &span.parent_span_id].map(|id| match id.len() {
        8.. => hex_of(id),
        _ => String::new(),
    });
    if span.trace_id.is_empty() {
        ids[0] = unit_without_trace(span, host);
    }
    ids
}

/// The unit of a span without a trace: a hash of its host, name and times, so that each such span has its own.
fn unit_without_trace(span: &OtlpSpan, host: &str) -> String {
    let times = [span.start_time_unix_nano, span.end_time_unix_nano].map(u64::to_be_bytes);
    let named = [host.as_bytes(), &[0], span.name.as_bytes(), &[0]].concat();
    format!("span-{:016x}", fnv(&[named, times.concat()].concat()))
}

/// An attribute's value as text.
pub(crate) fn shown(attribute: &KeyValue) -> Option<String> {
    shown_value(attribute.value.as_ref()?)
}

fn shown_value(value: &AnyValue) -> Option<String> {
    let text = value.string_value.clone();
    text.or_else(|| value.int_value.map(|n| n.to_string()))
        .or_else(|| value.bool_value.map(|b| b.to_string()))
        .or_else(|| value.double_value.map(|d| d.to_string()))
}

#[cfg(test)]
mod tests;
