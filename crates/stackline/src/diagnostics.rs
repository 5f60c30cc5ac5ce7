//! Mistakes of a specification as a person reads them: the line, the place underlined, what was expected, a hint.

use crate::flags::Text;
use crate::output;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity};
use stackline_spec::{Diagnostic, Origin, Severity as How};
use std::io::{IsTerminal, stderr};

/// Prints all of them to stderr, for a text and its name; true when one of them is an error.
pub(crate) fn print(diagnostics: &[Diagnostic], (name, text): (&str, &str), flags: Option<&Text>) -> bool {
    for diagnostic in diagnostics {
        output::say(&draw(diagnostic, (name, text), flags).trim_end());
    }
    diagnostics.iter().any(|d| d.severity == How::Error)
}

fn draw(diagnostic: &Diagnostic, (name, text): (&str, &str), flags: Option<&Text>) -> String {
    let mut drawn = MietteDiagnostic::new(diagnostic.message.clone())
        .with_severity(if diagnostic.severity == How::Error { Severity::Error } else { Severity::Warning })
        .with_label(LabeledSpan::at(diagnostic.span.clone(), diagnostic.label.clone()));
    if let Some(hint) = &diagnostic.hint {
        drawn = drawn.with_help(hint.clone());
    }
    let source = match diagnostic.origin {
        Origin::File => NamedSource::new(name, text.to_string()),
        Origin::Over => NamedSource::new("--over", flags.and_then(|f| f.over.clone()).unwrap_or_default()),
        Origin::Host(index) => {
            NamedSource::new("--host", flags.and_then(|f| f.hosts.get(index).cloned()).unwrap_or_default())
        }
    };
    let theme = if stderr().is_terminal() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
    let mut out = String::new();
    let report = Report::new(drawn).with_source_code(source);
    if handler.render_report(&mut out, report.as_ref()).is_err() {
        out.clone_from(&diagnostic.message);
    }
    out.replacen("help:", "hint:", 1)
}
