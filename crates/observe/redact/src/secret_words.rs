//! Which words look like tokens, ids or addresses of people: long and of many kinds of letters, or with an `@`. This is a rule of
//! thumb for what stands where names stand (a path, a key); what stands where values stand is left out without being looked at.

use crate::LEFT_OUT;

/// Digits in a row that are no number of a thing any more, but an id, a telephone number, a card.
const LONG_NUMBER: usize = 10;
/// Letters and digits in a row from which on they may be a token; twice as many are one, and so many of letters alone.
const LONG: usize = 16;
const VERY_LONG: usize = 64;
/// Hexadecimal digits at the end of a UUID.
const UUID_END: usize = 12;
/// Bytes of an identifier: PostgreSQL has 63, MySQL 64.
const LONGEST_IDENTIFIER: usize = 64;

/// Whether a text holds a word that looks like a token, an id or an address of somebody.
#[must_use]
pub fn is_opaque(text: &str) -> bool {
    text.contains('@')
        || text
            .split(|letter: char| !letter.is_alphanumeric())
            .any(is_token)
}

/// An identifier if it is one, else [`LEFT_OUT`].
#[must_use]
pub fn redact_identifier(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_identifier(text) => text.to_owned(),
        _ => LEFT_OUT.to_string(),
    }
}

/// Whether a text may stand as an identifier: letters, digits, `_`, `-` and `.`, of a usual length, and no token.
pub(crate) fn is_identifier(text: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    !text.is_empty()
        && text.len() <= LONGEST_IDENTIFIER
        && text.chars().all(fits)
        && !is_opaque(text)
}

/// Whether letters and digits in a row look like a token.
fn is_token(word: &str) -> bool {
    let length = word.chars().count();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == length {
        return length >= LONG_NUMBER;
    }
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let changes = |kind: fn(char) -> bool| {
        let kinds: Vec<bool> = word.chars().map(kind).collect();
        kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    match () {
        () if length >= VERY_LONG => true,
        () if is_hex && digits > 0 => length >= UUID_END,
        () if digits > 0 => {
            length >= LONG && (changes(|letter| letter.is_ascii_digit()) >= 3 || length >= 2 * LONG)
        }
        // In CamelCase a word has five letters or so, in random ones every second letter differs from the one before.
        () => length >= LONG + LONG / 4 && changes(char::is_uppercase) * 20 > length * 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_ids_and_addresses_are_distinguished_from_names() {
        for token in [
            "550e8400-e29b-41d4-a716-446655440000",
            "d41d8cd98f00b204e9800998ecf8427e",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
            "bob@example.org",
            "4111111111111111",
            "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
            "QmFzZVNpeHR5Rm91clRva2VuV2l0aG91dERpZ2l0cw",
            "AKIAIOSFODNN7EXAMPLE7A9",
        ] {
            assert!(is_opaque(token), "{token}");
        }
        for name in [
            "item",
            "17",
            "20240229",
            "how-to-measure-the-performance-of-things-2024",
            "getPerformanceMeasurementsOfUsers",
            "ListServersWithoutAnyOfThem",
            "report_v2.final.pdf",
            "HTTP2Server",
            "a1b2c3d4",
            "internationalization",
            "measurements2024final",
        ] {
            assert!(!is_opaque(name), "{name}");
        }
    }
}
