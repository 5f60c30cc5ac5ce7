//! Prints a summary of the requests of a new run: a table by name, the first finding, and where to find the rest.

use crate::diagnose::TracedAnswers;
use crate::output;
use stackline_core::plan::Plan;
use std::path::Path;

/// Prints the summary to stderr; stdout has the output of traced programs, or the result of an import.
pub(crate) fn say(answers: &TracedAnswers, path: &Path) {
    if !answers.requests.is_empty() {
        output::say(&stackline_report::named_requests(&answers.requests).trim_end());
    }
    if !answers.transfers.is_empty() {
        output::say(&stackline_report::transfers(&answers.transfers).trim_end());
    }
    let run = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let (first, others) = answers.findings.split_at(answers.findings.len().min(1));
    output::say(&format_args!(
        "{}",
        stackline_report::findings(&Plan::default(), first).trim_end()
    ));
    if !others.is_empty() {
        let kinds: Vec<&str> = others.iter().map(|finding| finding.kind).collect();
        output::say(&format_args!(
            "and {} more ({}); see `stackline diagnose {run}`",
            others.len(),
            kinds.join(", ")
        ));
    }
    output::say(&format_args!(
        "kept in {}; see `stackline lifelines {run}`, `diagnose {run}` or `open {run}`",
        path.display()
    ));
}
