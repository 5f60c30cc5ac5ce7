//! Stacks: the list of them, and one with its options and its mapping to operations.

use stackline_core::catalogue::{OptionKind, StackTable};
use std::fmt::Write as _;

/// Stacks, each with what it is, on a line.
#[must_use]
pub fn stack_list(stacks: &[StackTable]) -> String {
    let width = stacks.iter().map(|stack| stack.name.len()).max();
    let width = width.unwrap_or(0);
    let line = |stack: &StackTable| format!("{:<width$} {}\n", stack.name, stack.summary);
    stacks.iter().map(line).collect()
}

/// A stack as text: its data units, options, and the mapping of its operations.
#[must_use]
pub fn stack(stack: &StackTable) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}: {}\n", stack.name, stack.summary);
    let _ = writeln!(
        out,
        "data units: {} to {} bytes, in bulk at least {}",
        stack.least_unit, stack.largest_unit, stack.least_bulk_unit
    );
    let _ = writeln!(
        out,
        "reliable: {}; one-way: {}; one host only: {}; files: {}\n",
        yes(stack.reliable),
        yes(stack.one_way),
        yes(stack.one_host),
        yes(stack.files)
    );
    let written = match stack.required {
        [] => format!("{}(NAME, NAME = VALUE)", stack.name),
        _ => stack.form().replace(')', ", NAME = VALUE)"),
    };
    let _ = writeln!(out, "options, written as `over {written}`:");
    for option in stack.options {
        let _ = writeln!(
            out,
            "  {:<28} {}",
            form(option.name, option.kind),
            option.help
        );
        let _ = writeln!(out, "  {:<28} default: {}", "", option.default);
    }
    let _ = writeln!(out, "\noperations and their mapping:");
    for row in stack.mapping.operations() {
        let _ = writeln!(out, "  {:<42} {}", row.operation, row.services);
    }
    out
}

/// An option as it is written.
pub(crate) fn form(name: &str, kind: OptionKind) -> String {
    match kind {
        OptionKind::Flag => name.to_string(),
        OptionKind::Bytes(..) => format!("{name} = BYTES"),
        OptionKind::Number(least, most) => format!("{name} = {least}..{most}"),
        OptionKind::Time => format!("{name} = TIME"),
        OptionKind::Word(words) => format!("{name} = {}", words.join("|")),
        OptionKind::Name => format!("{name} = NAME"),
        OptionKind::Text(_) => format!("{name} = \"TEXT\""),
    }
}

pub(crate) const fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
