//! Access logs of servers (`--log`): each line that describes a request of a capture becomes an event `LOG` on that request's lifeline.

use super::ImportRequest;
use crate::access::{self, AccessLogEntry, Entries};
use crate::capture::CapturedRequest;
use crate::formats::CaptureImport;
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::TraceImport;
use stackline_core::units;
use stackline_events::catalogue::rows::{ProgramLog, RequestUpstream};
use stackline_events::{EventTable, EventValue};
use stackline_guard::files as guard_files;
use stackline_redact::{http, secret_words};
use stackline_requests::{Bound, LeftOut};
use stackline_runs::events::Intake;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The largest log that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Reads all access logs of an import.
pub(crate) fn join(
    request: &ImportRequest,
    captured: Option<&CaptureImport>,
    into: &mut Intake,
    imports: &mut Vec<TraceImport>,
) -> Result<()> {
    if request.server_logs.is_empty() {
        return Ok(());
    }
    let captured = captured.ok_or_else(|| {
        Error::input("--log adds information to requests in captures, but no capture is specified")
            .hint("specify a capture before --log")
    })?;
    for log in &request.server_logs {
        let (server, path) = named(log);
        let asked = captured.asked();
        imports.push(one(path, server, asked, request.keep_contents, into)?);
    }
    Ok(())
}

/// Splits `HOST=FILE`; a file whose name is the whole text takes precedence.
fn named(log: &Path) -> (Option<&str>, &Path) {
    let parts = log
        .to_str()
        .and_then(|text| text.split_once('='))
        .filter(|(host, _)| !host.is_empty());
    match parts.filter(|_| !log.exists()) {
        Some((host, path)) => (Some(host), Path::new(path)),
        None => (None, log),
    }
}

fn read_log(path: &Path, source: &str) -> Result<Vec<u8>> {
    guard_files::read_bounded(path, LARGEST).map_err(|cause| match cause.kind() {
        ErrorKind::FileTooLarge => Error::input(format!(
            "{source} is larger than 1 GiB, the limit for a log"
        ))
        .hint("import only the part that covers the time of the captures"),
        _ => Error::input(format!("cannot read {source}: {cause}"))
            .hint("check its name and permissions"),
    })
}

fn no_access_log(source: &str) -> Error {
    Error::input(format!(
        "{source} is not an access log: no line describes a request"
    ))
    .hint("supported formats: nginx, Apache (combined), haproxy, Envoy and Traefik log lines, JSON lines, and OTLP/JSON")
}

/// Reads one access log, and adds an event for each line that matches a request.
fn one(
    path: &Path,
    server: Option<&str>,
    asked: &[CapturedRequest],
    contents: bool,
    into: &mut Intake,
) -> Result<TraceImport> {
    let source = path.display().to_string();
    let bytes = read_log(path, &source)?;
    let mut read = access::read(&bytes);
    if read.entries.is_empty() {
        return Err(no_access_log(&source));
    }
    access::settle_units(&mut read.entries, asked, server);
    let joined = access::join(&read.entries, asked, server);
    let mut left_out = read.left_out.clone();
    left_out.merge(&joined.left_out);
    let logger = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut table = EventTable::default();
    let absolute = std::fs::canonicalize(path);
    let mut import = TraceImport {
        path: absolute.map_or_else(|_| String::new(), |path| path.display().to_string()),
        form: read.form.to_owned(),
        bytes: bytes.len() as u64,
        lines: read.lines,
        events: joined.pairs.len() as u64,
        ..TraceImport::default()
    };
    for (line, request) in joined.pairs {
        let (entry, request) = (&read.entries[line], &asked[request]);
        let (stream, offset, length) = request.answer;
        let message = message(entry, contents, &mut left_out);
        let level = level_of(entry, contents);
        let at_ns = access::moment(entry, request);
        ProgramLog {
            unit: request.unit.into(),
            stream: stream.into(),
            offset: offset.into(),
            bytes: length.into(),
            level: level
                .as_deref()
                .map_or(EventValue::Absent, EventValue::Text),
            logger: logger.as_str().into(),
            message: message.as_str().into(),
        }
        .emit_on(&request.server, at_ns, &mut table.emitter());
        if let Some(upstream_ns) = entry.upstream_ns {
            RequestUpstream {
                unit: request.unit.into(),
                upstream_ns: upstream_ns.into(),
            }
            .emit_on(&request.server, at_ns, &mut table.emitter());
        }
        *import.hosts.entry(request.server.clone()).or_default() += 1;
    }
    into.push(&table)?;
    import.left_out = left_out.names();
    import.refused = refused(&read, joined.alone, joined.ambiguous);
    import.notes = read
        .mistakes
        .first
        .iter()
        .map(|what| format!("{source}: {what}"))
        .collect();
    Ok(TraceImport { source, ..import })
}

/// The lines that match no request, by reason.
fn refused(read: &Entries, alone: u64, ambiguous: u64) -> BTreeMap<String, u64> {
    let unread = read.reasons.iter();
    let counts = unread
        .map(|(why, count)| (format!("not read: {why}"), *count))
        .chain([
            ("matching no captured request".to_owned(), alone),
            ("matching several requests".to_owned(), ambiguous),
        ]);
    counts.filter(|(_, count)| *count > 0).collect()
}

/// The log level of a line, redacted unless `contents` is set.
fn level_of(entry: &AccessLogEntry, contents: bool) -> Option<String> {
    let level = Some(entry.level.as_str()).filter(|level| !level.is_empty())?;
    Some(if contents {
        level.to_owned()
    } else {
        secret_words::redact_identifier(level.as_bytes())
    })
}

/// The line, or without `contents` a summary of it with the redacted request.
fn message(entry: &AccessLogEntry, contents: bool, left_out: &mut LeftOut) -> String {
    const LONGEST: usize = Bound::Data.most();
    let mut cut = |mut text: String| {
        left_out.add(Bound::Data, u64::from(text.len() > LONGEST));
        text.truncate(text.floor_char_boundary(LONGEST));
        text
    };
    if contents {
        return cut(entry.line.clone());
    }
    let name = http::redact_request(entry.method.as_bytes(), entry.path.as_bytes());
    let name = name.kept();
    let time = |ns: u64| units::format_time(ns as f64 / 1e9);
    let took = entry
        .took_ns
        .map_or_else(String::new, |ns| format!(" in {}", time(ns)));
    let behind = entry
        .upstream_ns
        .map_or_else(String::new, |ns| format!(", upstream {}", time(ns)));
    cut(format!("{name} {}{took}{behind}", entry.status))
}
