//! Redacts SQL statements: keywords, identifiers and punctuation are kept, literals become `?`, comments are dropped. Of statements that
//! set passwords or hold credentials only the verb is kept, of settings only the name.
//!
//! The lexer follows the server's own quoting rules. Where these are unknown (an unknown server, an unknown meaning of backslashes) and
//! matter, and at anything else it does not understand, it stops with `…` and keeps nothing behind. If a complete statement ends within
//! quotes or a comment, the server must have read it by other rules and any word may be a literal: only the verb is kept. A statement
//! that was cut off may end anywhere, and keeps the part before.

pub mod answer;
mod lexer;
mod statement_words;

use crate::name::{RedactedName, printable};
use crate::{LEFT_OUT, LONGEST_NAME, LONGEST_TEXT, bounded, secret_words};
use lexer::{Lexed, SqlLexer, SqlToken};
pub(crate) use statement_words::is_verb;

/// The meaning of a backslash in a plain string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backslash {
    /// Not known: a string with a backslash before its quote may or may not end there. A backslash also becomes unknown behind anything
    /// that may have changed its meaning, such as the first semicolon of a text.
    #[default]
    Unknown,
    /// An ordinary character (`standard_conforming_strings`, `NO_BACKSLASH_ESCAPES`).
    Plain,
    /// An escape: the next character belongs to the string.
    Escapes,
}

/// The server whose quoting rules a statement follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL and compatible servers.
    Postgres(Backslash),
    /// MySQL and MariaDB.
    MySql(Backslash),
    /// Not known: only what all servers read alike is accepted.
    Unknown,
}

/// Redacts a complete statement, or several.
#[must_use]
pub fn redact_statement(dialect: Dialect, text: &[u8]) -> RedactedName {
    name(text, &mask_statement(dialect, text))
}

/// Redacts the beginning of a statement whose rest was not captured.
#[must_use]
pub fn redact_beginning(dialect: Dialect, text: &[u8]) -> RedactedName {
    let (text, _) = bounded(text);
    name(text, &kept(dialect, text, true))
}

/// Joins the kept part with the whole text, whose white space is collapsed.
fn name(text: &[u8], kept: &str) -> RedactedName {
    let words = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
    let whole = words.split_whitespace().collect::<Vec<_>>().join(" ");
    RedactedName::new(kept, &printable(whole.as_bytes()))
}

/// The kept part of [`redact_statement`].
#[must_use]
pub fn mask_statement(dialect: Dialect, text: &[u8]) -> String {
    let (text, cut) = bounded(text);
    kept(dialect, text, cut)
}

/// The kept part of a text; `cut` says that more followed the text.
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

/// The kept part of a text that was read by wrong quoting rules: the verb, which stands before all quotes.
fn verb_alone(lexed: &[Lexed<'_>]) -> String {
    let verb = lexed
        .get(brackets_before(lexed))
        .and_then(Lexed::word)
        .filter(|word| is_verb(word));
    verb.map_or_else(|| LEFT_OUT.to_string(), |verb| format!("{verb} {LEFT_OUT}"))
}

/// The number of opening brackets before the first word.
fn brackets_before(statement: &[Lexed<'_>]) -> usize {
    statement
        .iter()
        .take_while(|lexed| matches!(lexed.token, SqlToken::Mark('(' | '{')))
        .count()
}

/// Writes the kept part of a statement up to its semicolon; returns whether the next statement may be kept too.
fn one(statement: &[Lexed<'_>], out: &mut String) -> bool {
    let before = brackets_before(statement);
    let is_understood = match statement.get(before).map(|lexed| lexed.token) {
        Some(SqlToken::Word(first)) => is_verb(first),
        None | Some(SqlToken::Mark(';')) => true,
        Some(_) => false,
    };
    if !is_understood {
        // Unknown text may be anything, and so may the text behind it.
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
            // Some settings have their value directly behind their name.
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

/// Writes `…` for the rest of a statement, and its semicolon.
fn rest(statement: &[Lexed<'_>], out: &mut String) {
    out.extend([' ', LEFT_OUT]);
    if statement
        .last()
        .is_some_and(|last| last.token == SqlToken::Mark(';'))
    {
        out.push(';');
    }
}

/// Writes one token.
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
