//! Parses specifications: number of runs, limits, composer, and sweeps. `part` parses the parts.

use super::parser::{ParseFailed, Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    Base, Clause, ClauseKind, Readable, SpecUnit, SpecValue, Specification, Sweep, SweepStep,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use stackline_core::plan::Composer;

const END: &str = "expected `;` or a clause such as `over tcp`";
/// What other programs call the number of calls that are in flight at once.
pub(super) const IN_FLIGHT: [&str; 4] = ["burst", "depth", "pipeline", "window"];

/// A specification of which only the sweeps could be read.
pub(crate) fn broken(span: TextSpan, sweeps: Vec<Sweep>) -> Specification {
    Specification {
        span,
        line: 1,
        at: 0..0,
        head_at: 0..0,
        late_at: Vec::new(),
        runs: SpecValue {
            base: Base::Number(1.0),
            unit: SpecUnit::None,
            span,
        },
        time_limit: None,
        until: None,
        warmup: None,
        composer: Composer::Basic,
        composer_at: 0..0,
        clauses: Vec::new(),
        parts: Vec::new(),
        sweeps,
        readable: Readable::Not,
    }
}

impl Parser<'_, '_> {
    /// Reads a specification with its sweeps. After a mistake the parser goes on where it can, so that later mistakes
    /// are found too.
    pub(crate) fn specification(&mut self) -> Specification {
        let first = self.position();
        let mut specification = broken(self.span(), Vec::new());
        specification.readable = Readable::Whole;
        specification.line = self.token(0).line;
        let ended = self.measurement(&mut specification);
        if ended.is_err() {
            specification.readable = Readable::InPart;
            self.skip_specification();
        }
        if specification.parts.is_empty() {
            specification.readable = Readable::Not;
        }
        let (sweeps, sound) = self.sweeps();
        specification.sweeps = sweeps;
        if !sound && specification.readable == Readable::Whole {
            specification.readable = Readable::InPart;
        }
        let extent = self.position();
        if let Some(mark) = self.marked.mark_mut(first) {
            mark.extent = Some(extent);
        }
        specification
    }

    /// Reads the specification without its sweeps, up to and including its terminator.
    fn measurement(&mut self, specification: &mut Specification) -> Parsed<()> {
        let first = self.position();
        specification.runs = self.value(ExpectedUnit::Plain, "expected the number of runs")?;
        self.heads(specification)?;
        specification.head_at = first..self.position();
        self.composer(specification)?;
        let parts = self.parts(specification);
        specification.at = first..self.position();
        specification.span = specification.span.to(self.last_span());
        // Only now: the span is needed for what could be read, too.
        parts?;
        self.specification_end();
        Ok(())
    }

    /// Reads limits (`timelimit`, `until`, `warmup`), which may stand behind the number of runs or behind a part.
    pub(super) fn heads(&mut self, specification: &mut Specification) -> Parsed<()> {
        loop {
            let (word, span) = (self.folded(0), self.span());
            let twice = match word.as_str() {
                "timelimit" => specification.time_limit.is_some(),
                "until" => specification.until.is_some(),
                "warmup" => specification.warmup.is_some(),
                _ => return Ok(()),
            };
            if twice {
                let message = format!("`{word}` is given twice");
                let diagnostic =
                    Diagnostic::error(span, message, "already given for this specification");
                self.report.push(diagnostic.hint("keep one of them"));
            }
            self.take(TokenRole::Keyword);
            match word.as_str() {
                "timelimit" => {
                    specification.time_limit =
                        Some(self.value(ExpectedUnit::Time, "expected a time in seconds")?);
                }
                "until" => specification.until = Some(self.until()?),
                _ => {
                    specification.warmup = Some(self.value(
                        ExpectedUnit::Time,
                        "expected a number of runs, or a time with its unit",
                    )?);
                }
            }
        }
    }

    /// Reads `2%` or `2% at most 100`, behind `until`.
    fn until(&mut self) -> Parsed<(SpecValue, Option<SpecValue>)> {
        const SHARE: &str = "expected a percentage such as `2%`";
        let share = self.value(ExpectedUnit::Plain, SHARE)?;
        self.expect(TokenKind::Percent, SHARE)?;
        if !self.is_word(0, &["at"]) {
            return Ok((share, None));
        }
        self.take(TokenRole::Keyword);
        self.expect_word("most", "expected `at most` and a number of runs")?;
        Ok((
            share,
            Some(self.value(ExpectedUnit::Plain, "expected a number of runs")?),
        ))
    }

    /// Reads a composer, clauses for all parts, and the `:` behind them, as far as they are written.
    fn composer(&mut self, specification: &mut Specification) -> Parsed<()> {
        let first = self.position();
        let composer = self.composer_here(specification);
        if let Some((composer, tokens)) = composer {
            for _ in 0..tokens {
                self.take(if tokens == 1 {
                    TokenRole::Keywords
                } else {
                    TokenRole::Keyword
                });
            }
            specification.composer = composer;
        }
        specification.composer_at = first..self.position();
        if composer.is_none() && !self.begins_clause() {
            return Ok(());
        }
        while let Some(clause) = self.clause(false)? {
            self.once(&specification.clauses, &clause);
            specification.clauses.push(clause);
        }
        let begins = self.is_application(0) || self.is_word(0, &["from", "to"]);
        if self.accept(TokenKind::Colon) || (composer.is_none() && begins) {
            return Ok(());
        }
        let failed = if composer.is_none() && self.is_word(0, spelling::COMPOSERS) {
            self.late_composer(specification)
        } else if begins {
            self.no_colon(&specification.composer_at)
        } else if self.kind() == TokenKind::OpenBrace {
            self.parts_in_braces(&specification.composer_at)
        } else {
            self.unexpected("expected `:` and the parts", spelling::CLAUSES)
        };
        specification.readable = Readable::InPart;
        if self.skip_to(TokenKind::Colon) {
            self.take(TokenRole::Plain);
            return Ok(());
        }
        let part = self.is_application(0)
            || self.is_word(0, &["from", "to"])
            || matches!(self.kind(), TokenKind::Number(_));
        if part { Ok(()) } else { Err(failed) }
    }

    /// Reports a composer behind its clauses.
    fn late_composer(&mut self, specification: &mut Specification) -> ParseFailed {
        let clauses = specification.clauses.iter();
        let written: Vec<String> = clauses
            .flat_map(|clause| clause.at.clone())
            .map(|token| String::from(self.marked.text(token)))
            .collect();
        let composer = String::from(self.text(0));
        let message = format!("`{composer}` stands behind its clauses");
        let hint = format!(
            "write `{composer}` before them: `{composer} {}:`",
            written.join(" ")
        );
        // What follows is not wrong because of that.
        specification.composer_at = self.position()..self.position() + 1;
        self.fail(Diagnostic::error(self.span(), message, "expected `:` and the parts").hint(hint))
    }

    /// Reports that the `:` behind a composer is missing. The hint shows the form, with the hosts that are written.
    fn no_colon(&mut self, composer: &Range<usize>) -> ParseFailed {
        let words: Vec<&str> = composer
            .clone()
            .map(|token| self.marked.text(token))
            .collect();
        let hosts = match (self.folded(0).as_str(), self.folded(2).as_str()) {
            ("from", "to") => format!("from {} to {} ", self.text(1), self.text(3)),
            _ => String::new(),
        };
        let message = format!("unexpected `{}`", self.text(0));
        let hint = format!(
            "the parts come after a `:`, as in `{}: {hosts}rr 32*100 | {hosts}bulk_put 1024*100`",
            words.join(" ")
        );
        self.fail(Diagnostic::error(self.span(), message, "expected `:` and the parts").hint(hint))
    }

    /// Reports parts in braces, which other languages use to group.
    fn parts_in_braces(&mut self, composer: &Range<usize>) -> ParseFailed {
        let diagnostic = Diagnostic::error(
            self.span(),
            "parts must not be enclosed in braces",
            "expected `:` and the parts",
        );
        let before = if composer.is_empty() {
            "`parallel: A | B;`"
        } else {
            "`: A | B;`"
        };
        self.fail(diagnostic.hint(format!(
            "write {before}, with `|` between parts, or write two specifications to run them one after the other"
        )))
    }

    /// The composer that stands here, if any, and how many tokens it takes. An unknown one is reported and then read
    /// as `parallel`.
    fn composer_here(&mut self, specification: &mut Specification) -> Option<(Composer, usize)> {
        Some(match self.folded(0).as_str() {
            "parallel" => (Composer::Parallel, 1),
            "background" => (Composer::Background, 1),
            "total" => (Composer::Total, 1),
            "priority_background" => (Composer::PriorityBackground, 1),
            "priority" if self.is_word(1, &["background"]) => (Composer::PriorityBackground, 2),
            _ if self.ahead(0) == TokenKind::Name
                && !self.is_application(0)
                && !self.begins_clause()
                && (self.ahead(1) == TokenKind::Colon
                    || (self.ahead(1) == TokenKind::Name && self.ahead(2) == TokenKind::Colon)) =>
            {
                let message = format!("unknown composer `{}`", self.text(0));
                let diagnostic = Diagnostic::error(self.span(), message, "expected a composer");
                let hint =
                    "the composers are `parallel`, `background`, `priority background` and `total`";
                self.report.push(diagnostic.did_you_mean(
                    self.text(0),
                    spelling::COMPOSERS.iter().copied(),
                    hint,
                ));
                specification.readable = Readable::InPart;
                (
                    Composer::Parallel,
                    if self.ahead(1) == TokenKind::Colon {
                        1
                    } else {
                        2
                    },
                )
            }
            _ => return None,
        })
    }

    /// Reads the parts, with `|` between. After a mistake in one it goes on at the next `|`.
    fn parts(&mut self, specification: &mut Specification) -> Parsed<()> {
        let composed = !specification.composer_at.is_empty();
        loop {
            if composed && self.kind() != TokenKind::Bar && specification.parts.is_empty() {
                self.begin_soft();
            }
            let read = self.part(specification).and_then(|()| self.part_end());
            if read.is_err() {
                specification.readable = Readable::InPart;
                if !self.skip_to(TokenKind::Bar) {
                    return Err(ParseFailed);
                }
            }
            self.begin_soft();
            if !self.accept(TokenKind::Bar) {
                break;
            }
        }
        if let Some(mark) = self.marked.mark_mut(self.position()) {
            mark.soft = false;
        }
        if composed {
            return Ok(());
        }
        if specification.parts.len() > 1 {
            let span = specification
                .parts
                .get(1)
                .map_or(specification.span, |part| part.span);
            self.report.push(
                Diagnostic::error(
                    span,
                    "several parts need a composer",
                    "this is the second part",
                )
                .hint("write `parallel:` before the first part"),
            );
        } else if specification
            .parts
            .iter()
            .any(|part| part.replicas.is_some())
        {
            // Several pairs of one part are a composition, too.
            specification.composer = Composer::Parallel;
        }
        Ok(())
    }

    /// Reports a clause if one of the same kind is among `clauses`.
    pub(crate) fn once(&mut self, clauses: &[Clause], clause: &Clause) {
        let kind = core::mem::discriminant(&clause.kind);
        if clauses
            .iter()
            .any(|other| core::mem::discriminant(&other.kind) == kind)
        {
            let label = "already given for this part";
            let hint = match clause.kind {
                ClauseKind::Expect(_) => "write one `expect`, with commas between what is expected",
                _ => "keep one of them",
            };
            self.report
                .push(Diagnostic::error(clause.span, "a clause is given twice", label).hint(hint));
        }
    }

    /// Reports a word of [`IN_FLIGHT`]: the number of calls in flight is not an option here.
    pub(super) fn in_flight(&mut self, expected: &'static str) -> ParseFailed {
        let diagnostic = Diagnostic::error(
            self.span(),
            format!("unexpected {}", self.describe()),
            expected,
        );
        let hint = "`8 rr` has eight calls in flight, on eight connections; for several calls on one connection, write a procedure that sends several data units before it awaits their answers (`stackline help procedures`)";
        self.fail(diagnostic.hint(hint))
    }

    /// Checks that a part may end here; reports what stands here otherwise.
    fn part_end(&mut self) -> Parsed<()> {
        match self.kind() {
            TokenKind::Bar | TokenKind::Semicolon | TokenKind::Comma | TokenKind::End => Ok(()),
            // The next specification begins on a new line: only the `;` is missing, which `specification_end` reports.
            TokenKind::Number(_)
                if self.token(0).breaks > 0 && self.looks_like_specification(0) =>
            {
                Ok(())
            }
            TokenKind::Name if self.is_word(0, &IN_FLIGHT) => Err(self.in_flight(END)),
            TokenKind::Name => {
                let mut words: Vec<&str> = spelling::CLAUSES.to_vec();
                words.extend(
                    stackline_core::units::SIZE_UNITS
                        .iter()
                        .map(|(unit, _)| *unit),
                );
                Err(self.unexpected(END, &words))
            }
            _ => Err(self.unexpected(END, &[])),
        }
    }

    /// Reads the terminator: `;`, `,` or the end of the text.
    fn specification_end(&mut self) {
        match self.kind() {
            TokenKind::Semicolon | TokenKind::Comma => {
                self.take(TokenRole::Terminator);
            }
            TokenKind::End => self.terminate_last(),
            // The mistake is reported; the next specification can still be read.
            _ => {
                let _: ParseFailed = self.unexpected(END, &[]);
            }
        }
    }

    /// Reads all sweeps that follow, such as `N = 1, 2 ... 8;`. The result is false if one had a mistake, which is
    /// reported and skipped.
    pub(crate) fn sweeps(&mut self) -> (Vec<Sweep>, bool) {
        let mut sweeps = Vec::new();
        let mut sound = true;
        while self.kind() == TokenKind::Name && self.ahead(1) == TokenKind::Equals {
            self.begin_soft();
            match self.sweep() {
                Ok(sweep) => sweeps.push(sweep),
                Err(_) => {
                    sound = false;
                    self.skip_statement();
                }
            }
        }
        (sweeps, sound)
    }

    fn sweep(&mut self) -> Parsed<Sweep> {
        let name = self.new_name("expected a variable name")?;
        self.expect(TokenKind::Equals, "expected `=`")?;
        let mut sweep = Sweep {
            span: name.span,
            name,
            values: Vec::new(),
            unit: SpecUnit::None,
        };
        let mut step = SweepStep::Next;
        loop {
            let value = self.swept_value()?;
            self.same_kind(&mut sweep, &value)?;
            if let Base::Number(number) = value.base {
                sweep
                    .values
                    .push((step, number * value.unit.factor(), value.span));
            }
            step = match self.kind() {
                TokenKind::Comma if self.is_another_value() => SweepStep::Next,
                TokenKind::Ellipsis => SweepStep::To,
                _ => break,
            };
            self.take(TokenRole::Plain);
            // Some write `32, ... 4096`, with a comma before the ellipsis.
            if step == SweepStep::Next && self.kind() == TokenKind::Ellipsis {
                step = SweepStep::To;
                self.take(TokenRole::Plain);
            }
            if step == SweepStep::To
                && self.kind() == TokenKind::Comma
                && matches!(self.ahead(1), TokenKind::Number(_))
            {
                self.take(TokenRole::Plain);
            }
        }
        sweep.span = sweep.span.to(self.last_span());
        self.sweep_end()?;
        Ok(sweep)
    }

    /// Reads a value of a sweep: a number with any unit.
    fn swept_value(&mut self) -> Parsed<SpecValue> {
        use stackline_core::units::{BIT_RATES, RATE_UNITS, find_factor};
        let unit = if self.ahead(1) == TokenKind::Name {
            self.text(1)
        } else {
            ""
        };
        let rate = find_factor(BIT_RATES, unit).is_some()
            || find_factor(RATE_UNITS, unit).is_some() && self.ahead(2) == TokenKind::Slash;
        if rate && matches!(self.kind(), TokenKind::Number(_)) {
            return self.rate();
        }
        if self.kind() == TokenKind::Name {
            let message = format!("unexpected {}", self.describe());
            let diagnostic = Diagnostic::error(
                self.span(),
                message,
                "expected a number: words cannot be swept",
            );
            return Err(self.fail(
                diagnostic.hint("to vary a word, list whole stacks, as in `over tcp, unix`"),
            ));
        }
        let mut value = self.number(ExpectedUnit::Any, "expected a number")?;
        if value.unit == SpecUnit::None && self.kind() == TokenKind::Percent {
            value.span = value.span.to(self.take(TokenRole::Plain));
            value.unit = SpecUnit::Percent;
        }
        // `R = 1000/s` beside `rate <R>/s`: a plain number.
        let is_rate = self.kind() == TokenKind::Slash && self.is_per_second(0);
        if value.unit == SpecUnit::None && is_rate {
            self.take(TokenRole::Plain);
            value.span = value.span.to(self.take(TokenRole::Keyword));
        }
        Ok(value)
    }

    /// Refuses a value whose unit is not of the same kind as that of the values before. Only sizes and times (bytes,
    /// seconds) may stand beside values without a unit.
    fn same_kind(&mut self, sweep: &mut Sweep, value: &SpecValue) -> Parsed<()> {
        let (before, unit) = (sweep.unit, value.unit.base());
        let needs = |unit| matches!(unit, SpecUnit::Rate(_) | SpecUnit::Percent);
        let first = sweep.values.is_empty();
        if first
            || before == unit
            || before == SpecUnit::None && !needs(unit)
            || unit == SpecUnit::None && !needs(before)
        {
            sweep.unit = if unit == SpecUnit::None { before } else { unit };
            return Ok(());
        }
        let message = format!(
            "the values of `{}` are not all of the same kind",
            sweep.name.text
        );
        let diagnostic = Diagnostic::error(
            value.span,
            message,
            "the unit differs from that of the previous value",
        );
        Err(self.fail(diagnostic.hint("write the same unit after each value")))
    }

    /// Whether what follows the comma that stands here belongs to the sweep and does not begin a specification.
    fn is_another_value(&self) -> bool {
        if self.ahead(1) == TokenKind::Ellipsis {
            return true;
        }
        if !matches!(self.ahead(1), TokenKind::Number(_)) {
            return matches!(self.ahead(1), TokenKind::Comma | TokenKind::Semicolon);
        }
        let end = self.unit_end(2);
        let after = self.token(end);
        matches!(
            after.kind,
            TokenKind::Comma | TokenKind::Semicolon | TokenKind::Ellipsis | TokenKind::End
        ) || (after.breaks > 0 && self.begins_another(end))
    }

    /// Whether what stands there can begin an item or specification, so that the sweep on the line before may lack its
    /// terminator.
    fn begins_another(&self, ahead: usize) -> bool {
        let named = self.is_word(ahead, spelling::ITEMS) || self.is_swept(ahead);
        matches!(self.ahead(ahead), TokenKind::Number(_) | TokenKind::Less) || named
    }

    /// The position behind the unit that stands at `ahead`; `ahead` itself if there is no unit.
    fn unit_end(&self, ahead: usize) -> usize {
        use stackline_core::units::{BIT_RATES, RATE_UNITS, SIZE_UNITS, TIME_UNITS, find_factor};
        let word = if self.ahead(ahead) == TokenKind::Name {
            self.text(ahead)
        } else {
            ""
        };
        let is = |tables: &[&[(&str, f64)]]| {
            tables
                .iter()
                .any(|table| find_factor(table, word).is_some())
        };
        if self.ahead(ahead + 1) == TokenKind::Slash
            && self.ahead(ahead + 2) == TokenKind::Name
            && is(&[RATE_UNITS])
        {
            return ahead + 3;
        }
        if self.ahead(ahead) == TokenKind::Slash && self.is_per_second(ahead) {
            return ahead + 2;
        }
        ahead
            + usize::from(
                self.ahead(ahead) == TokenKind::Percent || is(&[SIZE_UNITS, TIME_UNITS, BIT_RATES]),
            )
    }

    /// Reads the terminator of a sweep, which may be missing at the end of a line.
    fn sweep_end(&mut self) -> Parsed<()> {
        match self.kind() {
            TokenKind::Semicolon | TokenKind::Comma => {
                self.take(TokenRole::Terminator);
            }
            _ if self.kind() == TokenKind::End || self.token(0).breaks > 0 => self.terminate_last(),
            _ => return Err(self.unexpected("expected `,`, `...` or `;`", &[])),
        }
        Ok(())
    }
}
