//! Parses factors: what is varied, and its levels.

use super::parser::{Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{FactorItem, FactorSide, LevelItem, LinkProperty, VariedProperty, texts};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const WHAT: &str = "expected the property to vary";
const SUCH_AS: &str = "for example `bandwidth of a - b x 10`, `loss = 0%, 1%`, `cpu of a x 2`, `stack = tcp, quic`, \
                       `receive_buffer = 64 KiB, 1 MiB`, `size x 4`, or a variable name";
const LEVELS: &str = "expected `x` and a number, or `=` and levels";

impl Parser<'_, '_> {
    /// Reads a factor behind the word `factor`, up to the `;` or the end of the text.
    pub(crate) fn factor(&mut self) -> Parsed<FactorItem> {
        let what = self.varied()?;
        let levels = if self.accept(TokenKind::Equals) {
            self.set_levels()?
        } else if self.kind() == TokenKind::Name && times_word(self.text(0)) {
            self.times_levels()?
        } else {
            return Err(self.unexpected(LEVELS, &["x", "of"]));
        };
        Ok(FactorItem { what, levels })
    }

    /// Reads the property to vary, with the link, host or switch behind `of`.
    fn varied(&mut self) -> Parsed<VariedProperty> {
        if self.kind() != TokenKind::Name {
            let found = format!("unexpected {}", self.describe());
            let diagnostic = Diagnostic::error(self.span(), found, WHAT).hint(SUCH_AS);
            return Err(self.fail(diagnostic));
        }
        let word = self.folded(0);
        if let Some((_, property)) = LinkProperty::ALL.iter().find(|(name, _)| *name == word) {
            self.take(TokenRole::Keyword);
            return Ok(VariedProperty::Link(*property, self.varied_link()?));
        }
        Ok(match word.as_str() {
            "cpu" => VariedProperty::Cpu(self.varied_node("expected a host name")?),
            "share" => VariedProperty::Share(self.varied_node("expected a host name")?),
            "buffer" => VariedProperty::Buffer(self.varied_node("expected a switch name")?),
            "stack" | "size" | "clients" | "from" | "to" => {
                self.take(TokenRole::Keyword);
                match word.as_str() {
                    "stack" => VariedProperty::Stack,
                    "size" => VariedProperty::Size,
                    "clients" => VariedProperty::Clients,
                    "from" => VariedProperty::Place(FactorSide::From),
                    _ => VariedProperty::Place(FactorSide::To),
                }
            }
            _ => {
                let name = String::from(self.text(0));
                self.take(TokenRole::Plain);
                VariedProperty::Named(name)
            }
        })
    }

    /// Reads `of a - b`; `None`, for all links, if there is no `of`.
    fn varied_link(&mut self) -> Parsed<Option<(String, String)>> {
        if !self.accept_word("of") {
            return Ok(None);
        }
        let (first, _, second) = self.link_ends()?;
        Ok(Some(texts(&first, &second)))
    }

    /// Reads the property's word and `of NAME`; `None`, for all nodes, if there is no `of`.
    fn varied_node(&mut self, expected: &str) -> Parsed<Option<String>> {
        self.take(TokenRole::Keyword);
        if self.accept_word("of") {
            Ok(Some(self.node_name(expected)?.text))
        } else {
            Ok(None)
        }
    }

    /// Reads multiples: `x 10, x 100`, also `x10`.
    fn times_levels(&mut self) -> Parsed<Vec<LevelItem>> {
        const NUMBER: &str = "expected a number above 0, as in `x 10`";
        let mut levels = Vec::new();
        loop {
            let joined: Option<f64> = self
                .text(0)
                .strip_prefix(['x', 'X'])
                .and_then(|rest| rest.parse().ok());
            if !(self.kind() == TokenKind::Name && times_word(self.text(0))) {
                return Err(self.unexpected("expected `x` and a number", &["x"]));
            }
            let span = self.take(TokenRole::Plain);
            let number = match (joined, self.kind()) {
                (Some(number), _) => number,
                (None, TokenKind::Number(number)) => {
                    self.take(TokenRole::Plain);
                    number
                }
                _ => return Err(self.unexpected(NUMBER, &[])),
            };
            if number <= 0.0 || (number - 1.0).abs() < f64::EPSILON {
                let message = if number <= 0.0 {
                    format!("`x {number}` is not above 0")
                } else {
                    format!("`x {number}` changes nothing")
                };
                let diagnostic = Diagnostic::error(span.to(self.last_span()), message, NUMBER);
                return Err(self.fail(diagnostic.hint("`x 2` doubles, `x 0.5` halves")));
            }
            levels.push(LevelItem::Times(number));
            if !self.accept(TokenKind::Comma) {
                return Ok(levels);
            }
        }
    }

    /// Reads levels that replace the written value: the text between commas outside parentheses, up to `;` or the end.
    fn set_levels(&mut self) -> Parsed<Vec<LevelItem>> {
        let mut levels = Vec::new();
        loop {
            let (start, mut depth, mut any) = (self.span(), 0_u32, false);
            loop {
                match self.kind() {
                    TokenKind::End | TokenKind::Semicolon => break,
                    TokenKind::Comma if depth == 0 => break,
                    TokenKind::Open => depth += 1,
                    TokenKind::Close => depth = depth.saturating_sub(1),
                    _ => {}
                }
                any = true;
                self.take(TokenRole::Plain);
            }
            if !any {
                return Err(self.unexpected("expected a level", &[]));
            }
            levels.push(LevelItem::Set(start.to(self.last_span())));
            if !self.accept(TokenKind::Comma) {
                return Ok(levels);
            }
        }
    }
}

/// Whether a word is `x`, or `x` and a number as one word (`x10`).
fn times_word(text: &str) -> bool {
    let rest = text.strip_prefix(['x', 'X']);
    rest.is_some_and(|rest| rest.is_empty() || rest.parse::<f64>().is_ok())
}
