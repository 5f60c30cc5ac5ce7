//! Checks as JUnit's XML, as Jenkins, GitLab and GitHub's actions read it (testsuites, testsuite, testcase, failure, skipped).

use super::checks::{CiCheck, CiOutcome, CiReport};

/// The report as XML; an undecided check is skipped, with its reason.
#[must_use]
pub fn junit(report: &CiReport) -> String {
    let (all, failed, skipped) = (
        report.checks.len(),
        report.count(CiOutcome::Failed),
        report.count(CiOutcome::Undecided),
    );
    let counts = format!("tests=\"{all}\" failures=\"{failed}\" errors=\"0\"");
    let (name, time) = (attribute(&report.name), attribute(&report.time));
    let cases: String = report.checks.iter().map(case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\" {counts}>\n  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\" time=\"0\" timestamp=\"{time}\" hostname=\"localhost\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

fn case(check: &CiCheck) -> String {
    let (of, name) = (attribute(&check.of), attribute(&check.name));
    let message = attribute(&check.message);
    let inside = match check.outcome {
        CiOutcome::Passed => String::new(),
        CiOutcome::Failed => format!(
            "      <failure type=\"missed\" message=\"{message}\">{}</failure>\n",
            content(&check.message)
        ),
        CiOutcome::Undecided => format!("      <skipped message=\"{message}\"/>\n"),
    };
    let head = format!("    <testcase classname=\"{of}\" name=\"{name}\" time=\"0\"");
    match inside.is_empty() {
        true => format!("{head}/>\n"),
        false => format!("{head}>\n{inside}    </testcase>\n"),
    }
}

/// Text between tags: characters that XML 1.0 does not allow (section 2.2) become U+FFFD.
fn content(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            // `]]>` must not stand in content.
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text of an attribute in double quotes; line breaks are kept as references.
fn attribute(text: &str) -> String {
    content(text)
        .replace('"', "&quot;")
        .replace('\n', "&#10;")
        .replace('\t', "&#9;")
}
