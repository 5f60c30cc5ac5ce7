//! Recognises words that look like tokens, ids or personal addresses: long ones that mix kinds of letters, or ones with an `@`. This is a
//! heuristic for text in the place of a name (a path, a key); text in the place of a value is dropped without being examined.

use crate::LEFT_OUT;

/// A number with this many digits may be an id, a telephone number or a card number.
const LONG_NUMBER: usize = 10;
/// A word of this many letters and digits may be a token; at twice the length it is taken as one.
const LONG: usize = 16;
/// A word of this length is taken as a token even if it has letters only.
const VERY_LONG: usize = 64;
/// The number of hexadecimal digits in the last group of a UUID.
const UUID_END: usize = 12;
/// The longest identifier in bytes: PostgreSQL allows 63, MySQL 64.
const LONGEST_IDENTIFIER: usize = 64;

/// Whether a text has a word that looks like a token, an id or a personal address.
#[must_use]
pub fn is_opaque(text: &str) -> bool {
    text.contains('@')
        || text
            .split(|letter: char| !letter.is_alphanumeric())
            .any(is_token)
}

/// Returns a valid identifier as it is, anything else as [`LEFT_OUT`].
#[must_use]
pub fn redact_identifier(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_identifier(text) => text.to_owned(),
        _ => LEFT_OUT.to_string(),
    }
}

/// Whether a text is acceptable as an identifier: letters, digits, `_`, `-` and `.`, at most 64 bytes, and not like a token.
pub(crate) fn is_identifier(text: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    !text.is_empty()
        && text.len() <= LONGEST_IDENTIFIER
        && text.chars().all(fits)
        && !is_opaque(text)
}

/// Whether a word of letters and digits looks like a token.
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
        // In CamelCase every fifth letter or so is a capital; in random text the case changes at about every second letter.
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
