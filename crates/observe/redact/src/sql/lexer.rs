//! Splits SQL into tokens by the rules of PostgreSQL (`scan.l`), of MySQL (`sql_lex.cc`), or by those that all servers share. Every byte
//! is read once, except for look-ahead at comments and brackets.

use super::{Backslash, Dialect};

/// A token of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SqlToken<'t> {
    /// A keyword, an unquoted identifier, or a parameter such as `$1`.
    Word(&'t str),
    /// A quoted identifier, with its quote character.
    Quoted(char, &'t str),
    /// A string or a number.
    Literal,
    /// Punctuation.
    Mark(char),
    /// A word that is not kept.
    LeftOut,
    /// From here on the text is not understood.
    Unknown,
}

/// A token, with whether white space or a comment precedes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexed<'t> {
    pub(super) token: SqlToken<'t>,
    pub(super) spaced: bool,
}

impl<'t> Lexed<'t> {
    /// The keyword or unquoted identifier, if the token is one.
    pub(super) fn word(&self) -> Option<&'t str> {
        match self.token {
            SqlToken::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The lexer: the part of a statement that is not read yet.
#[derive(Debug)]
pub(super) struct SqlLexer<'t> {
    dialect: Dialect,
    text: &'t str,
    /// Whether the text was cut, so that a missing end is no sign of wrong quoting rules.
    cut: bool,
    /// Whether the last token was returned.
    ended: bool,
    /// Whether quotes were read by wrong rules; see [`SqlLexer::is_misread`].
    misread: bool,
    /// Whether a string that directly follows continues an escape string of PostgreSQL.
    goes_on: bool,
}

/// Where a quoted text ends.
enum QuotedTextEnd {
    /// After this many bytes, with its closing quote.
    At(usize),
    /// Not within the text.
    Open,
    /// Not known.
    Unknown,
}

impl<'t> SqlLexer<'t> {
    /// A lexer for a text. It ends at the first byte that is not UTF-8: in other encodings a quote may be part of a letter.
    pub(super) fn new(dialect: Dialect, text: &'t [u8], cut: bool) -> Self {
        let valid = match std::str::from_utf8(text) {
            Ok(valid) => valid,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        };
        let text_end = valid.find('\0').unwrap_or(valid.len());
        let cut = cut || text_end < text.len();
        Self {
            dialect,
            text: &valid[..text_end],
            cut,
            ended: false,
            misread: false,
            goes_on: false,
        }
    }

    /// Whether the text shows that quotes were read by wrong rules: a complete statement ends within a string, a quoted identifier or a
    /// comment, or a backslash stands outside of them. Words may then be literals, and literals the text between them.
    pub(super) const fn is_misread(&self) -> bool {
        self.misread
    }

    const fn is_postgres(&self) -> bool {
        matches!(self.dialect, Dialect::Postgres(_))
    }

    const fn is_mysql(&self) -> bool {
        matches!(self.dialect, Dialect::MySql(_))
    }

    /// Takes this many bytes of the text.
    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.text.split_at(bytes);
        self.text = rest;
        taken
    }

    /// Skips white space and comments; returns whether there was any. `None` if a comment is not understood.
    fn space(&mut self) -> Option<bool> {
        let before = self.text.len();
        loop {
            self.text = self
                .text
                .trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            let comment = match self.text.as_bytes() {
                [b'-', b'-', next @ ..] => self.dashes(next.first().copied())?,
                [b'#', ..] if self.is_mysql() => true,
                // A comment in MySQL, an operator in PostgreSQL.
                [b'#', ..] if !self.is_postgres() => return None,
                [b'/', b'*', ..] => {
                    self.block()?;
                    continue;
                }
                _ => false,
            };
            if !comment {
                return Some(self.text.len() < before);
            }
            self.line()?;
        }
    }

    /// Whether two dashes begin a comment; `None` if servers disagree.
    fn dashes(&self, next: Option<u8>) -> Option<bool> {
        let apart = next.is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_control());
        match self.dialect {
            Dialect::Postgres(_) => Some(true),
            Dialect::MySql(_) => Some(apart),
            Dialect::Unknown => apart.then_some(true),
        }
    }

    /// Skips a comment to the end of the line; some servers end it at a carriage return, so `None` where that matters.
    fn line(&mut self) -> Option<()> {
        let end = self.text.find(['\n', '\r']).unwrap_or(self.text.len());
        let is_end = self.is_postgres()
            || !self.text[end..].starts_with('\r')
            || self.text[end..].starts_with("\r\n");
        if !is_end && !self.is_mysql() {
            return None;
        }
        let end = if is_end {
            end
        } else {
            self.text.find('\n').unwrap_or(self.text.len())
        };
        self.advance(end);
        Some(())
    }

    /// Skips a comment between `/*` and `*/`. `None` for comments that MySQL executes (`/*!`), and for nested comments where servers do
    /// not nest them.
    fn block(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let is_carried_out = matches!(bytes, [_, _, b'!', ..] | [_, _, b'M' | b'm', b'!', ..]);
        if is_carried_out && !self.is_postgres() {
            return None;
        }
        let is_hint = bytes.get(2) == Some(&b'+') && !self.is_postgres();
        let (mut depth, mut at) = (1_usize, 2);
        while depth > 0 {
            let Some(byte) = bytes.get(at) else {
                return self.open();
            };
            match (byte, bytes.get(at + 1)) {
                (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
                (b'/', Some(b'*')) if self.is_postgres() => (depth, at) = (depth + 1, at + 2),
                (b'/', Some(b'*')) => return None,
                // Within quotes, `*/` might not end the hint.
                (b'\'' | b'"' | b'`', _) if is_hint => return None,
                _ => at += 1,
            }
        }
        self.advance(at);
        Some(())
    }

    /// The text ends within quotes or a comment. This is a sign of wrong rules, unless the text was cut.
    fn open<T>(&mut self) -> Option<T> {
        self.misread |= !self.cut;
        (self.text, self.cut) = ("", true);
        None
    }

    /// The next token.
    fn token(&mut self) -> Option<SqlToken<'t>> {
        let letter = self.text.chars().next()?;
        let continues = std::mem::take(&mut self.goes_on);
        Some(match letter {
            // PostgreSQL continues a string behind a line break, here with its escapes.
            '\'' if continues => self.string(0, Backslash::Escapes),
            '\'' => self.string(0, self.plain()),
            '"' if self.is_postgres() => self.identifier('"'),
            '"' => self.string(0, self.plain()),
            '`' if !self.is_postgres() => self.identifier('`'),
            '$' => self.dollar(),
            '0'..='9' => self.number(),
            '.' if self.text[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number(),
            letter if letter.is_alphabetic() || letter == '_' => self.word(),
            '[' if self.dialect == Dialect::Unknown => self.bracket(),
            // The statement before may have changed what a backslash means.
            ';' => {
                self.forget_backslash();
                self.advance(1);
                SqlToken::Mark(';')
            }
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | '.' | '+' | '-' | '*' | '/' | '<'
            | '>' | '=' | '~' | '!' | '@' | '#' | '%' | '^' | '&' | '|' | '?' => {
                self.advance(1);
                SqlToken::Mark(letter)
            }
            '\\' => {
                // No server accepts a backslash outside of quotes, so the quote that was read as the end was not one.
                self.misread = true;
                SqlToken::Unknown
            }
            _ => SqlToken::Unknown,
        })
    }

    /// Makes the meaning of a backslash unknown: a statement may have changed it.
    const fn forget_backslash(&mut self) {
        match &mut self.dialect {
            Dialect::Postgres(backslash) | Dialect::MySql(backslash) => {
                *backslash = Backslash::Unknown
            }
            Dialect::Unknown => {}
        }
    }

    /// The meaning of a backslash in a plain string.
    const fn plain(&self) -> Backslash {
        match self.dialect {
            Dialect::Postgres(backslash) | Dialect::MySql(backslash) => backslash,
            Dialect::Unknown => Backslash::Unknown,
        }
    }

    /// A string whose opening quote stands `before` bytes ahead.
    fn string(&mut self, before: usize, backslash: Backslash) -> SqlToken<'t> {
        let bytes = &self.text.as_bytes()[before..];
        // On unknown servers, three quotes may open a string that three quotes close.
        let is_triple = self.dialect == Dialect::Unknown
            && (bytes.starts_with(b"'''") || bytes.starts_with(b"\"\"\""));
        match end_of_string(bytes, backslash) {
            _ if is_triple => (self.text, self.cut) = ("", true),
            QuotedTextEnd::At(end) => {
                self.advance(before + end);
                self.goes_on = self.is_postgres() && backslash == Backslash::Escapes;
            }
            QuotedTextEnd::Open => drop(self.open::<()>()),
            // This token is a literal in any case; the text behind it is dropped.
            QuotedTextEnd::Unknown => (self.text, self.cut) = ("", true),
        }
        SqlToken::Literal
    }

    /// A quoted identifier.
    fn identifier(&mut self, quote: char) -> SqlToken<'t> {
        match end_of_string(self.text.as_bytes(), Backslash::Plain) {
            QuotedTextEnd::At(end) => SqlToken::Quoted(quote, &self.advance(end)[1..end - 1]),
            QuotedTextEnd::Open | QuotedTextEnd::Unknown => {
                self.open().unwrap_or(SqlToken::Unknown)
            }
        }
    }

    /// A parameter such as `$1`, or a string between `$tag$` and `$tag$` of PostgreSQL.
    fn dollar(&mut self) -> SqlToken<'t> {
        let rest = &self.text[1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        // PostgreSQL has at most 65,535 parameters.
        if (1..=5).contains(&digits) {
            return SqlToken::Word(self.advance(1 + digits));
        }
        let tag = rest.find('$').map(|end| &rest[..end]);
        let is_tag = |tag: &&str| {
            tag.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii())
                && !tag.starts_with(|first: char| first.is_ascii_digit())
        };
        let Some(tag) = tag.filter(|tag| self.is_postgres() && is_tag(tag)) else {
            return SqlToken::Unknown;
        };
        let mark = &self.text[..tag.len() + 2];
        match self.text[mark.len()..].find(mark) {
            Some(end) => drop(self.advance(mark.len() + end + mark.len())),
            None => drop(self.open::<()>()),
        }
        SqlToken::Literal
    }

    /// A number, with its exponent and any letters directly behind it.
    fn number(&mut self) -> SqlToken<'t> {
        let bytes = self.text.as_bytes();
        let is_part = |at: usize| match bytes[at] {
            b'+' | b'-' => {
                matches!(bytes[at - 1], b'e' | b'E')
                    && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            }
            byte => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || byte >= 0x80,
        };
        let end = (1..bytes.len())
            .find(|at| !is_part(*at))
            .unwrap_or(bytes.len());
        self.advance(end);
        SqlToken::Literal
    }

    /// A keyword, an identifier, or a prefix of a string with that string (`E''`, `N''`, `_utf8''`).
    fn word(&mut self) -> SqlToken<'t> {
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let end = self
            .text
            .find(|letter| !is_part(letter))
            .unwrap_or(self.text.len());
        let (word, behind) = self.text.split_at(end);
        let is = |prefixes: &[&str]| {
            prefixes
                .iter()
                .any(|prefix| prefix.eq_ignore_ascii_case(word))
        };
        let quoted = behind.starts_with('\'') || self.is_mysql() && behind.starts_with('"');
        match self.dialect {
            Dialect::Postgres(_) if quoted && is(&["e"]) => {
                return self.string(end, Backslash::Escapes);
            }
            Dialect::Postgres(_) if quoted && is(&["b", "x", "n"]) => {
                // CockroachDB allows escapes in these.
                return self.string(end, Backslash::Unknown);
            }
            Dialect::Postgres(_) if is(&["u"]) && behind.starts_with("&'") => {
                return self.string(end + 1, Backslash::Plain);
            }
            Dialect::MySql(_) if quoted && (is(&["b", "x", "n"]) || word.starts_with('_')) => {
                return self.string(end, self.plain());
            }
            Dialect::Unknown if behind.starts_with(['\'', '"']) => {
                return if is(&["b", "x", "n", "e"]) {
                    self.string(end, Backslash::Unknown)
                } else {
                    SqlToken::Unknown
                };
            }
            _ => {}
        }
        // Where `$` cannot be part of a word, it may begin a string.
        if word.contains('$') {
            self.advance(end);
            let is_clear = self.dialect != Dialect::Unknown && !word.contains("$$");
            return if is_clear {
                SqlToken::LeftOut
            } else {
                SqlToken::Unknown
            };
        }
        if ["sql_mode", "standard_conforming_strings"]
            .iter()
            .any(|setting| setting.eq_ignore_ascii_case(word))
        {
            self.forget_backslash();
        }
        SqlToken::Word(self.advance(end))
    }

    /// `[name]` of SQL Server, or the index of an array; brackets around anything else are not understood.
    fn bracket(&mut self) -> SqlToken<'t> {
        let fits = |letter: char| {
            letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-' | '?' | '@')
        };
        let end = self.text[1..]
            .find(|letter| !fits(letter))
            .map_or(self.text.len(), |end| end + 1);
        if !self.text[end..].starts_with(']') {
            return SqlToken::Unknown;
        }
        self.advance(1);
        SqlToken::Mark('[')
    }
}

impl<'t> Iterator for SqlLexer<'t> {
    type Item = Lexed<'t>;

    fn next(&mut self) -> Option<Lexed<'t>> {
        if self.ended {
            return None;
        }
        let spaced = self.space();
        let token = match spaced {
            None => Some(SqlToken::Unknown),
            Some(_) if self.text.is_empty() && self.cut => Some(SqlToken::Unknown),
            Some(_) => self.token(),
        };
        self.ended = token.is_none_or(|token| token == SqlToken::Unknown);
        token.map(|token| Lexed {
            token,
            spaced: spaced.unwrap_or(true),
        })
    }
}

/// Whether a backslash may be the second byte of a letter, where this decides the end of the text.
fn may_be_letter(bytes: &[u8], at: usize, quote: u8) -> bool {
    // The caller begins behind the quote, so `at` is at least 1.
    bytes[at - 1] >= 0x80
        && bytes
            .get(at + 1)
            .is_some_and(|next| *next == quote || *next == b'\\')
}

/// The end of a text that begins with a quote; two quotes in a row stand for one within.
fn end_of_string(bytes: &[u8], backslash: Backslash) -> QuotedTextEnd {
    let Some(quote) = bytes.first() else {
        return QuotedTextEnd::Open;
    };
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        match byte {
            b'\\' if next.is_none() => return QuotedTextEnd::Open,
            // In some encodings (GBK, Shift JIS) a backslash may be the second byte of a letter.
            b'\\' if backslash != Backslash::Plain && may_be_letter(bytes, at, *quote) => {
                return QuotedTextEnd::Unknown;
            }
            b'\\' if backslash == Backslash::Escapes => at += 1,
            // Two backslashes: under both meanings the string goes on. One before a quote: the end is unknown.
            b'\\' if backslash == Backslash::Unknown && next == Some(&b'\\') => at += 1,
            b'\\' if backslash == Backslash::Unknown && next == Some(quote) => {
                return QuotedTextEnd::Unknown;
            }
            byte if byte == quote && next == Some(quote) => at += 1,
            byte if byte == quote => return QuotedTextEnd::At(at + 1),
            _ => {}
        }
        at += 1;
    }
    QuotedTextEnd::Open
}
