//! Parses queues: a limit, a discipline with its settings, `ecn`.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::TextSpan;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{DisciplineItem, QueueItem, QueueLimit, SettingItem, SpecUnit, Word};
use alloc::vec::Vec;

/// Words that may stand in a queue: `packets`, then the disciplines, then `ecn`. The order matters to `queue`.
pub(crate) const WORDS: &[&str] = &[
    "packets",
    "drop_tail",
    "drop_head",
    "red",
    "codel",
    "pie",
    "fq_codel",
    "classes",
    "dualpi2",
    "ecn",
];
/// Disciplines that a class of a queue may have.
pub(super) const CLASS_DISCIPLINES: &[&str] = &["drop_tail", "codel"];

impl Parser<'_, '_> {
    /// Reads what follows the word `queue`: a limit, a discipline and `ecn`, at least one of them in this order.
    /// `start` is the span of the word.
    pub(crate) fn queue(&mut self, start: TextSpan) -> Parsed<QueueItem> {
        let mut queue = QueueItem {
            limit: None,
            discipline: None,
            ecn: None,
            span: start,
        };
        queue.limit = self.queue_limit()?;
        let disciplines = WORDS.get(1..WORDS.len() - 1).unwrap_or_default();
        if self.is_word(0, disciplines) {
            queue.discipline = Some(self.discipline()?);
        }
        if self.is_word(0, &["ecn"]) {
            queue.ecn = Some(self.take(TokenRole::Keyword));
        }
        if queue.limit.is_none() && queue.discipline.is_none() && queue.ecn.is_none() {
            let expected = "expected a size, a number of packets, or a discipline such as `codel`";
            return Err(self.unexpected(expected, WORDS));
        }
        queue.span = start.to(self.last_span());
        Ok(queue)
    }

    /// Reads a limit, if one comes next: a size, or a number of packets.
    pub(super) fn queue_limit(&mut self) -> Parsed<Option<QueueLimit>> {
        if !self.is_figure() || self.is_word(0, WORDS) {
            return Ok(None);
        }
        let value = self.figure(
            ExpectedUnit::Size,
            "expected a size, or a number of packets",
        )?;
        let packets = value.unit == SpecUnit::None && self.accept_word("packets");
        Ok(Some(if packets {
            QueueLimit::Packets(value)
        } else {
            QueueLimit::Bytes(value)
        }))
    }

    /// Reads a discipline with its settings: `codel(target = 5 ms)`.
    pub(super) fn discipline(&mut self) -> Parsed<DisciplineItem> {
        let name = Word {
            text: self.folded(0),
            span: self.take(TokenRole::Keyword),
        };
        if name.text == "classes" {
            return Ok(DisciplineItem {
                name,
                settings: Vec::new(),
                classes: self.classes()?,
            });
        }
        let mut settings = Vec::new();
        if self.accept(TokenKind::Open) {
            settings.push(self.setting()?);
            while self.accept(TokenKind::Comma) {
                settings.push(self.setting()?);
            }
            self.expect(TokenKind::Close, "expected `,` or `)`")?;
        }
        Ok(DisciplineItem {
            name,
            settings,
            classes: Vec::new(),
        })
    }

    fn setting(&mut self) -> Parsed<SettingItem> {
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected("expected a setting, as in `target = 5 ms`", &[]));
        }
        let name = Word {
            text: self.folded(0),
            span: self.take(TokenRole::Keyword),
        };
        self.expect(TokenKind::Equals, "expected `=`")?;
        let mut value = self.figure(ExpectedUnit::Any, "expected the setting's value")?;
        let percent = self.accept(TokenKind::Percent);
        value.span = value.span.to(self.last_span());
        Ok(SettingItem {
            name,
            value,
            percent,
        })
    }
}
