//! How tokens are spelled and spaced on one line: shared by the formatter and by the texts in a plan.
//!
//! The parser marks each token with its role; meaning and line structure play no part.

use crate::spelling;
use crate::token::{SpecToken, TokenKind, Tokens};
use crate::tree::TokenIndices;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// What a token is, as far as its spelling goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenRole {
    /// Printed as it stands.
    #[default]
    Plain,
    /// A word of the language: lower case, `_` for `-`.
    Keyword,
    /// Keywords in one token: lower case, a space for `-` and `_`.
    Keywords,
    /// Name of an application type.
    Application,
    /// Name of an operation.
    Operation,
    /// A swept variable.
    Variable,
    /// The `<` or `>` around one.
    Bracket,
    /// Ends a specification; printed as `;`.
    Terminator,
    /// Not printed.
    Dropped,
}

/// What the parser found out about a token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenMark {
    pub(crate) role: TokenRole,
    /// Begins a line: an item, a statement, a closing brace.
    pub(crate) line: bool,
    /// Begins a line when its specification is too long for one.
    pub(crate) soft: bool,
    /// A `;` is to follow it that was not written.
    pub(crate) terminate: bool,
    /// First token of a specification: one past its last, with terminator and sweeps.
    pub(crate) extent: Option<usize>,
}

/// A text's tokens with their marks.
#[derive(Debug)]
pub(crate) struct Marked<'a> {
    pub(crate) source: &'a str,
    pub(crate) tokens: &'a Tokens,
    pub(crate) marks: Vec<TokenMark>,
}

impl<'a> Marked<'a> {
    pub(crate) fn new(source: &'a str, tokens: &'a Tokens) -> Self {
        Self {
            source,
            tokens,
            marks: vec![TokenMark::default(); tokens.list.len()],
        }
    }

    pub(crate) fn mark(&self, index: usize) -> TokenMark {
        self.marks.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn mark_mut(&mut self, index: usize) -> Option<&mut TokenMark> {
        self.marks.get_mut(index)
    }

    pub(crate) fn token(&self, index: usize) -> Option<&SpecToken> {
        self.tokens.list.get(index)
    }

    pub(crate) fn text(&self, index: usize) -> &'a str {
        self.token(index)
            .and_then(|t| self.source.get(t.span.start..t.span.end))
            .unwrap_or("")
    }

    fn kind(&self, index: usize) -> TokenKind {
        self.token(index).map_or(TokenKind::End, |t| t.kind)
    }

    /// A token in its canonical spelling.
    pub(crate) fn spelled(&self, index: usize) -> String {
        let text = self.text(index);
        match self.mark(index).role {
            TokenRole::Keyword => spelling::fold(text),
            TokenRole::Keywords => spelling::fold(text).replace('_', " "),
            TokenRole::Application => spelling::application_text(text),
            TokenRole::Operation => spelling::operation(text).unwrap_or(text).to_string(),
            TokenRole::Terminator => ";".to_string(),
            TokenRole::Dropped => String::new(),
            _ if self.kind(index) == TokenKind::Ellipsis => "...".to_string(),
            _ => text.to_string(),
        }
    }

    /// Whether a space stands between two neighbours.
    pub(crate) fn spaced(&self, left: usize, right: usize) -> bool {
        let bracket = |index: usize, kind: TokenKind| {
            self.kind(index) == kind && self.mark(index).role == TokenRole::Bracket
        };
        if self.mark(right).role == TokenRole::Terminator
            || bracket(left, TokenKind::Less)
            || bracket(right, TokenKind::Greater)
        {
            return false;
        }
        let before = matches!(
            self.kind(right),
            TokenKind::Semicolon
                | TokenKind::Comma
                | TokenKind::Colon
                | TokenKind::Open
                | TokenKind::Close
                | TokenKind::Star
                | TokenKind::Slash
                | TokenKind::Percent
        );
        !before
            && !matches!(
                self.kind(left),
                TokenKind::Open | TokenKind::Star | TokenKind::Slash
            )
    }

    /// Tokens on one line. `value` gives what stands for a variable.
    pub(crate) fn flat(&self, at: TokenIndices, value: &dyn Fn(&str) -> Option<String>) -> String {
        let mut line = String::new();
        let mut last: Option<usize> = None;
        for index in at {
            let mark = self.mark(index);
            if mark.role == TokenRole::Dropped || self.kind(index) == TokenKind::End {
                continue;
            }
            let substituted = self.substituted(index, value);
            if mark.role == TokenRole::Bracket && substituted.is_some() {
                continue;
            }
            if last.is_some_and(|last| self.spaced(last, index)) && !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&substituted.unwrap_or_else(|| self.spelled(index)));
            last = Some(index);
        }
        line
    }

    /// The value for a variable's token, or for the bracket beside it.
    fn substituted(&self, index: usize, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let name = match (self.mark(index).role, self.kind(index)) {
            (TokenRole::Variable, _) => self.text(index),
            (TokenRole::Bracket, TokenKind::Less) => self.text(index + 1),
            (TokenRole::Bracket, _) => self.text(index.wrapping_sub(1)),
            _ => return None,
        };
        value(name)
    }

    /// Columns the tokens take on one line, with variables as written and missing terminators added.
    pub(crate) fn width(&self, at: TokenIndices) -> usize {
        let missing = at
            .clone()
            .filter(|index| self.mark(*index).terminate)
            .count();
        self.flat(at, &|_| None).chars().count() + missing
    }
}
