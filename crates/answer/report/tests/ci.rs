//! Reports with texts that would break them: each is as its readers need it.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod verdicts;

use stackline_analyze::ExpectationVerdict;
use stackline_report::ci::{CiOutcome, CiReport, ci_markdown, github_annotations, junit};
use verdicts::{judged, outcome};

/// A report with every outcome, and with what markup and workflow commands would take for their own.
fn report() -> CiReport {
    let mut report = CiReport {
        name: "stackline run a&b.stackline".into(),
        file: Some("bench/a,b: c.stackline".into()),
        time: "2026-11-30T18:00:00".into(),
        checks: vec![],
    };
    let mut missed = judged("p99 < 20 ms", ExpectationVerdict::Missed);
    missed.reason = Some("100 % of \"it\"\nis ]]> late \u{1b}[31m\u{0}".into());
    report.add_expectations(&[
        judged("mean <= 20 ms", ExpectationVerdict::Met),
        missed,
        judged("max < 1 s", ExpectationVerdict::Undecided),
    ]);
    report.add_regressions(&outcome(&[0.01, 0.0101, 0.0099], &[0.02, 0.0201, 0.0199]));
    report.add_regressions(&outcome(&[0.01], &[0.02, 0.0201]));
    report
}

#[test]
fn checks_are_counted() {
    let report = report();
    let counts =
        [CiOutcome::Passed, CiOutcome::Failed, CiOutcome::Undecided].map(|o| report.count(o));
    assert_eq!(counts, [1, 2, 2]);
}

/// An element of XML: its name, its attributes and how deep it stands.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    path: Vec<String>,
}

/// The elements of a text, which has to be well-formed: one root, nested tags, quoted attributes, no bare `<` or `&`, and no
/// character that XML 1.0 excludes.
fn elements(xml: &str) -> Vec<Element> {
    let allowed = |c: char| {
        matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'))
    };
    assert!(xml.chars().all(allowed), "{xml:?}");
    let mut rest = xml
        .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
        .unwrap();
    let (mut open, mut found): (Vec<String>, Vec<Element>) = (vec![], vec![]);
    while let Some(at) = rest.find('<') {
        text(&rest[..at], open.is_empty());
        let end = rest.find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (inside, is_empty) = match tag.strip_suffix('/') {
            Some(inside) => (inside, true),
            None => (tag, false),
        };
        let (name, mut attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        let mut all = Vec::new();
        while let Some((key, value)) = attributes.split_once("=\"") {
            let (value, more) = value.split_once('"').unwrap();
            text(value, false);
            assert!(!all.iter().any(|(known, _)| *known == key), "{tag}");
            all.push((key.to_owned(), unescaped(value)));
            attributes = more.trim_start();
        }
        assert!(attributes.is_empty(), "{tag}");
        found.push(Element {
            name: name.to_owned(),
            attributes: all,
            path: open.clone(),
        });
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    text(rest, true);
    assert!(open.is_empty(), "{open:?}");
    found
}

/// Content must have no `>` of its own here (so that `]]>` cannot stand in it), and only known references.
fn text(text: &str, must_be_blank: bool) {
    assert!(!must_be_blank || text.trim().is_empty(), "{text}");
    assert!(!text.contains('>'), "{text}");
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#9;"];
        assert!(
            known.iter().any(|one| text[at..].starts_with(one)),
            "{text}"
        );
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#10;", "\n")
        .replace("&amp;", "&")
}

/// An element of the schema that the xunit plugin of Jenkins validates by (junit-10.xsd).
struct JunitElement {
    name: &'static str,
    parent: Option<&'static str>,
    /// The attributes that it may have, and those that it must have.
    may: &'static [&'static str],
    must: &'static [&'static str],
}

const SCHEMA: [JunitElement; 5] = [
    JunitElement {
        name: "testsuites",
        parent: None,
        may: &["name", "time", "tests", "failures", "errors"],
        must: &[],
    },
    JunitElement {
        name: "testsuite",
        parent: Some("testsuites"),
        may: &[
            "name",
            "tests",
            "failures",
            "errors",
            "group",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "file",
            "log",
            "url",
        ],
        must: &["name", "tests", "failures", "errors"],
    },
    JunitElement {
        name: "testcase",
        parent: Some("testsuite"),
        may: &["name", "time", "classname", "group"],
        must: &["name"],
    },
    JunitElement {
        name: "failure",
        parent: Some("testcase"),
        may: &["type", "message"],
        must: &[],
    },
    JunitElement {
        name: "skipped",
        parent: Some("testcase"),
        may: &["type", "message"],
        must: &[],
    },
];

#[test]
fn junit_is_as_its_common_schema_says() {
    let report = report();
    let xml = junit(&report);
    let all = elements(&xml);
    for element in &all {
        let row = SCHEMA.iter().find(|row| row.name == element.name);
        let JunitElement {
            parent, may, must, ..
        } = row.unwrap_or_else(|| panic!("{element:?}"));
        assert_eq!(element.path.last().map(String::as_str), *parent);
        let names: Vec<&str> = element
            .attributes
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert!(names.iter().all(|name| may.contains(name)), "{element:?}");
        assert!(must.iter().all(|name| names.contains(name)), "{element:?}");
    }
    let value = |element: &Element, name: &str| -> String {
        let all = element.attributes.iter();
        all.clone()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
            .clone()
    };
    let suite = &all[1];
    assert_eq!(value(suite, "name"), report.name);
    assert_eq!(
        ["tests", "failures", "errors", "skipped"].map(|name| value(suite, name)),
        ["5", "2", "0", "2"]
    );
    let cases: Vec<String> = all
        .iter()
        .filter(|one| one.name == "testcase")
        .map(|one| value(one, "name"))
        .collect();
    let names: Vec<&String> = report.checks.iter().map(|check| &check.name).collect();
    assert_eq!(cases.iter().collect::<Vec<_>>(), names);
    let failure = all.iter().find(|one| one.name == "failure").unwrap();
    assert!(value(failure, "message").contains("\"it\"\nis ]]> late \u{fffd}[31m\u{fffd}"));
}

#[test]
fn nothing_expected_is_still_a_report() {
    let empty = CiReport::default();
    assert_eq!(elements(&junit(&empty)).len(), 2);
    assert!(ci_markdown(&empty).contains("Nothing is expected."));
    assert_eq!(github_annotations(&empty), "");
}

#[test]
fn a_table_in_markdown_has_one_row_for_each_check() {
    let text = ci_markdown(&report());
    assert!(
        text.starts_with(
            "### stackline run a&amp;b.stackline\n\n1 passed, 2 failed, 2 undecided\n"
        )
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 5, "{text}");
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 5, "{row}");
    }
    assert!(
        text.contains("| **failed** | p99 &lt; 20 ms | 5 rr 32\\*1000 over tcp |"),
        "{text}"
    );
}

#[test]
fn annotations_name_file_line_and_reason_on_one_line_each() {
    let text = github_annotations(&report());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    let place = "file=bench/a%2Cb%3A c.stackline";
    assert!(
        lines[0].starts_with(&format!("::error {place},line=3,title=p99 < 20 ms::5 rr 32*1000 over tcp: 12.1 ms (95 %25: 11.9 ms..12.3 ms) (100 %25 of \"it\"%0Ais")),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with(&format!("::warning {place},line=3,title=max < 1 s::")));
    // A gate has no line of its own.
    assert!(
        lines[2].starts_with(&format!("::error {place},title=response time of ")),
        "{}",
        lines[2]
    );
    let without = CiReport {
        file: None,
        ..report()
    };
    assert!(github_annotations(&without).starts_with("::error title=p99 < 20 ms::"));
}
