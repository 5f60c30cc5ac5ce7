//! How tokens are spelled and spaced on one line: shared by the formatter and by the texts in a plan.
//!
//! The parser gives each token a mark: its role, and where lines may begin. Only the formatter uses the marks about
//! lines.

use crate::spelling;
use crate::token::{SpecToken, TokenKind, Tokens};
use crate::tree::TokenIndices;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// The role of a token, which decides how it is spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenRole {
    /// Printed as it stands.
    #[default]
    Plain,
    /// A word of the language: lower case, `_` for `-`.
    Keyword,
    /// Several keywords written as one token (`priority_background`): lower case, a space for each `-` and `_`.
    Keywords,
    /// Name of an application type.
    Application,
    /// Name of an operation.
    Operation,
    /// A swept variable.
    Variable,
    /// The `<` or `>` around a swept variable.
    Bracket,
    /// Ends a specification; printed as `;`.
    Terminator,
    /// Part of an index or of a range, printed without spaces: `w[i+1]`, `1..8`.
    Index,
    /// The `(` before a number that is computed, printed with a space before it.
    Group,
    /// Not printed.
    Dropped,
}

/// What the parser found out about a token.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenMark {
    pub(crate) role: TokenRole,
    /// The token begins a line: an item, a statement or a closing brace.
    pub(crate) line: bool,
    /// The token begins a line if its specification is too long for one line.
    pub(crate) soft: bool,
    /// A `;` that was not written is printed behind the token.
    pub(crate) terminate: bool,
    /// On the first token of a specification: one past the index of its last token, terminator and sweeps included.
    pub(crate) extent: Option<usize>,
}

/// A text, its tokens, and a mark for each token.
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

    /// The token in its canonical spelling; empty if it is not to be printed.
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

    /// Whether a space is printed between the neighbouring tokens `left` and `right`.
    pub(crate) fn spaced(&self, left: usize, right: usize) -> bool {
        let bracket = |index: usize, kind: TokenKind| {
            self.kind(index) == kind && self.mark(index).role == TokenRole::Bracket
        };
        if matches!(
            self.mark(right).role,
            TokenRole::Terminator | TokenRole::Index
        ) || bracket(left, TokenKind::Less)
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
        (!before || self.mark(right).role == TokenRole::Group)
            && !matches!(
                self.kind(left),
                TokenKind::Open | TokenKind::Star | TokenKind::Slash
            )
    }

    /// The tokens printed on one line. `value` returns the text for a variable, or `None` to print the variable as
    /// written.
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

    /// The text for a variable, if the token is the variable or a bracket beside it.
    fn substituted(&self, index: usize, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let name = match (self.mark(index).role, self.kind(index)) {
            (TokenRole::Variable, _) => self.text(index),
            (TokenRole::Bracket, TokenKind::Less) => self.text(index + 1),
            (TokenRole::Bracket, _) => self.text(index.wrapping_sub(1)),
            _ => return None,
        };
        value(name)
    }

    /// The number of columns that the tokens take on one line, with variables as written and missing terminators
    /// added.
    pub(crate) fn width(&self, at: TokenIndices) -> usize {
        let missing = at
            .clone()
            .filter(|index| self.mark(*index).terminate)
            .count();
        self.flat(at, &|_| None).chars().count() + missing
    }
}
