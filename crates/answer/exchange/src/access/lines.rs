//! Reads a line of an access log that is text: NCSA's format as nginx, Apache, Traefik and others write it, and the formats of haproxy
//! and Envoy.

use super::entry::{AccessLogEntry, asked};
use super::times::{SECOND, digits, moment, seconds, with_unit};

/// Parts of names for durations in nginx that cover only a part of the time of the servers behind it.
const PARTS_OF_UPSTREAM: [&str; 5] = ["uct", "uht", "connect", "header", "queue"];

/// A bare number in brackets that would be a time before 1973 is something else, such as a process id.
const EARLIEST_NS: u64 = 100_000_000 * SECOND;

/// The durations in a line.
#[derive(Default)]
struct LineTimes {
    took_ns: Option<u64>,
    upstream_ns: Option<u64>,
    /// A duration without a unit, read as if it were in seconds, ns.
    number_ns: Option<u64>,
    /// Whether the logged time is, or may be, when the request came.
    is_begin: bool,
}

/// Reads a line, or says why it does not describe a request: `... [10/Oct/2000:13:55:36 -0700] ... "GET /a HTTP/1.0" 200 2326 "REFERER"
/// "AGENT" 0.021 0.020`.
pub(super) fn read_text_line(line: &str) -> Result<AccessLogEntry, &'static str> {
    // The header of syslog may have brackets too.
    let brackets = line.match_indices('[').find_map(|(at, _)| {
        let (time, rest) = line[at + 1..].split_once(']')?;
        // A process id is not a time; a written date is one, however early.
        let is_number = time
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let moment = moment(time).filter(|(at_ns, _)| !is_number || *at_ns >= EARLIEST_NS)?;
        Some((moment, rest))
    });
    let ((at_ns, resolution_ns), rest) = brackets.ok_or("no known time format")?;
    let words = words(rest);
    let found = words
        .iter()
        .enumerate()
        .filter(|(_, (_, quoted))| *quoted)
        .find_map(|(at, (word, _))| Some((at, asked(word)?)));
    let (request, (method, path)) = found.ok_or("no method or path")?;
    let (before, behind) = (&words[..request], &words[request + 1..]);
    let is_status = |word: &str| word.len() == 3 && digits(word).is_some();
    let status = behind.first().filter(|(word, _)| is_status(word));
    let (status, times) = match status {
        Some((status, _)) => {
            let of_envoy = line
                .starts_with('[')
                .then(|| times_of_envoy(behind))
                .flatten();
            (
                status,
                of_envoy.unwrap_or_else(|| times_behind(&behind[1..])),
            )
        }
        None => times_of_haproxy(before)
            .filter(|(status, _)| is_status(status))
            .ok_or("no status")?,
    };
    Ok(AccessLogEntry {
        at_ns,
        resolution_ns,
        // nginx writes the line when the request has ended; others log the time when it came.
        is_end: times.took_ns.is_some() && !times.is_begin,
        method,
        path,
        status: status.clone(),
        took_ns: times.took_ns,
        upstream_ns: times.upstream_ns,
        number_ns: times.number_ns,
        level: String::new(),
        line: line.to_owned(),
    })
}

/// The durations behind the status. The first word is the size; the combined format adds referer and agent, then come fields that the
/// administrator chose.
fn times_behind(words: &[(String, bool)]) -> LineTimes {
    let mut times = LineTimes::default();
    let (mut own, mut upstream) = (None, None);
    for (word, quoted) in joined_lists(words.get(1..).unwrap_or_default()) {
        let (name, value) = named(&word);
        let is_part = PARTS_OF_UPSTREAM.iter().any(|part| name.contains(part));
        let is_behind = name.starts_with('u') || name.contains("upstream");
        let unnamed = name.is_empty();
        match seconds(value) {
            Some(None) if unnamed && own.is_some() && upstream.is_none() => upstream = Some(None),
            Some(sum @ Some(_)) if !is_part => match () {
                () if own.is_none() && (unnamed || !is_behind) => own = sum,
                () if upstream.is_none() && (unnamed || is_behind) => upstream = Some(sum),
                () => {}
            },
            Some(_) => {}
            None if quoted || is_part || is_behind => {}
            None => times.take_without_fraction(value),
        }
    }
    times.upstream_ns = upstream.flatten();
    if own.is_some() {
        (times.took_ns, times.is_begin) = (own, false);
    }
    if times.took_ns.is_some() {
        times.number_ns = None;
    }
    // A server behind this one cannot take longer, so the two were written in the other order.
    if own < times.upstream_ns && own.is_some() {
        std::mem::swap(&mut times.took_ns, &mut times.upstream_ns);
    }
    times
}

impl LineTimes {
    /// Takes `21ms` (Traefik), a whole number (Apache's `%D`, `%T`), or both of Apache's (`0/21034`).
    fn take_without_fraction(&mut self, word: &str) {
        let both = word
            .split_once('/')
            .and_then(|(s, us)| Some((digits(s)?, digits(us)?)));
        let number = digits(word).and_then(|number| number.checked_mul(SECOND));
        if let Some(ns) = with_unit(word).or(both.and_then(|(_, us)| us.checked_mul(1000))) {
            (self.took_ns, self.is_begin) = (self.took_ns.or(Some(ns)), true);
        } else if self.number_ns.is_none() {
            (self.number_ns, self.is_begin) = (number, self.is_begin || number.is_some());
        }
    }
}

/// Envoy's default format: status, flags and details, then bytes received and sent, the duration in ms and that of the server behind it
/// in ms.
fn times_of_envoy(behind: &[(String, bool)]) -> Option<LineTimes> {
    let is_number = |(word, quoted): &(String, bool)| !quoted && digits(word).is_some();
    let found = behind.get(1..)?.windows(4).find(|four| {
        let last = &four[3];
        four[..3].iter().all(is_number) && (is_number(last) || last.0 == "-")
    })?;
    let ms = |(word, _): &(String, bool)| digits(word)?.checked_mul(1_000_000);
    Some(LineTimes {
        took_ns: ms(&found[2]),
        upstream_ns: ms(&found[3]),
        is_begin: true,
        ..LineTimes::default()
    })
}

/// haproxy's HTTP log: behind frontend and server stands `TR/Tw/Tc/Tr/Ta` in ms, with -1 for a part that did not happen, then the status.
fn times_of_haproxy(before: &[(String, bool)]) -> Option<(&String, LineTimes)> {
    let parts = |word: &str| -> Option<[Option<u64>; 5]> {
        let parts: Vec<Option<u64>> = word
            .split('/')
            .map(|part| match part {
                "-1" => Some(None),
                part => digits(part.trim_start_matches('+')).map(Some),
            })
            .collect::<Option<_>>()?;
        parts.try_into().ok()
    };
    let at = before.iter().position(|(word, _)| parts(word).is_some())?;
    let [read, queued, connected, _, all] = parts(&before[at].0)?;
    let (status, _) = before.get(at + 1)?;
    let ns = |ms: u64| ms.checked_mul(1_000_000);
    // The time from connecting to the server until the end.
    let upstream = all
        .zip(connected)
        .and_then(|(all, _)| all.checked_sub(read? + queued?));
    let times = LineTimes {
        took_ns: all.and_then(ns),
        upstream_ns: upstream.and_then(ns),
        is_begin: true,
        ..LineTimes::default()
    };
    Some((status, times))
}

/// Splits `rt=0.021` and `rt:0.021` into name and value; without a name, everything is the value.
fn named(word: &str) -> (String, &str) {
    let is_name = |name: &str| name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let parts = word.split_once('=').or_else(|| word.split_once(':'));
    parts.filter(|(name, _)| is_name(name)).map_or_else(
        || (String::new(), word),
        |(name, value)| (name.to_lowercase(), value),
    )
}

/// Joins words that belong to one list (`0.010, 0.080`, `0.010 : 0.080`).
fn joined_lists(words: &[(String, bool)]) -> Vec<(String, bool)> {
    let mut all: Vec<(String, bool)> = Vec::new();
    for (word, quoted) in words {
        let is_open = |(before, quoted): &(String, bool)| !quoted && before.ends_with([',', ':']);
        match all.last_mut() {
            Some(before) if !quoted && (word == ":" || is_open(before)) => {
                before.0.push_str(word);
            }
            _ => all.push((word.clone(), *quoted)),
        }
    }
    all
}

/// Splits a text into words between spaces and quoted words, in which a backslash escapes the next character. `true` marks quoted words.
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
