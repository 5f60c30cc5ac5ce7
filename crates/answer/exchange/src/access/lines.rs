//! One line of a server's log, in NCSA's form or as JSON.

use super::AccessLogEntry;
use crate::moment::{fraction_ns, of_rfc3339, since_1970};
use serde_json::Value as Json;
use stackline_dissect::left_out::{Bound, LeftOut};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
/// Objects within objects that are looked into.
const DEEPEST: usize = Bound::Within.most();

/// `ADDRESS IDENT USER [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "REFERER" "AGENT" 0.021 0.020`.
pub(super) fn of_ncsa(line: &str) -> Option<AccessLogEntry> {
    let (_, rest) = line.split_once('[')?;
    let (time, rest) = rest.split_once(']')?;
    let (at_ns, resolution_ns) = moment(time)?;
    let words = words(rest);
    let request = words
        .iter()
        .position(|(word, quoted)| *quoted && word.contains(' '))?;
    let (method, path) = asked(&words[request].0)?;
    let (status, _) = words.get(request + 1)?;
    if status.len() != 3 || !status.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Behind the status the size, and in the combined form the referer and the agent.
    let further = words[request + 1..].iter().skip(2);
    let mut times = further.filter_map(|(word, _)| named_time(word));
    let mut entry = AccessLogEntry {
        at_ns,
        resolution_ns,
        method,
        path,
        status: status.clone(),
        ..AccessLogEntry::default()
    };
    let (mut own, mut upstream) = (None, None);
    for (name, ns) in times.by_ref() {
        let behind = name.starts_with('u') || name.contains("upstream");
        let unnamed = name.is_empty();
        match () {
            () if own.is_none() && (unnamed || !behind) => own = Some(ns),
            () if upstream.is_none() && (unnamed || behind) => upstream = Some(ns),
            () => {}
        }
    }
    (entry.took_ns, entry.upstream_ns) = (own, upstream);
    // nginx writes a line when the request is over, Apache the time when it came.
    entry.is_end = own.is_some();
    line.clone_into(&mut entry.line);
    Some(entry)
}

/// `GET /a HTTP/1.1`.
fn asked(request: &str) -> Option<(String, String)> {
    let mut parts = request.split(' ');
    let (method, path) = (parts.next()?, parts.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method.then(|| (method.to_owned(), path.to_owned()))
}

/// Words between spaces, and those in quotes, within which a backslash hides the next letter.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        let (mut word, quoted) = (String::new(), letter == '"');
        let mut inside = quoted;
        if !quoted {
            word.push(letter);
        }
        while let Some(next) = letters.next() {
            match next {
                '"' if quoted => break,
                '"' => inside = !inside,
                '\\' if inside => word.extend(letters.next()),
                next if !inside && next.is_whitespace() => break,
                next => word.push(next),
            }
        }
        words.push((word, quoted));
    }
    words
}

/// `0.021`, `rt=0.021` or `request_time=0.021`: seconds with a fraction.
fn named_time(word: &str) -> Option<(&str, u64)> {
    let (name, value) = word.rsplit_once(['=', ':']).unwrap_or(("", word));
    // Of several servers the last one answered.
    let value = value.rsplit(", ").next()?.trim_end_matches(',');
    let (whole, fraction) = value.split_once('.')?;
    let whole: u64 = whole
        .parse()
        .ok()
        .filter(|_| whole.bytes().all(|byte| byte.is_ascii_digit()))?;
    let fraction = u64::try_from(fraction_ns(fraction).filter(|_| !fraction.is_empty())?).ok()?;
    Some((name, whole.checked_mul(SECOND)?.checked_add(fraction)?))
}

/// A moment in any of the forms that logs have, and how long the moment is that it names.
fn moment(text: &str) -> Option<(u64, u64)> {
    let fraction = |text: &str| {
        let digits = text.split_once('.').map_or(0, |(_, behind)| {
            behind.bytes().take_while(u8::is_ascii_digit).count()
        });
        SECOND / 10_u64.pow(digits.min(9) as u32)
    };
    if let Some(ns) = of_rfc3339(text) {
        return Some((u64::try_from(ns).ok()?, fraction(text)));
    }
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(
            whole.parse().ok()?,
            u64::try_from(fraction_ns(behind).unwrap_or(0)).ok()?,
            fraction(text),
        );
    }
    Some((ncsa_moment(text)?, SECOND))
}

/// Seconds since 1970, or thousandths, millionths, billionths of them, by how many there are.
fn number(whole: u64, fraction_ns: u64, resolution_ns: u64) -> Option<(u64, u64)> {
    let unit = match whole {
        0..100_000_000_000 => {
            return Some((
                whole.checked_mul(SECOND)?.checked_add(fraction_ns)?,
                resolution_ns,
            ));
        }
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    Some((whole.checked_mul(unit)?, unit))
}

/// `10/Oct/2000:13:55:36 -0700`.
fn ncsa_moment(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (time, zone) = text.split_once(' ')?;
    let mut parts = time.split(['/', ':']);
    let mut next = || parts.next();
    let number = |text: Option<&str>| text?.parse::<u16>().ok().map(i128::from);
    let day = number(next())?;
    let month = next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as i128 + 1;
    let (year, hour, minute, second) = (
        number(next())?,
        number(next())?,
        number(next())?,
        number(next())?,
    );
    let (sign, zone) = zone
        .strip_prefix('-')
        .map_or((1, zone.trim_start_matches('+')), |zone| (-1, zone));
    let zone = number(Some(zone).filter(|zone| zone.len() == 4))?;
    let ahead = sign * ((zone / 100) * 60 + zone % 100) * 60_000_000_000;
    u64::try_from(since_1970([year, month, day], [hour, minute, second])? - ahead).ok()
}

/// An object with time, method, path and status under one of their usual names, however deep.
pub(super) fn of_json(line: &str, left_out: &mut LeftOut) -> Option<AccessLogEntry> {
    let object: Json = serde_json::from_str(line).ok()?;
    let mut fields = BTreeMap::new();
    flatten(&object, "", 0, &mut fields, left_out);
    let said = |names: &[&str]| {
        names.iter().find_map(|name| {
            let whole = fields.get(*name);
            whole.or_else(|| {
                let last = format!(".{name}");
                fields
                    .iter()
                    .find(|(field, _)| field.ends_with(&last))
                    .map(|(_, value)| value)
            })
        })
    };
    let time = said(&[
        "time",
        "timestamp",
        "@timestamp",
        "ts",
        "time_iso8601",
        "msec",
        "time_local",
    ])?;
    let (at_ns, resolution_ns) = moment(time)?;
    let request = said(&["request"]).and_then(|request| asked(request));
    let method = said(&["method", "request_method", "verb"]).cloned();
    let path = said(&["path", "uri", "request_uri", "url", "target"]).cloned();
    let (method, path) = method.zip(path).or(request)?;
    let status = said(&["status", "status_code", "response_code", "code"])?.clone();
    const TOOK: [&str; 14] = [
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
    ];
    let took = TOOK.iter().find_map(|name| Some((*name, said(&[name])?)));
    let upstream = said(&["upstream_response_time"]).and_then(|text| duration("", text));
    let path = path.split_once("://").map_or(path.as_str(), |(_, rest)| {
        rest.find('/').map_or("/", |at| &rest[at..])
    });
    Some(AccessLogEntry {
        at_ns,
        resolution_ns,
        is_end: true,
        method,
        path: path.to_owned(),
        status,
        took_ns: took.and_then(|(name, text)| duration(name, text)),
        upstream_ns: upstream,
        level: said(&["level", "severity"]).cloned().unwrap_or_default(),
        line: line.to_owned(),
    })
}

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

/// A time by its name's end or its own (`duration_ms`, `21ms`); without either seconds.
fn duration(name: &str, text: &str) -> Option<u64> {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (value, own) = text.split_at(digits);
    let unit = if own.is_empty() {
        name.rsplit_once('_').map_or("", |(_, unit)| unit)
    } else {
        own
    };
    let scale = match unit {
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        _ => 1e9,
    };
    let ns = value.parse::<f64>().ok()? * scale;
    (ns.is_finite() && (0.0..1e18).contains(&ns)).then(|| ns.round() as u64)
}
