//! Redacts what SQL servers answer, and logins: codes and counts are kept, texts and user names are not.

use crate::LEFT_OUT;
use crate::name::{RedactedName, printable};
use crate::secret_words;

/// The severities of PostgreSQL's messages.
const SEVERITIES: [&[u8]; 8] = [
    b"ERROR", b"FATAL", b"PANIC", b"WARNING", b"NOTICE", b"DEBUG", b"INFO", b"LOG",
];
/// The longest command tag in bytes.
const LONGEST_TAG: usize = 64;

/// A login: the user is dropped, and so is a database that was not named and therefore defaults to the user's name.
#[must_use]
pub fn login(user: &[u8], database: &[u8], named: bool) -> RedactedName {
    let at = if database.is_empty() { &b""[..] } else { b"@" };
    let kept = match named && !database.is_empty() && user != database {
        true => format!(" {LEFT_OUT}@{}", secret_words::redact_identifier(database)),
        false => String::new(),
    };
    RedactedName::new(
        &format!("login{kept}"),
        &printable(&[b"login ", user, at, database].concat()),
    )
}

/// The greeting of MySQL with its version, without the suffix that distributions add.
#[must_use]
pub fn greeting(version: &[u8]) -> RedactedName {
    let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let end = version.iter().take_while(fits).count();
    let kept = format!(
        "greeting {}",
        secret_words::redact_identifier(&version[..end])
    );
    RedactedName::new(&kept, &printable(&[b"greeting ", version].concat()))
}

/// An error of PostgreSQL: `ERROR 42P01`. Its text is not kept, since it quotes values.
#[must_use]
pub fn postgres_error(severity: &[u8], state: &[u8]) -> RedactedName {
    let known = SEVERITIES.contains(&severity);
    let severity_kept = if known {
        String::from_utf8_lossy(severity).into_owned()
    } else {
        "ERROR".into()
    };
    RedactedName::new(
        &format!("{severity_kept} {}", self::state(state)),
        &printable(&[severity, b" ", state].concat()),
    )
}

/// An error of MySQL: `ERROR 1146 (42S02)`.
#[must_use]
pub fn mysql_error(code: Option<u64>, state: Option<&[u8]>) -> RedactedName {
    let code = code.map_or_else(String::new, |code| format!(" {code}"));
    let text = |state: &str| {
        format!(
            "ERROR{code}{}",
            if state.is_empty() {
                String::new()
            } else {
                format!(" ({state})")
            }
        )
    };
    let kept = state.map(self::state).unwrap_or_default();
    RedactedName::new(
        &text(&kept),
        &text(&state.map(printable).unwrap_or_default()),
    )
}

/// A command tag, with which PostgreSQL ends a statement: `INSERT 0 1`; words in capital letters and numbers.
#[must_use]
pub fn tag(tag: &[u8]) -> RedactedName {
    let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let words = tag.split(|byte| *byte == b' ').next().unwrap_or_default();
    let is_tag = tag.len() <= LONGEST_TAG
        && tag.iter().all(fits)
        && std::str::from_utf8(words).is_ok_and(super::is_verb);
    let whole = printable(tag);
    RedactedName::new(if is_tag { &whole } else { "OK" }, &whole)
}

/// A SQLSTATE of five digits and capital letters; `…` if it is not one.
fn state(state: &[u8]) -> String {
    let fits = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    let is_state =
        state.len() == 5 && state.iter().all(fits) && state.iter().any(u8::is_ascii_digit);
    if is_state {
        String::from_utf8_lossy(state).into_owned()
    } else {
        LEFT_OUT.to_string()
    }
}
