//! Generalises names of requests: numbers, UUIDs and digests become `:id` in a path and `*` in a cache key, and so does the number of a
//! numbered file, so that requests of one kind have one name.

use crate::findings::requests::ends_in_words::address;
use crate::findings::requests::request::TracedRequest;

/// Protocols of caches, whose requests are a command and a key.
const OF_KEYS: [&str; 2] = ["RESP", "memcached"];
/// The separators between the parts of a key.
const BETWEEN: [char; 6] = [':', '/', '|', ',', '{', '}'];
/// The separators between the words of a part.
const WITHIN: [char; 2] = ['.', '-'];
/// Stands for a part of a name that the trace left out because it may be secret or personal.
const LEFT_OUT: &str = "…";

/// The generalised name of a request, by protocol.
#[must_use]
pub fn generalise_request_name(protocol: &str, name: &str) -> String {
    if OF_KEYS.contains(&protocol) {
        generalise_command(name)
    } else {
        generalise_name(name)
    }
}

/// The generalised name of a request; for a connection that was not set up, `connect` and its address.
pub(crate) fn generalise_request(request: &TracedRequest) -> String {
    if request.is_unopened && request.name.is_empty() && request.port.is_some() {
        return format!("connect {}", address(request));
    }
    generalise_request_name(&request.protocol, &request.name)
}

/// A name with `:id` for each part of its path that is a number, a UUID or a digest, and `*` for the number of a file at its end.
fn generalise_name(name: &str) -> String {
    let Some((method, path)) = name
        .split_once(' ')
        .filter(|(_, path)| path.starts_with('/'))
    else {
        return name.to_owned();
    };
    let parts = path.split('/').map(|part| {
        let (own, rest) = part.split_at(part.find(['?', ' ', ';']).unwrap_or(part.len()));
        if is_id(own) {
            return format!(":id{rest}");
        }
        match numbered_file(own) {
            Some((series, ending)) => format!("{series}*.{ending}{rest}"),
            None => part.to_owned(),
        }
    });
    format!("{method} {}", parts.collect::<Vec<_>>().join("/"))
}

/// Of the name of a file in a numbered series, such as `img17.png` or `seg-0003.m4s`: what stands before its number, and its ending.
fn numbered_file(part: &str) -> Option<(&str, &str)> {
    let (stem, ending) = part.rsplit_once('.')?;
    let series = stem.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_ending = ending.len() <= 5
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_ending && series.len() < stem.len()).then_some((series, ending))
}

/// Whether a part of a name is a number, a UUID or a digest.
fn is_id(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = part
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !part.is_empty() && (digits == part.len() || (is_hex && part.len() >= 8 && digits > 0))
}

/// A command of a cache with its key generalised: the key is the last word before `, blocking`.
fn generalise_command(name: &str) -> String {
    let (command, waits) = name
        .find(", blocking")
        .map_or((name, ""), |at| name.split_at(at));
    match command.rsplit_once(' ') {
        Some((verb, key)) => format!("{verb} {}{waits}", generalise_key(key)),
        None => name.to_owned(),
    }
}

/// A key with `*` for each part that is an id or was left out, and for a number at its very end.
fn generalise_key(key: &str) -> String {
    let mut out = String::new();
    let mut parts = key.split_inclusive(BETWEEN).peekable();
    while let Some(part) = parts.next() {
        let own = part.trim_end_matches(BETWEEN);
        if is_of_one(own) {
            out.push('*');
        } else {
            let is_last = parts.peek().is_none();
            let mut words = own.split_inclusive(WITHIN).peekable();
            while let Some(word) = words.next() {
                generalise_word(word, is_last && words.peek().is_none(), &mut out);
            }
        }
        out.push_str(&part[own.len()..]);
    }
    out
}

fn generalise_word(word: &str, is_last: bool, out: &mut String) {
    let own = word.trim_end_matches(WITHIN);
    let name = own.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match () {
        () if is_of_one(own) => out.push('*'),
        () if is_last && name.len() < own.len() => {
            out.push_str(name);
            out.push('*');
        }
        () => out.push_str(own),
    }
    out.push_str(&word[own.len()..]);
}

fn is_of_one(part: &str) -> bool {
    part == LEFT_OUT || is_id(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_one_request_alone_counts_as_one() {
        for (name, template) in [
            ("GET /item/17", "GET /item/:id"),
            ("GET /item/17/parts?q=…", "GET /item/:id/parts?q=…"),
            ("GET /u/123e4567-e89b-12d3-a456-426614174000", "GET /u/:id"),
            ("GET /deadbeef01", "GET /:id"),
            ("GET /decade/cafe", "GET /decade/cafe"),
            ("GET /v1/17?x", "GET /v1/:id?x"),
            ("GET /p1.html", "GET /p*.html"),
            ("GET /v/seg-0003.m4s?t=…", "GET /v/seg-*.m4s?t=…"),
            ("GET /7.png", "GET /*.png"),
            ("GET /jquery-3.7.min.js", "GET /jquery-3.7.min.js"),
            ("GET /v2.1", "GET /v2.1"),
            (
                "SELECT … FROM t WHERE id = ?",
                "SELECT … FROM t WHERE id = ?",
            ),
        ] {
            assert_eq!(generalise_name(name), template, "{name}");
        }
    }

    #[test]
    fn keys_of_one_kind_are_one_name() {
        for (name, template) in [
            ("SET k:0", "SET k:*"),
            ("SET k:17", "SET k:*"),
            ("SET k:…", "SET k:*"),
            ("GET user:7:name", "GET user:*:name"),
            (
                "HGET session:550e8400-e29b-41d4-a716-446655440000",
                "HGET session:*",
            ),
            ("GET page17", "GET page*"),
            ("GET v1:config", "GET v1:config"),
            ("INCR hits", "INCR hits"),
            ("PING", "PING"),
            ("BLPOP queue:3, blocking", "BLPOP queue:*, blocking"),
            ("CONFIG GET", "CONFIG GET"),
            ("get a/17/b", "get a/*/b"),
            ("OBJECT ENCODING k:1", "OBJECT ENCODING k:*"),
            ("GET 42", "GET *"),
        ] {
            assert_eq!(generalise_command(name), template, "{name}");
        }
    }
}
