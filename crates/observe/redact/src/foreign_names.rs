//! Redacts names of unknown kind in other programs' files (of spans, events, services): libraries put targets, URLs and statements there.
//! These are redacted as in [`crate::http`] and [`crate::sql`]; words that look like tokens or personal addresses are dropped. The rest
//! is kept, as the program's author wrote it to be read.

use crate::sql::{self, Dialect};
use crate::{LEFT_OUT, LONGEST_TEXT, attribute, http, secret_words};

/// Verbs that, in capital letters, begin a statement even behind other words.
const VERBS: [&str; 16] = [
    "ALTER", "CALL", "CREATE", "DELETE", "DROP", "EXEC", "EXECUTE", "GRANT", "INSERT", "MERGE",
    "REPLACE", "SELECT", "SET", "UPDATE", "UPSERT", "WITH",
];
/// Verbs that do so in any letters.
const USUAL_VERBS: [&str; 4] = ["DELETE", "INSERT", "SELECT", "UPDATE"];

/// Redacts a name.
#[must_use]
pub fn redact_foreign_name(name: &str) -> String {
    let (mut out, mut rest) = (
        String::new(),
        &name[..name.floor_char_boundary(LONGEST_TEXT)],
    );
    loop {
        let statement = statement_of(rest);
        let Some((at, end)) = url_of(rest)
            .filter(|(at, _)| statement.is_none_or(|begin| !has_quotes(rest, begin, *at)))
        else {
            plain(rest, statement, &mut out);
            return out;
        };
        plain(&rest[..at], statement.filter(|begin| *begin < at), &mut out);
        let is_followed = rest[at..end].contains(['?', '#', ';', '%']);
        // Values may contain blanks, so everything behind belongs to the URL.
        let url = if is_followed {
            &rest[at..]
        } else {
            &rest[at..end]
        };
        out.push_str(&target(url));
        if is_followed {
            return out;
        }
        rest = &rest[end..];
    }
}

/// The start and the end of each word of a text.
fn words(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    text.split(char::is_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| {
            let begin = word.as_ptr() as usize - text.as_ptr() as usize;
            (begin, begin + word.len())
        })
}

/// The start and the end of the first word that is a URL or a target, without opening brackets or quotes before it.
fn url_of(text: &str) -> Option<(usize, usize)> {
    let inner = |(begin, end): (usize, usize)| {
        let word = &text[begin..end];
        (
            begin + word.len()
                - word
                    .trim_start_matches(['"', '\'', '`', '(', '<', '[', ','])
                    .len(),
            end,
        )
    };
    words(text)
        .map(inner)
        .find(|(begin, end)| is_url(&text[*begin..*end]))
}

/// Whether a word is a URL or a target, or has user information or a query like one.
fn is_url(word: &str) -> bool {
    let is_comment = word.starts_with("/*");
    (word.starts_with('/') && word.len() > 1 && !is_comment)
        || word.contains("://")
        || has_query(word)
        || has_user(word)
}

/// Whether the word has a `?` with a name directly behind it, or a percent-encoded byte.
fn has_query(word: &str) -> bool {
    let begins = |next: &u8| next.is_ascii_alphanumeric() || matches!(next, b'_' | b'%' | b'[');
    let is_encoded = |two: &[u8]| two.len() == 2 && two.iter().all(u8::is_ascii_hexdigit);
    let bytes = word.as_bytes();
    (0..bytes.len()).any(|at| match bytes[at] {
        b'?' => bytes.get(at + 1).is_some_and(begins),
        b'%' => bytes.get(at + 1..at + 3).is_some_and(is_encoded),
        _ => false,
    })
}

/// Whether an `@` stands between letters, as in user information.
fn has_user(word: &str) -> bool {
    word.match_indices('@').any(|(at, _)| {
        word[..at].ends_with(char::is_alphanumeric)
            && word[at + 1..].starts_with(|next: char| next.is_alphanumeric() || next == '[')
    })
}

/// Redacts a target or a URL; a word without a leading slash is read as the end of a path.
fn target(url: &str) -> String {
    match () {
        () if url.starts_with('/') || url.contains("://") => http::redact_url(url),
        // A path needs its `/` for the rules; it is taken off again.
        () if url.contains('/') || has_query(url) => {
            http::redact_url(&format!("/{url}")).split_off(1)
        }
        () => LEFT_OUT.to_string(),
    }
}

/// Where a statement begins: at a verb that is followed by something other than a target.
fn statement_of(text: &str) -> Option<usize> {
    let trimmed = text.trim_start_matches([' ', '(', '{']);
    let first = text.len() - trimmed.len();
    if trimmed.starts_with("/*") || trimmed.starts_with("--") {
        return Some(first);
    }
    let is = |verbs: &[&str], verb: &str| verbs.iter().any(|one| one.eq_ignore_ascii_case(verb));
    words(text).find_map(|(begin, end)| {
        let word = &text[begin..end];
        let verb = word
            .rsplit([':', '(', '[', '{', '"', '\'', '`', '=', ','])
            .next()
            .unwrap_or(word);
        let at = end - verb.len();
        let behind = text[end..].split_whitespace().next()?;
        let is_verb =
            at == first && sql::is_verb(verb) || VERBS.contains(&verb) || is(&USUAL_VERBS, verb);
        (is_verb && !behind.starts_with('/') && !behind.contains("://")).then_some(at)
    })
}

/// Whether a statement has quotes before an offset: a URL there may be part of a literal.
fn has_quotes(text: &str, begin: usize, end: usize) -> bool {
    text.get(begin..end)
        .is_some_and(|before| before.contains(['\'', '"', '`', '$']))
}

/// Redacts a text without URLs, which may end in a statement.
fn plain(text: &str, statement: Option<usize>, out: &mut String) {
    let (before, behind) = text.split_at(statement.unwrap_or(text.len()));
    for part in before.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        out.push_str(&self::word(word));
        out.push_str(&part[word.len()..]);
    }
    if !behind.is_empty() {
        let kept = sql::mask_statement(Dialect::Unknown, behind.as_bytes());
        // If the kept part looks like a URL, it was not a statement: it is cut there.
        let end = words(&kept).find(|(begin, end)| is_url(&kept[*begin..*end]));
        match end {
            Some((begin, _)) => out.extend([&kept[..begin], "…"]),
            None => out.push_str(&kept),
        }
        let blank = behind.len() - behind.trim_end().len();
        out.push_str(&behind[behind.len() - blank..]);
    }
}

/// Redacts one word.
fn word(word: &str) -> String {
    let is_secret = word
        .split_once('=')
        .is_some_and(|(key, value)| !value.is_empty() && attribute::names_secret(key));
    match () {
        () if is_secret || word.contains('=') && word.contains('&') => {
            http::redact_query(word.as_bytes())
        }
        () if word.contains('/') && word.contains(['#', ';']) => target(word),
        () if secret_words::is_opaque(word) && !word.starts_with('@') => LEFT_OUT.to_string(),
        () => word.to_owned(),
    }
}
