//! Parses a timing of a part: a distribution or a rate, perhaps behind a word that says which timing is meant, as in
//! `exponential(1 ms)`, `2000/s`, `rate poisson 2000/s total` and `service 2 ms`.

use super::frequency::constant_of;
use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{DataItem, DistributionItem, MeantTiming, TimingItem, Word};
use alloc::format;
use alloc::string::ToString;

impl Parser<'_, '_> {
    /// Whether a word that says which timing is meant stands there, with the timing behind it.
    pub(super) fn begins_timing(&self, ahead: usize) -> bool {
        let next = ahead + 1;
        let is_word = self.is_word(ahead, spelling::PACES) || self.is_timing_name(ahead);
        is_word
            && match self.ahead(next) {
                TokenKind::Number(_) => true,
                TokenKind::Less => self.is_bracketed(next),
                TokenKind::Name => {
                    self.is_drawn(next)
                        || self.is_word(next, spelling::PACES)
                        || self.is_swept(next)
                        || self.is_frequency_at(next)
                }
                _ => false,
            }
    }

    /// Reads a timing, if one stands here. `data` is needed for a bit rate.
    pub(super) fn timing(&mut self, data: Option<&DataItem>) -> Parsed<Option<TimingItem>> {
        let (first, start) = (self.position(), self.span());
        let mut is_total = false;
        let (meant, drawn) = if self.is_drawn(0) {
            (MeantTiming::Next, self.drawn(ExpectedUnit::Time)?)
        } else if self.is_frequency_at(0) {
            (MeantTiming::Next, self.frequency(data, false)?)
        } else if self.begins_timing(0) {
            let is_pace = self.is_word(0, spelling::PACES);
            let (meant, drawn) = self.meant_timing(data)?;
            is_total = is_pace && self.total(&drawn)?;
            (meant, drawn)
        } else {
            return Ok(None);
        };
        Ok(Some(TimingItem {
            meant,
            drawn,
            is_total,
            span: start.to(self.last_span()),
            at: first..self.position(),
        }))
    }

    /// Reads a timing behind a word that says which one is meant.
    fn meant_timing(&mut self, data: Option<&DataItem>) -> Parsed<(MeantTiming, DistributionItem)> {
        let is_pace = self.is_word(0, spelling::PACES);
        let is_poisson = self.is_word(0, &["poisson"]);
        let name = Word {
            text: self.folded(0),
            span: self.take(TokenRole::Keyword),
        };
        let is_poisson = is_poisson || self.accept_word("poisson");
        let drawn = if self.is_frequency_at(0) {
            self.frequency(data, is_poisson)?
        } else if self.is_drawn(0) && !is_poisson {
            self.drawn(ExpectedUnit::Time)?
        } else if is_pace || is_poisson {
            return Err(self.no_rate());
        } else {
            let time = self.value(
                ExpectedUnit::Time,
                "expected a time, a distribution or a rate",
            )?;
            constant_of(time)
        };
        let meant = match is_pace {
            true => MeantTiming::Pace,
            false => MeantTiming::Named(name),
        };
        Ok((meant, drawn))
    }

    /// Whether `total` follows a rate: it is then that of all pairs together.
    fn total(&mut self, drawn: &DistributionItem) -> Parsed<bool> {
        if !self.is_word(0, &["total"]) {
            return Ok(false);
        }
        // Gaps that are written as a distribution are those of a pair.
        if drawn.name.span != drawn.span {
            let message = "`total` follows a rate, not a distribution of gaps";
            let diagnostic = Diagnostic::error(self.span(), message, "expected a rate before this");
            return Err(
                self.fail(diagnostic.hint("write `rate 2000/s total` or `poisson 2000/s total`"))
            );
        }
        self.take(TokenRole::Keyword);
        Ok(true)
    }

    /// Reports a number without `/s` behind `rate` or `poisson`.
    fn no_rate(&mut self) -> super::parser::ParseFailed {
        let number = match self.kind() {
            TokenKind::Number(_) => self.text(0).to_string(),
            TokenKind::Name if self.is_swept(0) => format!("<{}>", self.text(0)),
            TokenKind::Less if self.is_bracketed(0) => format!("<{}>", self.text(1)),
            _ => "2000".to_string(),
        };
        let hint = format!("write `rate {number}/s`, or `poisson {number}/s` for random gaps");
        let message = format!("unexpected {}", self.describe());
        let diagnostic = Diagnostic::error(self.span(), message, "expected a number per second");
        self.fail(diagnostic.hint(hint))
    }
}
