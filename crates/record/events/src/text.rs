//! The text form, as NetLogger (Tierney et al. 1996, section 3.1) printed it:
//! `KEYWORD; host; seconds; nanoseconds; data; data; ...`
//!
//! What is written reads back equal. Characters that would not (a semicolon, a control character, a blank at an end of
//! a field, a `#` that would begin a comment) are written as `%` and two hexadecimal digits, such as `%3B` for a
//! semicolon. A `%` is written as `%25` only where it would be read as such a code; elsewhere `%` is written and read
//! as it is.

mod line;

pub use line::{Lines, line, write_line};

use crate::value::{EmittedEvent, EventEmitter, EventValue};
use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// Characters of a malformed number that a message shows.
const SHOWN: usize = 80;

/// The longest line that is accepted, in bytes.
pub const LONGEST: u64 = 1 << 20;

/// An event in the text form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextEvent {
    /// The keyword; its first part names the program, as in `NET_DROP`.
    pub keyword: String,
    /// The host.
    pub host: String,
    /// The time, ns, from the origin of the log's clock.
    pub at_ns: u64,
    /// The data, in the order that the catalogue gives for the keyword.
    pub data: Vec<String>,
}

impl TextEvent {
    /// The event's line, without a line break.
    ///
    /// # Errors
    /// One sentence, when keyword or host is empty.
    pub fn line(&self) -> Result<String, String> {
        for (what, field) in [("keyword", &self.keyword), ("host", &self.host)] {
            if field.is_empty() {
                return Err(format!("an event has an empty {what}"));
            }
        }
        Ok(self.to_string())
    }

    /// Passes the event to an emitter.
    pub fn emit(&self, emit: &mut EventEmitter<'_>) {
        let values: Vec<EventValue<'_>> = self
            .data
            .iter()
            .map(|field| EventValue::parse(field))
            .collect();
        emit(&EmittedEvent {
            host: &self.host,
            keyword: &self.keyword,
            at_ns: self.at_ns,
            values: &values,
        });
    }

    /// Parses a line without its line break. Blanks around fields and a semicolon behind the last field are ignored.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn parse(line: &str) -> Result<Self, Wrong> {
        let line = line.trim_matches(BLANK);
        let mut fields = line
            .strip_suffix(';')
            .unwrap_or(line)
            .split(';')
            .map(|field| field.trim_matches(BLANK))
            .peekable();
        let mut next = |what: &'static str| match fields.next() {
            Some(field) if !field.is_empty() => Ok(field),
            Some(_) if fields.peek().is_some() => Err(Wrong::Empty(what)),
            _ => Err(Wrong::Short(what)),
        };
        let (keyword, host) = (
            unescape_field(next("keyword")?).into_owned(),
            unescape_field(next("host")?).into_owned(),
        );
        let (seconds, nanos) = (
            number(next("number of seconds")?)?,
            number(next("number of nanoseconds")?)?,
        );
        if nanos >= NANOS {
            return Err(Wrong::Nanoseconds(nanos));
        }
        let at_ns = seconds
            .checked_mul(NANOS)
            .and_then(|whole| whole.checked_add(nanos));
        let at_ns = at_ns.ok_or(Wrong::Seconds(seconds))?;
        Ok(Self {
            keyword,
            host,
            at_ns,
            data: fields
                .map(|field| unescape_field(field).into_owned())
                .collect(),
        })
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The line ends before this field.
    Short(&'static str),
    /// The field is empty, though others follow it.
    Empty(&'static str),
    /// The field is not a number.
    Number(String),
    /// The number of nanoseconds is a second or more.
    Nanoseconds(u64),
    /// The number of seconds is too large for a time in ns.
    Seconds(u64),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(what) | Self::Empty(what) => {
                write!(
                    f,
                    "the {what} is missing; expected `KEYWORD; host; seconds; nanoseconds; data; ...`"
                )
            }
            Self::Number(text) => write!(
                f,
                "`{}` is not a whole number in range",
                text.escape_debug()
            ),
            Self::Nanoseconds(nanos) => write!(
                f,
                "the nanoseconds must be less than one second, but are {nanos}"
            ),
            Self::Seconds(seconds) => write!(f, "{seconds} s is more than 584 years"),
        }
    }
}

impl std::error::Error for Wrong {}

impl fmt::Display for TextEvent {
    /// Writes the line; [`TextEvent::line`] also checks that it reads back equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keyword = match self.keyword.strip_prefix('#') {
            Some(rest) => Cow::Owned(format!("%23{}", escape_field(rest))),
            None => escape_field(&self.keyword),
        };
        write!(
            f,
            "{keyword}; {}; {}; {}",
            escape_field(&self.host),
            self.at_ns / NANOS,
            self.at_ns % NANOS
        )?;
        self.data
            .iter()
            .try_for_each(|field| write!(f, "; {}", escape_field(field)))?;
        // An empty last field needs a semicolon behind it, otherwise it would not be read.
        if self.data.last().is_some_and(String::is_empty) {
            f.write_str(";")
        } else {
            Ok(())
        }
    }
}

impl std::str::FromStr for TextEvent {
    type Err = Wrong;
    fn from_str(line: &str) -> Result<Self, Wrong> {
        Self::parse(line)
    }
}

/// The characters that may surround fields.
const BLANK: [char; 2] = [' ', '\t'];

/// Whether a character may be written as its code.
fn special(c: char) -> bool {
    matches!(c, ';' | '%' | '#' | ' ') || c.is_ascii_control()
}

/// A field in its written form.
#[must_use]
pub fn escape_field(field: &str) -> Cow<'_, str> {
    let edges = field.trim_matches(BLANK).len() != field.len();
    if !edges && !field.contains(|c: char| matches!(c, ';' | '%') || c.is_control()) {
        return Cow::Borrowed(field);
    }
    let mut text = String::with_capacity(field.len() + 8);
    let last = field.len();
    let (begin, end) = (
        last - field.trim_start_matches(BLANK).len(),
        field.trim_end_matches(BLANK).len(),
    );
    for (at, c) in field.char_indices() {
        let blank = BLANK.contains(&c) && (at < begin || at >= end);
        let code = c == ';'
            || c.is_ascii_control()
            || blank
            || (c == '%' && decoded(&field[at..]).is_some());
        if code {
            text.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

/// The field that a written form stands for.
#[must_use]
pub fn unescape_field(field: &str) -> Cow<'_, str> {
    if !field.contains('%') {
        return Cow::Borrowed(field);
    }
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(c) = rest.chars().next() {
        let (meant, length) = decoded(rest).map_or((c, c.len_utf8()), |meant| (meant, 3));
        text.push(meant);
        rest = &rest[length..];
    }
    Cow::Owned(text)
}

/// The character that a code (`%` and two digits) at the beginning of a text stands for, if characters of that kind
/// are written as codes.
fn decoded(text: &str) -> Option<char> {
    let digits = text.strip_prefix('%')?.get(..2)?;
    if !digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
    {
        return None;
    }
    let c = char::from(u8::from_str_radix(digits, 16).ok()?);
    special(c).then_some(c)
}

fn number(text: &str) -> Result<u64, Wrong> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| Wrong::Number(text.chars().take(SHOWN).collect()))
}

/// A line that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLineMistake {
    /// The name of the text that was read.
    pub name: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// What is wrong with the line.
    pub cause: String,
}

impl fmt::Display for EventLineMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, line {}, is not an event: {}",
            self.name, self.line, self.cause
        )
    }
}

impl std::error::Error for EventLineMistake {}

/// Reads events from text, one from each line. A malformed line gives a mistake, and reading goes on. Lines that are
/// empty or begin with `#` are skipped.
#[derive(Debug)]
pub struct EventTextReader<R> {
    from: R,
    name: String,
    line: u64,
    /// Whether the end was reached, or reading failed.
    ended: bool,
}

impl<R: BufRead> EventTextReader<R> {
    /// Reads from a text; `name` is its name in mistakes.
    pub fn new(from: R, name: &str) -> Self {
        Self {
            from,
            name: name.to_owned(),
            line: 0,
            ended: false,
        }
    }

    fn mistake(&self, cause: impl fmt::Display) -> EventLineMistake {
        EventLineMistake {
            name: self.name.clone(),
            line: self.line,
            cause: cause.to_string(),
        }
    }

    /// The event or the mistake of a line; `None` for a line that is skipped.
    fn event(&self, bytes: &[u8]) -> Option<Result<TextEvent, EventLineMistake>> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_end_matches(['\n', '\r']),
            Err(_) => return Some(Err(self.mistake("it is not UTF-8"))),
        };
        let passed = text.trim_matches(BLANK).is_empty() || text.starts_with('#');
        (!passed).then(|| TextEvent::parse(text).map_err(|cause| self.mistake(cause)))
    }
}

impl<R: BufRead> Iterator for EventTextReader<R> {
    type Item = Result<TextEvent, EventLineMistake>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        while !self.ended {
            bytes.clear();
            self.line += 1;
            // Reading ends after an error, or at a line that is too long.
            match std::io::Read::take(&mut self.from, LONGEST).read_until(b'\n', &mut bytes) {
                Ok(0) => self.ended = true,
                Ok(length) if length as u64 == LONGEST && !bytes.ends_with(b"\n") => {
                    self.ended = true;
                    return Some(Err(self.mistake("it is longer than 1 MiB")));
                }
                Ok(_) => {
                    if let Some(found) = self.event(&bytes) {
                        return Some(found);
                    }
                }
                Err(cause) => {
                    self.ended = true;
                    return Some(Err(self.mistake(cause)));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
