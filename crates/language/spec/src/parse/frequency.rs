//! Parses rates of data units, which may stand in the place of an interval: `2000/s`, `2000 per s`, `10 Mbit/s`.
//!
//! A rate becomes a distribution of the interval in seconds: the reciprocal of the frequency, or the time that a data unit
//! takes at the bit rate.

use super::parser::{Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Base, DataItem, DistributionItem, SizeItem, SpecUnit, SpecValue, Word};
use alloc::string::ToString;
use alloc::vec;
use stackline_core::units::{BIT_RATES, RATE_UNITS, find_factor};

const SECOND: &[&str] = &["s", "sec", "second"];

impl Parser<'_, '_> {
    /// Whether a rate stands there: a number or a variable with `/s`, `per s` or a unit of bit rate.
    pub(super) fn is_frequency_at(&self, ahead: usize) -> bool {
        let behind = match self.ahead(ahead) {
            TokenKind::Number(_) => ahead + 1,
            TokenKind::Less if self.is_bracketed(ahead) => ahead + 3,
            TokenKind::Name if !spelling::is_reserved(self.text(ahead)) => ahead + 1,
            _ => return false,
        };
        self.is_per_second(behind) || self.is_bit_rate(behind)
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

    /// Reads a rate and returns the interval between data units: always the same, or exponential for `is_poisson`.
    /// `data` is needed for a bit rate: the size of a unit.
    pub(super) fn frequency(
        &mut self,
        data: Option<&DataItem>,
        is_poisson: bool,
    ) -> Parsed<DistributionItem> {
        let start = self.span();
        let behind = if self.kind() == TokenKind::Less { 3 } else { 1 };
        let (bits, rate) = if self.is_bit_rate(behind) {
            let rate = self.rate()?;
            (unit_bits(data), rate)
        } else {
            let rate = self.value(super::value::ExpectedUnit::Plain, "expected a number")?;
            let sign = self.kind() == TokenKind::Slash;
            self.take(if sign {
                TokenRole::Plain
            } else {
                TokenRole::Keyword
            });
            self.take(TokenRole::Keyword);
            (Some(1.0), rate)
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
        let interval = match &rate.base {
            Base::Variable(_) => SpecValue {
                unit: SpecUnit::PerSecond(bits / rate.unit.factor()),
                span,
                ..rate
            },
            Base::Number(number) if *number > 0.0 => SpecValue {
                base: Base::Number(bits / (number * rate.unit.factor())),
                unit: SpecUnit::Time(1.0),
                span,
            },
            Base::Number(_) => {
                let diagnostic = Diagnostic::error(
                    span,
                    "a rate must be above 0",
                    "no further unit would ever be sent",
                );
                return Err(
                    self.fail(diagnostic.hint("write the number per second, as in `2000/s`"))
                );
            }
        };
        let name = if is_poisson {
            "exponential"
        } else {
            "constant"
        };
        Ok(gaps(name, interval))
    }
}

/// The value in its base unit; 0 for a variable.
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

/// The distribution `constant` of a time.
pub(super) fn constant_of(time: SpecValue) -> DistributionItem {
    gaps("constant", time)
}

fn gaps(name: &str, parameter: SpecValue) -> DistributionItem {
    let span = parameter.span;
    DistributionItem {
        name: Word {
            text: name.to_string(),
            span,
        },
        parameters: vec![parameter],
        file: None,
        span,
    }
}
