//! Checks as annotations of GitHub Actions: commands of a workflow, a line each, which the runner reads from a step's output.

use super::checks::{CiCheck, CiOutcome, CiReport};

/// A line for each check that did not pass: an error, or a warning where it is undecided.
#[must_use]
pub fn github_annotations(report: &CiReport) -> String {
    let line = |check: &CiCheck| {
        let level = match check.outcome {
            CiOutcome::Passed => return None,
            CiOutcome::Failed => "error",
            CiOutcome::Undecided => "warning",
        };
        let file = report
            .file
            .as_ref()
            .map(|file| format!("file={}", property(file)));
        let line = check.line.filter(|_| file.is_some());
        let place: Vec<String> = file
            .into_iter()
            .chain(line.map(|line| format!("line={line}")))
            .chain([format!("title={}", property(&check.name))])
            .collect();
        let message = data(&format!("{}: {}", check.of, check.message));
        Some(format!("::{level} {}::{message}\n", place.join(",")))
    };
    report.checks.iter().filter_map(line).collect()
}

/// The text of a message: what would end the command is escaped as the runner decodes it.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property, which a comma or a colon would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
