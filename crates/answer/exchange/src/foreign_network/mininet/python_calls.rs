//! Calls of methods in a Python text, with their arguments as written. Only their form is looked at.

use super::super::network_text::shown;
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;

/// The methods whose calls are read.
const METHODS: &[&str] = &[
    "addHost",
    "addSwitch",
    "addNode",
    "addLink",
    "addController",
];
/// The longest call, in bytes.
const LONGEST_CALL: usize = 4096;

/// A call: `h1 = self.addHost('h1', ip='10.0.0.1')`.
#[derive(Debug, Default)]
pub(super) struct PythonCall {
    pub(super) line: usize,
    /// What its result is given to.
    pub(super) variable: Option<String>,
    pub(super) method: String,
    /// Arguments as written, with quotation marks.
    pub(super) positional: Vec<String>,
    pub(super) named: BTreeMap<String, String>,
}

impl PythonCall {
    /// A positional argument that is a quoted text, without its quotation marks.
    pub(super) fn literal(&self, index: usize) -> Result<String> {
        let written = self.positional.get(index).map_or("", String::as_str);
        let inner = ['"', '\'']
            .into_iter()
            .find_map(|quote| written.strip_prefix(quote)?.strip_suffix(quote));
        let plain = inner.filter(|inner| !inner.contains(['"', '\'', '\\', '{', '%']));
        plain.map(str::to_owned).ok_or_else(|| {
            let message = format!(
                "line {}: `{}` is computed, and nothing is executed here",
                self.line,
                shown(written)
            );
            computed(message)
        })
    }
}

fn computed(message: String) -> Error {
    Error::input(message).hint("write the names as literals, or write the loop in the language: `for i in 1..8 { host h[i]; link h[i] - s 10 Mbit/s 5 ms; }`")
}

/// All calls of a text, in order.
pub(super) fn calls(text: &str) -> Result<Vec<PythonCall>> {
    let mut calls = Vec::new();
    // The indentation of the innermost loop around.
    let mut loops: Vec<usize> = Vec::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let from = start;
        start += line.len();
        let code = line.trim_start();
        if code.trim().is_empty() || code.starts_with('#') {
            continue;
        }
        let indent = line.len() - code.len();
        while loops.last().is_some_and(|last| *last >= indent) {
            loops.pop();
        }
        let is_loop = ["for ", "while "].iter().any(|word| code.starts_with(word));
        if let Some((at, method)) = method_in(code) {
            if is_loop || !loops.is_empty() || code.contains(" for ") {
                let message = format!(
                    "line {}: `{method}` is called in a loop, and nothing is executed here",
                    index + 1
                );
                return Err(computed(message));
            }
            let open = from + indent + at + method.len();
            calls.push(call(
                text,
                open,
                index + 1,
                method,
                code.get(..at).unwrap_or(""),
            )?);
        }
        if is_loop {
            loops.push(indent);
        }
    }
    Ok(calls)
}

/// The first method that a line calls, and where its name begins.
fn method_in(code: &str) -> Option<(usize, &'static str)> {
    METHODS.iter().find_map(|method| {
        let at = code.find(&format!(".{method}("))?;
        Some((at + 1, *method))
    })
}

/// Reads a call whose `(` is at the byte `open`; `before` stands before the method's name.
fn call(text: &str, open: usize, line: usize, method: &str, before: &str) -> Result<PythonCall> {
    let mut call = PythonCall {
        line,
        method: method.into(),
        variable: variable(before),
        ..PythonCall::default()
    };
    for argument in arguments(text.get(open + 1..).unwrap_or(""), line)? {
        let name = argument.split_once('=').filter(|(name, _)| {
            let name = name.trim();
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        match name {
            Some((name, value)) => _ = call.named.insert(name.trim().into(), value.trim().into()),
            None if argument.starts_with('*') => {
                let message = format!(
                    "line {line}: `{}` stands for arguments that are computed",
                    shown(&argument)
                );
                return Err(Error::input(message)
                    .hint("write them out: `addLink(h1, s1, bw=10, delay='5ms')`"));
            }
            None => call.positional.push(argument),
        }
    }
    Ok(call)
}

/// The variable in `h1 = net`.
fn variable(before: &str) -> Option<String> {
    let (name, _) = before.split_once('=')?;
    let name = name.trim();
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    plain.then(|| name.to_owned())
}

/// Arguments up to the `)`, split at the commas between them.
fn arguments(text: &str, line: usize) -> Result<Vec<String>> {
    let (mut arguments, mut argument) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0_usize, None::<char>);
    for (at, c) in text.char_indices() {
        if at > LONGEST_CALL {
            break;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => {
                arguments.push(argument);
                let trimmed = arguments.iter().map(|argument| argument.trim().to_owned());
                return Ok(trimmed.filter(|argument| !argument.is_empty()).collect());
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                arguments.push(core::mem::take(&mut argument));
                continue;
            }
            _ => {}
        }
        argument.push(c);
    }
    Err(Error::input(format!("line {line}: the call has no `)`")))
}
