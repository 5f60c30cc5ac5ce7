//! A parsed specification text: finds tokens and spans in it, and gives a value of it at a level.

use super::level::FactorLevel;
use crate::TextOrigin;
use crate::diagnostic::{DiagnosticReport, TextSpan};
use crate::parse;
use crate::token::{TokenKind, lex};
use crate::token_layout::{Marked, TokenRole};
use crate::tree::{Base, LinkItem, SpecItem, SpecValue, Tree, Word};
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

    /// Refuses what a predefined template declares: its words are not in this text.
    pub(super) fn is_of_this_text(&self, name: &Word) -> Result<()> {
        let first = self.token_from(name.span.start);
        if self.marked.mark(first).role != TokenRole::Keyword {
            return Ok(());
        }
        let message = format!(
            "`{}` comes from a predefined template, whose text cannot be varied",
            name.text
        );
        let hint = "sweep an argument of the template instead, as in `use star(8, <R>, 1 ms);` with `R = 10 Mbit/s, 100 Mbit/s`";
        Err(Error::input(message).hint(hint))
    }

    /// Refuses one of the nodes or links that a loop or a template declares by the same words.
    pub(super) fn stands_alone(&self, name: &Word) -> Result<()> {
        let networks = self.tree.items.iter().filter_map(|item| match item {
            SpecItem::Network(network) => Some(network),
            _ => None,
        });
        let first = |link: &'_ LinkItem| link.ends.0.span;
        let same = networks.map(|network| {
            let nodes = network.node_names().map(|word| word.span);
            let links = network.links.iter().map(first);
            nodes.chain(links).filter(|span| *span == name.span).count()
        });
        if same.sum::<usize>() < 2 {
            return Ok(());
        }
        let message = format!(
            "`{}` is declared in a loop or template together with others",
            name.text
        );
        let hint = "write a declaration of its own for what is varied, or vary all of them";
        Err(Error::input(message).hint(hint))
    }

    /// The text of a value at a level: the multiple with the value's own unit, or the text of the level.
    pub(super) fn value(&self, value: &SpecValue, level: &FactorLevel) -> Result<String> {
        match level {
            FactorLevel::AsWritten => Ok(self.text(value.span).to_string()),
            FactorLevel::Text(text) => Ok(text.clone()),
            FactorLevel::Times(times) => match &value.base {
                Base::Number(number) => {
                    let first = self.token_from(value.span.start);
                    if !matches!(self.kind(first), TokenKind::Number(_)) {
                        let number = number * value.unit.factor() * times;
                        return Ok(format!("{}{}", rounded(number), value.unit.base().text()));
                    }
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
