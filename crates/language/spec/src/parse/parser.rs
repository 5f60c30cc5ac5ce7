//! The parser's state and basic steps: looks ahead, takes tokens, reports what was expected, and finds where to go on
//! after a mistake.
//!
//! A parameter `ahead` counts tokens from the current one: 0 is the current token. `expected` is the text of the
//! diagnostic, `words` are the words to suggest if one is misspelt.

use super::name_scope::NameScope;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::spelling;
use crate::token::{SpecToken, TokenKind};
use crate::token_layout::{Marked, TokenRole};
use crate::tree::Word;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};

/// The mistake has been reported; the caller goes on somewhere else.
#[derive(Debug)]
pub(crate) struct ParseFailed;

pub(crate) type Parsed<T> = Result<T, ParseFailed>;

/// Reads the tokens of one text from first to last, and gives each a mark for the formatter.
pub(crate) struct Parser<'m, 'a> {
    pub(crate) marked: &'m mut Marked<'a>,
    pub(crate) report: &'m mut DiagnosticReport,
    /// Index of the current token.
    at: usize,
    /// Keys of the application types that the text or the prelude declares.
    applications: BTreeSet<String>,
    /// Names that a `=` follows somewhere in the text: swept variables, and also options and settings.
    variables: BTreeSet<String>,
    /// Names of the timings of procedures, in their common form.
    timings: BTreeSet<String>,
    /// What loops and templates bind here.
    pub(super) scope: NameScope,
}

impl<'m, 'a> Parser<'m, 'a> {
    pub(super) fn new(marked: &'m mut Marked<'a>, report: &'m mut DiagnosticReport) -> Self {
        let mut applications: BTreeSet<String> =
            spelling::prelude().map(ToString::to_string).collect();
        let mut variables = BTreeSet::new();
        let mut timings: BTreeSet<String> = spelling::prelude_timings().map(Into::into).collect();
        for index in 0..marked.tokens.list.len() {
            let is =
                |index: usize, kind: TokenKind| marked.token(index).is_some_and(|t| t.kind == kind);
            if is(index, TokenKind::Name) && is(index + 1, TokenKind::Equals) {
                variables.insert(marked.text(index).to_string());
            }
            if is(index, TokenKind::Name)
                && is(index + 1, TokenKind::Name)
                && spelling::fold(marked.text(index)) == "procedure"
            {
                applications.insert(spelling::application_key(marked.text(index + 1)));
                // Nothing but names and commas, so that each token of a hostile text is looked at a few times at most.
                let is_listed = |at: &usize| is(*at, TokenKind::Name) || is(*at, TokenKind::Comma);
                let end = match is(index + 2, TokenKind::Open) {
                    true => marked.tokens.list.len(),
                    false => 0,
                };
                let declared = (index + 3..end)
                    .take_while(is_listed)
                    .filter(|at| is(*at, TokenKind::Name));
                timings.extend(declared.map(|at| spelling::fold(marked.text(at))));
            }
        }
        Self {
            marked,
            report,
            at: 0,
            applications,
            variables,
            timings,
            scope: NameScope::default(),
        }
    }

    // Looking.

    /// The token `ahead` of the current one; the last token, which ends the text, where there are no more.
    pub(crate) fn token(&self, ahead: usize) -> SpecToken {
        let list = &self.marked.tokens.list;
        let end = SpecToken {
            kind: TokenKind::End,
            span: TextSpan::default(),
            breaks: 0,
            line: 1,
        };
        list.get(self.at + ahead)
            .or(list.last())
            .copied()
            .unwrap_or(end)
    }

    pub(crate) fn kind(&self) -> TokenKind {
        self.token(0).kind
    }

    pub(crate) fn ahead(&self, ahead: usize) -> TokenKind {
        self.token(ahead).kind
    }

    pub(crate) fn span(&self) -> TextSpan {
        self.scope.place.unwrap_or(self.token(0).span)
    }

    /// The span of the previous token.
    pub(crate) fn last_span(&self) -> TextSpan {
        let last = self.at.checked_sub(1);
        let read = last.and_then(|last| self.marked.token(last));
        let span = read.map_or(TextSpan::default(), |t| t.span);
        self.scope.place.unwrap_or(span)
    }

    /// Whether the current token stands right behind the previous one, without a space.
    pub(super) fn is_joined(&self) -> bool {
        let last = self.at.checked_sub(1);
        let read = last.and_then(|last| self.marked.token(last));
        read.is_some_and(|last| last.span.end == self.token(0).span.start)
    }

    /// The text of the previous token.
    pub(crate) fn last_text(&self) -> &'a str {
        self.at
            .checked_sub(1)
            .map_or("", |last| self.marked.text(last))
    }

    pub(crate) fn text(&self, ahead: usize) -> &'a str {
        self.marked.text(self.at + ahead)
    }

    /// The text of a span.
    pub(crate) fn written(&self, span: TextSpan) -> &'a str {
        self.marked.source.get(span.start..span.end).unwrap_or("")
    }

    /// The text from the current token up to white space or a sign that ends a part, whichever tokens it consists of.
    pub(crate) fn whole_word(&self) -> &'a str {
        let rest = self.marked.source.get(self.span().start..).unwrap_or("");
        let ends = |c: char| c.is_whitespace() || matches!(c, ';' | ',' | '|' | '<' | '>' | '}');
        rest.split(ends).next().unwrap_or("")
    }

    /// The name at `ahead` in its common form (lower case, `_` for `-`); empty if there is no name.
    pub(crate) fn folded(&self, ahead: usize) -> String {
        if self.ahead(ahead) == TokenKind::Name {
            spelling::fold(self.text(ahead))
        } else {
            String::new()
        }
    }

    pub(crate) fn is_word(&self, ahead: usize, words: &[&str]) -> bool {
        self.ahead(ahead) == TokenKind::Name && words.contains(&self.folded(ahead).as_str())
    }

    /// Whether the name of a declared application type stands there.
    pub(crate) fn is_application(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Name
            && self
                .applications
                .contains(&spelling::application_key(self.text(ahead)))
    }

    /// Whether a name stands there that a `=` follows somewhere in the text, as it follows a swept variable.
    pub(crate) fn is_swept(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Name && self.variables.contains(self.text(ahead))
    }

    /// Whether a `=` follows this name somewhere in the text.
    pub(super) fn is_swept_name(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// Whether the name of a timing of some procedure stands there.
    pub(crate) fn is_timing_name(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Name && self.timings.contains(&self.folded(ahead))
    }

    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// Goes on at another token.
    pub(super) const fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    // Taking.

    /// Takes the current token, gives it the role and returns its span. The end of the text is never passed.
    pub(crate) fn take(&mut self, role: TokenRole) -> TextSpan {
        let span = self.span();
        if let Some(mark) = self.marked.mark_mut(self.at) {
            mark.role = role;
        }
        if self.kind() != TokenKind::End {
            self.at += 1;
        }
        span
    }

    /// Takes the current token if it is of that kind; returns whether it was.
    pub(crate) fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.take(TokenRole::Plain);
        }
        found
    }

    /// Takes the current token if it is that keyword; returns whether it was.
    pub(crate) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, &[word]);
        if found {
            self.take(TokenRole::Keyword);
        }
        found
    }

    pub(crate) fn expect(&mut self, kind: TokenKind, expected: &str) -> Parsed<TextSpan> {
        if self.kind() == kind {
            Ok(self.take(TokenRole::Plain))
        } else {
            Err(self.unexpected(expected, &[]))
        }
    }

    pub(crate) fn expect_word(&mut self, word: &str, expected: &str) -> Parsed<TextSpan> {
        if self.is_word(0, &[word]) {
            Ok(self.take(TokenRole::Keyword))
        } else {
            Err(self.unexpected(expected, &[word]))
        }
    }

    pub(crate) fn name(&mut self, expected: &str) -> Parsed<Word> {
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected(expected, &[]));
        }
        let text = self.text(0).to_string();
        Ok(Word {
            text,
            span: self.take(TokenRole::Plain),
        })
    }

    /// Reads a name that is being declared. A keyword is reported, but read all the same.
    pub(crate) fn new_name(&mut self, expected: &str) -> Parsed<Word> {
        let word = self.name(expected)?;
        if spelling::is_reserved(&word.text) {
            let message = format!("`{}` is a keyword and cannot be a name", word.text);
            self.report
                .push(Diagnostic::error(word.span, message, expected).hint("choose another name"));
        }
        Ok(word)
    }

    /// Reads a quoted text and returns it without its quotes.
    pub(crate) fn quoted(&mut self, expected: &str) -> Parsed<Word> {
        if self.kind() != TokenKind::Text {
            return Err(self.unexpected(expected, &[]));
        }
        let text = self.text(0).trim_matches('"').to_string();
        Ok(Word {
            text,
            span: self.take(TokenRole::Plain),
        })
    }

    // Reporting.

    /// Puts the value in `place`, and reports `word` as given twice if there was one. `of` names what it belongs to.
    pub(crate) fn set<T>(
        &mut self,
        place: &mut Option<T>,
        value: T,
        word: (&str, TextSpan),
        of: &str,
    ) {
        if place.replace(value).is_some() {
            let message = format!("`{}` is given twice", word.0);
            self.report.push(Diagnostic::error(
                word.1,
                message,
                format!("already given for this {of}"),
            ));
        }
    }

    /// Reports that the current token is unexpected, with a hint if it is close to one of `words`.
    pub(crate) fn unexpected(&mut self, expected: &str, words: &[&str]) -> ParseFailed {
        let found = self.describe();
        let diagnostic = Diagnostic::error(self.span(), format!("unexpected {found}"), expected);
        let near = if self.kind() == TokenKind::Name && !self.report.full() {
            crate::diagnostic::nearest(self.text(0), words.iter().copied())
        } else {
            None
        };
        let diagnostic = match near {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            None => diagnostic,
        };
        self.fail(diagnostic)
    }

    pub(crate) fn fail(&mut self, diagnostic: Diagnostic) -> ParseFailed {
        self.report.push(diagnostic);
        ParseFailed
    }

    /// The current token as diagnostics name it.
    pub(crate) fn describe(&self) -> String {
        match self.kind() {
            TokenKind::End => "end of input".to_string(),
            TokenKind::Text => "quoted string".to_string(),
            _ => format!("`{}`", self.text(0)),
        }
    }

    // Marking and recovering.

    /// Marks the current token as the beginning of a line.
    pub(crate) fn begin_line(&mut self) {
        if let Some(mark) = self.marked.mark_mut(self.at) {
            mark.line = true;
        }
    }

    /// Marks the current token as the beginning of a line if its specification is too long for one.
    pub(crate) fn begin_soft(&mut self) {
        if let Some(mark) = self.marked.mark_mut(self.at) {
            mark.soft = true;
        }
    }

    /// Marks that a `;` is missing behind the previous token; the formatter adds it.
    pub(crate) fn terminate_last(&mut self) {
        if let Some(mark) = self
            .at
            .checked_sub(1)
            .and_then(|last| self.marked.mark_mut(last))
        {
            mark.terminate = true;
        }
    }

    /// Reads the `;` behind a statement, which may be missing before a closing brace.
    pub(crate) fn statement_end(&mut self, expected: &str, words: &[&str]) -> Parsed<()> {
        match self.kind() {
            TokenKind::Semicolon => {
                self.take(TokenRole::Terminator);
                Ok(())
            }
            TokenKind::CloseBrace => {
                self.terminate_last();
                Ok(())
            }
            _ => Err(self.unexpected(expected, words)),
        }
    }

    /// After a mistake in a statement: skips to behind the next `;` of this block or behind a nested block, or to the
    /// `}` of this block or an item.
    pub(crate) fn skip_statement(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::CloseBrace if depth == 0 => return,
                TokenKind::Semicolon if depth == 0 => {
                    self.take(TokenRole::Plain);
                    return;
                }
                _ if self.begins_item() => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => {
                    depth -= 1;
                    if depth == 0 {
                        self.take(TokenRole::Plain);
                        return;
                    }
                }
                _ => {}
            }
            self.take(TokenRole::Plain);
        }
    }

    /// Whether a specification seems to begin there: a number, then a word that can follow the number of runs.
    pub(crate) fn looks_like_specification(&self, ahead: usize) -> bool {
        matches!(self.ahead(ahead), TokenKind::Number(_))
            && (self.is_application(ahead + 1)
                || self.is_word(ahead + 1, spelling::COMPOSERS)
                || self.is_word(ahead + 1, spelling::HEADS)
                || self.is_word(ahead + 1, &["from", "to", "priority"]))
    }

    /// Whether an item begins at the current token: its keyword in column one, followed by a name or a number.
    pub(crate) fn begins_item(&self) -> bool {
        self.begins_item_at(0)
    }

    /// The same for the token at `ahead`.
    pub(crate) fn begins_item_at(&self, ahead: usize) -> bool {
        let token = self.token(ahead);
        let first = self.at + ahead == 0 || token.breaks > 0;
        // `host a;` can also be a statement of a network, but is nearly always indented there.
        let column_one = self
            .marked
            .source
            .get(..token.span.start)
            .is_none_or(|t| t.is_empty() || t.ends_with('\n'));
        let followed = matches!(
            self.ahead(ahead + 1),
            TokenKind::Name | TokenKind::Number(_)
        );
        first && column_one && self.is_word(ahead, spelling::ITEMS) && followed
    }

    /// Reads a block in braces: calls `read` for each statement, and skips statements with mistakes. Returns whether
    /// all could be read.
    pub(crate) fn block(
        &mut self,
        expected: &str,
        read: &mut dyn FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<bool> {
        let open = self.expect(TokenKind::OpenBrace, expected)?;
        self.rest_of_block(open, read)
    }

    /// Reads the rest of a block whose opening brace, at the span `open`, has been taken.
    pub(crate) fn rest_of_block(
        &mut self,
        open: TextSpan,
        read: &mut dyn FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<bool> {
        let mut sound = true;
        loop {
            self.begin_line();
            match self.kind() {
                TokenKind::CloseBrace => {
                    self.take(TokenRole::Plain);
                    return Ok(sound);
                }
                TokenKind::End => {
                    return Err(self.fail(Diagnostic::error(
                        open,
                        "this `{` is never closed",
                        "expected a matching `}`",
                    )));
                }
                TokenKind::Semicolon => {
                    self.take(TokenRole::Dropped);
                    continue;
                }
                _ => {}
            }
            let before = self.at;
            if read(self).is_err() {
                sound = false;
                self.skip_statement();
                if self.begins_item() {
                    return Err(ParseFailed);
                }
                if self.at == before {
                    self.take(TokenRole::Plain);
                }
            }
        }
    }

    /// After a mistake in a specification: skips to behind its terminator or a closing brace, or to an item.
    pub(crate) fn skip_specification(&mut self) {
        let mut depth = 0_usize;
        while self.kind() != TokenKind::End && !self.begins_item() {
            match self.kind() {
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            let closed = self.kind() == TokenKind::CloseBrace;
            let terminator = depth == 0 && (closed || self.is_terminator(0));
            self.take(TokenRole::Plain);
            if terminator {
                break;
            }
        }
    }

    /// Skips to the next token of that kind in this specification. Returns false, and skips nothing, if there is none.
    pub(crate) fn skip_to(&mut self, kind: TokenKind) -> bool {
        let mut ahead = 0;
        while self.ahead(ahead) != kind {
            let over = matches!(
                self.ahead(ahead),
                TokenKind::End | TokenKind::OpenBrace | TokenKind::CloseBrace
            ) || self.is_terminator(ahead)
                || self.begins_item_at(ahead);
            if over {
                return false;
            }
            ahead += 1;
        }
        for _ in 0..ahead {
            self.take(TokenRole::Plain);
        }
        true
    }

    /// Whether a specification ends there: a `;`, or a `,` before another specification.
    fn is_terminator(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Semicolon
            || (self.ahead(ahead) == TokenKind::Comma && self.looks_like_specification(ahead + 1))
    }
}
