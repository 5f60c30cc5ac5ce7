//! Mistakes of a specification as a person reads them: the line, the place underlined, what was expected, a hint.

use crate::flags::SpecTextFlags;
use crate::output::{self, harmless, steers};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report,
    Severity,
};
use serde_json::Value;
use stackline_spec::{Checked, Diagnostic, Severity as How, TextOrigin};
use std::borrow::Cow;
use std::io::stderr;
use std::ops::Range;

/// Prints all of them to stderr, for a text and its name; true when one of them is an error.
pub(crate) fn print(
    diagnostics: &[Diagnostic],
    name: &str,
    text: &str,
    flags: Option<&SpecTextFlags>,
) -> bool {
    for diagnostic in diagnostics {
        output::say_drawn(draw(diagnostic, name, text, flags).trim_end());
    }
    diagnostics.iter().any(|d| d.severity == How::Error)
}

/// All of them for a program, with lines and columns counted from 1.
pub(crate) fn json(checked: &Checked, name: &str, text: &str, flags: &SpecTextFlags) -> Value {
    let each = checked.diagnostics.iter().map(|diagnostic| {
        let (name, text) = named(diagnostic.origin, name, text, Some(flags));
        let before = text.get(..diagnostic.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        serde_json::json!({
            "severity": if diagnostic.severity == How::Error { "error" } else { "warning" },
            "message": shortened(&diagnostic.message), "label": shortened(&diagnostic.label),
            "hint": diagnostic.hint.as_deref().map(shortened), "source": name, "line": line, "column": column,
            "text": text.get(diagnostic.span.clone()).map(shortened),
        })
    });
    serde_json::json!({ "ok": false, "diagnostics": each.collect::<Vec<_>>(), "right": checked.right })
}

/// What a diagnostic's place is in: its name and its text.
fn named(
    origin: TextOrigin,
    name: &str,
    text: &str,
    flags: Option<&SpecTextFlags>,
) -> (String, String) {
    match origin {
        TextOrigin::File => (name.to_string(), text.to_string()),
        TextOrigin::Over => (
            "--over".to_string(),
            flags.and_then(|f| f.over.clone()).unwrap_or_default(),
        ),
        TextOrigin::Host(index) => (
            "--host".to_string(),
            flags
                .and_then(|f| f.hosts.get(index).cloned())
                .unwrap_or_default(),
        ),
    }
}

/// What is shown around a mistake.
struct SourceExcerpt {
    name: String,
    text: String,
    span: Range<usize>,
}

/// Longest line that is shown whole where there is no terminal, and how many bytes around a mistake else.
const LONGEST_LINE: usize = 400;
const AROUND: usize = 60;
/// Columns of a terminal that a line number and a border take.
const BORDER: usize = 8;

/// How much of a line is shown.
#[derive(Clone, Copy)]
struct LineLengths {
    longest: usize,
    around: usize,
}

impl LineLengths {
    /// In a terminal of so many columns, or without one.
    fn within(columns: Option<usize>) -> Self {
        let longest = columns
            .map_or(LONGEST_LINE, |columns| {
                columns.saturating_sub(BORDER).max(24)
            })
            .min(LONGEST_LINE);
        Self {
            longest,
            around: AROUND.min(longest / 3),
        }
    }
}

/// The text, of whose lines none is too long to be shown; else what of its line lies around the mistake, and the place in the name.
fn excerpt(name: &str, text: &str, span: Range<usize>, lengths: LineLengths) -> SourceExcerpt {
    // Of one byte as what it stands for, so that places stay.
    let shown = |text: &str| -> String {
        let one = |c: char| {
            if steers(c) {
                "?".repeat(c.len_utf8())
            } else {
                c.to_string()
            }
        };
        if text.contains(steers) {
            text.chars().map(one).collect()
        } else {
            text.to_owned()
        }
    };
    if text.get(span.clone()).is_none() {
        return SourceExcerpt {
            name: name.to_owned(),
            text: shown(text),
            span: 0..0,
        };
    }
    let begins = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let ends = text[span.start..]
        .find('\n')
        .map_or(text.len(), |at| span.start + at);
    // The lines around it are shown too.
    let before = text[..begins.saturating_sub(1)]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let after = text[ends..].get(1..).map_or(ends, |rest| {
        ends + 1 + rest.find('\n').unwrap_or(rest.len())
    });
    if [begins - before, ends - begins, after - ends]
        .iter()
        .all(|length| *length <= lengths.longest)
    {
        return SourceExcerpt {
            name: name.to_owned(),
            text: shown(text),
            span,
        };
    }
    let from = text.floor_char_boundary(span.start.saturating_sub(lengths.around).max(begins));
    let last = span.end.min(span.start + lengths.around).min(ends);
    let to = text.ceil_char_boundary((last + lengths.around).min(ends));
    let (line, column) = (
        text[..begins].matches('\n').count() + 1,
        text[begins..span.start].chars().count() + 1,
    );
    let span = span.start - from..last.max(span.start) - from;
    SourceExcerpt {
        name: format!("{name}, line {line}, column {column}"),
        text: shown(&text[from..to]),
        span,
    }
}

/// A message that repeats a very long word of the text has the word's beginning.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_LINE {
        return text.into();
    }
    let short = |word: &str| match word.char_indices().nth(AROUND) {
        Some((at, _)) if word.len() > 2 * AROUND => format!("{}...", &word[..at]),
        _ => word.to_owned(),
    };
    let words: Vec<String> = text
        .split_inclusive(char::is_whitespace)
        .map(short)
        .collect();
    words.concat().into()
}

/// What a person reads of a text that others may have written.
fn shown(text: &str) -> String {
    harmless(&shortened(text)).into_owned()
}

fn draw(diagnostic: &Diagnostic, name: &str, text: &str, flags: Option<&SpecTextFlags>) -> String {
    let (name, text) = named(diagnostic.origin, name, text, flags);
    let SourceExcerpt { name, text, span } = excerpt(
        &name,
        &text,
        diagnostic.span.clone(),
        LineLengths::within(output::columns(stderr())),
    );
    let mut drawn = MietteDiagnostic::new(shown(&diagnostic.message))
        .with_severity(if diagnostic.severity == How::Error {
            Severity::Error
        } else {
            Severity::Warning
        })
        .with_label(LabeledSpan::at(span, shown(&diagnostic.label)));
    if let Some(hint) = &diagnostic.hint {
        drawn = drawn.with_help(shown(hint));
    }
    let source = NamedSource::new(harmless(&name), text);
    let theme = if output::has_colours(stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(output::columns(stderr()).unwrap_or(100));
    let mut out = String::new();
    let report = Report::new(drawn).with_source_code(source);
    if handler.render_report(&mut out, report.as_ref()).is_err() {
        out = shown(&diagnostic.message);
    }
    out.replacen("help:", "hint:", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_what_lies_around_the_mistake_is_shown() {
        let text = format!(
            "short\n{}wrong{}\n",
            "ü".repeat(100_000),
            "x".repeat(100_000)
        );
        let at = text.find("wrong").unwrap();
        let SourceExcerpt { name, text, span } =
            excerpt("a", &text, at..at + 5, LineLengths::within(None));
        assert_eq!(
            (&text[span], &name[..]),
            ("wrong", "a, line 2, column 100001")
        );
        assert!(text.len() < 200 && !text.contains('\n'), "{text}");
    }

    #[test]
    fn neither_a_long_word_nor_a_long_line_beside_it_is_repeated() {
        let word = "ü".repeat(500_000);
        let message = shortened(&format!("there is no `{word}` here, only words")).into_owned();
        assert!(
            message.len() < 300
                && message.starts_with("there is no `ü")
                && message.ends_with("here, only words")
        );
        let text = format!("# {word}\nwrong\n# {word}");
        let at = text.find("wrong").unwrap();
        let SourceExcerpt { name, text, span } =
            excerpt("a", &text, at..at + 5, LineLengths::within(None));
        assert_eq!((&text[span], &name[..]), ("wrong", "a, line 2, column 1"));
        assert!(text.len() < 200, "{text}");
    }

    #[test]
    fn escapes_do_not_reach_the_terminal_and_move_no_place() {
        let SourceExcerpt { text, span, .. } = excerpt(
            "a",
            "1 \u{1b}[2J\u{9b} rr",
            9..11,
            LineLengths::within(None),
        );
        assert_eq!((&text[..], &text[span]), ("1 ?[2J?? rr", "rr"));
    }
}
