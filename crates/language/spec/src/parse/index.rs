//! Parses indices and names with indices: `w[i]`, `edge[p][k/2]`, and the whole numbers from which they are computed.
//!
//! `+`, `-`, `*`, `/` (rounded down), `%` (remainder) and `^` (power) have their usual order. `i-1` is a name for the
//! lexer, since names may hold `-`; here it is a difference.

use super::name_scope::BoundName;
use super::parser::{Parsed, Parser};
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{Base, SpecUnit, Word};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// The largest index, and the largest number on the way to one.
const LARGEST: i64 = 1_000_000_000;
/// The longest index, in terms, so that the recursion is bounded.
const LONGEST: usize = 64;
const NUMBER: &str = "expected a whole number, the index of a loop or a parameter of a template";

/// A piece of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexTerm {
    /// A number; `None` for one that is not known before a template is used.
    Number(Option<i64>),
    Sign(char),
    Open,
    Close,
}

/// The terms of an index, which are computed from first to last.
struct IndexTerms {
    list: Vec<IndexTerm>,
    at: usize,
}

/// What a computation gives: a number, or one that is not known yet; or what is wrong.
type Computed = Result<Option<i64>, &'static str>;

impl IndexTerms {
    fn next(&self) -> Option<IndexTerm> {
        self.list.get(self.at).copied()
    }

    /// The sign that comes next, if it is one of these.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        match self.next() {
            Some(IndexTerm::Sign(sign)) if signs.contains(&sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Computed {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let right = self.product()?;
            left = combined(left, sign, right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Computed {
        let mut left = self.power()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let right = self.power()?;
            left = combined(left, sign, right)?;
        }
        Ok(left)
    }

    fn power(&mut self) -> Computed {
        let left = self.atom()?;
        if self.sign(&['^']).is_some() {
            let right = self.power()?;
            return combined(left, '^', right);
        }
        Ok(left)
    }

    fn atom(&mut self) -> Computed {
        let term = self.next();
        self.at += 1;
        match term {
            Some(IndexTerm::Number(number)) => Ok(number),
            Some(IndexTerm::Open) => {
                let inner = self.sum()?;
                let closed = self.next() == Some(IndexTerm::Close);
                self.at += 1;
                closed.then_some(inner).ok_or("expected `)`")
            }
            _ => Err(NUMBER),
        }
    }
}

/// An index as a number with fractions; indices are within the bounds of 32 bits.
pub(super) fn decimal(index: i64) -> f64 {
    i32::try_from(index).map_or(f64::MAX, f64::from)
}

fn combined(left: Option<i64>, sign: char, right: Option<i64>) -> Computed {
    let Some((left, right)) = left.zip(right) else {
        return Ok(None);
    };
    let result = match sign {
        '+' => left.checked_add(right),
        '-' => left.checked_sub(right),
        '*' => left.checked_mul(right),
        '/' | '%' if right == 0 => return Err("this divides by zero"),
        '/' => left.checked_div_euclid(right),
        '%' => left.checked_rem_euclid(right),
        _ => u32::try_from(right)
            .ok()
            .and_then(|power| left.checked_pow(power)),
    };
    let result = result.filter(|number| (-LARGEST..=LARGEST).contains(number));
    result.map(Some).ok_or("this is beyond 1000000000")
}

impl Parser<'_, '_> {
    /// Reads the name of a host, switch or router with its indices: `w[i]`; in a template, with the prefix of its use.
    pub(crate) fn node_name(&mut self, expected: &str) -> Parsed<Word> {
        self.indexed_name(expected, false)
    }

    /// Reads the name of a host, or that of a set of hosts: `w[*]`, `w[1..8]`.
    pub(super) fn host_or_set(&mut self, expected: &str) -> Parsed<Word> {
        self.indexed_name(expected, true)
    }

    fn indexed_name(&mut self, expected: &str, sets: bool) -> Parsed<Word> {
        let mut word = self.name(expected)?;
        while self.continues_name() {
            if sets && self.kind() == TokenKind::OpenBracket {
                word.text.push_str(&self.set_of_indices()?);
            } else if self.kind() == TokenKind::OpenBracket {
                match self.bracket()? {
                    Some(number) => _ = write!(word.text, "[{number}]"),
                    None => word.text.push_str("[]"),
                }
            } else {
                word.text.push_str(self.text(0));
                self.take(TokenRole::Index);
            }
        }
        word.span = word.span.to(self.last_span());
        word.text.insert_str(0, &self.scope.prefix);
        Ok(word)
    }

    /// Whether a `[`, or `.` and a name behind a `]`, stands right behind the previous token.
    fn continues_name(&self) -> bool {
        let joined = self.is_joined();
        let further = self.kind() == TokenKind::Name && self.text(0).starts_with('.');
        joined && (self.kind() == TokenKind::OpenBracket || further)
    }

    /// Reads `[INDEX]`, `[*]` or `[FROM..TO]` and returns it in the common form.
    fn set_of_indices(&mut self) -> Parsed<String> {
        const ENDS: &[TokenKind] = &[TokenKind::CloseBracket, TokenKind::Range];
        self.take(TokenRole::Index);
        let mut text = String::from("[");
        if self.kind() == TokenKind::Star {
            self.take(TokenRole::Index);
            text.push('*');
        } else {
            let from = self.whole_number(TokenRole::Index, ENDS)?;
            let _ = write!(text, "{}", from.unwrap_or_default());
            if self.kind() == TokenKind::Range {
                self.take(TokenRole::Index);
                let to = self.whole_number(TokenRole::Index, ENDS)?;
                let _ = write!(text, "..{}", to.unwrap_or_default());
            }
        }
        if self.kind() != TokenKind::CloseBracket {
            return Err(self.unexpected("expected `]`", &[]));
        }
        self.take(TokenRole::Index);
        text.push(']');
        Ok(text)
    }

    /// Reads `[INDEX]`.
    fn bracket(&mut self) -> Parsed<Option<i64>> {
        self.take(TokenRole::Index);
        let number = self.whole_number(TokenRole::Index, &[TokenKind::CloseBracket])?;
        if self.kind() != TokenKind::CloseBracket {
            return Err(self.unexpected("expected `]`", &[]));
        }
        if let Some(number) = number.filter(|number| *number < 0) {
            let message = format!("the index is {number}");
            let diagnostic = Diagnostic::error(self.last_span(), message, "expected 0 or more");
            return Err(self.fail(diagnostic.hint("begin the loop later, or end it earlier")));
        }
        self.take(TokenRole::Index);
        Ok(number)
    }

    /// Reads a whole number up to one of the `ends` outside parentheses, which is not taken. The first token gets the
    /// role `first`. `None` where a parameter is not known yet.
    pub(super) fn whole_number(
        &mut self,
        first: TokenRole,
        ends: &[TokenKind],
    ) -> Parsed<Option<i64>> {
        let (start, mut role, mut depth) = (self.span(), first, 0_usize);
        let mut terms = IndexTerms {
            list: Vec::new(),
            at: 0,
        };
        loop {
            let kind = self.kind();
            if depth == 0 && ends.contains(&kind) {
                break;
            }
            match kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close if depth > 0 => depth -= 1,
                _ => {}
            }
            self.term(&mut terms.list)?;
            if role == TokenRole::Plain && kind == TokenKind::Open {
                role = TokenRole::Group;
            }
            self.take(role);
            role = TokenRole::Index;
            if terms.list.len() > LONGEST {
                let message = "the index is too long";
                let diagnostic = Diagnostic::error(start, message, "at most 64 terms");
                return Err(self.fail(diagnostic.hint("compute it in fewer steps")));
            }
        }
        if terms.list.is_empty() {
            return Err(self.unexpected(NUMBER, &[]));
        }
        let computed = terms.sum().and_then(|number| {
            let whole = terms.at >= terms.list.len();
            whole
                .then_some(number)
                .ok_or("expected a sign between two numbers")
        });
        computed.map_err(|wrong| {
            let span = start.to(self.last_span());
            let message = format!("`{}` cannot be computed", self.written(span));
            self.fail(Diagnostic::error(span, message, wrong))
        })
    }

    /// Adds the terms of the current token.
    fn term(&mut self, terms: &mut Vec<IndexTerm>) -> Parsed<()> {
        match self.kind() {
            TokenKind::Number(number) if number % 1.0 == 0.0 && number <= decimal(LARGEST) => {
                terms.push(IndexTerm::Number(Some(number as i64)));
            }
            TokenKind::Open => terms.push(IndexTerm::Open),
            TokenKind::Close => terms.push(IndexTerm::Close),
            TokenKind::Plus => terms.push(IndexTerm::Sign('+')),
            TokenKind::Minus => terms.push(IndexTerm::Sign('-')),
            TokenKind::Star => terms.push(IndexTerm::Sign('*')),
            TokenKind::Slash => terms.push(IndexTerm::Sign('/')),
            TokenKind::Percent => terms.push(IndexTerm::Sign('%')),
            TokenKind::Caret => terms.push(IndexTerm::Sign('^')),
            TokenKind::Name => self.named_terms(terms)?,
            _ => return Err(self.unexpected(NUMBER, &[])),
        }
        Ok(())
    }

    /// Adds the terms of a name: what is bound to it, or those between its `-`.
    fn named_terms(&mut self, terms: &mut Vec<IndexTerm>) -> Parsed<()> {
        let (text, span) = (self.text(0), self.span());
        if let Some(bound) = self.scope.find(text).cloned() {
            terms.push(IndexTerm::Number(self.counted(text, span, &bound)?));
            return Ok(());
        }
        for (at, piece) in text.split('-').enumerate() {
            if at > 0 {
                terms.push(IndexTerm::Sign('-'));
            }
            let number = match (piece.parse().ok(), self.scope.find(piece).cloned()) {
                (Some(number), _) => Some(number),
                (None, Some(bound)) => self.counted(piece, span, &bound)?,
                (None, None) => return Err(self.unbound(piece, span)),
            };
            if number.is_some_and(|number| number > LARGEST) {
                return Err(self.unexpected(NUMBER, &[]));
            }
            terms.push(IndexTerm::Number(number));
        }
        Ok(())
    }

    /// The whole number that a name stands for.
    fn counted(&mut self, name: &str, span: TextSpan, bound: &BoundName) -> Parsed<Option<i64>> {
        match bound {
            BoundName::Index(index) => Ok(Some(*index)),
            BoundName::Open => Ok(None),
            BoundName::Argument(value) => match (&value.base, value.unit) {
                (Base::Number(number), SpecUnit::None)
                    if *number % 1.0 == 0.0 && *number <= decimal(LARGEST) =>
                {
                    Ok(Some(*number as i64))
                }
                _ => {
                    let message = format!("`{name}` is not a whole number here");
                    let diagnostic = Diagnostic::error(span, message, NUMBER);
                    Err(self.fail(diagnostic.hint("use the template with a plain number for it")))
                }
            },
        }
    }

    /// Reports a name that stands for nothing where a whole number is expected.
    fn unbound(&mut self, name: &str, span: TextSpan) -> super::parser::ParseFailed {
        let swept = !name.is_empty() && self.is_swept_name(name);
        let message =
            format!("`{name}` is not the index of a loop or a parameter of a template here");
        let known: Vec<String> = self
            .scope
            .bound
            .iter()
            .map(|bound| bound.0.clone())
            .collect();
        let diagnostic = Diagnostic::error(span, message, NUMBER);
        let hint = if swept {
            format!(
                "write a number: `{name}` is swept, and a network has the same nodes for all values of a sweep"
            )
        } else if known.is_empty() {
            "write a number, as in `w[3]` or `for i in 1..200 { ... }`".into()
        } else {
            format!("known here: `{}`", known.join("`, `"))
        };
        self.fail(diagnostic.did_you_mean(name, known.iter().map(String::as_str), hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computed(terms: &[IndexTerm]) -> Computed {
        IndexTerms {
            list: terms.to_vec(),
            at: 0,
        }
        .sum()
    }

    fn number(number: i64) -> IndexTerm {
        IndexTerm::Number(Some(number))
    }

    #[test]
    fn signs_have_their_usual_order() {
        use IndexTerm::{Close, Number, Open, Sign};
        let (plus, minus, times) = (Sign('+'), Sign('-'), Sign('*'));
        assert_eq!(
            computed(&[number(2), plus, number(3), times, number(4)]),
            Ok(Some(14))
        );
        assert_eq!(
            computed(&[number(9), minus, number(3), minus, number(4)]),
            Ok(Some(2))
        );
        let grouped = [Open, number(2), plus, number(3), Close, times, number(4)];
        assert_eq!(computed(&grouped), Ok(Some(20)));
        let power = [number(2), Sign('^'), number(3), Sign('^'), number(2)];
        assert_eq!(computed(&power), Ok(Some(512)));
        assert_eq!(computed(&[number(7), Sign('/'), number(2)]), Ok(Some(3)));
        assert_eq!(computed(&[number(7), Sign('%'), number(4)]), Ok(Some(3)));
        assert_eq!(computed(&[Number(None), Sign('/'), number(0)]), Ok(None));
        assert!(computed(&[number(7), Sign('%'), number(0)]).is_err());
        assert!(computed(&[number(10), Sign('^'), number(30)]).is_err());
        assert!(computed(&[Open, number(1)]).is_err());
        assert!(computed(&[plus]).is_err());
    }
}
