//! The lengths of blocks of fields (HPACK, RFC 7541) as h2's encoder writes them: it codes all strings with the Huffman code, indexes the
//! authority and the date, and never paths and lengths.

use super::contract::{HttpHead, HttpRequestKind};
use alloc::collections::BTreeSet;
use stackline_core::time::Instant;

/// The name of the server in requests.
pub const AUTHORITY: &str = "stackline";

/// Lengths of the Huffman code for the characters from space to `~`, bits (RFC 7541, appendix B).
const CODE_BITS: [u8; 95] = [
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15,
    6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8,
    13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7,
    7, 7, 15, 11, 14, 13,
];

/// Bytes of a string: its length in one byte, as all are short, and its code (RFC 7541, 5.2).
fn string_bytes(text: impl Iterator<Item = u8>) -> u64 {
    let bits = |character: u8| {
        let at = usize::from(character.saturating_sub(b' '));
        u64::from(CODE_BITS[at.min(CODE_BITS.len() - 1)])
    };
    1 + text.map(bits).sum::<u64>().div_ceil(8)
}

/// The decimal digits of a number.
fn digits(number: u64) -> impl Iterator<Item = u8> {
    let count = number.checked_ilog10().unwrap_or(0);
    (0..=count)
        .rev()
        .map(move |place| b'0' + (number / 10_u64.pow(place) % 10) as u8)
}

/// How many decimal digits a number has.
#[must_use]
pub const fn digit_count(number: u64) -> u64 {
    match number.checked_ilog10() {
        Some(log) => log as u64 + 1,
        None => 1,
    }
}

/// Bytes of a field whose name and value are in one of the tables, and of the name of one that is added to the dynamic table.
const INDEX: u64 = 1;
/// Bytes of the name of `content-length`, number 28 of the static table, in a field that is not indexed: its number needs a second byte.
const LENGTH_NAME: u64 = 2;

/// The field by which a request names its pair, where several pairs share a connection.
const PAIR_FIELD: &str = "pair";
/// Bytes of the name of that field when it is in the dynamic table with another value.
const PAIR_NAME: u64 = 2;

/// What one end's encoder has put into its dynamic table.
#[derive(Clone, Debug, Default)]
pub struct HpackEncoder {
    /// Whether the authority is in it.
    has_authority: bool,
    /// The pairs that are in it.
    pairs: BTreeSet<u32>,
    /// The second whose date was put into it last.
    date_s: Option<u64>,
}

impl HpackEncoder {
    /// Bytes of the fields of a request: `:method`, `:scheme`, `:authority`, `:path`, its pair and its length.
    pub fn request_bytes(&mut self, kind: HttpRequestKind, head: &HttpHead) -> u64 {
        let authority = match core::mem::replace(&mut self.has_authority, true) {
            true => INDEX,
            false => INDEX + string_bytes(AUTHORITY.bytes()),
        };
        let path = INDEX + string_bytes(kind.path().bytes());
        INDEX + INDEX + authority + path + self.pair_bytes(head.pair) + length_bytes(head)
    }

    fn pair_bytes(&mut self, pair: Option<u32>) -> u64 {
        let Some(pair) = pair else { return 0 };
        let name = match self.pairs.is_empty() {
            true => INDEX + string_bytes(PAIR_FIELD.bytes()),
            false => PAIR_NAME,
        };
        match self.pairs.insert(pair) {
            true => name + string_bytes(digits(pair.into())),
            false => INDEX,
        }
    }

    /// Bytes of the fields of a response: `:status`, its length, and the date, which changes once a second.
    pub fn response_bytes(&mut self, head: &HttpHead, now: Instant) -> u64 {
        let second = now.0 / 1_000_000_000;
        let date = match self.date_s.replace(second) == Some(second) {
            true => INDEX,
            false => INDEX + string_bytes(date(second)),
        };
        INDEX + date + length_bytes(head)
    }
}

fn length_bytes(head: &HttpHead) -> u64 {
    match head.length {
        Some(bytes) => LENGTH_NAME + string_bytes(digits(bytes)),
        None => 0,
    }
}

/// The date of a moment of virtual time, which begins with 1970 (RFC 9110, 5.6.7).
fn date(second: u64) -> impl Iterator<Item = u8> {
    let two = |number: u64| [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8];
    let [hour, minute, second] = [second / 3600 % 24, second / 60 % 60, second % 60].map(two);
    "Thu, 01 Jan 1970 "
        .bytes()
        .chain(hour)
        .chain([b':'])
        .chain(minute)
        .chain([b':'])
        .chain(second)
        .chain(" GMT".bytes())
}

/// Bytes of a date (RFC 9110, 5.6.7).
pub const DATE: u64 = 29;

#[cfg(test)]
mod tests {
    use super::*;

    const fn head(length: Option<u64>) -> HttpHead {
        HttpHead {
            request: None,
            pair: None,
            length,
            ends: false,
        }
    }

    #[test]
    fn strings_are_as_long_as_in_the_rfc() {
        // RFC 7541, C.4.1, C.4.3 and C.6.1.
        assert_eq!(string_bytes("www.example.com".bytes()), 1 + 12);
        assert_eq!(string_bytes("no-cache".bytes()), 1 + 6);
        assert_eq!(string_bytes("custom-value".bytes()), 1 + 9);
        assert_eq!(
            string_bytes("Mon, 21 Oct 2013 20:13:21 GMT".bytes()),
            1 + 22
        );
        assert_eq!(date(0).count() as u64, DATE);
    }

    #[test]
    fn later_requests_are_shorter_and_dates_come_once_a_second() {
        let mut encoder = HpackEncoder::default();
        let request = |encoder: &mut HpackEncoder| {
            encoder.request_bytes(HttpRequestKind::Call, &head(Some(32)))
        };
        // 82 and 86, then the authority, then the path and the length.
        assert_eq!(
            request(&mut encoder),
            2 + (1 + 1 + 7) + (1 + 1 + 4) + (2 + 1 + 2)
        );
        assert_eq!(request(&mut encoder), 2 + 1 + (1 + 1 + 4) + (2 + 1 + 2));
        let response =
            |encoder: &mut HpackEncoder, ns| encoder.response_bytes(&head(None), Instant(ns));
        let first = response(&mut encoder, 0);
        assert!((22..26).contains(&first), "{first}");
        assert_eq!(response(&mut encoder, 999_999_999), 2);
        assert!(response(&mut encoder, 1_000_000_000) > 20);
    }

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 9, 10, 32, 1000, 65_536, u64::MAX] {
            let text = alloc::format!("{number}");
            assert!(digits(number).eq(text.bytes()), "{number}");
            assert_eq!(digit_count(number), text.len() as u64);
        }
    }
}
