//! Parses a clause of a part or a composer: `over`, `in`, `across`, `on cpu`, `expect`.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Clause, ClauseKind, SpecValue};
use alloc::format;
use stackline_core::plan::World;

impl Parser<'_, '_> {
    pub(super) fn begins_clause(&self) -> bool {
        self.is_word(0, spelling::CLAUSES)
    }

    /// Reads a clause, if one stands here. `last` says that another specification may follow it, so that a comma need
    /// not continue the clause.
    pub(crate) fn clause(&mut self, last: bool) -> Parsed<Option<Clause>> {
        if !self.begins_clause() {
            return Ok(None);
        }
        let (first, start) = (self.position(), self.span());
        let word = self.folded(0);
        if word == "expect" {
            self.begin_soft();
        }
        self.take(TokenRole::Keyword);
        let kind = match word.as_str() {
            "over" => ClauseKind::Over(self.stacks()?),
            "in" => ClauseKind::In(self.world()?),
            "across" => ClauseKind::Across(self.name("expected a network name")?),
            "expect" => ClauseKind::Expect(self.expectations()?),
            _ => self.cpus(last)?,
        };
        Ok(Some(Clause {
            kind,
            span: start.to(self.last_span()),
            at: first..self.position(),
        }))
    }

    fn world(&mut self) -> Parsed<World> {
        let world = match self.folded(0).as_str() {
            "live" => World::Live,
            "emulated" => World::Emulated,
            "simulated" => World::Simulated,
            _ => {
                let worlds = ["live", "emulated", "simulated"];
                return Err(self.unexpected("expected `live`, `emulated` or `simulated`", &worlds));
            }
        };
        self.take(TokenRole::Keyword);
        Ok(world)
    }

    /// Reads `cpu 1` or `cpu 1 to 2`, behind `on`.
    fn cpus(&mut self, last: bool) -> Parsed<ClauseKind> {
        const CORE: &str = "expected a core number";
        self.expect_word("cpu", "expected `cpu` and a number")?;
        let first = self.value(ExpectedUnit::Plain, CORE)?;
        let between = matches!(self.kind(), TokenKind::Minus | TokenKind::Comma)
            && !(last && self.looks_like_specification(1));
        if between && matches!(self.ahead(1), TokenKind::Number(_)) {
            let message = format!("unexpected `{}`", self.text(0));
            let hint = format!(
                "write `on cpu {} to {}`: the initiator's core, then the responder's",
                self.last_text(),
                self.text(1)
            );
            return Err(self.fail(
                Diagnostic::error(self.span(), message, "expected `to` between two cores")
                    .hint(hint),
            ));
        }
        let second: Option<SpecValue> = if self.accept_word("to") {
            Some(self.value(ExpectedUnit::Plain, CORE)?)
        } else {
            None
        };
        Ok(ClauseKind::Cpu(first, second))
    }
}
