//! Statements of SQL: keywords, identifiers and punctuation are kept, literals become `?`, comments nothing. Statements that set
//! passwords or say how to log in elsewhere give their verb alone, settings their name alone.
//!
//! The lexer follows the server's own rules of quoting. Where it does not know them (an unknown server, what a back-slash means) and
//! they matter, and at anything else that it does not understand, it gives up to `…`: nothing behind that is kept. A whole statement
//! that ends within quotes or a comment was meant by other rules, so any word of it may be a literal: its verb alone is kept. One that
//! was cut off may end anywhere, and keeps what is before.

pub mod answer;
mod lexer;
mod statement_words;

use crate::name::{RedactedName, printable};
use crate::{LEFT_OUT, LONGEST_NAME, LONGEST_TEXT, bounded, secret_words};
use lexer::{Lexed, SqlLexer, SqlToken};
pub(crate) use statement_words::is_verb;

/// What a back-slash in a plain string is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backslash {
    /// It is not known: a string with one before its quote may end there or not. So it is behind whatever may have changed it: in
    /// a text behind its first semicolon.
    #[default]
    Unknown,
    /// A letter like others (`standard_conforming_strings`, `NO_BACKSLASH_ESCAPES`).
    Plain,
    /// It makes the next letter a part of the string.
    Escapes,
}

/// Whose rules a statement follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL and its kin.
    Postgres(Backslash),
    /// MySQL and MariaDB.
    MySql(Backslash),
    /// Not known: only what all servers read alike is understood.
    Unknown,
}

/// A statement, or several, of which all is there.
#[must_use]
pub fn redact_statement(dialect: Dialect, text: &[u8]) -> RedactedName {
    name(text, &mask_statement(dialect, text))
}

/// The beginning of one, of which the rest was not seen.
#[must_use]
pub fn redact_beginning(dialect: Dialect, text: &[u8]) -> RedactedName {
    let (text, _) = bounded(text);
    name(text, &kept(dialect, text, true))
}

fn name(text: &[u8], kept: &str) -> RedactedName {
    let words = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
    let whole = words.split_whitespace().collect::<Vec<_>>().join(" ");
    RedactedName::of(kept, &printable(whole.as_bytes()))
}

/// What is kept of a [`redact_statement`].
#[must_use]
pub fn mask_statement(dialect: Dialect, text: &[u8]) -> String {
    let (text, cut) = bounded(text);
    kept(dialect, text, cut)
}

fn kept(dialect: Dialect, text: &[u8], cut: bool) -> String {
    let mut lexer = SqlLexer::new(dialect, text, cut);
    let lexed: Vec<Lexed<'_>> = lexer.by_ref().collect();
    if lexer.is_misread() {
        return verb_alone(&lexed);
    }
    let mut out = String::new();
    let mut statements = lexed.split_inclusive(|lexed| lexed.token == SqlToken::Mark(';'));
    while statements
        .next()
        .is_some_and(|statement| one(statement, &mut out))
    {}
    out.truncate(out.floor_char_boundary(LONGEST_NAME));
    out
}

/// What is kept of a text that was not read as it is meant: what is before all quotes.
fn verb_alone(lexed: &[Lexed<'_>]) -> String {
    let verb = lexed
        .get(brackets_before(lexed))
        .and_then(Lexed::word)
        .filter(|word| is_verb(word));
    verb.map_or_else(|| LEFT_OUT.to_string(), |verb| format!("{verb} {LEFT_OUT}"))
}

/// How many brackets are before the first word.
fn brackets_before(statement: &[Lexed<'_>]) -> usize {
    statement
        .iter()
        .take_while(|lexed| matches!(lexed.token, SqlToken::Mark('(' | '{')))
        .count()
}

/// A statement up to its semicolon; whether those behind it are looked at.
fn one(statement: &[Lexed<'_>], out: &mut String) -> bool {
    let before = brackets_before(statement);
    let is_understood = match statement.get(before).map(|lexed| lexed.token) {
        Some(SqlToken::Word(first)) => is_verb(first),
        None | Some(SqlToken::Mark(';')) => true,
        Some(_) => false,
    };
    if !is_understood {
        // What is not a statement may be anything, and so may what follows it.
        space(!out.is_empty(), out);
        out.push(LEFT_OUT);
        return false;
    }
    let said: Vec<&str> = statement[before..].iter().filter_map(Lexed::word).collect();
    match statement_words::kept_of(&said) {
        statement_words::StatementRetention::All => {
            statement.iter().for_each(|lexed| put(*lexed, out))
        }
        statement_words::StatementRetention::Words(count) => {
            space(!out.is_empty(), out);
            out.push_str(&said[..count].join(" "));
            rest(statement, out);
        }
        statement_words::StatementRetention::Setting => {
            let is_value = |lexed: &Lexed<'_>| {
                matches!(lexed.token, SqlToken::Mark('='))
                    || lexed
                        .word()
                        .is_some_and(|word| word.eq_ignore_ascii_case("TO"))
            };
            let is = |lexed: &Lexed<'_>, words: &[&str]| {
                lexed
                    .word()
                    .is_some_and(|word| words.iter().any(|one| one.eq_ignore_ascii_case(word)))
            };
            let set = statement
                .iter()
                .position(|lexed| is(lexed, &["SET"]))
                .unwrap_or(0);
            // Some settings have their value behind their name alone.
            let ends = |(at, lexed): (usize, &Lexed<'_>)| {
                is_value(lexed)
                    || is(lexed, &["ROLE", "AUTHORIZATION"])
                        && !statement.get(at + 1).is_some_and(is_value)
            };
            let end = (set..statement.len())
                .find(|at| ends((*at, &statement[*at])))
                .unwrap_or(statement.len());
            statement[..end].iter().for_each(|lexed| put(*lexed, out));
            if end < statement.len() {
                put(statement[end], out);
                rest(statement, out);
            }
        }
    }
    out.len() <= LONGEST_NAME
        && statement
            .last()
            .is_none_or(|last| last.token != SqlToken::Unknown)
}

/// What stands for the rest of a statement.
fn rest(statement: &[Lexed<'_>], out: &mut String) {
    out.extend([' ', LEFT_OUT]);
    if statement
        .last()
        .is_some_and(|last| last.token == SqlToken::Mark(';'))
    {
        out.push(';');
    }
}

fn put(lexed: Lexed<'_>, out: &mut String) {
    if out.len() > LONGEST_NAME {
        return;
    }
    space(lexed.spaced && !out.is_empty(), out);
    match lexed.token {
        SqlToken::Word(text) if secret_words::is_opaque(text) => out.push(LEFT_OUT),
        SqlToken::Word(text) => out.push_str(text),
        SqlToken::Quoted(quote, text) => {
            out.push(quote);
            if secret_words::is_identifier(text) {
                out.push_str(text)
            } else {
                out.push(LEFT_OUT)
            }
            out.push(quote);
        }
        SqlToken::Literal => out.push('?'),
        SqlToken::Mark(mark) => out.push(mark),
        SqlToken::LeftOut | SqlToken::Unknown => out.push(LEFT_OUT),
    }
}

fn space(wanted: bool, out: &mut String) {
    if wanted && !out.ends_with(' ') {
        out.push(' ');
    }
}
