//! Parses a part of a measurement: replicas, hosts, application type, data and timings.

use super::parser::{ParseFailed, Parsed, Parser};
use super::specification::IN_FLIGHT;
use super::value::ExpectedUnit;
use crate::check::host_sets::is_set;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    AccessItem, Base, CountItem, DataItem, HostPairing, PartItem, SizeItem, SpecValue,
    Specification, Word,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::units::{SIZE_UNITS, TIME_UNITS, find_factor};

const SIZE: &str = "expected the size of a data unit";

impl Parser<'_, '_> {
    /// Reads a part and adds it to the specification. After a mistake behind the application type, what was read
    /// before the mistake is added.
    pub(crate) fn part(&mut self, specification: &mut Specification) -> Parsed<()> {
        let (first, start) = (self.position(), self.span());
        let mut replicas = self.replicas()?;
        let (mut from, mut to) = (None, None);
        let ends = self.position();
        self.ends(&mut from, &mut to)?;
        let pairing = self.pairing();
        let is_set = |end: &Option<Word>| end.as_ref().is_some_and(|end| is_set(&end.text));
        let set_at = (is_set(&from) || is_set(&to)).then(|| ends..self.position());
        if replicas.is_none() && from.as_ref().or(to.as_ref()).is_some() {
            replicas = self.replicas()?;
        }
        self.no_composer(from.as_ref(), to.as_ref())?;
        let application = self.application()?;
        let mut part = PartItem {
            span: start,
            head_at: first..self.position(),
            replicas,
            from,
            to,
            late_at: Vec::new(),
            pairing,
            set_at,
            application,
            data: None,
            source: None,
            destination: None,
            timings: Vec::new(),
            clauses: Vec::new(),
        };
        let result = self.behind_application(&mut part, first, specification);
        part.span = start.to(self.last_span());
        specification.parts.push(part);
        result
    }

    fn behind_application(
        &mut self,
        part: &mut PartItem,
        first: usize,
        specification: &mut Specification,
    ) -> Parsed<()> {
        part.data = self.data()?;
        if part.data.is_some() {
            (part.source, part.destination) = self.accesses()?;
        }
        part.head_at = first..self.position();
        self.tail(part, specification)
    }

    /// Reads the number of pairs, if it stands here. It may be written before the hosts or behind them.
    fn replicas(&mut self) -> Parsed<Option<SpecValue>> {
        if !self.is_replicas() {
            return Ok(None);
        }
        self.value(ExpectedUnit::Plain, "expected a number of pairs")
            .map(Some)
    }

    /// Refuses a composer behind hosts: a reader would take the hosts of the first part for those of all parts.
    fn no_composer(&mut self, from: Option<&Word>, to: Option<&Word>) -> Parsed<()> {
        let ends: Vec<String> = [("from", from), ("to", to)]
            .into_iter()
            .filter_map(|(end, host)| host.map(|host| format!("{end} {}", host.text)))
            .collect();
        let word = self.text(0);
        if ends.is_empty() || !self.is_word(0, spelling::COMPOSERS) || self.is_application(0) {
            return Ok(());
        }
        let (ends, message) = (
            ends.join(" "),
            format!("`{word}` must not follow the hosts of a part"),
        );
        let diagnostic =
            Diagnostic::error(self.span(), message, "expected it after the number of runs");
        let hint = format!(
            "each part has its own hosts, as in `3 {word}: {ends} rr 32*100 | {ends} bulk_put 1024*100`"
        );
        Err(self.fail(diagnostic.hint(hint)))
    }

    /// Whether a number of pairs stands here: a number, `<N>`, or a bare variable before hosts or an application type.
    fn is_replicas(&self) -> bool {
        match self.kind() {
            TokenKind::Number(_) => true,
            TokenKind::Less => self.is_bracketed(0),
            TokenKind::Name if self.is_application(0) || self.is_word(0, &["from", "to"]) => false,
            TokenKind::Name => self.is_application(1) || self.is_word(1, &["from", "to"]),
            _ => false,
        }
    }

    /// Reads `from HOST` and `to HOST`, as far as they stand here.
    fn ends(&mut self, from: &mut Option<Word>, to: &mut Option<Word>) -> Parsed<()> {
        while self.is_word(0, &["from", "to"]) {
            let end = if self.folded(0) == "from" {
                &mut *from
            } else {
                &mut *to
            };
            if end.is_some() {
                return Err(self.unexpected("FROM and TO may each be given only once", &[]));
            }
            let is_to = self.folded(0) == "to";
            self.take(TokenRole::Keyword);
            *end = Some(match self.kind() {
                TokenKind::Text if is_to => self.quoted("expected the address of a server")?,
                _ => self.host_or_set("expected a host name, or a set of hosts such as `w[*]`")?,
            });
        }
        Ok(())
    }

    /// Reads how the members of two sets are paired, if that stands here.
    fn pairing(&mut self) -> Option<(HostPairing, TextSpan)> {
        let pairing = match self.folded(0).as_str() {
            _ if self.is_application(0) => return None,
            "pairwise" => HostPairing::Pairwise,
            "permutation" => HostPairing::Permutation,
            _ => return None,
        };
        Some((pairing, self.take(TokenRole::Keyword)))
    }

    /// Reads the application type, whose name may be one that is not declared.
    fn application(&mut self) -> Parsed<Word> {
        if self.kind() != TokenKind::Name {
            return Err(self.unexpected("expected an application type such as `bulk_get`", &[]));
        }
        if !self.is_application(0) && self.ahead(1) == TokenKind::Name && self.is_application(2) {
            return Err(self.unexpected(
                "expected `from`, `to` or an application type",
                &["from", "to"],
            ));
        }
        let front = !self.is_application(0)
            && matches!(self.ahead(1), TokenKind::Number(_))
            && self.is_application(2);
        if front && self.is_word(0, &IN_FLIGHT) {
            return Err(self.in_flight("expected an application type"));
        }
        if front {
            return Err(self.unexpected(
                "expected an application type",
                &["timelimit", "warmup", "until"],
            ));
        }
        let text = self.text(0).to_string();
        Ok(Word {
            text,
            span: self.take(TokenRole::Application),
        })
    }

    /// Reads the data of a part: a size, perhaps a second one for replies, and a number of units or an amount.
    fn data(&mut self) -> Parsed<Option<DataItem>> {
        let bytes = self.accept_word("bytes");
        let here = match self.kind() {
            TokenKind::Number(_) => true,
            TokenKind::Less => self.is_bracketed(0),
            TokenKind::Name => !self.begins_tail(0) && !self.begins_timing(0),
            _ => false,
        };
        if !here {
            return if bytes {
                Err(self.unexpected(SIZE, &[]))
            } else {
                Ok(None)
            };
        }
        let start = self.span();
        let unit = self.size()?;
        let mut reply = None;
        let count = if self.accept(TokenKind::Star) {
            CountItem::Times(self.times()?)
        } else if self.kind() == TokenKind::Comma && self.is_second_size() {
            self.take(TokenRole::Plain);
            reply = Some(self.size()?);
            if self.accept(TokenKind::Star) {
                CountItem::Times(self.times()?)
            } else {
                CountItem::Open
            }
        } else if self.kind() == TokenKind::Comma && self.is_list_of_sizes() {
            return Err(self.third_number());
        } else if !self.is_frequency_at(0)
            && !self.begins_timing(0)
            && (matches!(self.kind(), TokenKind::Number(_))
                || self.is_bracketed(0)
                || self.is_swept(0))
        {
            self.no_duration()?;
            let amount = self.value(ExpectedUnit::Size, "expected the amount of data")?;
            self.no_product(&unit, &amount)?;
            CountItem::Amount(amount)
        } else {
            CountItem::Open
        };
        Ok(Some(DataItem {
            unit,
            reply,
            count,
            span: start.to(self.last_span()),
        }))
    }

    /// Refuses `64 KiB 2 s`: a time in a part needs a word that says what it is.
    fn no_duration(&mut self) -> Parsed<()> {
        let (number, unit) = (self.text(0), self.text(1));
        if self.ahead(1) != TokenKind::Name || find_factor(TIME_UNITS, unit).is_none() {
            return Ok(());
        }
        let hint = format!(
            "write `timelimit {number} {unit}` for the length of a run, or `constant({number} {unit})` for the interval between data units"
        );
        let label = "expected the amount of data, or a limit";
        Err(self.fail(Diagnostic::error(self.span(), "unexpected time", label).hint(hint)))
    }

    /// Refuses `1 MiB 1*4000`: the number of units must follow the size, as in `1 MiB*4000`.
    fn no_product(&mut self, unit: &SizeItem, amount: &SpecValue) -> Parsed<()> {
        let (SizeItem::Value(size), Base::Number(_)) = (unit, &amount.base) else {
            return Ok(());
        };
        let (TokenKind::Star, TokenKind::Number(_)) = (self.kind(), self.ahead(1)) else {
            return Ok(());
        };
        let hint = format!("write `{}*{}`", self.written(size.span), self.text(1));
        let label = "expected an amount of data, or `*` and a number of units, after the size";
        let diagnostic = Diagnostic::error(
            size.span.to(self.token(1).span),
            "unexpected number of data units",
            label,
        );
        Err(self.fail(diagnostic.hint(hint)))
    }

    /// Reads the number of data units behind `*`. A unit behind the number is refused, with a hint of what it can have
    /// meant.
    fn times(&mut self) -> Parsed<SpecValue> {
        const EXPECTED: &str = "expected the number of data units";
        let value = self.value(ExpectedUnit::Plain, EXPECTED)?;
        let (Base::Number(number), TokenKind::Name) = (&value.base, self.kind()) else {
            return Ok(value);
        };
        let (word, written) = (self.text(0), self.last_text());
        let thousands = match word {
            "k" | "K" => Some(1e3),
            "m" | "M" => Some(1e6),
            "g" | "G" => Some(1e9),
            _ => None,
        };
        let hint = match thousands {
            Some(by) if !self.is_swept(0) => format!("write `{}`", number * by),
            _ if find_factor(SIZE_UNITS, word).is_some() => {
                format!(
                    "write `{written}` for that many units; an amount of data comes after the size, as in `64 KiB {written} {word}`"
                )
            }
            _ => return Ok(value),
        };
        let diagnostic = Diagnostic::error(self.span(), format!("unexpected `{word}`"), EXPECTED);
        Err(self.fail(diagnostic.hint(hint)))
    }

    fn size(&mut self) -> Parsed<SizeItem> {
        if self.is_drawn(0) {
            Ok(SizeItem::Drawn(self.drawn(ExpectedUnit::Size)?))
        } else {
            Ok(SizeItem::Value(self.value(ExpectedUnit::Size, SIZE)?))
        }
    }

    /// Whether the comma that stands here is followed by a size and what may follow a size. If not, the comma ends the
    /// specification.
    fn is_second_size(&self) -> bool {
        self.size_length(1)
            .is_some_and(|end| match self.ahead(end) {
                TokenKind::Star
                | TokenKind::Semicolon
                | TokenKind::End
                | TokenKind::Bar
                | TokenKind::Less
                | TokenKind::Greater => true,
                TokenKind::Name if self.is_drawn(end) || self.begins_timing(end) => true,
                TokenKind::Name if self.is_frequency_at(end) => true,
                TokenKind::Name => self.begins_tail(end) && !self.is_word(end, &["from", "to"]),
                _ => self.is_frequency_at(end),
            })
    }

    /// Whether the comma that stands here is followed by a size, another comma, and a number that begins no
    /// specification.
    fn is_list_of_sizes(&self) -> bool {
        let number = |at: usize| matches!(self.ahead(at), TokenKind::Number(_));
        number(1)
            && self.size_length(1).is_some_and(|end| {
                self.ahead(end) == TokenKind::Comma
                    && number(end + 1)
                    && !self.looks_like_specification(end + 1)
            })
    }

    /// Reports a third number, as in `32, 1 KiB, 5`, with a hint of what it can have meant.
    fn third_number(&mut self) -> ParseFailed {
        self.take(TokenRole::Plain);
        while self.kind() != TokenKind::Comma {
            self.take(TokenRole::Plain);
        }
        let diagnostic = Diagnostic::error(
            self.span(),
            "unexpected `,`",
            "expected `*` and the number of data units",
        );
        let hint = format!(
            "write `*{}` for that many units, or sweep several sizes: `N*1000; N = 32, 1 KiB`",
            self.text(1)
        );
        self.fail(diagnostic.hint(hint))
    }

    /// Whether a clause, a limit, `from` or `to` begins there.
    fn begins_tail(&self, ahead: usize) -> bool {
        [spelling::CLAUSES, spelling::HEADS, &["from", "to"]]
            .iter()
            .any(|words| self.is_word(ahead, words))
    }

    /// Reads the source (`< file X`) and the destination (`> memory`) of the data, in any order.
    fn accesses(&mut self) -> Parsed<(Option<AccessItem>, Option<AccessItem>)> {
        let (mut source, mut destination) = (None, None);
        loop {
            let end = match self.kind() {
                TokenKind::Less if self.is_frequency_at(0) => return Ok((source, destination)),
                TokenKind::Less => &mut source,
                TokenKind::Greater => &mut destination,
                _ => return Ok((source, destination)),
            };
            if end.is_some() {
                return Err(self.unexpected("`<` and `>` may each be given only once", &[]));
            }
            self.take(TokenRole::Plain);
            *end = Some(self.access()?);
        }
    }

    fn access(&mut self) -> Parsed<AccessItem> {
        match self.folded(0).as_str() {
            "memory" => {
                self.take(TokenRole::Keyword);
                Ok(AccessItem::Memory)
            }
            "virtual_memory" => {
                self.take(TokenRole::Keywords);
                Ok(AccessItem::VirtualMemory)
            }
            "virtual" => {
                self.take(TokenRole::Keyword);
                self.expect_word("memory", "expected `virtual memory`")?;
                Ok(AccessItem::VirtualMemory)
            }
            "file" => {
                self.take(TokenRole::Keyword);
                Ok(AccessItem::File(self.file_name()?))
            }
            "whole" => {
                self.take(TokenRole::Keyword);
                self.expect_word("file", "expected `whole file` and a name")?;
                Ok(AccessItem::WholeFile(self.file_name()?))
            }
            _ => {
                let expected = "expected `memory`, `virtual memory` or `file` and a name";
                Err(self.unexpected(expected, &["memory", "virtual", "file", "whole"]))
            }
        }
    }

    /// Reads what may follow the data of a part, in any order: clauses, timings, rates, limits and hosts.
    fn tail(&mut self, part: &mut PartItem, specification: &mut Specification) -> Parsed<()> {
        loop {
            let first = self.position();
            if let Some(clause) = self.clause(true)? {
                self.once(&part.clauses, &clause);
                part.clauses.push(clause);
            } else if let Some(timing) = self.timing(part.data.as_ref())? {
                part.timings.push(timing);
            } else if self.is_word(0, spelling::HEADS) {
                self.heads(specification)?;
                specification.late_at.push(first..self.position());
            } else if self.is_word(0, &["from", "to"]) {
                self.ends(&mut part.from, &mut part.to)?;
                let ends = [&part.from, &part.to].into_iter().flatten();
                let late = ends
                    .filter(|_| part.set_at.is_none())
                    .find(|end| is_set(&end.text));
                if let Some(set) = late {
                    let message = "a set of hosts stands behind the application type";
                    let diagnostic = Diagnostic::error(set.span, message, "expected before it");
                    return Err(self.fail(
                        diagnostic.hint(format!("for example `from {} to sink rr 32`", set.text)),
                    ));
                }
                part.late_at.push(first..self.position());
            } else {
                return Ok(());
            }
        }
    }
}
