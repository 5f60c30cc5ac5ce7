//! Results on stdout, words on stderr. A reader that stops early (`| head`) is no error.

use stackline_core::error::{Error, Result};
use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something went to stdout.
static PRINTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Prints text that ends its own lines.
pub(crate) fn print(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::environment(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
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
    let _ = stderr().lock().write_all(text.as_bytes());
}
