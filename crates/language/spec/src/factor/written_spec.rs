//! A parsed specification text: finds tokens and spans in it, and gives a value of it at a level.

use super::level::FactorLevel;
use crate::TextOrigin;
use crate::diagnostic::{DiagnosticReport, TextSpan};
use crate::parse;
use crate::token::{TokenKind, lex};
use crate::token_layout::Marked;
use crate::tree::{Base, SpecValue, Tree};
use alloc::format;
use alloc::string::{String, ToString};
use stackline_core::error::{Error, Result};

/// A specification text with its tokens and its syntax tree.
pub(super) struct WrittenSpec<'t> {
    pub(super) marked: Marked<'t>,
    pub(super) tree: Tree,
}

/// Parses a text and passes it to `ask`. The first mistake of a text that cannot be parsed is returned as an error.
pub(super) fn with_parsed<T>(
    source: &str,
    ask: impl FnOnce(WrittenSpec<'_>) -> Result<T>,
) -> Result<T> {
    let mut report = DiagnosticReport::default();
    let tokens = lex(source, TextOrigin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    let tree = parse::parse(&mut marked, &mut report);
    match report
        .finish()
        .into_iter()
        .find(|diagnostic| diagnostic.severity == crate::Severity::Error)
    {
        Some(mistake) => Err(Error {
            hint: mistake.hint,
            ..Error::input(mistake.message)
        }),
        None => ask(WrittenSpec { marked, tree }),
    }
}

impl WrittenSpec<'_> {
    /// The text of a span.
    pub(super) fn text(&self, span: TextSpan) -> &str {
        self.marked.source.get(span.start..span.end).unwrap_or("")
    }

    /// The index of the first token that begins at the byte `at` or later.
    pub(super) fn token_from(&self, at: usize) -> usize {
        self.marked
            .tokens
            .list
            .partition_point(|token| token.span.start < at)
    }

    /// The span of a token.
    pub(super) fn span(&self, token: usize) -> TextSpan {
        self.marked
            .token(token)
            .map_or_else(TextSpan::default, |token| token.span)
    }

    pub(super) fn kind(&self, token: usize) -> TokenKind {
        self.marked
            .token(token)
            .map_or(TokenKind::End, |token| token.kind)
    }

    /// The text of a value at a level: the multiple with the value's own unit, or the text of the level.
    pub(super) fn value(&self, value: &SpecValue, level: &FactorLevel) -> Result<String> {
        match level {
            FactorLevel::AsWritten => Ok(self.text(value.span).to_string()),
            FactorLevel::Text(text) => Ok(text.clone()),
            FactorLevel::Times(times) => match &value.base {
                Base::Number(number) => {
                    let first = self.token_from(value.span.start);
                    let unit = self.text(TextSpan {
                        start: self.span(first).end,
                        ..value.span
                    });
                    Ok(format!("{}{unit}", rounded(number * times)))
                }
                Base::Variable(name) => {
                    let message =
                        format!("the value is the variable `{name}`, which cannot be multiplied");
                    Err(Error::input(message)
                        .hint(format!("make the variable the factor: `{name} = ...`")))
                }
            },
        }
    }
}

/// Rounds to 12 significant digits, so that 0.1 x 3 gives 0.3.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}
