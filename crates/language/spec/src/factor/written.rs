//! A specification as it is written: its tokens and its tree, what stands where in it, and a value of it at a level.

use super::level::Level;
use crate::Origin;
use crate::diagnostic::{Report, Span};
use crate::layout::Marked;
use crate::parse;
use crate::token::{Kind, lex};
use crate::tree::{Base, Tree, Value};
use alloc::format;
use alloc::string::{String, ToString};
use stackline_core::error::{Error, Result};

/// A text with its tree.
pub(super) struct Written<'t> {
    pub(super) marked: Marked<'t>,
    pub(super) tree: Tree,
}

/// Reads a text that is right, and asks what is to be changed in it.
pub(super) fn parsed<T>(source: &str, ask: impl FnOnce(Written<'_>) -> Result<T>) -> Result<T> {
    let mut report = Report::default();
    let tokens = lex(source, Origin::File, &mut report);
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
        None => ask(Written { marked, tree }),
    }
}

impl Written<'_> {
    /// What stands there.
    pub(super) fn text(&self, span: Span) -> &str {
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
    pub(super) fn span(&self, token: usize) -> Span {
        self.marked
            .token(token)
            .map_or_else(Span::default, |token| token.span)
    }

    pub(super) fn kind(&self, token: usize) -> Kind {
        self.marked
            .token(token)
            .map_or(Kind::End, |token| token.kind)
    }

    /// A value at a level, in its own unit: a multiple, or what the level says.
    pub(super) fn value(&self, value: &Value, level: &Level) -> Result<String> {
        match level {
            Level::AsWritten => Ok(self.text(value.span).to_string()),
            Level::Text(text) => Ok(text.clone()),
            Level::Times(times) => match &value.base {
                Base::Number(number) => {
                    let first = self.token_from(value.span.start);
                    let unit = self.text(Span {
                        start: self.span(first).end,
                        ..value.span
                    });
                    Ok(format!("{}{unit}", rounded(number * times)))
                }
                Base::Variable(name) => {
                    let message = format!(
                        "it is the variable `{name}` there, of which there are no multiples"
                    );
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
