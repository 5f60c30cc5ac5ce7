//! Reads access logs of servers: one request per line as nginx, Apache and Traefik write it (NCSA's combined format, with or without
//! durations behind it), as haproxy and Envoy do, JSON lines, or OTLP/JSON spans. [`join`] matches lines with requests of a capture: same
//! method, path and status, and an end near in time; if several match, none is taken.

mod entry;
mod json_line;
mod lines;
mod times;
mod units;

use crate::ImportMistakes;
use crate::capture::CapturedRequest;
use crate::otlp::messages::{OtlpSpan, TracesData};
use crate::otlp::shown;
pub use entry::AccessLogEntry;
use json_line::read_json_line;
use lines::read_text_line;
use stackline_dissect::left_out::{Bound, LeftOut};
use std::collections::{BTreeMap, BTreeSet};

/// A request matches if it ends this close to the logged time, ns; the log's resolution counts if it is larger.
const NEAR_NS: u64 = 50_000_000;
/// If several requests are near, the logged duration must agree with the request's to this, ns.
const ALIKE_NS: u64 = 5_000_000;
/// The most mistakes that are kept in words.
const REPORTED: usize = 5;
/// The most near requests of one line that are looked at.
const MOST_NEAR: usize = Bound::Near.most();

/// The content of an access log.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The format's name.
    pub form: &'static str,
    /// The requests it describes.
    pub entries: Vec<AccessLogEntry>,
    /// The number of its lines.
    pub lines: u64,
    /// The lines that could not be read.
    pub mistakes: ImportMistakes,
    /// How many lines could not be read, by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// What was left out because a limit was reached.
    pub left_out: LeftOut,
}

/// Reads an access log.
#[must_use]
pub fn read(bytes: &[u8]) -> Entries {
    let mut read = Entries {
        form: "access log",
        ..Entries::default()
    };
    let spans = bytes
        .windows(15)
        .take(4096)
        .any(|some| some == b"\"resourceSpans\"");
    if spans {
        read.form = "otlp";
        for data in serde_json::Deserializer::from_slice(bytes).into_iter::<TracesData>() {
            match data {
                Ok(data) => take_spans(&data, &mut read.entries),
                Err(cause) => {
                    let words = || {
                        format!(
                            "the rest is not OTLP/JSON: {}",
                            crate::json_mistake(&cause, 0)
                        )
                    };
                    read.mistakes.add(REPORTED, words);
                    *read.reasons.entry("not OTLP/JSON").or_default() += 1;
                    break;
                }
            }
        }
        return read;
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        read.lines += 1;
        match if text.starts_with('{') {
            read_json_line(text, &mut read.left_out)
        } else {
            read_text_line(text)
        } {
            Ok(entry) => read.entries.push(entry),
            Err(why) => {
                // The words must not quote the line: it may hold anything, and they are kept.
                let (number, bytes) = (
                    read.lines,
                    stackline_core::units::counted(line.len() as u64, "byte"),
                );
                let words =
                    || format!("line {number} does not describe a request: {why} ({bytes})");
                read.mistakes.add(REPORTED, words);
                *read.reasons.entry(why).or_default() += 1;
            }
        }
    }
    read
}

/// Adds an entry for each server span.
fn take_spans(data: &TracesData, entries: &mut Vec<AccessLogEntry>) {
    const SERVER: i32 = 2;
    let spans = data
        .resource_spans
        .iter()
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans);
    let entry = |span: &OtlpSpan| {
        let said = |names: &[&str]| {
            let named = |name: &&str| {
                span.attributes
                    .iter()
                    .find(|attribute| attribute.key == *name)
                    .and_then(shown)
            };
            names.iter().find_map(named)
        };
        let (method, path) = span.name.split_once(' ').unwrap_or((&span.name, ""));
        let query = said(&["url.query"])
            .filter(|query| !query.is_empty())
            .map_or_else(String::new, |query| format!("?{query}"));
        let path = said(&["url.path", "http.target"]).unwrap_or_else(|| path.to_owned());
        let (begin, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
        Some(AccessLogEntry {
            at_ns: end,
            resolution_ns: 1,
            is_end: true,
            method: said(&["http.request.method", "http.method"])
                .unwrap_or_else(|| method.to_owned()),
            path: path + &query,
            status: said(&["http.response.status_code", "http.status_code"])?,
            took_ns: end.checked_sub(begin),
            line: span.name.clone(),
            ..AccessLogEntry::default()
        })
    };
    entries.extend(spans.filter(|span| span.kind == SERVER).filter_map(entry));
}

/// Gives durations without a unit the unit with which they agree with the capture's requests.
pub fn settle_units(
    entries: &mut [AccessLogEntry],
    asked: &[CapturedRequest],
    server: Option<&str>,
) {
    units::settle_units(entries, asked, server);
}

/// Which log lines describe which captured requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogMatches {
    /// Pairs of an index of a line and an index of a request.
    pub pairs: Vec<(usize, usize)>,
    /// The number of lines whose request was not captured.
    pub alone: u64,
    /// The number of lines that match several requests, or a request that other lines match too.
    pub ambiguous: u64,
    /// What was left out because a limit was reached.
    pub left_out: LeftOut,
}

/// The fewest lines, each of one request, that decide of which service a log is.
const DECIDING: usize = 3;

/// Matches lines with requests; if `server` is given, only with that server's requests. A log is of one service: where lines match requests of
/// several, such as a proxy and its server on one host, the service of the lines that match exactly one request decides.
#[must_use]
pub fn join(
    entries: &[AccessLogEntry],
    asked: &[CapturedRequest],
    server: Option<&str>,
) -> AccessLogMatches {
    let all = join_of(entries, asked, |one| {
        server.is_none_or(|server| server == one.server)
    });
    let Some(service) = service_of(&all, entries, asked).filter(|_| all.ambiguous > 0) else {
        return all;
    };
    let own = join_of(entries, asked, |one| {
        (one.server.as_str(), one.port) == service
    });
    // A line that matches requests of other services only is not one without a request.
    AccessLogMatches {
        alone: all.alone,
        ambiguous: own.ambiguous + own.alone.saturating_sub(all.alone),
        ..own
    }
}

/// The server and port of the lines that match exactly one request, if it is one, and enough of them show it.
fn service_of<'a>(
    all: &AccessLogMatches,
    entries: &[AccessLogEntry],
    asked: &'a [CapturedRequest],
) -> Option<(&'a str, u16)> {
    let deciding = all.pairs.iter().filter(|(line, request)| {
        let (from_ns, to_ns) = asked[*request].at_ns;
        let took_ns = to_ns.saturating_sub(from_ns);
        let logged = entries[*line].took_ns;
        logged.is_none_or(|logged| logged.abs_diff(took_ns) <= ALIKE_NS)
    });
    let mut services = deciding
        .clone()
        .map(|(_, request)| (asked[*request].server.as_str(), asked[*request].port));
    let first = services.next()?;
    (deciding.count() >= DECIDING && services.all(|service| service == first)).then_some(first)
}

/// Matches lines with those requests for which `is_of` is true.
fn join_of(
    entries: &[AccessLogEntry],
    asked: &[CapturedRequest],
    is_of: impl Fn(&CapturedRequest) -> bool,
) -> AccessLogMatches {
    let mut by_what: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, request) in asked.iter().enumerate() {
        if is_of(request)
            && let Some((method, path)) = request.name.split_once(' ')
        {
            by_what
                .entry((method, without_query(path)))
                .or_default()
                .push(at);
        }
    }
    by_what
        .values_mut()
        .for_each(|all| all.sort_unstable_by_key(|at| asked[*at].at_ns.1));
    let mut joined = AccessLogMatches::default();
    let (mut alone, mut ambiguous) = (BTreeSet::new(), BTreeSet::new());
    // Several lines may match a request; `None` stands for one that matches other requests too.
    let mut lines_by_request: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
    for (line, entry) in entries.iter().enumerate() {
        let all = by_what
            .get(&(entry.method.as_str(), without_query(&entry.path)))
            .map_or(&[][..], Vec::as_slice);
        let mut near = near(entry, all, asked);
        if near.len() > MOST_NEAR {
            joined.left_out.add(Bound::Near, 1);
            near.truncate(MOST_NEAR);
        }
        if near.len() > 1
            && let Some(took) = entry.took_ns
        {
            near.retain(|at| {
                (asked[*at].at_ns.1 - asked[*at].at_ns.0.min(asked[*at].at_ns.1)).abs_diff(took)
                    <= ALIKE_NS
            });
        }
        let is_one = near.len() == 1;
        if near.is_empty() {
            alone.insert(line);
        } else if !is_one {
            ambiguous.insert(line);
        }
        for at in near {
            let lines = lines_by_request.entry(at).or_default();
            lines.push(is_one.then_some(line));
        }
    }
    for (request, lines) in lines_by_request {
        match lines[..] {
            [Some(line)] => joined.pairs.push((line, request)),
            _ => ambiguous.extend(lines.into_iter().flatten()),
        }
    }
    for (line, request) in pair_in_order(entries, asked, &by_what, &joined.pairs) {
        joined.pairs.push((line, request));
        alone.remove(&line);
        ambiguous.remove(&line);
    }
    (joined.alone, joined.ambiguous) = (alone.len() as u64, ambiguous.len() as u64);
    joined.pairs.sort_unstable();
    joined
}

/// Lines are paired with requests by their order only if each is at most this far from the end of its request, ns: the server may have
/// stood still before it logged.
const LATE_NS: u64 = 250_000_000;

/// What a line and a request have in common: method, path and status.
type AccessKey<'a> = (&'a str, &'a str, &'a str);

/// Pairs the lines and the requests that are left, in their order, where there are as many of both: `by_what` holds requests by method and
/// path, `known` the pairs that are known already.
fn pair_in_order(
    entries: &[AccessLogEntry],
    asked: &[CapturedRequest],
    by_what: &BTreeMap<(&str, &str), Vec<usize>>,
    known: &[(usize, usize)],
) -> Vec<(usize, usize)> {
    let lines: BTreeSet<usize> = known.iter().map(|(line, _)| *line).collect();
    let requests: BTreeSet<usize> = known.iter().map(|(_, request)| *request).collect();
    let mut left: BTreeMap<AccessKey<'_>, [Vec<usize>; 2]> = BTreeMap::new();
    for (line, entry) in entries.iter().enumerate() {
        if !lines.contains(&line) {
            let key = (
                entry.method.as_str(),
                without_query(&entry.path),
                entry.status.as_str(),
            );
            left.entry(key).or_default()[0].push(line);
        }
    }
    for ((method, path), all) in by_what {
        for at in all.iter().filter(|at| !requests.contains(at)) {
            let status = asked[*at].status.split(' ').next().unwrap_or_default();
            if let Some(both) = left.get_mut(&(*method, *path, status)) {
                both[1].push(*at);
            }
        }
    }
    let is_near = |(line, request): &(usize, usize)| {
        let entry = &entries[*line];
        let (from_ns, to_ns) = asked[*request].at_ns;
        let seen_ns = to_ns.saturating_sub(from_ns);
        let is_alike = |took: u64| took.abs_diff(seen_ns) <= ALIKE_NS.max(seen_ns / 4);
        let far_ns = entry.at_ns.abs_diff(to_ns);
        far_ns <= LATE_NS.saturating_add(entry.resolution_ns)
            && entry.took_ns.is_none_or(is_alike)
            && may_describe(entry, &asked[*request])
    };
    let mut found = Vec::new();
    for [lines, requests] in left.into_values() {
        let pairs: Vec<(usize, usize)> = lines.iter().copied().zip(requests.clone()).collect();
        if lines.len() == requests.len() && pairs.iter().all(is_near) {
            found.extend(pairs);
        }
    }
    found
}

/// Whether a request has the status and the query of an entry with its method and path.
fn may_describe(entry: &AccessLogEntry, request: &CapturedRequest) -> bool {
    let status = request.status.split(' ').next().unwrap_or_default();
    let path = request.name.split_once(' ').map_or("", |(_, path)| path);
    let is_same = !entry.path.contains('?') || entry.path.starts_with(path);
    status == entry.status && is_same
}

/// The requests that a log entry may describe. `all` holds those with its method and path, ordered by their ends.
fn near(entry: &AccessLogEntry, all: &[usize], asked: &[CapturedRequest]) -> Vec<usize> {
    let to = entry.at_ns.saturating_add(NEAR_NS.max(entry.resolution_ns));
    let from = entry.at_ns.saturating_sub(NEAR_NS);
    let is_it = |at: &&usize| may_describe(entry, &asked[**at]);
    let first = all.partition_point(|at| asked[*at].at_ns.1 < from);
    let ends = all[first..]
        .iter()
        .take_while(|at| asked[**at].at_ns.1 <= to)
        .filter(is_it)
        .take(MOST_NEAR + 1);
    let mut found: Vec<usize> = ends.copied().collect();
    if !entry.is_end {
        // The entry's time may be the request's start, and the request may have ended much later.
        let begins = all[first..]
            .iter()
            .filter(|at| (from..=to).contains(&asked[**at].at_ns.0))
            .filter(is_it);
        found.extend(
            begins
                .filter(|at| asked[**at].at_ns.1 > to)
                .take(MOST_NEAR + 1),
        );
    }
    found
}

/// The logged time of a matched line, moved as close to the end of the request as the log's resolution allows.
#[must_use]
pub fn moment(entry: &AccessLogEntry, request: &CapturedRequest) -> u64 {
    let last = entry
        .at_ns
        .saturating_add(entry.resolution_ns.saturating_sub(1));
    request.at_ns.1.clamp(entry.at_ns, last)
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
