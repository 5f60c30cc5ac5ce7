//! Parses what a link does to packets by rate or by class: shapers, policers, code points, reordering, classes of a queue.

use super::parser::{Parsed, Parser};
use super::queue::CLASS_DISCIPLINES;
use super::value::ExpectedUnit;
use crate::diagnostic::TextSpan;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    Base, BucketItem, ClassItem, LinkItem, PolicerItem, ReorderItem, ShaperItem, ShaperLimit,
    SpecUnit, SpecValue,
};
use alloc::vec::Vec;
use stackline_core::network::DSCP_NAMES;

/// The clauses of a link that are read here.
pub(super) const CLAUSES: &[&str] = &["shape", "police", "dscp", "reorder"];
const DSCP: &str = "expected a code point: 0 to 63, or a name such as `ef` or `af41`";
const BURST: &str = "expected `burst` and the size of the bucket, as in `burst 32 KiB`";

impl Parser<'_, '_> {
    /// Reads what follows one of the words of [`CLAUSES`]. `at` is the word and its span.
    pub(super) fn traffic_control(
        &mut self,
        link: &mut LinkItem,
        at: (&str, TextSpan),
    ) -> Parsed<()> {
        match at.0 {
            "shape" => {
                let shaper = self.shaper(at.1)?;
                self.set(&mut link.shaper, shaper, at, "link");
            }
            "police" => {
                let policer = self.policer(at.1)?;
                self.set(&mut link.policer, policer, at, "link");
            }
            "dscp" => {
                let dscp = self.dscp()?;
                self.set(&mut link.dscp, dscp, at, "link");
            }
            _ => {
                let reorder = self.reorder()?;
                self.set(&mut link.reorder, reorder, at, "link");
            }
        }
        Ok(())
    }

    /// Reads `10 Mbit/s burst 32 KiB latency 50 ms`, or `limit 64 KiB` in the place of the latency.
    fn shaper(&mut self, start: TextSpan) -> Parsed<ShaperItem> {
        let bucket = self.bucket(start)?;
        let limit = if self.accept_word("latency") {
            let latency = self.figure(ExpectedUnit::Time, "expected a time such as `50 ms`")?;
            Some(ShaperLimit::Latency(latency))
        } else if self.accept_word("limit") {
            let limit = self.figure(ExpectedUnit::Size, "expected a size such as `64 KiB`")?;
            Some(ShaperLimit::Bytes(limit))
        } else {
            None
        };
        Ok(ShaperItem { bucket, limit })
    }

    /// Reads `10 Mbit/s burst 32 KiB remark af12`.
    fn policer(&mut self, start: TextSpan) -> Parsed<PolicerItem> {
        let bucket = self.bucket(start)?;
        let remark = if self.accept_word("remark") {
            Some(self.dscp()?)
        } else {
            None
        };
        Ok(PolicerItem { bucket, remark })
    }

    fn bucket(&mut self, start: TextSpan) -> Parsed<BucketItem> {
        let rate = self.rate()?;
        self.expect_word("burst", BURST)?;
        let burst = self.figure(ExpectedUnit::Size, "expected a size such as `32 KiB`")?;
        Ok(BucketItem {
            rate,
            burst,
            span: start.to(self.last_span()),
        })
    }

    /// Whether the name of a code point comes next.
    fn is_dscp_name(&self) -> bool {
        DSCP_NAMES.iter().any(|(name, _)| self.is_word(0, &[name]))
    }

    /// Reads a code point: its name or its number.
    fn dscp(&mut self) -> Parsed<SpecValue> {
        let word = self.folded(0);
        let named = DSCP_NAMES.iter().find(|(name, _)| *name == word);
        if let (TokenKind::Name, Some((_, value))) = (self.kind(), named) {
            return Ok(SpecValue {
                base: Base::Number(f64::from(*value)),
                unit: SpecUnit::None,
                span: self.take(TokenRole::Keyword),
            });
        }
        if self.is_figure() {
            return self.figure(ExpectedUnit::Plain, DSCP);
        }
        let names: Vec<&str> = DSCP_NAMES.iter().map(|(name, _)| *name).collect();
        Err(self.unexpected(DSCP, &names))
    }

    /// Reads `25% correlation 50% gap 5`.
    fn reorder(&mut self) -> Parsed<ReorderItem> {
        let share = self.percentage("expected a percentage such as `1%`")?;
        let correlation = self.correlation()?;
        let gap = if self.accept_word("gap") {
            let expected = "expected a number of packets, such as `5`";
            Some(self.figure(ExpectedUnit::Plain, expected)?)
        } else {
            None
        };
        Ok(ReorderItem {
            share,
            correlation,
            gap,
        })
    }

    /// Reads `correlation 25%`, if it comes next.
    pub(super) fn correlation(&mut self) -> Parsed<Option<SpecValue>> {
        if !self.accept_word("correlation") {
            return Ok(None);
        }
        self.percentage("expected a percentage such as `25%`")
            .map(Some)
    }

    /// Reads the classes of a queue in parentheses, separated by commas.
    pub(super) fn classes(&mut self) -> Parsed<Vec<ClassItem>> {
        self.expect(
            TokenKind::Open,
            "expected `(` and the classes, as in `classes(ef strict, default weight 1)`",
        )?;
        let mut classes = alloc::vec![self.class()?];
        while self.accept(TokenKind::Comma) {
            classes.push(self.class()?);
        }
        self.expect(TokenKind::Close, "expected `,` or `)`")?;
        Ok(classes)
    }

    /// Reads `ef cs6 strict 20 packets`, `default weight 1 codel`.
    fn class(&mut self) -> Parsed<ClassItem> {
        let start = self.span();
        let mut dscps = Vec::new();
        if !self.accept_word("default") {
            dscps.push(self.dscp()?);
            while self.is_dscp_name() || self.is_figure() {
                dscps.push(self.dscp()?);
            }
        }
        let weight = if self.accept_word("strict") {
            None
        } else {
            self.expect_word("weight", "expected `strict` or a weight, as in `weight 3`")?;
            Some(self.figure(ExpectedUnit::Plain, "expected a weight such as `3`")?)
        };
        let limit = self.queue_limit()?;
        let discipline = if self.is_word(0, CLASS_DISCIPLINES) {
            Some(self.discipline()?)
        } else {
            None
        };
        Ok(ClassItem {
            dscps,
            weight,
            limit,
            discipline,
            span: start.to(self.last_span()),
        })
    }
}
