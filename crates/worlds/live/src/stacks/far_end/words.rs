//! Words of addresses, decoded, and words of servers, as they may be shown.

use crate::error::{Error, Result};

/// Most characters of a server's text that are shown.
const MOST_SHOWN: usize = 300;

/// The bytes of a word of an address: `%20` is a space (RFC 3986, 2.1).
pub(super) fn percent_decoded(word: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            Error::input(format!("`{word}` has a `%` without two hexadecimal digits"))
        })?);
        rest = &after[2..];
    }
    Ok(bytes)
}

/// The same, as text.
pub(super) fn percent_decoded_text(word: &str) -> Result<String> {
    String::from_utf8(percent_decoded(word)?)
        .map_err(|_| Error::input(format!("`{word}` is not text in UTF-8")))
}

/// What a server said, without control characters and not too long.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MOST_SHOWN)]);
    let kept = text.chars().filter(|c| !c.is_control());
    kept.take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_decoded_and_shown_in_bounds() {
        assert_eq!(percent_decoded("a%20b").unwrap(), b"a b");
        assert!(percent_decoded("a%2").is_err() && percent_decoded("%zz").is_err());
        assert!(percent_decoded_text("%ff").is_err());
        assert_eq!(shown(b"a\x1b[2J\r\nb"), "a[2Jb");
        assert_eq!(shown(&[b'a'; 5000]).len(), MOST_SHOWN);
    }
}
