//! Parses values, units, variables, distributions and stacks.

use super::parser::{ParseFailed, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    Base, DistributionItem, OptionItem, OptionText, SpecUnit, SpecValue, StackItem, Word,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::units::{BIT_RATES, RATE_UNITS, SIZE_UNITS, TIME_UNITS, find_factor};

/// Which units may follow a number. Without a unit, a size is in bytes and a time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedUnit {
    /// No unit.
    Plain,
    /// Units of size.
    Size,
    /// Units of time.
    Time,
    /// Units of size or time.
    Any,
    /// No unit; the caller reads one of rates, which an argument of a template has already.
    Rate,
    /// No unit; the caller reads a `%`, which an argument of a template has already.
    Percent,
}

/// How many tokens are searched for the `)` of a drawn size.
const LOOK_AHEAD: usize = 64;

impl Parser<'_, '_> {
    /// Reads a number or a variable (`N` or `<N>`), with its unit.
    pub(crate) fn value(&mut self, expect: ExpectedUnit, expected: &str) -> Parsed<SpecValue> {
        if let Some(name) = self.bound_name() {
            return self.bound_value(name, expect);
        }
        if self.computes() {
            return self.computed_value(expect);
        }
        let start = self.span();
        let base = match self.kind() {
            TokenKind::Number(number) => {
                self.take(TokenRole::Plain);
                Base::Number(number)
            }
            TokenKind::Less if self.is_bracketed(0) && spelling::is_unit(self.text(1)) => {
                return Err(self.unit_as_name(1));
            }
            TokenKind::Name if self.is_swept(0) && spelling::is_unit(self.text(0)) => {
                return Err(self.unit_as_name(0));
            }
            TokenKind::Less if self.is_bracketed(0) => {
                self.take(TokenRole::Bracket);
                let base = Base::Variable(self.text(0).to_string());
                self.take(TokenRole::Variable);
                self.take(TokenRole::Bracket);
                base
            }
            TokenKind::Name if !spelling::is_reserved(self.text(0)) => {
                let base = Base::Variable(self.text(0).to_string());
                self.take(TokenRole::Variable);
                base
            }
            _ => return Err(self.unexpected(expected, &[])),
        };
        let unit = self.unit(expect)?;
        Ok(SpecValue {
            base,
            unit,
            span: start.to(self.last_span()),
        })
    }

    /// Reads a number with its unit, where no variable is allowed.
    pub(crate) fn number(&mut self, expect: ExpectedUnit, expected: &str) -> Parsed<SpecValue> {
        if matches!(self.kind(), TokenKind::Number(_)) {
            self.value(expect, expected)
        } else {
            Err(self.unexpected(expected, &[]))
        }
    }

    /// Whether a figure of a network stands here: a number, or a variable that is swept or in brackets.
    pub(crate) fn is_figure(&self) -> bool {
        let named = self.is_swept(0) && !spelling::is_reserved(self.text(0));
        matches!(self.kind(), TokenKind::Number(_))
            || self.is_bracketed(0)
            || named
            || self.bound_name().is_some()
            || self.computes()
    }

    /// Reads a figure of a network: a number, or a variable to which the specifications that use the network give
    /// values.
    pub(crate) fn figure(&mut self, expect: ExpectedUnit, expected: &str) -> Parsed<SpecValue> {
        if self.is_figure() {
            self.value(expect, expected)
        } else {
            Err(self.unexpected(expected, &[]))
        }
    }

    /// Whether `<NAME>`, a variable in brackets, stands there.
    pub(crate) fn is_bracketed(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Less
            && self.ahead(ahead + 1) == TokenKind::Name
            && self.ahead(ahead + 2) == TokenKind::Greater
            && (!spelling::is_reserved(self.text(ahead + 1))
                || spelling::is_unit(self.text(ahead + 1)))
    }

    /// Reports a variable with the name of a unit.
    fn unit_as_name(&mut self, ahead: usize) -> ParseFailed {
        let token = self.token(ahead).span;
        let message = format!(
            "`{}` is a unit and cannot be a variable name",
            self.text(ahead)
        );
        let diagnostic = Diagnostic::error(token, message, "expected a variable name");
        self.fail(diagnostic.hint("choose another name, such as `N`, here and before its values"))
    }

    /// Reads the unit behind a number, if one stands here; refuses a unit of the other kind.
    pub(super) fn unit(&mut self, expect: ExpectedUnit) -> Parsed<SpecUnit> {
        let without = matches!(
            expect,
            ExpectedUnit::Plain | ExpectedUnit::Rate | ExpectedUnit::Percent
        );
        if self.kind() != TokenKind::Name || without {
            return Ok(SpecUnit::None);
        }
        let size = find_factor(SIZE_UNITS, self.text(0));
        let time = find_factor(TIME_UNITS, self.text(0));
        let unit = match (expect, size, time) {
            (ExpectedUnit::Size | ExpectedUnit::Any, Some(size), _) => SpecUnit::Size(size),
            (ExpectedUnit::Time | ExpectedUnit::Any, _, Some(time)) => SpecUnit::Time(time),
            (ExpectedUnit::Size, None, Some(_)) => {
                return Err(self.wrong_unit("a unit of time", "a size", "KiB"));
            }
            (ExpectedUnit::Time, Some(_), None) => {
                return Err(self.wrong_unit("a unit of size", "a time", "ms"));
            }
            _ => match self.meant(expect) {
                Some((hint, unit)) => {
                    let message = format!("`{}` is not a unit", self.text(0));
                    let such_as = if expect == ExpectedUnit::Time {
                        "`ms`"
                    } else {
                        "`KiB`"
                    };
                    let diagnostic = Diagnostic::error(
                        self.span(),
                        message,
                        format!("expected a unit such as {such_as}"),
                    );
                    self.report.push(diagnostic.hint(hint));
                    // Parsing goes on with that unit, so that later mistakes are found too.
                    unit
                }
                None => return Ok(SpecUnit::None),
            },
        };
        self.take(TokenRole::Plain);
        Ok(unit)
    }

    /// For a unit of other programs, as in `64k` or `5m`: the hint with what it can mean here, and the first of its
    /// meanings.
    fn meant(&self, expect: ExpectedUnit) -> Option<(String, SpecUnit)> {
        let (number, word) = (self.last_text(), self.text(0));
        let taken = self.is_swept(0)
            || self.is_application(0)
            || !number.starts_with(|c: char| c.is_ascii_digit());
        if taken {
            return None;
        }
        let power = match word {
            "k" | "K" | "kb" | "Kb" => 1,
            "m" | "M" | "mb" | "Mb" => 2,
            "g" | "G" | "gb" | "Gb" => 3,
            _ => 0,
        };
        match (expect, power) {
            (ExpectedUnit::Time, 2) => {
                let hint =
                    format!("write `{number} min` for minutes, or `{number} ms` for milliseconds");
                Some((hint, SpecUnit::Time(find_factor(TIME_UNITS, "min")?)))
            }
            (ExpectedUnit::Size | ExpectedUnit::Any, 1..) => {
                let (binary, decimal) = ([("KiB", "kB"), ("MiB", "MB"), ("GiB", "GB")])[power - 1];
                let hint = format!(
                    "write `{number} {binary}` for powers of 1024, or `{number} {decimal}` for powers of 1000"
                );
                Some((hint, SpecUnit::Size(find_factor(SIZE_UNITS, binary)?)))
            }
            _ => None,
        }
    }

    fn wrong_unit(&mut self, found: &str, wanted: &str, such_as: &str) -> ParseFailed {
        let message = format!("`{}` is {found}, but this must be {wanted}", self.text(0));
        let diagnostic = Diagnostic::error(
            self.span(),
            message,
            format!("expected a unit such as `{such_as}`"),
        );
        self.fail(diagnostic)
    }

    /// Reads a rate: `100 Mbit/s`, or a variable.
    pub(crate) fn rate(&mut self) -> Parsed<SpecValue> {
        const EXPECTED: &str = "expected a rate such as `100 Mbit/s`";
        let mut value = self.figure(ExpectedUnit::Rate, EXPECTED)?;
        if matches!(value.unit, SpecUnit::Rate(_)) {
            return Ok(value);
        }
        let (number, word) = (self.last_text(), self.text(0));
        let whole = find_factor(BIT_RATES, word);
        let Some(unit) = whole.or_else(|| find_factor(RATE_UNITS, word)) else {
            if matches!(value.base, Base::Variable(_)) {
                return Ok(value);
            }
            // `10 m` and `10mbit`, as other programs write rates.
            let small = word.to_ascii_lowercase();
            let prefix = ["k", "m", "g"].into_iter().find(|prefix| {
                small
                    .strip_prefix(prefix)
                    .is_some_and(|rest| matches!(rest, "" | "bit" | "bits" | "bps" | "b"))
            });
            let Some(prefix) = prefix.filter(|_| self.ahead(1) != TokenKind::Slash) else {
                let units = RATE_UNITS.iter().take(6).map(|(unit, _)| *unit);
                return Err(self.unexpected(EXPECTED, &units.collect::<Vec<_>>()));
            };
            let prefix = if prefix == "k" {
                prefix.to_string()
            } else {
                prefix.to_ascii_uppercase()
            };
            let diagnostic =
                Diagnostic::error(self.span(), format!("unexpected `{word}`"), EXPECTED);
            return Err(self.fail(diagnostic.hint(format!("write `{number} {prefix}bit/s`"))));
        };
        self.take(TokenRole::Plain);
        if whole.is_none() {
            if self.kind() != TokenKind::Slash || !self.is_word(1, &["s", "sec", "second"]) {
                let diagnostic = Diagnostic::error(
                    self.span(),
                    format!("unexpected {}", self.describe()),
                    EXPECTED,
                );
                return Err(self.fail(diagnostic.hint(format!("write `{number} {word}/s`"))));
            }
            self.take(TokenRole::Plain);
            self.take(TokenRole::Keyword);
        }
        value.unit = SpecUnit::Rate(unit);
        value.span = value.span.to(self.last_span());
        Ok(value)
    }

    /// Whether a distribution stands there: a name with `(` behind it.
    pub(crate) fn is_drawn(&self, ahead: usize) -> bool {
        self.ahead(ahead) == TokenKind::Name && self.ahead(ahead + 1) == TokenKind::Open
    }

    /// Reads a distribution: `uniform(1, 2)`, `empirical(file "sizes")`.
    pub(crate) fn drawn(&mut self, expect: ExpectedUnit) -> Parsed<DistributionItem> {
        const INSIDE: &str = "expected a parameter";
        let text = self.text(0).to_string();
        let name = Word {
            text,
            span: self.take(TokenRole::Keyword),
        };
        self.expect(TokenKind::Open, "expected `(`")?;
        let mut drawn = DistributionItem {
            span: name.span,
            name,
            parameters: Vec::new(),
            file: None,
        };
        if self.accept_word("file") {
            drawn.file = Some(self.file_name()?);
        } else if self.kind() != TokenKind::Close {
            drawn.parameters.push(self.value(expect, INSIDE)?);
            while self.accept(TokenKind::Comma) {
                drawn.parameters.push(self.value(expect, INSIDE)?);
            }
        }
        self.expect(TokenKind::Close, "expected `,` or `)`")?;
        drawn.span = drawn.span.to(self.last_span());
        Ok(drawn)
    }

    /// Reads a file name: a bare word or a quoted text.
    pub(crate) fn file_name(&mut self) -> Parsed<Word> {
        const EXPECTED: &str = "expected a file name, quoted unless it is a single word";
        if self.kind() == TokenKind::Text {
            return self.quoted(EXPECTED);
        }
        let path = self.whole_word();
        if path.contains('/') && !path.contains('"') {
            let diagnostic =
                Diagnostic::error(self.span(), "unexpected `/` in an unquoted name", EXPECTED);
            return Err(self.fail(diagnostic.hint(format!("write `\"{path}\"`"))));
        }
        self.name(EXPECTED)
    }

    /// Reads a list of stacks: `tcp, blast(selective)`. A comma that ends the specification is not taken.
    pub(crate) fn stacks(&mut self) -> Parsed<Vec<StackItem>> {
        let mut stacks = alloc::vec![self.stack()?];
        while self.kind() == TokenKind::Comma && self.is_another_stack() {
            self.take(TokenRole::Plain);
            stacks.push(self.stack()?);
        }
        Ok(stacks)
    }

    /// Whether what follows the comma that stands here is read as a stack.
    fn is_another_stack(&self) -> bool {
        let declared = self.is_word(1, spelling::ITEMS)
            && matches!(self.ahead(2), TokenKind::Name | TokenKind::Number(_));
        // A number of runs that is swept begins a specification.
        let begins = self.is_application(2)
            || self.is_word(2, spelling::COMPOSERS)
            || self.is_word(2, spelling::HEADS);
        let runs = begins && self.is_swept(1);
        self.ahead(1) == TokenKind::Name && self.ahead(2) != TokenKind::Equals && !declared && !runs
            || (self.at_end_of_list()
                && !matches!(self.ahead(1), TokenKind::End | TokenKind::Number(_)))
    }

    /// Whether the comma that stands here is followed by something that can begin neither a stack nor an item: a
    /// mistake in the list.
    fn at_end_of_list(&self) -> bool {
        matches!(
            self.ahead(1),
            TokenKind::Comma
                | TokenKind::Semicolon
                | TokenKind::Bar
                | TokenKind::Colon
                | TokenKind::Text
        )
    }

    fn stack(&mut self) -> Parsed<StackItem> {
        let start = self.position();
        let name = self.name("expected a stack name, such as `tcp`")?;
        let mut options = Vec::new();
        if self.accept(TokenKind::Open) {
            options.push(self.option()?);
            while self.accept(TokenKind::Comma) {
                options.push(self.option()?);
            }
            self.expect(TokenKind::Close, "expected `,` or `)`")?;
        }
        Ok(StackItem {
            name,
            options,
            at: start..self.position(),
        })
    }

    /// Reads an option of a stack: `nodelay`, `mss = 536`, `congestion = reno`, or the text of one, `"./x.so"`.
    fn option(&mut self) -> Parsed<OptionItem> {
        const EXPECTED: &str = "expected an option name";
        const VALUE: &str = "expected the option's value";
        if self.kind() == TokenKind::Text {
            let text = self.quoted(EXPECTED)?;
            let name = Word {
                text: String::new(),
                span: text.span,
            };
            let value = Some(OptionText::Quoted(text));
            return Ok(OptionItem { name, value });
        }
        if self.kind() == TokenKind::Slash {
            let found = format!("unexpected {}", self.describe());
            let diagnostic = Diagnostic::error(self.span(), found, EXPECTED);
            return Err(self.fail(diagnostic.hint(
                "write a path in quotation marks, as in `plugin(\"./x.so\")`; a shell takes them away unless the whole text is in single ones",
            )));
        }
        let name = self.name(EXPECTED)?;
        if !self.accept(TokenKind::Equals) {
            return Ok(OptionItem { name, value: None });
        }
        let value = match self.kind() {
            TokenKind::Text => OptionText::Quoted(self.quoted(VALUE)?),
            TokenKind::Name if !self.is_swept(0) => OptionText::Word(self.name(VALUE)?),
            _ => OptionText::Value(self.value(ExpectedUnit::Any, VALUE)?),
        };
        Ok(OptionItem {
            name,
            value: Some(value),
        })
    }

    /// The position behind the size of a data unit that stands at `ahead`; `None` if no size stands there.
    pub(crate) fn size_length(&self, ahead: usize) -> Option<usize> {
        let base = match self.ahead(ahead) {
            TokenKind::Number(_) => ahead + 1,
            TokenKind::Less if self.is_bracketed(ahead) => ahead + 3,
            TokenKind::Name if self.ahead(ahead + 1) == TokenKind::Open => {
                let close =
                    (ahead..ahead + LOOK_AHEAD).find(|at| self.ahead(*at) == TokenKind::Close)?;
                return Some(close + 1);
            }
            TokenKind::Name if !spelling::is_reserved(self.text(ahead)) => ahead + 1,
            _ => return None,
        };
        let unit = self.ahead(base) == TokenKind::Name
            && find_factor(SIZE_UNITS, self.text(base)).is_some();
        Some(base + usize::from(unit))
    }
}
