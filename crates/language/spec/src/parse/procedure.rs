//! Parses procedures. A procedure has two sides, `initiator` and `responder`: blocks of statements that call
//! communication operations.

use super::parser::{ParseFailed, Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Argument, ProcedureItem, SpecItem, Statement, Tree, Word};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::procedure::OPERATIONS;

/// The deepest nesting of `repeat`, so that the recursion is bounded.
const DEEPEST: usize = 32;
/// How many tokens are searched for the sides behind a header with mistakes.
const LOOK_AHEAD: usize = 64;
const SIDES: &[&str] = &["initiator", "responder"];
const STATEMENT: &str = "expected an operation or `repeat`";

impl Parser<'_, '_> {
    /// Reads a procedure and adds it to the tree. After a mistake in the header (name and timings), the sides are
    /// still read for their mistakes, but not kept: the names they refer to are unknown.
    pub(crate) fn procedure_item(&mut self, tree: &mut Tree) -> Parsed<()> {
        self.take(TokenRole::Keyword);
        let (at, span) = (self.position(), self.span());
        let name = self.new_name("expected an application type name").ok();
        if let (Some(_), Some(mark)) = (&name, self.marked.mark_mut(at)) {
            mark.role = TokenRole::Application;
        }
        let named = name.is_some();
        let name = name.unwrap_or(Word {
            text: String::new(),
            span,
        });
        let mut procedure = ProcedureItem {
            name,
            timings: Vec::new(),
            initiator: None,
            responder: None,
            broken: true,
        };
        let sound = named && self.header(&mut procedure).is_ok();
        let result = if sound || self.find_sides() {
            self.sides(&mut procedure)
        } else {
            Err(ParseFailed)
        };
        procedure.broken = !sound || !matches!(result, Ok(true));
        if !sound {
            (procedure.initiator, procedure.responder) = (None, None);
        }
        if named {
            tree.items.push(SpecItem::Procedure(procedure));
        }
        result.map(|_| ())
    }

    /// Reads the names of timings in parentheses, if there are any, up to the `{`.
    fn header(&mut self, procedure: &mut ProcedureItem) -> Parsed<()> {
        if self.accept(TokenKind::Open) && !self.accept(TokenKind::Close) {
            self.timings(procedure)?;
        }
        if self.kind() == TokenKind::OpenBrace {
            return Ok(());
        }
        Err(self.unexpected("expected `{`, or `(` and the names of timings", &[]))
    }

    /// After a mistake in the header: skips to its `{`, or to a side if the `{` is missing. Returns false, and skips
    /// nothing, if neither seems to belong to this procedure.
    fn find_sides(&mut self) -> bool {
        let (mut ended, mut broken) = (false, false);
        for ahead in 0..LOOK_AHEAD {
            let token = self.token(ahead);
            ended |= token.kind == TokenKind::Semicolon;
            broken |= ahead > 0 && token.breaks > 0;
            let side = self.ahead(ahead + 1) == TokenKind::OpenBrace && self.is_word(ahead, SIDES);
            if side || (token.kind == TokenKind::OpenBrace && !(ended && broken)) {
                (0..ahead).for_each(|_| {
                    self.take(TokenRole::Plain);
                });
                return true;
            }
            if matches!(token.kind, TokenKind::End | TokenKind::CloseBrace)
                || self.begins_item_at(ahead)
            {
                return false;
            }
        }
        false
    }

    /// Reads the sides in their braces. Returns whether all could be read.
    fn sides(&mut self, procedure: &mut ProcedureItem) -> Parsed<bool> {
        let mut read = |parser: &mut Self| -> Parsed<()> {
            let side = match parser.folded(0).as_str() {
                "initiator" => &mut procedure.initiator,
                "responder" => &mut procedure.responder,
                _ => return Err(parser.unexpected("expected `initiator` or `responder`", SIDES)),
            };
            if side.is_some() {
                return Err(parser.unexpected(
                    "`initiator` and `responder` may each be given only once",
                    &[],
                ));
            }
            parser.take(TokenRole::Keyword);
            let mut statements = Vec::new();
            let result = parser.statements(&mut statements, 0);
            *side = Some(statements);
            if result? { Ok(()) } else { Err(ParseFailed) }
        };
        // Mistakes within a side were skipped one by one, so the parser stands behind the side's closing brace.
        self.each_side(&mut read)
    }

    /// Reads the names of timings up to the `)`.
    fn timings(&mut self, procedure: &mut ProcedureItem) -> Parsed<()> {
        const TIMING: &str = "expected a timing name";
        loop {
            if self.begins_item() {
                return Err(self.unexpected(TIMING, &[]));
            }
            let name = self.new_name(TIMING)?;
            if procedure
                .timings
                .iter()
                .any(|other| other.text == name.text)
            {
                let message = format!("the timing `{}` is named twice", name.text);
                self.report.push(Diagnostic::error(
                    name.span,
                    message,
                    "already in this list",
                ));
            }
            procedure.timings.push(name);
            if !self.accept(TokenKind::Comma) {
                self.expect(TokenKind::Close, "expected `,` or `)`")?;
                return Ok(());
            }
        }
    }

    /// Reads the block of the sides, calling `read` for each. Behind a side with mistakes nothing is skipped, if it
    /// was read up to its closing brace.
    fn each_side(&mut self, read: &mut dyn FnMut(&mut Self) -> Parsed<()>) -> Parsed<bool> {
        let mut sound = true;
        let open = self.span();
        self.accept(TokenKind::OpenBrace);
        let all = self.rest_of_block(open, &mut |parser| {
            let first = parser.position();
            match read(parser) {
                Err(_) if parser.position() == first || !parser.closed_block() => Err(ParseFailed),
                Err(_) => {
                    sound = false;
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        })?;
        Ok(all && sound)
    }

    /// Whether the previous token is a `}`.
    fn closed_block(&self) -> bool {
        self.position()
            .checked_sub(1)
            .and_then(|last| self.marked.token(last))
            .is_some_and(|t| t.kind == TokenKind::CloseBrace)
    }

    /// Reads a block of statements. Returns whether all could be read; `depth` counts the repeats around it.
    fn statements(&mut self, into: &mut Vec<Statement>, depth: usize) -> Parsed<bool> {
        if depth > DEEPEST {
            let message = format!("repeats are nested more than {DEEPEST} levels deep");
            return Err(self.fail(Diagnostic::error(
                self.span(),
                message,
                "this one is nested too deeply",
            )));
        }
        let mut sound = true;
        let all = self.block("expected `{`", &mut |parser| {
            let statement = parser.statement(depth, &mut sound)?;
            into.push(statement);
            Ok(())
        })?;
        Ok(all && sound)
    }

    /// Reads a repeat or a call of an operation. `sound` becomes false if a statement within the repeat has a mistake.
    fn statement(&mut self, depth: usize, sound: &mut bool) -> Parsed<Statement> {
        if self.is_word(0, &["repeat"]) {
            return self.repeat(depth, sound);
        }
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected(STATEMENT, &[]));
        }
        let Some(name) = spelling::operation(self.text(0)) else {
            let message = format!("unknown operation `{}`", self.text(0));
            let diagnostic = Diagnostic::error(self.span(), message, STATEMENT);
            let words = OPERATIONS.iter().map(|(name, ..)| *name).chain(["repeat"]);
            let hint = "`stackline help procedures` has a table of operations";
            let diagnostic = if self.report.full() {
                diagnostic
            } else {
                diagnostic.did_you_mean(self.text(0), words, hint)
            };
            return Err(self.fail(diagnostic));
        };
        let span = self.take(TokenRole::Operation);
        let mut arguments = Vec::new();
        if self.accept(TokenKind::Open) && !self.accept(TokenKind::Close) {
            arguments.push(self.argument()?);
            while self.accept(TokenKind::Comma) {
                arguments.push(self.argument()?);
            }
            self.expect(TokenKind::Close, "expected `,` or `)`")?;
        }
        let span = span.to(self.last_span());
        self.statement_end("expected `;`", &[])?;
        Ok(Statement::Call(name, arguments, span))
    }

    fn repeat(&mut self, depth: usize, sound: &mut bool) -> Parsed<Statement> {
        let span = self.take(TokenRole::Keyword);
        let times = if self.accept_word("count") {
            None
        } else {
            Some(self.number(ExpectedUnit::Plain, "expected `count` or a number")?)
        };
        let span = span.to(self.last_span());
        let mut body = Vec::new();
        *sound &= self.statements(&mut body, depth + 1)?;
        Ok(Statement::Repeat(times, body, span))
    }

    fn argument(&mut self) -> Parsed<Argument> {
        match self.kind() {
            TokenKind::Number(_) => Ok(Argument::Value(
                self.value(ExpectedUnit::Any, "expected an argument")?,
            )),
            TokenKind::Name if self.is_drawn(0) => {
                Ok(Argument::Drawn(self.drawn(ExpectedUnit::Time)?))
            }
            TokenKind::Name => {
                let text = self.text(0).to_string();
                let fixed = self.is_word(0, &["unit", "reply"]);
                Ok(Argument::Word(Word {
                    text,
                    span: self.take(if fixed {
                        TokenRole::Keyword
                    } else {
                        TokenRole::Plain
                    }),
                }))
            }
            _ => Err(self.unexpected("expected a size, a timing or a name", &[])),
        }
    }
}
