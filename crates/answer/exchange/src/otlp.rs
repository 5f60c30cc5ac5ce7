//! OTLP (OpenTelemetry), as protobuf and as JSON, both ways.
//!
//! Out: a lifeline is a trace, what lies between two of its events is a span of the host where it ends, and each event is an
//! event of the span that ends with it, with its data: so lines of any length stay below a collector's limit of 128 events
//! a span, and what was written is read back event by event. In: each span is two events, `NAME_START` and `NAME_END`, with
//! what happened in it between them; the unit is the trace, so spans of any instrumented program become lifelines.

pub mod messages;

use crate::{Error, Imported};
use messages::{
    AnyValue, KeyValue, OtlpScope, OtlpSpan, OtlpStatus, Resource, ResourceSpans, ScopeSpans,
    SpanEvent, TracesData,
};
use prost::Message;
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use stackline_events::table::FIELDS;
use stackline_events::{EventTable, EventValue, catalogue};
use stackline_redact::{attribute, foreign_names};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Whose spans ours are.
const SCOPE: &str = "stackline";
/// The attribute that says that an event of a span is one of ours, data field by data field.
const DATA: &str = "stackline.data.";

/// Lifelines as spans.
#[must_use]
pub fn spans(lifelines: &Lifelines, events: &EventTable) -> TracesData {
    let mut by_host: BTreeMap<&str, Vec<OtlpSpan>> = BTreeMap::new();
    for (number, line) in lifelines.lines.iter().enumerate() {
        let passages = lifelines.passages_of(line);
        let (Some(first), Some(last)) = (passages.first(), passages.last()) else {
            continue;
        };
        let id = TraceId::of(&line.unit.to_string(), number as u64);
        let root = root(&id, lifelines, line, [first, last], events);
        by_host
            .entry(host(lifelines, first))
            .or_default()
            .push(root);
        for (index, pair) in passages.windows(2).enumerate() {
            let span = segment(&id, lifelines, index, [&pair[0], &pair[1]], events);
            by_host
                .entry(host(lifelines, &pair[1]))
                .or_default()
                .push(span);
        }
    }
    let resource_spans = by_host.into_iter().map(|(host, spans)| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![text("host.name", host), text("service.name", SCOPE)],
        }),
        scope_spans: vec![ScopeSpans {
            scope: Some(OtlpScope {
                name: SCOPE.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            spans,
        }],
    });
    TracesData {
        resource_spans: resource_spans.collect(),
    }
}

/// As protobuf.
#[must_use]
pub fn protobuf(data: &TracesData) -> Vec<u8> {
    data.encode_to_vec()
}

/// As JSON, on one line: what a collector's file exporter writes.
///
/// # Errors
/// When a value cannot be written.
pub fn json(data: &TracesData) -> Result<String, Error> {
    serde_json::to_string(data).map_err(|cause| Error::new("the spans cannot be written", cause))
}

/// Reads either form: JSON begins with a brace, one object a line. Of names and attributes `stackline-redact` says what is kept, or
/// all of them where `contents` are asked for.
///
/// # Errors
/// When it is neither.
pub fn read(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let begins = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if begins == Some(&b'{') {
        read_json(bytes, contents)
    } else {
        read_protobuf(bytes, contents)
    }
}

fn read_protobuf(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let data =
        TracesData::decode(bytes).map_err(|cause| Error::new("this is no OTLP protobuf", cause))?;
    let mut imported = Imported::default();
    import(&data, contents, &mut imported);
    Ok(imported)
}

fn read_json(bytes: &[u8], contents: bool) -> Result<Imported, Error> {
    let mut imported = Imported::default();
    for data in serde_json::Deserializer::from_slice(bytes).into_iter::<TracesData>() {
        match data {
            Ok(data) => import(&data, contents, &mut imported),
            Err(cause) if imported.table.is_empty() => {
                return Err(Error::new(
                    "this is no OTLP/JSON",
                    crate::json_mistake(&cause),
                ));
            }
            // What cannot be read cannot be passed over: where it ends is not known.
            Err(cause) => {
                imported.mistake(format!(
                    "the rest is not OTLP/JSON: {}",
                    crate::json_mistake(&cause)
                ));
                break;
            }
        }
    }
    Ok(imported)
}

/// The ids of a lifeline's trace and spans: the unit's number, or a hash of its name, and which line it is.
struct TraceId {
    trace: [u8; 16],
}

impl TraceId {
    fn of(unit: &str, line: u64) -> Self {
        let unit = unit.parse().unwrap_or_else(|_| fnv(unit.as_bytes()));
        let mut trace = [0; 16];
        // No id is all zeroes.
        trace[..8].copy_from_slice(&(line + 1).to_be_bytes());
        trace[8..].copy_from_slice(&unit.to_be_bytes());
        Self { trace }
    }

    /// The root is span 0, segment `n` is span `n + 1`; spans of different traces differ too.
    fn span(&self, index: u64) -> Vec<u8> {
        let mut seed = self.trace.to_vec();
        seed.extend(index.to_be_bytes());
        fnv(&seed).max(1).to_be_bytes().to_vec()
    }
}

/// FNV-1a, 64 bits.
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

fn host<'l>(lifelines: &'l Lifelines, passage: &LifelinePassage) -> &'l str {
    lifelines
        .points
        .get(passage.point as usize)
        .map_or("", |point| &point.host)
}

fn keyword<'l>(lifelines: &'l Lifelines, passage: &LifelinePassage) -> &'l str {
    lifelines
        .points
        .get(passage.point as usize)
        .map_or("", |point| &point.keyword)
}

fn root(
    id: &TraceId,
    lifelines: &Lifelines,
    line: &Lifeline,
    ends: [&LifelinePassage; 2],
    events: &EventTable,
) -> OtlpSpan {
    let [first, last] = ends;
    let (outcome, well) = outcome(line.outcome);
    let mut attributes = vec![
        text("stackline.unit", &line.unit.to_string()),
        text("stackline.outcome", outcome),
    ];
    attributes.extend(
        line.bytes
            .map(|bytes| number("stackline.bytes", bytes as i64)),
    );
    attributes.extend(
        line.flow
            .map(|flow| number("stackline.flow", i64::from(flow))),
    );
    attributes.push(number(
        "stackline.clock_error_ns",
        lifelines.clock_error_ns as i64,
    ));
    OtlpSpan {
        trace_id: id.trace.to_vec(),
        span_id: id.span(0),
        name: format!("unit {}", line.unit),
        kind: 1,
        start_time_unix_nano: first.at_ns,
        end_time_unix_nano: last.at_ns,
        attributes,
        events: vec![event(lifelines, first, events)],
        status: Some(OtlpStatus {
            message: if well {
                String::new()
            } else {
                outcome.to_owned()
            },
            code: if well { 1 } else { 2 },
        }),
        ..OtlpSpan::default()
    }
}

const fn outcome(outcome: LifelineOutcome) -> (&'static str, bool) {
    match outcome {
        LifelineOutcome::Complete => ("complete", true),
        LifelineOutcome::CacheHit => ("cache hit", true),
        LifelineOutcome::Retried { .. } => ("retried", true),
        LifelineOutcome::Flushed { .. } => ("flushed", false),
        LifelineOutcome::NeverArrived { .. } => ("never arrived", false),
        LifelineOutcome::Headless { .. } => ("headless", false),
        LifelineOutcome::Unfinished { .. } => ("unfinished", true),
    }
}

fn segment(
    id: &TraceId,
    lifelines: &Lifelines,
    index: usize,
    ends: [&LifelinePassage; 2],
    events: &EventTable,
) -> OtlpSpan {
    let [from, to] = ends;
    OtlpSpan {
        trace_id: id.trace.to_vec(),
        span_id: id.span(index as u64 + 1),
        parent_span_id: id.span(0),
        name: format!("{} -> {}", keyword(lifelines, from), keyword(lifelines, to)),
        kind: 1,
        start_time_unix_nano: from.at_ns,
        end_time_unix_nano: to.at_ns,
        attributes: vec![text("stackline.from_host", host(lifelines, from))],
        events: vec![event(lifelines, to, events)],
        ..OtlpSpan::default()
    }
}

fn event(lifelines: &Lifelines, passage: &LifelinePassage, events: &EventTable) -> SpanEvent {
    let row = passage.row as usize;
    let fields = if row < events.len() {
        0..events.data.len()
    } else {
        0..0
    };
    let numbered = |field: usize| {
        let name = format!("{DATA}{field}");
        match events.value(row, field) {
            EventValue::Absent => None,
            EventValue::Number(value) => Some(number(&name, value)),
            EventValue::Text(value) => Some(text(&name, value)),
        }
    };
    let mut attributes: Vec<KeyValue> = fields.filter_map(numbered).collect();
    if let Some(entry) = catalogue::find(keyword(lifelines, passage)) {
        // Names for people; the data above are exact.
        let named = |(field, name): (usize, &&str)| match events.value(row, field) {
            EventValue::Number(value) => Some(number(name, value)),
            EventValue::Text(value) => Some(text(name, value)),
            EventValue::Absent => None,
        };
        attributes.extend(entry.data.iter().enumerate().filter_map(named));
    }
    SpanEvent {
        time_unix_nano: passage.at_ns,
        name: keyword(lifelines, passage).to_owned(),
        attributes,
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue {
        string_value: Some(value.to_owned()),
        ..AnyValue::default()
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(value),
    }
}

fn number(key: &str, value: i64) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            int_value: Some(value),
            ..AnyValue::default()
        }),
    }
}

// --- in ---

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

/// An event of ours comes back as it was.
fn import_ours(span: &OtlpSpan, host: &str, imported: &mut Imported) {
    for event in &span.events {
        if event.name.is_empty() || i64::try_from(event.time_unix_nano).is_err() {
            imported.mistake(format!(
                "an event of the span {:?} has no name, or a time beyond the year 2262",
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
        let values: Vec<EventValue<'_>> = data.iter().map(|field| EventValue::of(field)).collect();
        imported
            .table
            .push(&event.name, host, event.time_unix_nano, &values);
    }
}

/// Whether a span belongs to a trace and its times can be kept.
fn has_trace_and_times(span: &OtlpSpan) -> bool {
    let times = [span.start_time_unix_nano, span.end_time_unix_nano];
    let late = times
        .into_iter()
        .chain(span.events.iter().map(|event| event.time_unix_nano))
        .any(|at| i64::try_from(at).is_err());
    span.trace_id.len() == 16 && !late && times[1] >= times[0]
}

/// Data of foreign spans: unit (the trace), span, its parent, name, then attributes as `name=value`.
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
            "the span {span_name:?} has no trace, ends before it begins, or is beyond the year 2262"
        ));
        return;
    }
    let ids = [&span.trace_id, &span.span_id, &span.parent_span_id].map(|id| hex_of(id));
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
        let values: Vec<EventValue<'_>> = data.iter().map(|field| EventValue::of(field)).collect();
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
