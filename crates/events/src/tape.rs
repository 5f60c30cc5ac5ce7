//! Records one after the other, as 64-bit words, low byte first: what a run keeps in memory, and the binary form.
//!
//! A record is a word that says what follows (24 bits of the keyword's number, 8 of how many values, two of each's kind), a word of time, and
//! the values: a number is one word, a text its length in bytes and its bytes. Names precede their numbers in the same tape,
//! so a tape is read without anything else.

use crate::keyword;
use crate::value::Value;
use std::collections::BTreeSet;

/// Most values of one record.
pub const MOST_VALUES: usize = 16;
/// Longest text of one value, in bytes; a longer one is cut at the last character that fits.
pub const LONGEST_TEXT: usize = 1 << 12;

/// Gives a number its name: number, name.
const DEFINE: u32 = 1;
/// Says whose the following records are: name of the host.
const HOST: u32 = 2;

const NUMBER: u64 = 1;
const TEXT: u64 = 2;

const UNKNOWN: &str = "UNKNOWN";

/// Records in a row.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    bytes: Vec<u8>,
    defined: BTreeSet<u32>,
}

/// One record of a tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'t> {
    /// What.
    pub keyword: &'t str,
    /// Where.
    pub host: &'t str,
    /// When, ns.
    pub at_ns: u64,
    /// What else is known.
    pub values: Vec<Value<'t>>,
}

impl Tape {
    /// Says whose the records from here on are.
    pub fn host(&mut self, name: &str) {
        self.write(HOST, 0, &[Value::Text(name)]);
    }

    /// Adds a record; `keyword` is its number in this process. Values beyond [`MOST_VALUES`] are left out.
    pub fn push(&mut self, keyword: u32, at_ns: u64, values: &[Value<'_>]) {
        self.define(keyword);
        self.write(keyword, at_ns, values);
    }

    fn write(&mut self, keyword: u32, at_ns: u64, values: &[Value<'_>]) {
        let bytes = &mut self.bytes;
        words(keyword, at_ns, values, |word| bytes.extend_from_slice(&word.to_le_bytes()));
    }

    /// Adds whole records as a ring holds them; how many.
    pub(crate) fn extend(&mut self, words: &[u64]) -> u64 {
        let (mut rest, mut count) = (words, 0);
        while let Some(length) = length(rest) {
            self.define(keyword_of(rest[0]));
            rest = &rest[length.min(rest.len())..];
            count += 1;
        }
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        count
    }

    fn define(&mut self, id: u32) {
        if self.defined.insert(id) {
            let name = keyword::name(id).unwrap_or(UNKNOWN);
            self.write(DEFINE, 0, &[Value::Number(i64::from(id)), Value::Text(name)]);
        }
    }

    /// The binary form.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A tape in the binary form, from elsewhere; what is no record in it ends it.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, defined: BTreeSet::new() }
    }

    /// Forgets the records, but not which names it has told.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Every record, in order.
    #[must_use]
    pub const fn records(&self) -> Records<'_> {
        Records { rest: self.bytes.as_slice(), names: Vec::new(), host: "" }
    }
}

/// The words of a record.
#[inline]
pub(crate) fn words(keyword: u32, at_ns: u64, values: &[Value<'_>], mut put: impl FnMut(u64)) {
    let values = &values[..values.len().min(MOST_VALUES)];
    put(head(keyword, values));
    put(at_ns);
    for value in values {
        match *value {
            Value::Absent => {}
            Value::Number(number) => put(number as u64),
            Value::Text(text) => {
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

/// How many words it takes.
#[inline]
pub(crate) fn words_of(values: &[Value<'_>]) -> usize {
    let values = &values[..values.len().min(MOST_VALUES)];
    let of = |value: &Value<'_>| match value {
        Value::Absent => 0,
        Value::Number(_) => 1,
        Value::Text(text) => 1 + cut(text).len().div_ceil(8),
    };
    2 + values.iter().map(of).sum::<usize>()
}

#[inline]
fn head(keyword: u32, values: &[Value<'_>]) -> u64 {
    let mut head = u64::from(keyword & 0xff_ffff) | (values.len() as u64) << 24;
    for (index, value) in values.iter().enumerate() {
        let kind = match value {
            Value::Absent => 0,
            Value::Number(_) => NUMBER,
            Value::Text(_) => TEXT,
        };
        head |= kind << (32 + 2 * index);
    }
    head
}

const fn keyword_of(head: u64) -> u32 {
    (head & 0xff_ffff) as u32
}

const fn count_of(head: u64) -> usize {
    (head >> 24 & 0xff) as usize
}

const fn kind_of(head: u64, index: usize) -> u64 {
    head >> (32 + 2 * index) & 3
}

fn cut(text: &str) -> &str {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    let end = (0..=LONGEST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// How many words the first record of these takes.
fn length(words: &[u64]) -> Option<usize> {
    let head = *words.first()?;
    let mut length = 2;
    for index in 0..count_of(head).min(MOST_VALUES) {
        length += match kind_of(head, index) {
            NUMBER => 1,
            TEXT => 1 + usize::try_from(*words.get(length)?).ok()?.min(LONGEST_TEXT).div_ceil(8),
            _ => 0,
        };
    }
    Some(length)
}

/// Walks a tape.
#[derive(Clone, Debug)]
pub struct Records<'t> {
    rest: &'t [u8],
    names: Vec<(u32, &'t str)>,
    host: &'t str,
}

impl<'t> Records<'t> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn value(&mut self, kind: u64) -> Option<Value<'t>> {
        match kind {
            NUMBER => self.word().map(|word| Value::Number(word as i64)),
            TEXT => {
                let length = usize::try_from(self.word()?).ok().filter(|length| *length <= LONGEST_TEXT)?;
                let (text, rest) = self.rest.split_at_checked(length.next_multiple_of(8))?;
                self.rest = rest;
                std::str::from_utf8(&text[..length]).ok().map(Value::Text)
            }
            _ => Some(Value::Absent),
        }
    }

    fn record(&mut self) -> Option<(u32, u64, Vec<Value<'t>>)> {
        let head = self.word()?;
        let at_ns = self.word()?;
        let count = Some(count_of(head)).filter(|count| *count <= MOST_VALUES)?;
        let values: Option<Vec<Value<'t>>> = (0..count).map(|index| self.value(kind_of(head, index))).collect();
        Some((keyword_of(head), at_ns, values?))
    }

    fn name(&self, id: u32) -> &'t str {
        self.names.binary_search_by_key(&id, |(id, _)| *id).map_or(UNKNOWN, |index| self.names[index].1)
    }

    fn define(&mut self, id: u32, name: &'t str) {
        match self.names.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(index) => self.names[index].1 = name,
            Err(index) => self.names.insert(index, (id, name)),
        }
    }
}

impl<'t> Iterator for Records<'t> {
    type Item = Record<'t>;

    /// The next record; nothing more once one is damaged.
    fn next(&mut self) -> Option<Record<'t>> {
        loop {
            let Some((keyword, at_ns, values)) = self.record() else {
                self.rest = &[];
                return None;
            };
            match (keyword, &values[..]) {
                (DEFINE, [Value::Number(id), Value::Text(name)]) => self.define(u32::try_from(*id).unwrap_or(0), name),
                (HOST, [Value::Text(name)]) => self.host = name,
                _ => return Some(Record { keyword: self.name(keyword), host: self.host, at_ns, values }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tape_reads_back() {
        let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
        let mut tape = Tape::default();
        tape.host("khons");
        tape.push(send, 5, &[Value::Number(-7), Value::Absent, Value::Text("queue full, really")]);
        tape.host("udjat");
        tape.push(drop, 6, &[]);
        tape.push(send, 7, &[Value::Text("")]);
        let again = Tape::from_bytes(tape.bytes().to_vec());
        let records: Vec<Record<'_>> = again.records().collect();
        let expected =
            |keyword, host, at_ns, values: &[Value<'static>]| Record { keyword, host, at_ns, values: values.to_vec() };
        assert_eq!(
            records,
            [
                expected(
                    "APP_SEND",
                    "khons",
                    5,
                    &[Value::Number(-7), Value::Absent, Value::Text("queue full, really")]
                ),
                expected("NET_DROP", "udjat", 6, &[]),
                expected("APP_SEND", "udjat", 7, &[Value::Text("")]),
            ]
        );
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Tape::from_bytes(bytes).records().count() < 300);
        }
    }
}
