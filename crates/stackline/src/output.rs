//! Results on stdout. A reader that has seen enough (`| head`) is no error.

use crate::exit::{Error, Exit, Result};
use std::io::{ErrorKind, Write, stdout};

/// Prints text that ends its own lines.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(Exit::Environment, format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON value and a line end.
pub(crate) fn json(value: &impl serde::Serialize, pretty: bool) -> Result<()> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text = text.map_err(|e| Error::new(Exit::Failed, format!("the result cannot be written as JSON: {e}")))?;
    print(&(text + "\n"))
}
