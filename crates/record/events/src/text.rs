//! The text form, as NetLogger (Tierney et al. 1996, section 3.1) printed it:
//! `KEYWORD; host; seconds; nanoseconds; data; data; ...`
//!
//! What is written reads back equal. What would not (a semicolon, a control character, a blank at an end of a field, a `#`
//! that would begin a comment) is written as `%` and two hexadecimal digits, `%3B` for a semicolon; a `%` is written as
//! `%25` only where it would be read as one of these. Other text with `%` in it stays as it is, both ways.

mod line;

pub use line::{Lines, line, write_line};

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

const NANOS: u64 = 1_000_000_000;

/// Characters of a wrong number that a message shows.
const SHOWN: usize = 80;

/// The longest line that is read, in bytes.
pub const LONGEST: u64 = 1 << 20;

/// One thing that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextEvent {
    /// What; its first part names the program, as in `NET_DROP`.
    pub keyword: String,
    /// Where.
    pub host: String,
    /// When, in ns since the origin of the run's time.
    pub at_ns: u64,
    /// What else is known, in the order the keyword prescribes.
    pub data: Vec<String>,
}

impl TextEvent {
    /// Its line, without the end of it.
    ///
    /// # Errors
    /// One sentence, when keyword or host are empty.
    pub fn line(&self) -> Result<String, String> {
        for (what, field) in [("keyword", &self.keyword), ("host", &self.host)] {
            if field.is_empty() {
                return Err(format!("an event has an empty {what}"));
            }
        }
        Ok(self.to_string())
    }

    /// Reads a line, without the end of it. Blanks around fields and a semicolon behind the last one are no part of them.
    ///
    /// # Errors
    /// What is wrong with it.
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
    /// There is nothing in this field, though others follow it.
    Empty(&'static str),
    /// This is no number of seconds or nanoseconds.
    Number(String),
    /// So many nanoseconds are a second or more.
    Nanoseconds(u64),
    /// So many seconds are more than can be counted in ns.
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
    /// The line; [`TextEvent::line`] also says whether it reads back equal.
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
        // An empty last field would be taken for the end of the one before.
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

const BLANK: [char; 2] = [' ', '\t'];

/// Whether a character is written as its code: what ends a field or a line, or would be taken for one.
fn special(c: char) -> bool {
    matches!(c, ';' | '%' | '#' | ' ') || c.is_ascii_control()
}

/// A field as it is written.
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

/// A field as it was meant.
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

/// The character behind `%` and two digits at the beginning of a text, when it is one that is written so.
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

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLineMistake {
    /// What was read.
    pub name: String,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong with it.
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

/// Events out of text, or what is wrong with a line and which; a mistake ends nothing. Lines that are empty or begin with `#`
/// are passed over.
#[derive(Debug)]
pub struct EventTextReader<R> {
    from: R,
    name: String,
    line: u64,
    ended: bool,
}

impl<R: BufRead> EventTextReader<R> {
    /// Reads that; `name` is what mistakes call it.
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
            // What cannot be read, or has no line ends, is not read on.
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
