//! Parses expectations: `p99 < 20 ms`, `loss within 0% .. 1%`, `finding not queue_drop`.

use super::parser::{ParseFailed, Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{BoundItem, BoundSign, ConditionItem, ExpectationItem, SpecUnit, Word};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::expectation::{BoundUnit, ExpectedFigure, FIGURES};
use stackline_core::units::{BIT_RATES, RATE_UNITS, SIZE_UNITS, find_factor};

const FIGURE: &str = "expected a figure such as `p99`, or `finding` and a kind of finding";
const SIGN: &str = "expected `<`, `<=`, `>`, `>=` or `within`";
const BOUND: &str = "expected a number with its unit, such as `20 ms`";

impl Parser<'_, '_> {
    /// Reads the expectations behind `expect`. A comma that ends the specification is not taken.
    pub(super) fn expectations(&mut self) -> Parsed<Vec<ExpectationItem>> {
        let mut items = vec![self.expectation()?];
        while self.kind() == TokenKind::Comma && self.is_another_expectation() {
            self.take(TokenRole::Plain);
            items.push(self.expectation()?);
        }
        Ok(items)
    }

    /// Whether an expectation follows the comma that stands here.
    fn is_another_expectation(&self) -> bool {
        let bounded = sign(self.ahead(2)).is_some() || self.is_word(2, &["within"]);
        let finding = self.is_word(1, &["finding"]) && self.ahead(2) == TokenKind::Name;
        self.ahead(1) == TokenKind::Name && (bounded || finding)
    }

    pub(super) fn expectation(&mut self) -> Parsed<ExpectationItem> {
        let (first, start, line) = (self.position(), self.span(), self.token(0).line);
        let condition = if self.is_word(0, &["finding"]) {
            self.finding()?
        } else {
            self.bounded_figure()?
        };
        Ok(ExpectationItem {
            condition,
            span: start.to(self.last_span()),
            at: first..self.position(),
            line,
        })
    }

    /// Reads `finding queue_drop` or `finding not queue_drop`.
    fn finding(&mut self) -> Parsed<ConditionItem> {
        self.take(TokenRole::Keyword);
        let is_unwanted = self.accept_word("not");
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected("expected a kind of finding, such as `queue_drop`", &[]));
        }
        let kind = self.folded_word();
        Ok(if is_unwanted {
            ConditionItem::NoFinding(kind)
        } else {
            ConditionItem::Finding(kind)
        })
    }

    /// Takes a name, in its common form.
    fn folded_word(&mut self) -> Word {
        let text = spelling::fold(self.text(0));
        Word {
            text,
            span: self.take(TokenRole::Keyword),
        }
    }

    fn bounded_figure(&mut self) -> Parsed<ConditionItem> {
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected(FIGURE, &[]));
        }
        let figure = self.folded_word();
        let unit = ExpectedFigure::named(&figure.text).map(ExpectedFigure::unit);
        if self.accept_word("within") {
            let low = self.bound(unit)?;
            if self.kind() != TokenKind::Range {
                return Err(self.no_range(&low));
            }
            self.take(TokenRole::Plain);
            let bounds = vec![low, self.bound(unit)?];
            return Ok(ConditionItem::Figure(figure, BoundSign::Within, bounds));
        }
        let Some(sign) = sign(self.kind()) else {
            return Err(self.no_sign(&figure));
        };
        self.take(TokenRole::Plain);
        let bounds = vec![self.bound(unit)?];
        Ok(ConditionItem::Figure(figure, sign, bounds))
    }

    /// Reports that no sign follows a figure; for a figure that does not exist, that is said first.
    fn no_sign(&mut self, figure: &Word) -> ParseFailed {
        if ExpectedFigure::named(&figure.text).is_none() {
            return self.fail(unknown_figure(figure));
        }
        if self.kind() != TokenKind::Equals {
            return self.unexpected(SIGN, &["within"]);
        }
        let diagnostic = Diagnostic::error(self.span(), "unexpected `=`", SIGN);
        let text = &figure.text;
        self.fail(diagnostic.hint(format!(
            "a measured figure is never exactly a number: write `{text} within A .. B`"
        )))
    }

    /// Reports that no `..` follows the first bound of `within`.
    fn no_range(&mut self, low: &BoundItem) -> ParseFailed {
        let found = format!("unexpected {}", self.describe());
        let diagnostic = Diagnostic::error(self.span(), found, "expected `..` and the upper bound");
        let low = self.written(low.value.span.to(self.last_span()));
        let hint = format!("write `within {low} .. B`");
        self.fail(diagnostic.hint(hint))
    }

    /// Reads a bound: a number or variable, with any unit. Whether the unit fits the figure is checked later.
    fn bound(&mut self, unit: Option<BoundUnit>) -> Parsed<BoundItem> {
        let behind = if self.is_bracketed(0) { 3 } else { 1 };
        let mut bound = BoundItem {
            value: if self.is_rate_at(behind) {
                self.rate()?
            } else {
                let units = match unit {
                    Some(BoundUnit::Time) => ExpectedUnit::Time,
                    _ => ExpectedUnit::Any,
                };
                self.value(units, BOUND)?
            },
            is_per_second: false,
        };
        if bound.value.unit != SpecUnit::None {
            return Ok(bound);
        }
        if self.accept(TokenKind::Percent) {
            bound.value.unit = SpecUnit::Percent;
        } else if self.is_per_second(0) {
            self.take(if self.kind() == TokenKind::Slash {
                TokenRole::Plain
            } else {
                TokenRole::Keyword
            });
            self.take(TokenRole::Keyword);
            bound.is_per_second = true;
        }
        bound.value.span = bound.value.span.to(self.last_span());
        Ok(bound)
    }

    /// Whether the unit of a rate of data stands there, or what is likely meant for one.
    fn is_rate_at(&self, ahead: usize) -> bool {
        if self.ahead(ahead) != TokenKind::Name {
            return false;
        }
        let word = self.text(ahead);
        let small = word.to_ascii_lowercase();
        let of_bits = ["bit", "bits", "bps"]
            .iter()
            .any(|end| small.ends_with(end));
        let is_size = find_factor(SIZE_UNITS, word).is_some();
        let is_rate = find_factor(RATE_UNITS, word).is_some();
        find_factor(BIT_RATES, word).is_some()
            || (is_rate && (!is_size || self.ahead(ahead + 1) == TokenKind::Slash))
            || (of_bits && small.len() <= "gbits".len())
    }
}

const fn sign(kind: TokenKind) -> Option<BoundSign> {
    Some(match kind {
        TokenKind::Less => BoundSign::Below,
        TokenKind::LessOrEqual => BoundSign::AtMost,
        TokenKind::Greater => BoundSign::Above,
        TokenKind::GreaterOrEqual => BoundSign::AtLeast,
        _ => return None,
    })
}

/// The mistake that there is no such figure.
pub(crate) fn unknown_figure(figure: &Word) -> Diagnostic {
    let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
    let message = format!("unknown figure `{}`", figure.text);
    let hint = format!(
        "the figures are {}, and percentiles such as p99.9",
        names.join(", ")
    );
    Diagnostic::error(figure.span, message, "expected a figure of the results").did_you_mean(
        &figure.text,
        names,
        hint,
    )
}
