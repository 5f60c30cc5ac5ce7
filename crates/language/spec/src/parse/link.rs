//! Parses links: their ends, rates, and the clauses behind them.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    Base, DelayItem, JitterItem, LinkItem, LossItem, RateItem, ScheduleItem, SpecUnit, SpecValue,
    Word,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::Charge;

const END: &str = "expected a host or switch name";
const CLAUSES: &[&str] = &[
    "loss",
    "jitter",
    "duplicate",
    "mtu",
    "charge",
    "queue",
    "shape",
    "police",
    "dscp",
    "reorder",
];
const MORE: &str = "expected `;`, `loss`, `jitter`, `reorder`, `duplicate`, `mtu`, `charge`, `queue`, `shape`, `police` or `dscp`";
const LOSSES: &[&str] = &[
    "bit",
    "every",
    "packets",
    "gilbert_elliott",
    "gemodel",
    "state",
    "schedule",
];
/// Words of other emulators that have no equivalent here, each with a hint to what comes closest.
const UNLIKE: &[(&str, &str)] = &[
    (
        "corrupt",
        "a packet with a bit error is lost: write `loss` and the percentage of packets, or `loss bit errors 1e-6`",
    ),
    (
        "burst",
        "a token bucket has its own rate: write `shape 10 Mbit/s burst 32 KiB`",
    ),
    (
        "token",
        "write a token bucket as `shape 10 Mbit/s burst 32 KiB latency 50 ms`",
    ),
    (
        "tbf",
        "write a token bucket as `shape 10 Mbit/s burst 32 KiB latency 50 ms`",
    ),
    (
        "cake",
        "write `queue fq_codel shape 10 Mbit/s burst 3 kB`: what that lacks of CAKE is in docs/LIMITS.md",
    ),
];
/// The hint for a second time after a delay, which in tc-netem(8) is the jitter: plus or minus this time.
const PLUS_OR_MINUS: &str = "for 50 ms plus or minus 10 ms, write `40 ms jitter uniform(0, 20 ms)`";
/// The hint for a second percentage after a loss, which in netem is the correlation with the previous packet's loss.
const BURSTS: &str = "for losses in bursts, write `loss gilbert_elliott(1%, 25%)`: probabilities of good to bad and bad to good";
/// The hint for a second percentage after `reorder`, which in netem is the correlation.
const CORRELATED: &str = "write a correlation as `reorder 25% correlation 50%`";
/// What may stand in a schedule of losses.
const STEPS: &[&str] = &["bit", "gilbert_elliott", "gemodel", "state"];
const RATES: &[&str] = &["unlimited", "schedule", "trace"];

/// What `charge` may say.
const CHARGES: &[(&str, Charge)] = &[
    ("packets", Charge::Packet),
    ("frames", Charge::Frame),
    ("wire", Charge::Wire),
];

impl Parser<'_, '_> {
    /// Reads a link behind the word `link`: `a - b 10 Mbit/s 5 ms loss 1%;`.
    pub(crate) fn link(&mut self) -> Parsed<LinkItem> {
        let (first, one_way, second) = self.link_ends()?;
        let rate = self.link_rate()?;
        let delay = self.link_delay()?;
        let mut link = LinkItem {
            ends: (first, second),
            one_way,
            rate,
            delay,
            loss: None,
            jitter: None,
            duplicate: None,
            mtu: None,
            charge: None,
            queue: None,
            shaper: None,
            policer: None,
            dscp: None,
            reorder: None,
        };
        let mut last = String::new();
        while self.is_word(0, CLAUSES) {
            last = self.folded(0);
            self.link_clause(&mut link)?;
        }
        let unlike = UNLIKE.iter().find(|(word, _)| self.is_word(0, &[word]));
        let hint = match (last.as_str(), &link.loss) {
            ("", _) if self.is_time() => Some(PLUS_OR_MINUS),
            ("loss", Some(LossItem::Share(_))) if self.is_figure() => Some(BURSTS),
            ("reorder", _) if self.is_figure() => Some(CORRELATED),
            _ => unlike.map(|(_, hint)| *hint),
        };
        if let Some(hint) = hint {
            let message = format!("unexpected {}", self.describe());
            return Err(self.fail(Diagnostic::error(self.span(), message, MORE).hint(hint)));
        }
        let mut words = CLAUSES.to_vec();
        words.extend(
            super::queue::WORDS
                .iter()
                .chain(&["reordering", "correlation", "remark"]),
        );
        self.statement_end(MORE, &words)?;
        Ok(link)
    }

    /// Reads `a - b` or `a -> b`: the two ends, and between them whether the link is one-way.
    pub(super) fn link_ends(&mut self) -> Parsed<(Word, bool, Word)> {
        let first = self.node_name(END)?;
        if !matches!(self.kind(), TokenKind::Minus | TokenKind::Arrow) {
            let failed = Diagnostic::error(
                self.span(),
                format!("unexpected {}", self.describe()),
                "expected `-` or `->`",
            )
            .hint("write the two ends with spaces around the `-`, as in `khons - edge`");
            return Err(self.fail(failed));
        }
        let one_way = self.kind() == TokenKind::Arrow;
        self.take(TokenRole::Plain);
        Ok((first, one_way, self.node_name(END)?))
    }

    fn link_rate(&mut self) -> Parsed<RateItem> {
        if self.accept_word("unlimited") {
            return Ok(RateItem::Unlimited);
        }
        if self.accept_word("trace") {
            return Ok(RateItem::Trace(
                self.quoted("expected the quoted file name of a Mahimahi trace")?,
            ));
        }
        if self.is_word(0, &["schedule"]) {
            let step = "expected a time and a rate, as in `0 s 10 Mbit/s`";
            return Ok(RateItem::Schedule(self.schedule(step, Self::rate)?));
        }
        if self.is_figure() {
            return Ok(RateItem::Constant(self.rate()?));
        }
        Err(self.unexpected(
            "expected `unlimited`, `schedule`, `trace` or a rate such as `100 Mbit/s`",
            RATES,
        ))
    }

    fn link_delay(&mut self) -> Parsed<DelayItem> {
        const EXPECTED: &str = "expected a propagation delay such as `1 ms`";
        if self.is_word(0, &["schedule"]) {
            let step = "expected a time and a delay, as in `0 s 10 ms`";
            return Ok(DelayItem::Schedule(self.schedule(step, |parser| {
                parser.figure(ExpectedUnit::Time, step)
            })?));
        }
        Ok(DelayItem::Constant(
            self.figure(ExpectedUnit::Time, EXPECTED)?,
        ))
    }

    /// Reads `schedule(0 s 10 Mbit/s, 5 s 1 Mbit/s) every 10 s`. `value` reads what follows each time.
    fn schedule<T>(
        &mut self,
        step: &str,
        mut value: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<ScheduleItem<T>> {
        let start = self.take(TokenRole::Keyword);
        self.expect(TokenKind::Open, "expected `(`")?;
        let mut steps = Vec::new();
        loop {
            let from = self.figure(ExpectedUnit::Time, step)?;
            steps.push((from, value(self)?));
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::Close, "expected `,` or `)`")?;
        let every = if self.accept_word("every") {
            Some(self.figure(ExpectedUnit::Time, "expected a time")?)
        } else {
            None
        };
        Ok(ScheduleItem {
            steps,
            every,
            span: start.to(self.last_span()),
        })
    }

    fn link_clause(&mut self, link: &mut LinkItem) -> Parsed<()> {
        let word = self.folded(0);
        let at = (word.as_str(), self.take(TokenRole::Keyword));
        match at.0 {
            "loss" => {
                let loss = self.loss()?;
                self.set(&mut link.loss, loss, at, "link");
            }
            "jitter" => {
                let jitter = self.jitter()?;
                self.set(&mut link.jitter, jitter, at, "link");
            }
            "duplicate" => {
                let share = self.percentage("expected a percentage such as `0.1%`")?;
                self.set(&mut link.duplicate, share, at, "link");
            }
            "mtu" => {
                let size = self.figure(ExpectedUnit::Size, "expected a size in bytes")?;
                self.set(&mut link.mtu, size, at, "link");
            }
            "charge" => self.charge(link, at)?,
            word if super::traffic_control::CLAUSES.contains(&word) => {
                self.traffic_control(link, at)?;
            }
            _ => {
                let queue = self.queue(at.1)?;
                self.set(&mut link.queue, queue, at, "link");
            }
        }
        Ok(())
    }

    /// Reads a number with `%` behind it, or a variable, whose values then have the `%`.
    pub(super) fn percentage(&mut self, expected: &str) -> Parsed<SpecValue> {
        let mut value = self.figure(ExpectedUnit::Percent, expected)?;
        if value.unit == SpecUnit::Percent {
            return Ok(value);
        }
        if matches!(value.base, Base::Variable(_)) && self.kind() != TokenKind::Percent {
            return Ok(value);
        }
        self.expect(TokenKind::Percent, "expected `%`")?;
        value.unit = SpecUnit::Percent;
        value.span = value.span.to(self.last_span());
        Ok(value)
    }

    /// Reads a loss in a schedule. `every` and `packets` are refused: they count packets, so they do not belong to a
    /// time.
    fn loss_step(&mut self) -> Parsed<LossItem> {
        let expected = "expected a percentage, `bit errors`, `gilbert_elliott`, `gemodel` or `state`, as in `0 s 0%, 10 s 2%`";
        // A variable may have the name of a loss that has no place in a schedule.
        if self.is_figure() && !self.is_word(0, LOSSES) || self.is_word(0, STEPS) {
            self.loss()
        } else {
            Err(self.unexpected(expected, STEPS))
        }
    }

    fn loss(&mut self) -> Parsed<LossItem> {
        if self.is_figure() && !self.is_word(0, LOSSES) {
            return Ok(LossItem::Share(self.percentage("expected a percentage")?));
        }
        if !self.is_word(0, LOSSES) {
            let expected = "expected a percentage, `bit errors`, `every`, `packets`, `gilbert_elliott`, `gemodel`, `state` or `schedule`";
            return Err(self.unexpected(expected, LOSSES));
        }
        if self.is_word(0, &["schedule"]) {
            let step = "expected a time and a loss, as in `0 s 1%`";
            return Ok(LossItem::Schedule(self.schedule(step, Self::loss_step)?));
        }
        let word = self.folded(0);
        self.take(TokenRole::Keyword);
        Ok(match word.as_str() {
            "bit" => {
                self.expect_word("errors", "expected `bit errors`")?;
                LossItem::BitErrors(
                    self.figure(ExpectedUnit::Plain, "expected a probability such as `1e-6`")?,
                )
            }
            "every" => LossItem::Every(self.figure(
                ExpectedUnit::Plain,
                "expected a number of packets, such as `100`",
            )?),
            "packets" => {
                const NUMBER: &str = "expected a packet number";
                let mut numbers = alloc::vec![self.figure(ExpectedUnit::Plain, NUMBER)?];
                while self.accept(TokenKind::Comma) {
                    numbers.push(self.figure(ExpectedUnit::Plain, NUMBER)?);
                }
                LossItem::Packets(numbers)
            }
            "gemodel" => {
                const SHARE: &str = "expected a percentage: p, r, 1-h, 1-k";
                LossItem::GeModel(self.percentages(SHARE, 4)?)
            }
            "state" => {
                const SHARE: &str = "expected a percentage: p13, p31, p32, p23, p14";
                LossItem::FourStates(self.percentages(SHARE, 5)?)
            }
            _ => LossItem::GilbertElliott(self.gilbert_elliott()?),
        })
    }

    /// Reads one to `most` percentages in parentheses.
    fn percentages(&mut self, expected: &str, most: usize) -> Parsed<Vec<SpecValue>> {
        self.expect(TokenKind::Open, "expected `(`")?;
        let mut shares = alloc::vec![self.percentage(expected)?];
        while shares.len() < most && self.accept(TokenKind::Comma) {
            shares.push(self.percentage(expected)?);
        }
        let close = if shares.len() < most {
            "expected `,` or `)`"
        } else {
            "expected `)`"
        };
        self.expect(TokenKind::Close, close)?;
        Ok(shares)
    }

    /// Reads two percentages in parentheses, or four.
    fn gilbert_elliott(&mut self) -> Parsed<Vec<SpecValue>> {
        const SHARE: &str =
            "expected a percentage: good to bad, bad to good, loss when good, loss when bad";
        self.expect(TokenKind::Open, "expected `(`")?;
        let mut shares = alloc::vec![self.percentage(SHARE)?];
        self.expect(
            TokenKind::Comma,
            "expected `,` and the probability of changing from bad to good, in %",
        )?;
        shares.push(self.percentage(SHARE)?);
        if self.accept(TokenKind::Comma) {
            shares.push(self.percentage(SHARE)?);
            self.expect(
                TokenKind::Comma,
                "expected `,` and the loss in the bad state",
            )?;
            shares.push(self.percentage(SHARE)?);
        }
        self.expect(TokenKind::Close, "expected `,` or `)`")?;
        Ok(shares)
    }

    /// Whether a number and a unit of time come next.
    fn is_time(&self) -> bool {
        self.is_figure() && self.is_word(1, &["ns", "us", "ms", "s"])
    }

    fn jitter(&mut self) -> Parsed<JitterItem> {
        const DRAWN: &str = "expected a distribution, such as `uniform(0, 2 ms)`";
        if self.is_time() {
            let message = format!("unexpected {}", self.describe());
            let diagnostic = Diagnostic::error(self.span(), message, DRAWN).hint(PLUS_OR_MINUS);
            return Err(self.fail(diagnostic));
        }
        if !self.is_drawn(0) {
            return Err(self.unexpected(DRAWN, &[]));
        }
        let drawn = self.drawn(ExpectedUnit::Time)?;
        let correlation = self.correlation()?;
        Ok(JitterItem {
            drawn,
            correlation,
            reordering: self.accept_word("reordering"),
        })
    }

    fn charge(&mut self, link: &mut LinkItem, at: (&str, TextSpan)) -> Parsed<()> {
        let word = self.folded(0);
        let Some((_, charge)) = CHARGES.iter().find(|(name, _)| *name == word) else {
            let words: Vec<&str> = CHARGES.iter().map(|(name, _)| *name).collect();
            return Err(self.unexpected("expected `packets`, `frames` or `wire`", &words));
        };
        self.take(TokenRole::Keyword);
        self.set(&mut link.charge, *charge, at, "link");
        Ok(())
    }
}
