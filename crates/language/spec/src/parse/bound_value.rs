//! Parses figures that a loop or a template gives: its index, its parameters, and numbers computed from them.

use super::index::decimal;
use super::name_scope::BoundName;
use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Base, SpecUnit, SpecValue};
use alloc::format;
use alloc::string::{String, ToString};

impl<'a> Parser<'_, 'a> {
    /// The name that stands here, with or without `<` and `>`, if a loop or a template gives it a value.
    pub(super) fn bound_name(&self) -> Option<&'a str> {
        let name = match self.kind() {
            TokenKind::Name => self.text(0),
            TokenKind::Less if self.is_bracketed(0) => self.text(1),
            _ => return None,
        };
        self.scope.find(name).map(|_| name)
    }

    /// Whether a number in parentheses stands here, which is computed: `(2*i) ms`.
    pub(super) fn computes(&self) -> bool {
        self.kind() == TokenKind::Open && !self.scope.bound.is_empty()
    }

    /// Reads a bound name, with the unit behind it.
    pub(super) fn bound_value(&mut self, name: &str, expect: ExpectedUnit) -> Parsed<SpecValue> {
        let start = self.span();
        let bracketed = self.kind() == TokenKind::Less;
        if bracketed {
            self.take(TokenRole::Bracket);
        }
        self.take(TokenRole::Plain);
        if bracketed {
            self.take(TokenRole::Bracket);
        }
        let bound = self.scope.find(name).cloned();
        match bound {
            Some(BoundName::Index(index)) => {
                self.with_unit(start, Base::Number(decimal(index)), expect)
            }
            Some(BoundName::Argument(value)) if value.unit == SpecUnit::None => {
                self.with_unit(start, value.base, expect)
            }
            Some(BoundName::Argument(value)) => {
                let span = start.to(self.last_span());
                self.of_that_kind(name, value, span, expect)
            }
            Some(BoundName::Open) | None => {
                self.with_unit(start, Base::Variable(name.to_string()), expect)
            }
        }
    }

    /// Reads a number in parentheses, with the unit behind it.
    pub(super) fn computed_value(&mut self, expect: ExpectedUnit) -> Parsed<SpecValue> {
        let start = self.span();
        self.take(TokenRole::Group);
        let number = self.whole_number(TokenRole::Index, &[TokenKind::Close])?;
        self.take(TokenRole::Index);
        if let Some(number) = number.filter(|number| *number < 0) {
            let span = start.to(self.last_span());
            let message = format!("`{}` is {number}", self.written(span));
            return Err(self.fail(Diagnostic::error(span, message, "expected 0 or more")));
        }
        let base = number.map_or_else(
            || Base::Variable(String::new()),
            |number| Base::Number(decimal(number)),
        );
        self.with_unit(start, base, expect)
    }

    fn with_unit(
        &mut self,
        start: TextSpan,
        base: Base,
        expect: ExpectedUnit,
    ) -> Parsed<SpecValue> {
        let unit = self.unit(expect)?;
        Ok(SpecValue {
            base,
            unit,
            span: start.to(self.last_span()),
        })
    }

    /// The argument at the place where it stands, if it is of the kind that is expected there.
    fn of_that_kind(
        &mut self,
        name: &str,
        value: SpecValue,
        span: TextSpan,
        expect: ExpectedUnit,
    ) -> Parsed<SpecValue> {
        let (right, wanted) = match (expect, value.unit) {
            (ExpectedUnit::Plain, _) => (false, "a plain number"),
            (ExpectedUnit::Size, unit) => (matches!(unit, SpecUnit::Size(_)), "a size"),
            (ExpectedUnit::Time, unit) => (matches!(unit, SpecUnit::Time(_)), "a time"),
            (ExpectedUnit::Any, unit) => (
                matches!(unit, SpecUnit::Size(_) | SpecUnit::Time(_)),
                "a size or a time",
            ),
            (ExpectedUnit::Rate, unit) => (matches!(unit, SpecUnit::Rate(_)), "a rate"),
            (ExpectedUnit::Percent, unit) => (unit == SpecUnit::Percent, "a percentage"),
        };
        if right {
            return Ok(SpecValue { span, ..value });
        }
        let message = format!("`{name}` must be {wanted} here");
        let label = match value.base {
            Base::Number(number) => {
                let base = number * value.unit.factor();
                format!("this use gives {base}{}", value.unit.base().text())
            }
            Base::Variable(variable) => format!("this use gives `{variable}`"),
        };
        let diagnostic = Diagnostic::error(span, message, label);
        Err(self.fail(diagnostic.hint("give the template an argument of that kind")))
    }
}
