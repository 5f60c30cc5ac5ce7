//! What is said of requests when a run with some has been made: the table by name, what limits first, and where the rest is.

use crate::diagnose::TracedAnswers;
use crate::output;
use stackline_core::plan::Plan;
use std::path::Path;

/// Says it on stderr: on stdout is what traced programs print, or what an import came to.
pub(crate) fn say(answers: &TracedAnswers, path: &Path) {
    if !answers.requests.is_empty() {
        output::say(&stackline_report::named_requests(&answers.requests).trim_end());
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
