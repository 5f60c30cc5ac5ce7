//! A clause of a part or a composer: `over`, `in`, `across`, `on cpu`.

use super::value::Expect;
use super::{Parsed, Parser};
use crate::layout::Role;
use crate::names;
use crate::tree::{Clause, ClauseKind, Value};
use stackline_core::plan::World;

impl Parser<'_, '_> {
    pub(super) fn begins_clause(&self) -> bool {
        self.is_word(0, names::CLAUSES)
    }

    /// A clause, if one stands here.
    pub(crate) fn clause(&mut self) -> Parsed<Option<Clause>> {
        if !self.begins_clause() {
            return Ok(None);
        }
        let (first, start) = (self.position(), self.span());
        let word = self.folded(0);
        self.take(Role::Keyword);
        let kind = match word.as_str() {
            "over" => ClauseKind::Over(self.stacks()?),
            "in" => ClauseKind::In(self.world()?),
            "across" => ClauseKind::Across(self.name("expected the name of a network")?),
            _ => self.cpus()?,
        };
        Ok(Some(Clause { kind, span: start.to(self.last_span()), at: first..self.position() }))
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
        self.take(Role::Keyword);
        Ok(world)
    }

    fn cpus(&mut self) -> Parsed<ClauseKind> {
        const CORE: &str = "expected the number of a core";
        self.expect_word("cpu", "expected `cpu` and a number")?;
        let first = self.value(Expect::Plain, CORE)?;
        let second: Option<Value> = if self.accept_word("to") { Some(self.value(Expect::Plain, CORE)?) } else { None };
        Ok(ClauseKind::Cpu(first, second))
    }
}
