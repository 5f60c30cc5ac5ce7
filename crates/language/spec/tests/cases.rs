//! Every text of `data/*.txt` yields the diagnostics and measurements written below it, and no others.
//!
//! A case is a block of lines between blank lines; `UPDATE_GOLDEN=1` writes what stands below its text:
//!
//! ```text
//! # A comment.
//! > 10 rr 32*10 over tpc
//!                    ^^^ expected the name of a stack
//!   error: there is no stack `tpc`
//!   hint: did you mean `tcp`?
//!
//! > 10 rr N*10; N = 1, 8
//!   = 10 rr 1*10
//!   = 10 rr 8*10
//! ```
//!
//! Carets mark the place in the line above them, `=` begins the text of each measurement of the plan.

mod common;

use common::checked;
use stackline_spec::{Diagnostic, Severity, TextOrigin};
use std::path::Path;

/// A diagnostic that begins in this line, which is at `start` of the text.
fn below(line: &str, start: usize, diagnostic: &Diagnostic) -> String {
    let Diagnostic {
        severity,
        message,
        label,
        span,
        hint,
        origin,
        stage: _,
    } = diagnostic;
    assert!(
        *origin == TextOrigin::File && !label.is_empty() && !message.ends_with('.'),
        "{diagnostic:?}"
    );
    let (from, to) = (span.start - start, line.len().min(span.end - start));
    let (indent, carets) = (
        line[..from].chars().count(),
        line[from..to].chars().count().max(1),
    );
    let severity = if *severity == Severity::Error {
        "error"
    } else {
        "warning"
    };
    let hint = hint
        .as_ref()
        .map_or(String::new(), |hint| format!("  hint: {hint}\n"));
    format!(
        "  {:indent$}{} {label}\n  {severity}: {message}\n{hint}",
        "",
        "^".repeat(carets)
    )
}

/// The text with all that is found out about it.
fn judged(text: &str) -> String {
    let found = checked(text);
    let is_wrong = found
        .diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(found.plan.is_none(), is_wrong, "{text}");
    assert!(
        found
            .diagnostics
            .is_sorted_by_key(|diagnostic| diagnostic.span.start),
        "{text}"
    );
    let (mut block, mut start) = (String::new(), 0);
    for line in text.split('\n') {
        let within = start..=start + line.len();
        let here = found
            .diagnostics
            .iter()
            .filter(|diagnostic| within.contains(&diagnostic.span.start));
        block += format!("> {line}").trim_end();
        block += "\n";
        block.extend(here.map(|diagnostic| below(line, start, diagnostic)));
        start += line.len() + 1;
    }
    block.extend(
        found
            .plan
            .iter()
            .flat_map(|plan| &plan.measurements)
            .map(|m| format!("  = {}\n", m.text)),
    );
    block
}

/// A block as it should be.
fn again(block: &str) -> String {
    let comments: String = block
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    let text: Vec<&str> = block
        .lines()
        .filter_map(|line| line.strip_prefix('>'))
        .collect();
    if text.is_empty() {
        return comments;
    }
    let text: Vec<&str> = text
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    comments + &judged(&text.join("\n"))
}

#[test]
fn every_text_is_judged_as_its_file_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut wrong = String::new();
    for entry in std::fs::read_dir(&directory).expect("the cases") {
        let path = entry.expect("a file of cases").path();
        let cases = std::fs::read_to_string(&path).expect("a text");
        assert!(cases.contains("\n> "), "{} has no case", path.display());
        let blocks: Vec<(&str, String)> = cases
            .trim_end()
            .split("\n\n")
            .map(|block| (block, again(block)))
            .collect();
        for (was, is) in blocks.iter().filter(|(was, is)| *was != is.trim_end()) {
            wrong += &format!("{}:\n{was}\nis now:\n{is}\n", path.display());
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let blocks: Vec<String> = blocks.into_iter().map(|(_, is)| is).collect();
            std::fs::write(&path, blocks.join("\n")).expect("written");
            wrong.clear();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
