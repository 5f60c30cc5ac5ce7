//! Mistakes of a specification as a person reads them: the line, the place underlined, what was expected, a hint.

use crate::flags::Text;
use crate::output;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity};
use serde_json::Value;
use stackline_spec::{Diagnostic, Origin, Severity as How};
use std::io::{IsTerminal, stderr};

/// Prints all of them to stderr, for a text and its name; true when one of them is an error.
pub(crate) fn print(diagnostics: &[Diagnostic], (name, text): (&str, &str), flags: Option<&Text>) -> bool {
    for diagnostic in diagnostics {
        output::say(&draw(diagnostic, (name, text), flags).trim_end());
    }
    diagnostics.iter().any(|d| d.severity == How::Error)
}

/// All of them for a program, with lines and columns counted from 1.
pub(crate) fn json(diagnostics: &[Diagnostic], (name, text): (&str, &str), flags: &Text) -> Value {
    let each = diagnostics.iter().map(|diagnostic| {
        let (name, text) = named(diagnostic.origin, (name, text), Some(flags));
        let before = text.get(..diagnostic.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        serde_json::json!({
            "severity": if diagnostic.severity == How::Error { "error" } else { "warning" },
            "message": diagnostic.message, "label": diagnostic.label, "hint": diagnostic.hint,
            "source": name, "line": line, "column": column, "text": text.get(diagnostic.span.clone()),
        })
    });
    serde_json::json!({ "ok": false, "diagnostics": each.collect::<Vec<_>>() })
}

/// What a diagnostic's place is in: its name and its text.
fn named(origin: Origin, (name, text): (&str, &str), flags: Option<&Text>) -> (String, String) {
    match origin {
        Origin::File => (name.to_string(), text.to_string()),
        Origin::Over => ("--over".to_string(), flags.and_then(|f| f.over.clone()).unwrap_or_default()),
        Origin::Host(index) => {
            ("--host".to_string(), flags.and_then(|f| f.hosts.get(index).cloned()).unwrap_or_default())
        }
    }
}

fn draw(diagnostic: &Diagnostic, (name, text): (&str, &str), flags: Option<&Text>) -> String {
    let mut drawn = MietteDiagnostic::new(diagnostic.message.clone())
        .with_severity(if diagnostic.severity == How::Error { Severity::Error } else { Severity::Warning })
        .with_label(LabeledSpan::at(diagnostic.span.clone(), diagnostic.label.clone()));
    if let Some(hint) = &diagnostic.hint {
        drawn = drawn.with_help(hint.clone());
    }
    let (name, text) = named(diagnostic.origin, (name, text), flags);
    let source = NamedSource::new(name, text);
    let theme = if stderr().is_terminal() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
    let mut out = String::new();
    let report = Report::new(drawn).with_source_code(source);
    if handler.render_report(&mut out, report.as_ref()).is_err() {
        out.clone_from(&diagnostic.message);
    }
    out.replacen("help:", "hint:", 1)
}
