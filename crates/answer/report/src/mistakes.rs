//! Mistakes of a specification for people: the line with the place underlined, what was expected, and a hint. Also as JSON.

use crate::terminal_text::{harmless, steers};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report,
    Severity,
};
use serde_json::Value;
use stackline_spec::{Checked, Diagnostic, DiagnosticStage, Severity as How, TextOrigin};
use std::borrow::Cow;
use std::ops::Range;

/// The texts in which mistakes were found.
#[derive(Clone, Copy, Debug)]
pub struct MistakenTexts<'t> {
    /// The name of the specification, or of the flag whose value it is.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
    /// The stacks that replace those of the specification (`--over`), if any.
    pub over: Option<&'t str>,
    /// How hosts are reached (`--host`).
    pub hosts: &'t [String],
}

impl<'t> MistakenTexts<'t> {
    /// The name and the contents of the text that a diagnostic refers to.
    fn named(&self, origin: TextOrigin) -> (&'t str, &'t str) {
        match origin {
            TextOrigin::File => (self.name, self.text),
            TextOrigin::Over => ("--over", self.over.unwrap_or_default()),
            TextOrigin::Host(index) => ("--host", self.hosts.get(index).map_or("", String::as_str)),
        }
    }
}

/// The diagnostics of one text as JSON, each with its range: lines and columns counted from 1, the end behind the last character.
#[must_use]
pub fn diagnostics_json(diagnostics: &[Diagnostic], texts: &MistakenTexts<'_>) -> Vec<Value> {
    let each = diagnostics.iter().map(|diagnostic| {
        let (name, text) = texts.named(diagnostic.origin);
        let (line, column) = place(text, diagnostic.span.start);
        let (end_line, end_column) = place(text, diagnostic.span.end);
        serde_json::json!({
            "severity": if diagnostic.severity == How::Error { "error" } else { "warning" },
            "code": if diagnostic.stage == DiagnosticStage::Grammar { "grammar" } else { "meaning" },
            "message": shortened(&diagnostic.message), "label": shortened(&diagnostic.label),
            "hint": diagnostic.hint.as_deref().map(shortened), "source": name, "line": line, "column": column,
            "end_line": end_line, "end_column": end_column,
            "text": text.get(diagnostic.span.clone()).map(shortened),
        })
    });
    each.collect()
}

/// The line and column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}

/// All diagnostics of a wrong text as JSON, and the corrected text.
#[must_use]
pub fn mistakes_json(checked: &Checked, texts: &MistakenTexts<'_>) -> Value {
    let each = diagnostics_json(&checked.diagnostics, texts);
    serde_json::json!({ "ok": false, "diagnostics": each, "right": checked.right })
}

/// The part of a text that is printed with a mistake.
struct SourceExcerpt {
    name: String,
    text: String,
    span: Range<usize>,
}

/// The longest line that is printed whole where there is no terminal, in bytes.
const LONGEST_LINE: usize = 400;
/// Bytes printed before and after a mistake in a longer line.
const AROUND: usize = 60;
/// Columns that line number and border take on a terminal.
const BORDER: usize = 8;

/// How much of a line is printed.
#[derive(Clone, Copy)]
struct LineLengths {
    /// The longest line that is printed whole, in bytes.
    longest: usize,
    /// Bytes printed before and after a mistake in a longer line.
    around: usize,
}

impl LineLengths {
    /// The lengths for a terminal with this many columns, or without a terminal.
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

/// The text itself, if the line of the mistake and its neighbours are short enough; otherwise the part of the line
/// around the mistake, with its place in the name.
fn excerpt(name: &str, text: &str, span: Range<usize>, lengths: LineLengths) -> SourceExcerpt {
    // Replaces each control character by as many `?` as it has bytes, so that byte positions stay valid.
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
    // The neighbouring lines are printed too.
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

/// A text in which very long words are cut.
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

/// A text of unknown origin, safe to print: cut, and without control characters.
fn shown(text: &str) -> String {
    harmless(&shortened(text)).into_owned()
}

/// A diagnostic for people: the line with the place underlined, what was expected, and a hint. `columns` is the width of the terminal,
/// if there is one. Its foreign parts are harmless.
#[must_use]
pub fn mistake(
    diagnostic: &Diagnostic,
    texts: &MistakenTexts<'_>,
    columns: Option<usize>,
    has_colours: bool,
) -> String {
    let (name, text) = texts.named(diagnostic.origin);
    let SourceExcerpt { name, text, span } = excerpt(
        name,
        text,
        diagnostic.span.clone(),
        LineLengths::within(columns),
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
    let theme = if has_colours {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(columns.unwrap_or(100));
    let mut out = String::new();
    let report = Report::new(drawn).with_source_code(source);
    if handler.render_report(&mut out, report.as_ref()).is_err() {
        out = shown(&diagnostic.message);
    }
    out.replacen("help:", "hint:", 1).trim_end().to_owned()
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
