//! Results on stdout or in a file, words on stderr. A reader that stops early (`| head`) is no error.

use stackline_core::error::{Error, Result};
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something went to stdout.
static PRINTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Text without what steers a terminal, which may come from others: names of hosts in a log, words of a peer. Colours stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return text.into();
    }
    let colour = |rest: &str| {
        let end = rest.strip_prefix("\u{1b}[")?.find(|c: char| !c.is_ascii_digit() && c != ';')?;
        rest[2 + end..].starts_with('m').then_some(end + 3)
    };
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(steers) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = rest.chars().next().map_or(0, char::len_utf8);
        let kept = colour(rest);
        out.push_str(kept.map_or("\u{fffd}", |length| &rest[..length]));
        rest = &rest[kept.unwrap_or(length)..];
    }
    (out + rest).into()
}

/// Whether a terminal would do something else than show it.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Prints text that ends its own lines; to a file or a pipe as it is.
pub(crate) fn print(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = stdout().lock();
    let text = if out.is_terminal() { harmless(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten("stdout", &error)),
        _ => Ok(()),
    }
}

/// That something cannot be written.
pub(crate) fn unwritten(what: impl Display, cause: &std::io::Error) -> Error {
    Error::environment(format!("{what} cannot be written: {cause}")).hint(ELSEWHERE)
}

const ELSEWHERE: &str = "choose a place where you may write, on a disk that is not full";

/// Writes a file that was named on the command line, whole or not at all; what it becomes is written by `write`.
pub(crate) fn file_by<T>(path: &Path, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let written = stackline_runs::replace(path, |file| write(file).map_err(Unwritten::Content));
    written.map_err(|error| match error {
        Unwritten::Target(cause) => Error::environment(cause.to_string()).hint(ELSEWHERE),
        Unwritten::Content(error) => error,
    })
}

/// The same with bytes at hand.
pub(crate) fn file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    file_by(path, |file| file.write_all(bytes.as_ref()).map_err(|cause| unwritten(path.display(), &cause)))
}

/// Why a file was not written: what it is, or what was to be in it.
enum Unwritten {
    Target(stackline_runs::Error),
    Content(Error),
}

impl From<stackline_runs::Error> for Unwritten {
    fn from(error: stackline_runs::Error) -> Self {
        Self::Target(error)
    }
}

/// Prints one JSON value and a line end.
pub(crate) fn json(value: &impl serde::Serialize, pretty: bool) -> Result<()> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text = text.map_err(|e| Error::measurement(format!("the result cannot be written as JSON: {e}")))?;
    print(&(text + "\n"))
}

/// Prints a line to stderr. A stderr that is closed is no error.
pub(crate) fn say(words: &impl Display) {
    let text = format!("{words}\n");
    let _ = stderr().lock().write_all(harmless(&text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(harmless("a\n\tb ü"), "a\n\tb ü");
        assert_eq!(harmless("\u{1b}[2Jx\u{7}\u{9b}y\r"), "\u{fffd}[2Jx\u{fffd}\u{fffd}y\u{fffd}");
        assert_eq!(harmless("\u{1b}[1;33mx\u{1b}[0m\u{1b}["), "\u{1b}[1;33mx\u{1b}[0m\u{fffd}[");
    }
}
