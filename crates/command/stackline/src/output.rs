//! Output: results to stdout or a file, messages to stderr. It is not an error when a reader stops early (`| head`).

use stackline_core::error::{Error, Result};
use stackline_report::terminal_text::{coloured, fold, harmless};
pub(crate) use stackline_runs::{unwritten, write_file as file, write_file_by as file_by};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether anything was printed on stdout.
static PRINTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Number of columns of the terminal at `end`; `None` without one. Some terminals report columns but not rows.
pub(crate) fn columns(end: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(end).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Number of rows of the terminal at `end`.
pub(crate) fn rows(end: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(end).ok()?;
    (size.ws_row > 0).then_some(usize::from(size.ws_row))
}

/// Whether the terminal at `end` shows colours and its user wants them (no-color.org).
pub(crate) fn has_colours(end: impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    end.is_terminal() && !is_set("NO_COLOR") && !is_dumb_terminal()
}

/// Whether texts may have characters beyond ASCII: the locale is one of UTF-8 (POSIX: LC_ALL, else LC_CTYPE, else LANG).
pub(crate) fn is_utf8_locale() -> bool {
    let values = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let set = values.into_iter().flatten().find(|value| !value.is_empty());
    set.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Whether the terminal has neither colours nor a movable cursor (`TERM=dumb`).
pub(crate) fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Folds the text to the width of the terminal; unchanged where there is none, so that programs find each line whole.
fn fitted<'t>(text: Cow<'t, str>, end: impl AsFd) -> Cow<'t, str> {
    match columns(end) {
        Some(columns) => fold(&text, columns).into(),
        None => text,
    }
}

/// Prints text for people; the text includes its line breaks.
pub(crate) fn print(text: &str) -> Result<()> {
    exact(&fitted(harmless(text), stdout()))
}

/// Prints text for people, in which whole lines may be coloured.
pub(crate) fn print_coloured(text: &str) -> Result<()> {
    let lines: Vec<_> = text.split('\n').map(coloured).collect();
    exact(&fitted(lines.join("\n").into(), stdout()))
}

/// Prints text for programs exactly as it is; on a terminal without control characters.
pub(crate) fn print_for_programs(text: &str) -> Result<()> {
    if stdout().is_terminal() {
        exact(&harmless(text))
    } else {
        exact(text)
    }
}

fn exact(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unwritten("stdout", &error)),
        _ => Ok(()),
    }
}

/// Prints a JSON value and a line break.
pub(crate) fn json(value: &impl serde::Serialize, pretty: bool) -> Result<()> {
    let text = if pretty {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let text =
        text.map_err(|e| Error::measurement(format!("cannot write the result as JSON: {e}")))?;
    print_for_programs(&(text + "\n"))
}

/// Prints a message and a line break to stderr. It is not an error when stderr is closed.
pub(crate) fn say(words: &impl Display) {
    let words = words.to_string();
    say_drawn(&fitted(harmless(&words), stderr()));
}

/// Prints to stderr a text whose foreign parts are harmless already, with its colours.
pub(crate) fn say_drawn(text: &str) {
    let _ = stderr().lock().write_all(format!("{text}\n").as_bytes());
}
