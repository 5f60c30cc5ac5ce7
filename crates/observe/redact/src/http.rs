//! Redacts HTTP request targets and URLs: keeps the path up to `;`, `?` or `#` (also percent-encoded) and the names of the query's
//! parameters. Scheme, user information, host, matrix parameters, parameter values and fragments are dropped, and so are path segments
//! that look like tokens or personal addresses.

use crate::name::{RedactedName, printable};
use crate::{LEFT_OUT, LONGEST_NAME, bounded, secret_words};

/// The longest method in bytes.
const LONGEST_METHOD: usize = 24;
/// The most query parameters that are kept.
const MOST_PARAMETERS: usize = 16;
/// The longest name of a query parameter in bytes.
const LONGEST_PARAMETER: usize = 32;

/// Redacts a request: `GET /item/7?key=…`. The target of CONNECT, a host and a port, is kept.
#[must_use]
pub fn redact_request(method: &[u8], target: &[u8]) -> RedactedName {
    // `-` as in M-SEARCH and VERSION-CONTROL.
    let is_method = (1..=LONGEST_METHOD).contains(&method.len())
        && method
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    let kept = match method {
        // Its target is only an authority (RFC 9112, section 3.2.3).
        b"CONNECT" => format!("CONNECT {}", redact_authority(target)),
        _ if is_method => format!(
            "{} {}",
            String::from_utf8_lossy(method),
            redact_target(target)
        ),
        _ => format!("{LEFT_OUT} {}", redact_target(target)),
    };
    RedactedName::new(&kept, &printable(&[method, b" ", target].concat()))
}

/// Redacts a gRPC call: `/pkg.Service/Method`.
#[must_use]
pub fn redact_call(target: &[u8]) -> RedactedName {
    RedactedName::new(&redact_target(target), &printable(target))
}

/// Redacts a request target or a URL (RFC 3986; RFC 9112, 3.2).
#[must_use]
pub fn redact_target(target: &[u8]) -> String {
    let (target, cut) = bounded(target);
    let mut out = String::new();
    match path_of(target) {
        Some(rest) => path(rest, cut, &mut out),
        // The target of OPTIONS for the whole server (RFC 9112, section 3.2.4).
        None if target == b"*" => out.push('*'),
        None => out.push(LEFT_OUT),
    }
    out.truncate(out.floor_char_boundary(LONGEST_NAME));
    out
}

/// Whether the value of a header is kept: only `traceparent` (W3C Trace Context), which has two ids of a trace.
#[must_use]
pub fn is_kept_header(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent")
}

/// Redacts a URL that is a text.
#[must_use]
pub fn redact_url(url: &str) -> String {
    redact_target(url.as_bytes())
}

/// Redacts a query without its question mark: `a=…&b=…`.
#[must_use]
pub fn redact_query(query: &[u8]) -> String {
    let (query, _) = bounded(query);
    let mut out = String::new();
    parameters(query, &mut out);
    out.truncate(out.floor_char_boundary(LONGEST_NAME));
    out
}

/// Keeps `host:port` and drops user information.
#[must_use]
pub fn redact_authority(authority: &[u8]) -> String {
    let (authority, cut) = bounded(authority);
    let host = authority
        .rsplit(|byte| *byte == b'@')
        .next()
        .unwrap_or_default();
    let fits = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
    };
    match std::str::from_utf8(host) {
        Ok(host) if !cut && !host.is_empty() && host.bytes().all(|byte| fits(&byte)) => {
            host.to_owned()
        }
        _ => LEFT_OUT.to_string(),
    }
}

/// The path and what follows it, behind the scheme and the authority if there are any.
fn path_of(target: &[u8]) -> Option<&[u8]> {
    if target.first() == Some(&b'/') {
        return Some(target);
    }
    let scheme = target
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let rest = target[scheme.count()..].strip_prefix(b"://")?;
    // Browsers take `\` as `/`.
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'\\' | b'?' | b'#' | b';'))
        .unwrap_or(rest.len());
    Some(&rest[end..])
}

/// Writes the redacted path and query.
fn path(rest: &[u8], cut: bool, out: &mut String) {
    // First: a `?` behind it is a part of the fragment (RFC 3986, section 3.5).
    let fragment = rest.iter().position(|byte| *byte == b'#');
    let rest = &rest[..fragment.unwrap_or(rest.len())];
    let question = rest.iter().position(|byte| *byte == b'?');
    let (path, query) = (
        &rest[..question.unwrap_or(rest.len())],
        question.map(|at| &rest[at + 1..]),
    );
    let goes_on = cut && question.is_none() && fragment.is_none();
    match path {
        [] => out.push('/'),
        [b';', ..] => out.extend(['/', ';', LEFT_OUT]),
        _ => segments(path, goes_on, out),
    }
    if let Some(query) = query {
        out.push('?');
        parameters(query, out);
    }
}

/// Writes the segments of a path up to matrix parameters.
fn segments(path: &[u8], goes_on: bool, out: &mut String) {
    let semicolon = path.iter().position(|byte| *byte == b';');
    let plain = &path[..semicolon.unwrap_or(path.len())];
    let mut parts = plain.split(|byte| matches!(byte, b'/' | b'\\')).peekable();
    if plain
        .first()
        .is_some_and(|byte| matches!(byte, b'/' | b'\\'))
    {
        parts.next();
    }
    while let Some(part) = parts.next() {
        out.push('/');
        // What was cut off cannot be judged: it may be the beginning of a secret.
        let is_cut = goes_on && semicolon.is_none() && parts.peek().is_none();
        if is_cut {
            out.push(LEFT_OUT);
        } else if !segment(part, out) {
            return;
        }
        if out.len() > LONGEST_NAME {
            return;
        }
    }
    if semicolon.is_some() {
        out.extend([';', LEFT_OUT]);
    }
}

/// Writes a segment up to what may begin a value; returns whether the path may continue behind it.
fn segment(part: &[u8], out: &mut String) -> bool {
    let mut end = part.len();
    let mut rest = "";
    let mut goes_on = true;
    for (at, byte) in part.iter().enumerate() {
        match byte {
            b'=' => (end, rest) = (at, "=…"),
            b'%' => match encoded(&part[at + 1..]) {
                // An encoded delimiter of the path or of what follows: the rest may be anything.
                Some(b';' | b'?' | b'#') => (end, rest, goes_on) = (at, "…", false),
                Some(
                    b' ' | b'(' | b')' | b',' | b'!' | b'\'' | b'+' | b'~' | b'-' | b'.' | b'_',
                ) => continue,
                Some(letter) if letter.is_ascii_alphanumeric() || letter >= 0x80 => continue,
                Some(b'/' | b':') => (end, rest) = (at, "…"),
                _ => (end, rest, goes_on) = (at, "…", false),
            },
            byte if byte.is_ascii_graphic() => continue,
            _ => (end, rest) = (at, "…"),
        }
        break;
    }
    let text = String::from_utf8_lossy(&part[..end]);
    // The beginning of a personal address that was cut off is personal too.
    let has = |what: &[u8]| part.windows(what.len()).any(|some| some == what);
    let is_address = has(b"@") || has(b"%40") || has(b"%2540");
    if secret_words::is_opaque(&decoded(&text)) || is_address {
        out.push(LEFT_OUT);
    } else {
        out.push_str(&text);
        out.push_str(rest);
    }
    goes_on
}

/// The byte that two hexadecimal digits encode.
fn encoded(digits: &[u8]) -> Option<u8> {
    let digits = digits
        .get(..2)
        .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Decodes percent-encoded letters and digits, so that a token cannot hide behind them.
fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        match encoded(behind.as_bytes()) {
            Some(letter) if letter.is_ascii_alphanumeric() => {
                out.push(char::from(letter));
                rest = &behind[2..];
            }
            _ => {
                out.push('%');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Writes the names of a query's parameters.
fn parameters(query: &[u8], out: &mut String) {
    let query = query.split(|byte| *byte == b'#').next().unwrap_or_default();
    if query.is_empty() {
        return;
    }
    // Some servers take `;` for `&` (HTML 4.01, appendix B.2.2).
    for (number, pair) in query.split(|byte| matches!(byte, b'&' | b';')).enumerate() {
        if number > 0 {
            out.push('&');
        }
        if number == MOST_PARAMETERS || out.len() > LONGEST_NAME {
            return out.push(LEFT_OUT);
        }
        let key = pair
            .iter()
            .position(|byte| *byte == b'=')
            .map(|end| &pair[..end]);
        if let Some(key) = key.filter(|key| is_parameter(key)) {
            out.push_str(&String::from_utf8_lossy(key));
            out.push('=');
        }
        out.push(LEFT_OUT);
    }
}

fn is_parameter(key: &[u8]) -> bool {
    let fits = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$')
    };
    (1..=LONGEST_PARAMETER).contains(&key.len())
        && key.iter().all(fits)
        && std::str::from_utf8(key).is_ok_and(|key| !secret_words::is_opaque(key))
}
