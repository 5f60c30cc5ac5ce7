//! Parses rates of data units, which may stand in the place of an interval: `2000/s`, `2000 per s`, `10 Mbit/s`.
//!
//! A rate becomes a `constant` distribution of the interval in seconds: the reciprocal of the frequency, or the time
//! that a data unit takes at the bit rate.

use super::parser::{Parsed, Parser};
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Base, DataItem, DistributionItem, SizeItem, SpecUnit, SpecValue, Word};
use alloc::string::ToString;
use alloc::vec;
use stackline_core::units::{BIT_RATES, RATE_UNITS, find_factor};

const SECOND: &[&str] = &["s", "sec", "second"];

impl Parser<'_, '_> {
    /// Whether a rate stands there: a number with `/s`, `per s` or a unit of bit rate.
    pub(super) fn is_frequency_at(&self, ahead: usize) -> bool {
        let number = matches!(self.ahead(ahead), TokenKind::Number(_));
        number && (self.is_per_second(ahead + 1) || self.is_bit_rate(ahead + 1))
    }

    pub(super) fn is_per_second(&self, ahead: usize) -> bool {
        (self.ahead(ahead) == TokenKind::Slash || self.is_word(ahead, &["per"]))
            && self.is_word(ahead + 1, SECOND)
    }

    fn is_bit_rate(&self, ahead: usize) -> bool {
        let unit = if self.ahead(ahead) == TokenKind::Name {
            self.text(ahead)
        } else {
            ""
        };
        find_factor(BIT_RATES, unit).is_some()
            || (find_factor(RATE_UNITS, unit).is_some() && self.is_per_second(ahead + 1))
    }

    /// Reads a rate and returns the interval between data units. `data` is needed for a bit rate: the size of a unit.
    pub(super) fn frequency(&mut self, data: Option<&DataItem>) -> Parsed<DistributionItem> {
        let start = self.span();
        let (bits, rate) = if self.is_bit_rate(1) {
            let rate = self.rate()?;
            (unit_bits(data), number(&rate))
        } else {
            let rate = self.number(super::value::ExpectedUnit::Plain, "expected a number")?;
            let sign = self.kind() == TokenKind::Slash;
            self.take(if sign {
                TokenRole::Plain
            } else {
                TokenRole::Keyword
            });
            self.take(TokenRole::Keyword);
            (Some(1.0), number(&rate))
        };
        let span = start.to(self.last_span());
        let Some(bits) = bits else {
            let message = "a bit rate gives an interval only if the data unit size is a number";
            let diagnostic =
                Diagnostic::error(span, message, "each unit would need a different interval");
            return Err(self.fail(diagnostic.hint(
                "write the interval, as in `exponential(4 ms)`, or units per second: `250/s`",
            )));
        };
        if rate <= 0.0 {
            let diagnostic = Diagnostic::error(
                span,
                "a rate must be above 0",
                "no further unit would ever be sent",
            );
            return Err(self.fail(diagnostic.hint("write the number per second, as in `2000/s`")));
        }
        Ok(constant(bits / rate, span))
    }
}

/// The value in its base unit; 0 for a variable, which the caller refuses as a rate.
fn number(value: &SpecValue) -> f64 {
    match value.base {
        Base::Number(number) => number * value.unit.factor(),
        Base::Variable(_) => 0.0,
    }
}

/// Bits of a data unit whose size is written as a number.
fn unit_bits(data: Option<&DataItem>) -> Option<f64> {
    match data {
        Some(DataItem {
            unit: SizeItem::Value(value),
            ..
        }) if matches!(value.base, Base::Number(_)) => Some(number(value) * 8.0),
        _ => None,
    }
}

/// The distribution `constant(seconds)`.
fn constant(seconds: f64, span: TextSpan) -> DistributionItem {
    let value = SpecValue {
        base: Base::Number(seconds),
        unit: SpecUnit::Time(1.0),
        span,
    };
    let name = Word {
        text: "constant".to_string(),
        span,
    };
    DistributionItem {
        name,
        parameters: vec![value],
        file: None,
        span,
    }
}
