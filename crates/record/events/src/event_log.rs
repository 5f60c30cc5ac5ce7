//! Records one after the other, as 64-bit words, low byte first: what a run keeps in memory, and the binary form.
//!
//! A record is a word that says what follows (24 bits of the keyword's number, 8 of how many values, two of each's kind), a word of time, and
//! the values: a number is one word, a text its length in bytes and its bytes. Names precede their numbers in the same event log,
//! so an event log is read without anything else.

mod reader;
mod record;

pub use reader::{EventLogNames, EventLogPieces, EventLogRecords, measure_whole_records};
pub(crate) use record::{body, head, words_of};

use crate::keyword;
use crate::value::EventValue;
use record::{keyword_of, record_length, whole_record, write_record_words};

/// Most values of one record.
pub const MOST_VALUES: usize = 16;
/// Longest text of one value, in bytes; a longer one is cut at the last character that fits.
pub const LONGEST_TEXT: usize = 1 << 12;

/// Most names of keywords that an event log defines; one more ends it.
pub const MOST_NAMES: usize = 1 << 16;

/// Gives a number its name: number, name.
const DEFINE: u32 = 1;
/// Says whose the following records are: name of the host.
const HOST: u32 = 2;

/// Marks a record in a ring whose time is in ticks of the processor's counter still; never on an event log.
pub(crate) const TICKS: u64 = 1 << 31;

const UNKNOWN: &str = "UNKNOWN";

/// Records in a row.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
    /// Which numbers have their names.
    defined: Vec<bool>,
}

/// One record of an event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord<'t> {
    /// What.
    pub keyword: &'t str,
    /// Where.
    pub host: &'t str,
    /// When, ns.
    pub at_ns: u64,
    /// What else is known.
    pub values: Vec<EventValue<'t>>,
}

impl EventLog {
    /// Says whose the records from here on are.
    pub fn host(&mut self, name: &str) {
        self.write(HOST, 0, &[EventValue::Text(name)]);
    }

    /// Adds a record; `keyword` is its number in this process. Values beyond [`MOST_VALUES`] are left out.
    pub fn push(&mut self, keyword: u32, at_ns: u64, values: &[EventValue<'_>]) {
        self.define(keyword);
        self.write(keyword, at_ns, values);
    }

    fn write(&mut self, keyword: u32, at_ns: u64, values: &[EventValue<'_>]) {
        let bytes = &mut self.bytes;
        write_record_words(keyword, at_ns, values, |word| {
            bytes.extend_from_slice(&word.to_le_bytes())
        });
    }

    /// Adds whole records as a ring holds them, after turning their ticks into ns; how many.
    pub(crate) fn extend(&mut self, words: &mut [u64], ns: impl Fn(u64) -> u64) -> u64 {
        let (mut at, mut count) = (0, 0);
        while let Some(length) =
            record_length(&words[at..]).filter(|length| *length <= words.len() - at)
        {
            let head = words[at];
            self.define(keyword_of(head));
            if head & TICKS != 0 {
                (words[at], words[at + 1]) = (head & !TICKS, ns(words[at + 1]));
            }
            at += length;
            count += 1;
        }
        self.copy(&words[..at]);
        count
    }

    fn copy(&mut self, words: &[u64]) {
        const AT_ONCE: usize = 32;
        self.bytes.reserve(size_of_val(words));
        for words in words.chunks(AT_ONCE) {
            let mut bytes = [0; 8 * AT_ONCE];
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            self.bytes.extend_from_slice(&bytes[..size_of_val(words)]);
        }
    }

    #[inline]
    fn define(&mut self, id: u32) {
        if !self
            .defined
            .get(id as usize)
            .is_some_and(|defined| *defined)
        {
            self.write_definition(id);
        }
    }

    #[cold]
    fn write_definition(&mut self, id: u32) {
        let name = keyword::keyword_name(id).unwrap_or(UNKNOWN);
        self.write(
            DEFINE,
            0,
            &[EventValue::Number(i64::from(id)), EventValue::Text(name)],
        );
        if self.defined.len() <= id as usize {
            self.defined.resize(id as usize + 1, false);
        }
        self.defined[id as usize] = true;
    }

    /// The binary form.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The binary form in pieces of whole records, each of at most so many bytes unless its one record is longer.
    pub fn pieces(&self, most: usize) -> impl Iterator<Item = &[u8]> {
        let (mut left, mut values) = (self.bytes.as_slice(), Vec::new());
        std::iter::from_fn(move || {
            let (mut rest, mut length) = (left, 0);
            while left.len() > most && whole_record(&mut rest, &mut values).is_some() {
                let behind = left.len() - rest.len();
                if behind > most && length > 0 {
                    break;
                }
                length = behind;
            }
            // What is no record stays with what it stands behind.
            let (piece, rest) = left.split_at(if length == 0 { left.len() } else { length });
            left = rest;
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }

    /// An event log in the binary form, from elsewhere; what is no record in it ends it.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            defined: Vec::new(),
        }
    }

    /// Forgets the records, but not which names it has defined.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Begins anew, for a new reader: forgets the records, and defines the host and every name again.
    pub fn begin_again(&mut self, host: &str) {
        self.bytes.clear();
        self.defined.clear();
        self.host(host);
    }
}

#[cfg(test)]
mod tests;
