//! Writes a record as words, and reads it back from bytes of any origin.
//!
//! It does not know names: the event log keeps the names of numbers.

use super::{LONGEST_TEXT, MOST_VALUES};
use crate::value::{EventValue, canonical};

/// Kind of a value in the head: no value, no words.
pub(super) const ABSENT: u64 = 0;
/// Kind of a value in the head: a number, one word.
pub(super) const NUMBER: u64 = 1;
/// Kind of a value in the head: a text, its length in bytes and its bytes, padded to whole words.
pub(super) const TEXT: u64 = 2;

/// Passes the words of a record to `put`.
#[inline(always)]
pub(super) fn write_record_words(
    keyword: u32,
    at_ns: u64,
    values: &[EventValue<'_>],
    mut put: impl FnMut(u64),
) {
    let values = &values[..values.len().min(MOST_VALUES)];
    put(head(keyword, values));
    put(at_ns);
    body(values, put);
}

/// Passes the words of the values to `put`: the record without its head and time.
#[inline(always)]
pub(crate) fn body(values: &[EventValue<'_>], mut put: impl FnMut(u64)) {
    for value in values {
        match *value {
            EventValue::Absent => {}
            EventValue::Number(number) => put(number as u64),
            EventValue::Text(text) => {
                let text = cut(text);
                put(text.len() as u64);
                for chunk in text.as_bytes().chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    put(u64::from_le_bytes(word));
                }
            }
        }
    }
}

/// Number of words of a record with these values.
#[inline(always)]
pub(crate) fn words_of(values: &[EventValue<'_>]) -> usize {
    let mut length = 2;
    for value in values {
        length += match value {
            EventValue::Absent => 0,
            EventValue::Number(_) => 1,
            EventValue::Text(text) => 1 + cut(text).len().div_ceil(8),
        };
    }
    length
}

/// The head word of a record.
#[inline(always)]
pub(crate) fn head(keyword: u32, values: &[EventValue<'_>]) -> u64 {
    let mut head = u64::from(keyword & 0xff_ffff) | (values.len() as u64) << 24;
    for (index, value) in values.iter().enumerate() {
        let kind = match value {
            EventValue::Absent => ABSENT,
            EventValue::Number(_) => NUMBER,
            EventValue::Text(_) => TEXT,
        };
        head |= kind << (32 + 2 * index);
    }
    head
}

/// The keyword's number in a head word.
pub(super) const fn keyword_of(head: u64) -> u32 {
    (head & 0xff_ffff) as u32
}

/// The number of values in a head word.
pub(super) const fn count_of(head: u64) -> usize {
    (head >> 24 & 0xff) as usize
}

/// The kind of a value in a head word.
pub(super) const fn kind_of(head: u64, index: usize) -> u64 {
    head >> (32 + 2 * index) & 3
}

/// The text, cut to [`LONGEST_TEXT`] bytes at a character boundary.
fn cut(text: &str) -> &str {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    let end = (0..=LONGEST_TEXT)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    &text[..end]
}

/// Number of words of the first record in `words`; `None` when it is not complete.
pub(super) fn record_length(words: &[u64]) -> Option<usize> {
    let head = *words.first()?;
    let mut length = 2;
    for index in 0..count_of(head).min(MOST_VALUES) {
        length += match kind_of(head, index) {
            NUMBER => 1,
            TEXT => {
                1 + usize::try_from(*words.get(length)?)
                    .ok()?
                    .min(LONGEST_TEXT)
                    .div_ceil(8)
            }
            _ => 0,
        };
    }
    Some(length)
}

/// Reads a record as keyword number and time; a damaged one ends the bytes.
pub(super) fn record<'t>(
    rest: &mut &'t [u8],
    values: &mut Vec<EventValue<'t>>,
) -> Option<(u32, u64)> {
    let found = whole_record(rest, values);
    if found.is_none() {
        *rest = &[];
    }
    found
}

/// Reads a record as keyword number and time; `None` when it is incomplete or damaged.
pub(super) fn whole_record<'t>(
    rest: &mut &'t [u8],
    values: &mut Vec<EventValue<'t>>,
) -> Option<(u32, u64)> {
    values.clear();
    let (head, at_ns) = (word(rest)?, word(rest)?);
    let count = Some(count_of(head)).filter(|count| *count <= MOST_VALUES)?;
    for index in 0..count {
        values.push(value(rest, kind_of(head, index))?);
    }
    Some((keyword_of(head), at_ns))
}

fn word(rest: &mut &[u8]) -> Option<u64> {
    let (word, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(u64::from_le_bytes(*word))
}

fn value<'t>(rest: &mut &'t [u8], kind: u64) -> Option<EventValue<'t>> {
    match kind {
        ABSENT => Some(EventValue::Absent),
        NUMBER => word(rest).map(|word| EventValue::Number(word as i64)),
        TEXT => {
            let length = usize::try_from(word(rest)?)
                .ok()
                .filter(|length| *length <= LONGEST_TEXT)?;
            let (text, others) = rest.split_at_checked(length.next_multiple_of(8))?;
            *rest = others;
            let text = std::str::from_utf8(&text[..length]).ok()?;
            // Other writers may write a number as a text.
            Some(canonical(text.as_bytes()).map_or(EventValue::Text(text), EventValue::Number))
        }
        _ => None,
    }
}
