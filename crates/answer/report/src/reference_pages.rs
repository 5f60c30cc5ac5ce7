//! Reference pages in Markdown, generated from the tables that the program itself uses.

use crate::stacks::{form, yes};
use stackline_analyze::findings::KINDS;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::World;
use stackline_events::catalogue::block_rows::all_entries;
use std::fmt::Write as _;

/// The head of a page, which says how the page is generated.
#[must_use]
pub fn head(title: &str, about: &str) -> String {
    format!("# {title}\n\n{about} `stackline man --reference docs/reference` writes this page.\n")
}

/// A row of a Markdown table; `|` in a cell is escaped.
#[must_use]
pub fn row(cells: &[&str]) -> String {
    let cells = cells
        .iter()
        .map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The head of a Markdown table.
#[must_use]
pub fn table(names: &[&str]) -> String {
    let rule: Vec<&str> = names.iter().map(|_| "---").collect();
    row(names) + &row(&rule)
}

/// The kinds of findings.
#[must_use]
pub fn findings_page() -> String {
    let mut out = head(
        "Findings",
        "Causes that `stackline diagnose` can report, and the conditions for each.",
    );
    out += "\n";
    out += &table(&["kind", "means"]);
    for kind in KINDS {
        out += &row(&[&format!("`{}`", kind.name), kind.meaning]);
    }
    out
}

/// The keywords of events.
#[must_use]
pub fn keywords_page() -> String {
    let mut out = head("Keywords", "Every event recorded by stackline itself.");
    out += "\n";
    out += &table(&["keyword", "fields", "what happened"]);
    for entry in all_entries() {
        out += &row(&[
            &format!("`{}`", entry.keyword),
            &entry.data.join("; "),
            entry.help,
        ]);
    }
    out
}

/// The stacks of each world.
#[must_use]
pub fn stacks_page(worlds: &[(World, Vec<StackTable>)]) -> String {
    let mut out = head("Stacks", "Every stack in each world, with its options.");
    for (world, stacks) in worlds {
        let _ = write!(out, "\n## {} world\n", world);
        for stack in stacks {
            describe_stack(stack, &mut out);
        }
    }
    out
}

fn describe_stack(stack: &StackTable, out: &mut String) {
    let _ = write!(
        out,
        "\n### {}\n\n{}. Data units of {} to {} bytes; reliable: {}; one-way: {}; \
         one host only: {}; files: {}.\n",
        stack.name,
        stack.summary,
        stack.least_unit,
        stack.largest_unit,
        yes(stack.reliable),
        yes(stack.one_way),
        yes(stack.one_host),
        yes(stack.files)
    );
    if stack.options.is_empty() {
        return;
    }
    *out += "\n";
    *out += &table(&["option", "default", "what it does"]);
    for option in stack.options {
        let written = format!("`{}`", form(option.name, option.kind));
        *out += &row(&[&written, option.default, option.help]);
    }
}
