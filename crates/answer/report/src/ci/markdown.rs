//! Checks as a table in Markdown, for the summary of a job or a comment on a change.

use super::checks::{CiCheck, CiOutcome, CiReport};

/// The report as Markdown: a heading, the counts, and a table.
#[must_use]
pub fn ci_markdown(report: &CiReport) -> String {
    let said: Vec<String> = [
        (CiOutcome::Passed, "passed"),
        (CiOutcome::Failed, "failed"),
        (CiOutcome::Undecided, "undecided"),
    ]
    .into_iter()
    .map(|(outcome, word)| (report.count(outcome), word))
    .filter(|(n, _)| *n > 0)
    .map(|(n, word)| format!("{n} {word}"))
    .collect();
    let counts = match said.is_empty() {
        true => "Nothing is expected.".to_owned(),
        false => said.join(", "),
    };
    let rows: String = report.checks.iter().map(row).collect();
    let table = match rows.is_empty() {
        true => String::new(),
        false => {
            format!("\n| | check | measurement | figures |\n| --- | --- | --- | --- |\n{rows}")
        }
    };
    format!("### {}\n\n{counts}\n{table}", cell(&report.name))
}

fn row(check: &CiCheck) -> String {
    let word = match check.outcome {
        CiOutcome::Passed => "passed",
        CiOutcome::Failed => "**failed**",
        CiOutcome::Undecided => "undecided",
    };
    format!(
        "| {word} | {} | {} | {} |\n",
        cell(&check.name),
        cell(&check.of),
        cell(&check.message)
    )
}

/// A text that is neither markup nor a link nor the end of its cell.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' | '@' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
