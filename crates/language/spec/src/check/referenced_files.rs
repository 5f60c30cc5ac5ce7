//! Reads the files that a text names, each once: values of empirical distributions, and moments of traces.

use super::mahimahi_trace;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::tree::Word;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most values that all networks together may take from files.
const MOST_FILED: usize = 4_000_000;
/// Most values of an empirical distribution.
const MOST_VALUES: usize = 65_536;

/// The files read so far.
pub(crate) struct SpecFiles<'f> {
    read: &'f dyn Fn(&str) -> Result<String, String>,
    known: BTreeMap<String, Result<Vec<f64>, Diagnostic>>,
    traces: BTreeMap<String, Result<Vec<u32>, Diagnostic>>,
    /// Number of values that networks may still take from files.
    room: usize,
}

impl<'f> SpecFiles<'f> {
    /// None is read so far.
    pub(crate) const fn new(read: &'f dyn Fn(&str) -> Result<String, String>) -> Self {
        Self {
            read,
            known: BTreeMap::new(),
            traces: BTreeMap::new(),
            room: MOST_FILED,
        }
    }

    pub(crate) fn values(&mut self, file: &Word) -> Result<Vec<f64>, Diagnostic> {
        if let Some(known) = self.known.get(&file.text) {
            return known.clone();
        }
        let values = self
            .read(file)
            .and_then(|text| numbers(&text, &file.text, file.span));
        self.known.insert(file.text.clone(), values.clone());
        values
    }

    /// The moments of a trace.
    pub(crate) fn moments(&mut self, file: &Word) -> Result<Vec<u32>, Diagnostic> {
        if let Some(known) = self.traces.get(&file.text) {
            return known.clone();
        }
        let moments = self
            .read(file)
            .and_then(|text| mahimahi_trace::parse_moments(&text, file));
        self.traces.insert(file.text.clone(), moments.clone());
        moments
    }

    /// Counts the values of a file that a network names; an error if there are too many in all.
    pub(crate) fn take_room(&mut self, values: usize, span: TextSpan) -> Result<(), Diagnostic> {
        if let Some(left) = self.room.checked_sub(values) {
            self.room = left;
            return Ok(());
        }
        let message = format!("the files named by networks contain more than {MOST_FILED} values");
        Err(
            Diagnostic::error(span, message, "the limit is exceeded here")
                .hint("use shorter or fewer files"),
        )
    }

    fn read(&self, file: &Word) -> Result<String, Diagnostic> {
        (self.read)(&file.text).map_err(|cause| {
            let message = format!("cannot read `{}`: {cause}", file.text);
            Diagnostic::error(file.span, message, "this file")
        })
    }
}

/// Parses one number on each line; `#` begins a comment.
fn numbers(text: &str, name: &str, span: TextSpan) -> Result<Vec<f64>, Diagnostic> {
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let value: f64 = line.parse().unwrap_or(f64::NAN);
        if !value.is_finite() || value < 0.0 {
            let message = format!(
                "line {} of `{name}` must be a non-negative number",
                index + 1
            );
            return Err(
                Diagnostic::error(span, message, "this file").hint("write one number per line")
            );
        }
        values.push(value);
        if values.len() > MOST_VALUES {
            let message = format!("`{name}` has more than {MOST_VALUES} values");
            return Err(Diagnostic::error(span, message, "this file"));
        }
    }
    if values.is_empty() {
        return Err(Diagnostic::error(
            span,
            format!("`{name}` contains no values"),
            "this file",
        ));
    }
    Ok(values)
}
