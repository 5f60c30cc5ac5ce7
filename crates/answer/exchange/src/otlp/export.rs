//! Writes lifelines as OTLP spans: a root span for each, with a child span for the time between each two events. Traced requests have
//! their own names, a span at the client and one at the server, and belong to the trace of the request that caused them.

use super::messages::{
    AnyValue, KeyValue, OtlpScope, OtlpSpan, OtlpStatus, Resource, ResourceSpans, ScopeSpans,
    SpanEvent, TracesData,
};
use super::request_spans::{UnitSpans, find_unit_spans};
use super::{DATA, SCOPE};
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use stackline_analyze::names::segment_name;
use stackline_events::{EventTable, EventValue, catalogue};
use std::collections::BTreeMap;

/// Span kinds of OTLP.
const INTERNAL: i32 = 1;
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// The spans of all lifelines.
#[must_use]
pub fn spans(lifelines: &Lifelines, events: &EventTable) -> TracesData {
    let mut by_place: SpansByPlace = BTreeMap::new();
    for own in find_unit_spans(lifelines, events) {
        let unit = LineSpans {
            lifelines,
            events,
            line: &lifelines.lines[own.line],
            own: &own,
        };
        unit.push_all(&mut by_place);
    }
    let resource_spans = by_place
        .into_iter()
        .map(|((host, service), spans)| ResourceSpans {
            resource: Some(Resource {
                attributes: vec![text("host.name", &host), text("service.name", &service)],
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

/// The spans of the `most` lifelines that took longest.
#[must_use]
pub fn slowest_spans(lifelines: &Lifelines, events: &EventTable, most: usize) -> TracesData {
    let took = |line: &Lifeline| {
        let times = || {
            lifelines
                .passages_of(line)
                .iter()
                .map(|passage| passage.at_ns)
        };
        times().max().unwrap_or(0) - times().min().unwrap_or(0)
    };
    let mut slowest: Vec<(u64, usize)> = lifelines
        .lines
        .iter()
        .enumerate()
        .map(|(index, line)| (took(line), index))
        .collect();
    slowest.sort_unstable_by(|a, b| b.cmp(a));
    slowest.truncate(most);
    slowest.sort_unstable_by_key(|(_, index)| *index);
    let mut chosen = lifelines.clone();
    let lines = slowest
        .iter()
        .map(|(_, index)| lifelines.lines[*index].clone());
    chosen.lines = lines.collect();
    spans(&chosen, events)
}

/// Spans by host and service.
type SpansByPlace = BTreeMap<(String, String), Vec<OtlpSpan>>;

/// One unit on a lifeline, with what its spans need.
struct LineSpans<'l> {
    lifelines: &'l Lifelines,
    events: &'l EventTable,
    line: &'l Lifeline,
    own: &'l UnitSpans,
}

impl LineSpans<'_> {
    /// Adds all spans of the unit.
    fn push_all(&self, by_place: &mut SpansByPlace) {
        let passages = &self.own.passages[..];
        let (Some(first), Some(last)) = (passages.first(), passages.last()) else {
            return;
        };
        let mut push = |span: OtlpSpan, passage: &LifelinePassage, is_server: bool| {
            let host = host(self.lifelines, passage).to_owned();
            let service = self
                .own
                .service(&host, is_server)
                .unwrap_or(SCOPE)
                .to_owned();
            by_place.entry((host, service)).or_default().push(span);
        };
        let server = self.own.server.map(|(from, to)| {
            let [from, to] = [from, to].map(|at| &passages[at]);
            (from, to)
        });
        push(self.root([first, last]), first, self.own.is_of_server());
        if let Some((from, to)) = server {
            push(self.server_span(from, to), from, true);
        }
        for (index, pair) in passages.windows(2).enumerate() {
            let within = self
                .own
                .server
                .is_some_and(|(from, to)| index >= from && index < to);
            push(
                self.segment(index, [&pair[0], &pair[1]], within),
                &pair[1],
                within,
            );
        }
    }

    /// The root span of the unit.
    fn root(&self, ends: [&LifelinePassage; 2]) -> OtlpSpan {
        let (lifelines, line) = (self.lifelines, self.line);
        let [first, last] = ends;
        let (outcome, well) = outcome(line.outcome);
        let failure = self.own.failure.as_deref();
        let failure = failure.or((!well && self.own.is_of_line).then_some(outcome));
        let unit = self.own.id(line);
        let mut attributes = vec![text("stackline.unit", &unit)];
        // The lifeline's outcome, bytes and flow are those of its own unit, not of other units on it.
        if self.own.is_of_line {
            attributes.push(text("stackline.outcome", outcome));
            let bytes = line.bytes.map(|bytes| bytes as i64);
            attributes.extend(bytes.map(|bytes| number("stackline.bytes", bytes)));
            let flow = line.flow.map(i64::from);
            attributes.extend(flow.map(|flow| number("stackline.flow", flow)));
        }
        attributes.push(number(
            "stackline.clock_error_ns",
            lifelines.clock_error_ns as i64,
        ));
        attributes.extend(self.attributes());
        OtlpSpan {
            trace_id: self.own.trace.to_vec(),
            span_id: self.own.span(0),
            parent_span_id: self.own.parent.clone(),
            name: self
                .own
                .name
                .clone()
                .unwrap_or_else(|| format!("unit {unit}")),
            kind: match self.own.is_request {
                true if self.own.is_of_server() => SERVER,
                true => CLIENT,
                false => INTERNAL,
            },
            start_time_unix_nano: self.own.began_ns.unwrap_or(u64::MAX).min(first.at_ns),
            end_time_unix_nano: last.at_ns,
            attributes,
            events: vec![event(lifelines, first, self.events)],
            status: Some(OtlpStatus {
                message: failure.unwrap_or_default().to_owned(),
                code: if failure.is_none() { 1 } else { 2 },
            }),
        }
    }

    /// The attributes of the unit's request.
    fn attributes(&self) -> Vec<KeyValue> {
        let attribute = |(key, value): &(&'static str, String)| match value.parse() {
            Ok(code) if key.ends_with("status_code") => number(key, code),
            _ => text(key, value),
        };
        self.own.texts.iter().map(attribute).collect()
    }

    /// The server's span of a request, from its arrival to its response.
    fn server_span(&self, from: &LifelinePassage, to: &LifelinePassage) -> OtlpSpan {
        let failure = self.own.failure.as_deref();
        OtlpSpan {
            trace_id: self.own.trace.to_vec(),
            span_id: self.own.server_span(),
            parent_span_id: self.own.span(0),
            name: self.own.name.clone().unwrap_or_default(),
            kind: SERVER,
            start_time_unix_nano: from.at_ns,
            end_time_unix_nano: to.at_ns,
            attributes: self.attributes(),
            status: Some(OtlpStatus {
                message: failure.unwrap_or_default().to_owned(),
                code: if failure.is_none() { 1 } else { 2 },
            }),
            ..OtlpSpan::default()
        }
    }

    /// The span between two events of the unit.
    fn segment(&self, index: usize, ends: [&LifelinePassage; 2], at_server: bool) -> OtlpSpan {
        let (lifelines, [from, to]) = (self.lifelines, ends);
        OtlpSpan {
            trace_id: self.own.trace.to_vec(),
            span_id: self.own.span(index as u64 + 1),
            parent_span_id: match at_server {
                true => self.own.server_span(),
                false => self.own.span(0),
            },
            name: segment_between(lifelines, from, to),
            kind: INTERNAL,
            start_time_unix_nano: from.at_ns,
            end_time_unix_nano: to.at_ns,
            attributes: vec![text("stackline.from_host", host(lifelines, from))],
            events: vec![event(lifelines, to, self.events)],
            ..OtlpSpan::default()
        }
    }
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

/// The name of the time between two events, as the analysis calls it.
fn segment_between(lifelines: &Lifelines, from: &LifelinePassage, to: &LifelinePassage) -> String {
    let point = |passage: &LifelinePassage| lifelines.points.get(passage.point as usize);
    point(from)
        .zip(point(to))
        .map_or_else(String::new, |(from, to)| segment_name(from, to))
}

/// The name of an outcome, and whether it is a success.
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

/// The event of a lifeline as an event of a span.
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
        // Attributes with names for human readers; the numbered ones above are read back exactly.
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
