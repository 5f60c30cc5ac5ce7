//! A specification as it is written: its tokens and its tree, what stands where in it, and a value of it at a level.

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

/// A text with its tree.
pub(super) struct WrittenSpec<'t> {
    pub(super) marked: Marked<'t>,
    pub(super) tree: Tree,
}

/// Reads a text that is right, and asks what is to be changed in it.
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
    /// What stands there.
    pub(super) fn text(&self, span: TextSpan) -> &str {
        self.marked.source.get(span.start..span.end).unwrap_or("")
    }

    /// The index of the first token from a byte on.
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

    /// A value at a level, in its own unit: a multiple, or what the level says.
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

/// To 12 digits, so that 0.1 x 3 is 0.3.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}
