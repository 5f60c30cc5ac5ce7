//! Reads a line of an access log that is a JSON object, with the field names of Caddy, Traefik, Envoy, nginx and common libraries, at any
//! depth up to the limit.

use super::entry::{AccessLogEntry, asked};
use super::times::{SECOND, moment, scaled, seconds, unit_ns, with_unit};
use serde_json::Value as Json;
use stackline_dissect::left_out::{Bound, LeftOut};
use std::collections::BTreeMap;

/// The most levels of nested objects that are read.
const DEEPEST: usize = Bound::Within.most();
/// Names of fields with the time when a request came.
const BEGINS: [&str; 4] = ["StartUTC", "start_time", "StartLocal", "request_start"];
/// Names of fields with the time when the line was written.
const MOMENTS: [&str; 8] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "time_iso8601",
    "msec",
    "time_local",
    "datetime",
];
const METHODS: [&str; 5] = [
    "method",
    "request_method",
    "verb",
    "RequestMethod",
    "http_method",
];
const PATHS: [&str; 7] = [
    "path",
    "uri",
    "request_uri",
    "url",
    "target",
    "RequestPath",
    "request_path",
];
const STATUSES: [&str; 9] = [
    "status",
    "status_code",
    "statusCode",
    "response_code",
    "code",
    "DownstreamStatus",
    "OriginStatus",
    "http_status",
    "response_status",
];
/// Names of fields with the duration; a number without a unit is in seconds, unless its writer is known to use another one.
const TOOK: [&str; 17] = [
    "duration",
    "duration_ms",
    "duration_us",
    "duration_ns",
    "duration_s",
    "request_time",
    "latency",
    "latency_ms",
    "elapsed",
    "elapsed_ms",
    "response_time",
    "response_time_ms",
    "took",
    "took_ms",
    "Duration",
    "responseTime",
    "durationMs",
];
const UPSTREAM: [&str; 3] = [
    "upstream_response_time",
    "upstream_service_time",
    "OriginDuration",
];

/// The fields of a line, by their full names: `outer.inner`.
struct Fields(BTreeMap<String, String>);

impl Fields {
    /// The first of several names that is a field, or the last part of one, and its value.
    fn said<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &String)> {
        names.iter().find_map(|name| {
            let last = format!(".{name}");
            let within = || self.0.iter().find(|(field, _)| field.ends_with(&last));
            let value = self
                .0
                .get(*name)
                .or_else(|| within().map(|(_, value)| value));
            value.map(|value| (*name, value))
        })
    }

    fn text(&self, names: &[&str]) -> Option<&String> {
        self.said(names).map(|(_, value)| value)
    }

    /// The unit of a number without one, by who writes fields of this name; the number of ns in it.
    fn default_unit(&self, name: &str) -> f64 {
        match name {
            "Duration" | "OriginDuration" => 1.0,
            "responseTime" | "durationMs" | "upstream_service_time" => 1e6,
            "duration"
                if self
                    .said(&["response_flags", "upstream_service_time"])
                    .is_some() =>
            {
                1e6
            }
            _ => 1e9,
        }
    }

    /// A duration in ns, in the unit of the text, of the field's name, or of its writer.
    fn time(&self, name: &str, text: &str) -> Option<u64> {
        let named = name.rsplit_once('_').and_then(|(_, unit)| unit_ns(unit));
        let unit = named.unwrap_or_else(|| self.default_unit(name));
        with_unit(text)
            .or_else(|| scaled(text, unit))
            .or_else(|| seconds(text).flatten())
    }
}

/// Reads a line, or says why it does not describe a request.
pub(super) fn read_json_line(
    line: &str,
    left_out: &mut LeftOut,
) -> Result<AccessLogEntry, &'static str> {
    let object: Json = serde_json::from_str(line).map_err(|_| "not JSON")?;
    let mut fields = Fields(BTreeMap::new());
    flatten(&object, "", 0, &mut fields.0, left_out);
    let (begins, ends) = (fields.text(&BEGINS), fields.text(&MOMENTS));
    let begin = begins.and_then(|text| moment(text));
    let (at_ns, resolution_ns) = begin
        .or_else(|| moment(ends?))
        .ok_or("no known time format")?;
    let request = fields.text(&["request"]).and_then(|request| asked(request));
    let (method, path) = fields
        .text(&METHODS)
        .cloned()
        .zip(fields.text(&PATHS).cloned())
        .or(request)
        .ok_or("no method or path")?;
    let status = fields.text(&STATUSES).ok_or("no status")?.clone();
    let took = fields.said(&TOOK);
    let took_ns = took.and_then(|(name, text)| fields.time(name, text));
    // A number whose unit nothing tells.
    let is_bare = |(name, text): (&str, &String)| {
        let has_unit = name
            .rsplit_once('_')
            .is_some_and(|(_, unit)| unit_ns(unit).is_some());
        !has_unit && fields.default_unit(name) == 1e9 && text.parse::<f64>().is_ok()
    };
    let path = path.split_once("://").map_or(path.as_str(), |(_, rest)| {
        rest.find('/').map_or("/", |at| &rest[at..])
    });
    Ok(AccessLogEntry {
        at_ns,
        resolution_ns,
        is_end: begin.is_none(),
        method,
        path: path.to_owned(),
        status,
        took_ns,
        number_ns: took
            .filter(|took| is_bare(*took))
            .and_then(|(_, text)| scaled(text, SECOND as f64)),
        upstream_ns: fields
            .said(&UPSTREAM)
            .and_then(|(name, text)| fields.time(name, text)),
        level: fields
            .text(&["level", "severity"])
            .cloned()
            .unwrap_or_default(),
        line: line.to_owned(),
    })
}

/// Collects the texts and numbers of nested objects under their full names.
fn flatten(
    value: &Json,
    name: &str,
    depth: usize,
    fields: &mut BTreeMap<String, String>,
    left_out: &mut LeftOut,
) {
    match value {
        Json::Object(object) if depth < DEEPEST => {
            for (key, value) in object {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(value, &name, depth + 1, fields, left_out);
            }
        }
        Json::Object(_) => left_out.add(Bound::Within, 1),
        Json::String(text) => drop(fields.insert(name.to_owned(), text.clone())),
        Json::Number(number) => drop(fields.insert(name.to_owned(), number.to_string())),
        _ => {}
    }
}
