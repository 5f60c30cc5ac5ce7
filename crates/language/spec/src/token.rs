//! Splits a text into tokens. Comments and line breaks are kept beside the tokens, for the formatter.
//!
//! It always reaches the end of the text: what cannot be read becomes a diagnostic and is left out.

use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin, TextSpan};
use alloc::format;
use alloc::vec::Vec;

/// The largest number that may be written; whole numbers up to it are exact.
const LARGEST: f64 = 1e15;
/// The longest text, in bytes.
const LONGEST: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Number(f64),
    Name,
    Text,
    Semicolon,
    Comma,
    Colon,
    Bar,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Star,
    Equals,
    Plus,
    Minus,
    Caret,
    Arrow,
    Slash,
    Percent,
    Ellipsis,
    Range,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecToken {
    pub(crate) kind: TokenKind,
    pub(crate) span: TextSpan,
    /// Line breaks between the previous token or comment and this token.
    pub(crate) breaks: usize,
    /// The line of the token, from 1.
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Comment {
    /// Index of the token that follows the comment.
    pub(crate) before: usize,
    pub(crate) span: TextSpan,
    /// Line breaks before the comment; 0 when it is on the line of a token.
    pub(crate) breaks: usize,
}

/// The tokens, the last of which is [`TokenKind::End`], and the comments in order.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) list: Vec<SpecToken>,
    pub(crate) comments: Vec<Comment>,
}

struct SpecLexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    breaks: usize,
    origin: TextOrigin,
    tokens: Tokens,
}

/// Splits a whole text.
pub(crate) fn lex(text: &str, origin: TextOrigin, report: &mut DiagnosticReport) -> Tokens {
    let mut lexer = SpecLexer {
        text,
        at: 0,
        line: 1,
        breaks: 0,
        origin,
        tokens: Tokens::default(),
    };
    if text.len() > LONGEST {
        let span = TextSpan {
            start: 0,
            end: 0,
            origin,
        };
        report.push(
            Diagnostic::error(span, "the input is longer than 1 MiB", "at most 1 MiB")
                .hint("split it into several files"),
        );
        lexer.at = text.len();
    }
    // A byte order mark, as some editors write it.
    if lexer.rest().starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.step(report) {}
    lexer.push(TokenKind::End, text.len());
    lexer.tokens
}

impl<'a> SpecLexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        let span = TextSpan {
            start: self.at,
            end,
            origin: self.origin,
        };
        self.tokens.list.push(SpecToken {
            kind,
            span,
            breaks: self.breaks,
            line: self.line,
        });
        self.breaks = 0;
        self.at = end;
    }

    /// Reads one token, comment or piece of white space; false at the end.
    fn step(&mut self, report: &mut DiagnosticReport) -> bool {
        let Some(first) = self.rest().chars().next() else {
            return false;
        };
        match first {
            '\n' => {
                self.line += 1;
                self.breaks += 1;
                self.at += 1;
            }
            c if c.is_whitespace() => self.at += c.len_utf8(),
            '#' => self.comment(),
            '"' => self.quoted(report),
            c if c.is_ascii_digit() => self.number(report),
            c if is_letter(c) => self.push(TokenKind::Name, self.at + name_length(self.rest())),
            '.' if self.continues_name() => {
                self.push(TokenKind::Name, self.at + name_length(self.rest()));
            }
            _ => self.sign(report),
        }
        true
    }

    /// Whether a `.` here continues a name with an index, as in `paris[2].gateway`.
    fn continues_name(&self) -> bool {
        let last = self.tokens.list.last();
        let closed = last
            .is_some_and(|last| last.kind == TokenKind::CloseBracket && last.span.end == self.at);
        closed && self.rest().chars().nth(1).is_some_and(is_letter)
    }

    fn comment(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or("");
        let end = self.at + line.trim_end().len();
        let span = TextSpan {
            start: self.at,
            end,
            origin: self.origin,
        };
        // At the beginning it has its own line, though no line break comes before it.
        let breaks = if self.tokens.list.is_empty() {
            self.breaks.max(1)
        } else {
            self.breaks
        };
        self.tokens.comments.push(Comment {
            before: self.tokens.list.len(),
            span,
            breaks,
        });
        self.breaks = 0;
        self.at += line.len();
    }

    fn quoted(&mut self, report: &mut DiagnosticReport) {
        let inner = self.rest().get(1..).unwrap_or("");
        let length = inner.find(['"', '\n']).unwrap_or(inner.len());
        if inner
            .get(length..)
            .is_some_and(|tail| tail.starts_with('"'))
        {
            return self.push(TokenKind::Text, self.at + length + 2);
        }
        let end = self.at + 1 + inner.get(..length).unwrap_or("").trim_end().len();
        let span = TextSpan {
            start: self.at,
            end,
            origin: self.origin,
        };
        report.push(Diagnostic::error(
            span,
            "a quoted string is not closed",
            "expected `\"` on the same line",
        ));
        // As if it were closed: parsing goes on behind it.
        self.push(TokenKind::Text, end);
    }

    fn number(&mut self, report: &mut DiagnosticReport) {
        let length = number_length(self.rest());
        let written = self.rest().get(..length).unwrap_or("").replace('_', "");
        let value: f64 = written.parse().unwrap_or(f64::INFINITY);
        let span = TextSpan {
            start: self.at,
            end: self.at + length,
            origin: self.origin,
        };
        if value > LARGEST {
            report.push(Diagnostic::error(
                span,
                "the number is too large",
                format!("at most {LARGEST}"),
            ));
        }
        self.push(TokenKind::Number(value.min(LARGEST)), self.at + length);
    }

    fn sign(&mut self, report: &mut DiagnosticReport) {
        let rest = self.rest();
        if rest.starts_with("...") {
            return self.push(TokenKind::Ellipsis, self.at + 3);
        }
        let two = TWO.iter().find(|(text, _)| rest.starts_with(text));
        if let Some((_, kind)) = two {
            return self.push(*kind, self.at + 2);
        }
        if let Some(dots) = rest.chars().next().filter(|c| *c == '…') {
            return self.push(TokenKind::Ellipsis, self.at + dots.len_utf8());
        }
        if let Some(kind) = rest.chars().next().and_then(sign) {
            return self.push(kind, self.at + 1);
        }
        let junk = |c: char| {
            !c.is_whitespace() && !c.is_ascii_digit() && !is_letter(c) && sign(c).is_none()
        };
        let length: usize = rest
            .chars()
            .take_while(|c| junk(*c) && !matches!(c, '#' | '"'))
            .map(char::len_utf8)
            .sum();
        let length = length.max(rest.chars().next().map_or(1, char::len_utf8));
        let span = TextSpan {
            start: self.at,
            end: self.at + length,
            origin: self.origin,
        };
        let found = rest.get(..length).unwrap_or("");
        report.push(Diagnostic::error(
            span,
            format!("`{found}` is not part of the language"),
            "not expected anywhere",
        ));
        self.at += length;
    }
}

/// Signs of two characters.
const TWO: [(&str, TokenKind); 4] = [
    ("->", TokenKind::Arrow),
    ("<=", TokenKind::LessOrEqual),
    (">=", TokenKind::GreaterOrEqual),
    ("..", TokenKind::Range),
];

const fn sign(c: char) -> Option<TokenKind> {
    Some(match c {
        ';' => TokenKind::Semicolon,
        ',' => TokenKind::Comma,
        ':' => TokenKind::Colon,
        '|' => TokenKind::Bar,
        '<' => TokenKind::Less,
        '>' => TokenKind::Greater,
        '(' => TokenKind::Open,
        ')' => TokenKind::Close,
        '{' => TokenKind::OpenBrace,
        '}' => TokenKind::CloseBrace,
        '[' => TokenKind::OpenBracket,
        ']' => TokenKind::CloseBracket,
        '+' => TokenKind::Plus,
        '^' => TokenKind::Caret,
        '*' => TokenKind::Star,
        '=' => TokenKind::Equals,
        '-' => TokenKind::Minus,
        '/' => TokenKind::Slash,
        '%' => TokenKind::Percent,
        _ => return None,
    })
}

const fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Length of the name at the beginning: letters, digits and `_`, and `-` or `.` when a letter or digit follows.
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let plain = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let mut at = 0;
    while plain(at)
        || (matches!(bytes.get(at), Some(b'-' | b'.'))
            && bytes
                .get(at + 1)
                .is_some_and(|next| next.is_ascii_alphanumeric()))
    {
        at += 1;
    }
    at
}

/// Length of the number at the beginning: digits, a fraction when a digit follows the point, and an exponent when
/// digits follow the `e`.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let digits = |mut at: usize| {
        while digit(at) || (bytes.get(at) == Some(&b'_') && digit(at + 1)) {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') && digit(at + 1) {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let signed = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if digit(signed) {
            at = digits(signed);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn words(text: &str) -> Vec<String> {
        let mut report = DiagnosticReport::default();
        let tokens = lex(text, TextOrigin::File, &mut report);
        assert_eq!(report.errors(), 0, "{text}");
        tokens
            .list
            .iter()
            .filter(|t| t.kind != TokenKind::End)
            .map(|t| text[t.span.start..t.span.end].to_string())
            .collect()
    }

    #[test]
    fn tokens_are_cut_where_they_should_be() {
        assert_eq!(words("0...5"), ["0", "...", "5"]);
        assert_eq!(words("2048...16348"), ["2048", "...", "16348"]);
        assert_eq!(words("0.5...1.5"), ["0.5", "...", "1.5"]);
        assert_eq!(words("64KiB"), ["64", "KiB"]);
        assert_eq!(words("100Mbit/s"), ["100", "Mbit", "/", "s"]);
        assert_eq!(
            words("request-response a.b-1 - c"),
            ["request-response", "a.b-1", "-", "c"]
        );
        assert_eq!(
            words("a -> b->c - > d"),
            ["a", "->", "b", "->", "c", "-", ">", "d"]
        );
        assert_eq!(words("<N>*1000;"), ["<", "N", ">", "*", "1000", ";"]);
        assert_eq!(words("1e3 1e 10_000"), ["1e3", "1", "e", "10_000"]);
        assert_eq!(words("p99.9<=2ms"), ["p99.9", "<=", "2", "ms"]);
        assert_eq!(
            words("1..2 s..3 ...4"),
            ["1", "..", "2", "s", "..", "3", "...", "4"]
        );
        assert_eq!(
            words("w[i+1]-s.x p[2].gw[3]..4"),
            [
                "w", "[", "i", "+", "1", "]", "-", "s.x", "p", "[", "2", "]", ".gw", "[", "3", "]",
                "..", "4"
            ]
        );
        assert_eq!(words("N = 1…4 # c"), ["N", "=", "1", "…", "4"]);
    }

    #[test]
    fn junk_is_reported_once_and_left_out() {
        let mut report = DiagnosticReport::default();
        let tokens = lex("10 $$$ é \"open", TextOrigin::File, &mut report);
        assert_eq!(report.errors(), 3);
        assert_eq!(tokens.list.len(), 3);
    }
}
