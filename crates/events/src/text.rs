//! An event and its text form, as NetLogger (Tierney et al. 1996) printed it:
//! `KEYWORD; host; seconds; nanoseconds; data; data; ...`
//!
//! What is written reads back equal. A field holds no semicolon, no control character and no blank at its ends: such an
//! event is refused when written, never changed. Events of a run lie in `RUN/events/`, one file a host or network, sorted
//! by time; a binary form for many of them is to come beside this one.

use crate::{Error, files};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

const NANOS: u64 = 1_000_000_000;

/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// One thing that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What; its first part names the program, as in `NET_DROP`.
    pub keyword: String,
    /// Where.
    pub host: String,
    /// When, in ns since the origin of the run's time.
    pub at_ns: u64,
    /// What else is known, in the order the keyword prescribes.
    pub data: Vec<String>,
}

impl Event {
    /// Its line, without the end of it.
    ///
    /// # Errors
    /// One sentence: which field cannot be written, and why.
    pub fn line(&self) -> Result<String, String> {
        for (what, field) in [("keyword", &self.keyword), ("host", &self.host)] {
            if field.is_empty() {
                return Err(format!("an event has an empty {what}"));
            }
        }
        if self.keyword.starts_with('#') {
            return Err(format!("the keyword {:?} would make its line a comment", self.keyword));
        }
        if let Some(field) = self.fields().find(|field| !writable(field)) {
            let what = "a semicolon, a control character or a blank at an end";
            return Err(format!("the field {field:?} has {what}"));
        }
        Ok(self.to_string())
    }

    fn fields(&self) -> impl Iterator<Item = &String> {
        [&self.keyword, &self.host].into_iter().chain(&self.data)
    }

    /// Reads a line, without the end of it. Blanks around fields and a semicolon behind the last one are no part of them.
    ///
    /// # Errors
    /// One sentence: what is wrong with it.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim_matches(BLANK);
        let mut fields = line.strip_suffix(';').unwrap_or(line).split(';').map(|field| field.trim_matches(BLANK));
        let mut next = |what: &str| {
            let field = fields.next().filter(|field| !field.is_empty());
            field
                .ok_or_else(|| format!("there is no {what}; expected `KEYWORD; host; seconds; nanoseconds; data; ...`"))
        };
        let (keyword, host) = (next("keyword")?.to_owned(), next("host")?.to_owned());
        let (seconds, nanos) = (number(next("number of seconds")?)?, number(next("number of nanoseconds")?)?);
        if nanos >= NANOS {
            return Err(format!("{nanos} ns are a second or more"));
        }
        let at_ns = seconds.checked_mul(NANOS).and_then(|whole| whole.checked_add(nanos));
        let at_ns = at_ns.ok_or_else(|| format!("{seconds} s are more than 584 years"))?;
        let event = Self { keyword, host, at_ns, data: fields.map(str::to_owned).collect() };
        event.line().map(|_| event)
    }
}

impl fmt::Display for Event {
    /// The line; [`Event::line`] also says whether it reads back equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}; {}; {}", self.keyword, self.host, self.at_ns / NANOS, self.at_ns % NANOS)?;
        self.data.iter().try_for_each(|field| write!(f, "; {field}"))?;
        // An empty last field would be taken for the end of the one before.
        if self.data.last().is_some_and(String::is_empty) { f.write_str(";") } else { Ok(()) }
    }
}

impl std::str::FromStr for Event {
    type Err = String;
    fn from_str(line: &str) -> Result<Self, String> {
        Self::parse(line)
    }
}

const BLANK: [char; 2] = [' ', '\t'];

fn writable(field: &str) -> bool {
    !field.contains(|c: char| c == ';' || c.is_control()) && field.trim_matches(BLANK).len() == field.len()
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| format!("`{}` is not a whole number that fits", text.escape_debug()))
}

/// Where the events of a host or a network of a run lie.
///
/// # Errors
/// When that is no name of one.
pub fn events_path(run: &Path, of: &str) -> Result<PathBuf, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if of.is_empty() || of.starts_with('.') || !of.chars().all(plain) {
        let message = format!("`{}` is not the name of a host or network", of.escape_debug());
        return Err(Error::new(message, "letters, digits, `_`, `-` and `.` make one"));
    }
    Ok(run.join(files::EVENTS).join(format!("{of}.events")))
}

/// Writes a file of events, whole or not at all, and the directory it lies in. Returns how many.
///
/// # Errors
/// When it cannot be written, an event cannot be, or one is earlier than the one before.
pub fn write_events<'e>(path: &Path, events: impl IntoIterator<Item = &'e Event>) -> Result<u64, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| Error::writing(path, &cause))?;
    }
    let mut count = 0;
    files::replace(path, |file| {
        let mut out = BufWriter::new(file);
        let mut latest = 0;
        for event in events {
            let line = event.line().map_err(|cause| refused(path, &cause))?;
            if event.at_ns < latest {
                return Err(refused(path, &format!("an event at {} ns comes behind one at {latest} ns", event.at_ns)));
            }
            latest = event.at_ns;
            writeln!(out, "{line}").map_err(|cause| Error::writing(path, &cause))?;
            count += 1;
        }
        out.flush().map_err(|cause| Error::writing(path, &cause))
    })?;
    Ok(count)
}

fn refused(path: &Path, cause: &str) -> Error {
    let hint = "this is a mistake of the monitor point that made the event; please report it";
    Error::new(format!("cannot write {}", path.display()), hint).because(&cause)
}

/// Reads a file of events one by one; lines that are empty or begin with `#` are passed over.
///
/// # Errors
/// When it cannot be opened.
pub fn read_events(path: &Path) -> Result<Events<BufReader<File>>, Error> {
    let file = File::open(path).map_err(|cause| Error::reading(path, &cause))?;
    Ok(Events::new(BufReader::new(file), &path.display().to_string()))
}

/// Events out of text, or what is wrong with a line and which; a mistake ends nothing.
#[derive(Debug)]
pub struct Events<R> {
    from: R,
    name: String,
    line: u64,
    ended: bool,
}

impl<R: BufRead> Events<R> {
    /// Reads that; `name` is what mistakes call it.
    pub fn new(from: R, name: &str) -> Self {
        Self { from, name: name.to_owned(), line: 0, ended: false }
    }

    fn mistake(&self, cause: &dyn fmt::Display) -> Error {
        let hint = "an event is `KEYWORD; host; seconds; nanoseconds; data; ...`";
        Error::new(format!("{}, line {}, is not an event", self.name, self.line), hint).because(cause)
    }

    fn event(&mut self, bytes: &[u8]) -> Option<Result<Event, Error>> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_end_matches(['\n', '\r']),
            Err(_) => return Some(Err(self.mistake(&"it is not UTF-8"))),
        };
        let passed = text.trim_matches(BLANK).is_empty() || text.starts_with('#');
        (!passed).then(|| Event::parse(text).map_err(|cause| self.mistake(&cause)))
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = Result<Event, Error>;

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
                    return Some(Err(self.mistake(&"it is longer than 1 MiB")));
                }
                Ok(_) => {
                    if let Some(found) = self.event(&bytes) {
                        return Some(found);
                    }
                }
                Err(cause) => {
                    self.ended = true;
                    return Some(Err(self.mistake(&cause)));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
