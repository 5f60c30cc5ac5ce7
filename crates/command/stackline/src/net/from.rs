//! `stackline net from`: prints a network that is written for another tool as text of the language.

use crate::exit::{Error, Exit, Result};
use crate::flags::NetFrom;
use crate::output;
use stackline_exchange::foreign_network::{LONGEST, read};
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

/// Prints the text.
pub(super) fn from(flags: &NetFrom) -> Result {
    let path = Path::new(&flags.source);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let (text, name) = if flags.source == "-" {
        (bounded(stdin().lock(), "standard input")?, "net")
    } else if path.is_file() {
        let file = File::open(path)
            .map_err(|error| Error::input(format!("{} cannot be opened: {error}", flags.source)))?;
        (bounded(file, &flags.source)?, stem.unwrap_or("net"))
    } else if flags.source.contains([' ', ',']) {
        (flags.source.clone(), "net")
    } else {
        let error = Error::input(format!("no file has the name {}", flags.source));
        return Err(error.hint("give a file, or a whole command line in quotation marks"));
    };
    let name = flags.name.as_deref().unwrap_or(name);
    output::print(&read(&text, flags.form.as_deref(), name)?)?;
    Ok(Exit::Done)
}

/// The text of a source, up to the longest that is read and one byte more.
fn bounded(source: impl Read, name: &str) -> Result<String> {
    let mut text = Vec::new();
    source
        .take(LONGEST as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|error| Error::input(format!("{name} cannot be read: {error}")))?;
    String::from_utf8(text).map_err(|_| Error::input(format!("{name} is not UTF-8")))
}
