//! An event log: records one after the other, as 64-bit words in little-endian order. It is what a run holds in
//! memory, and the binary form of events.
//!
//! A record is a head word (24 bits of the keyword's number, 8 bits for the number of values, two bits for each
//! value's kind), a word of time, and the values: a number is one word, a text its length in bytes followed by its
//! bytes. A name is defined in the log before its number is used, so a log can be read without anything else.

mod reader;
mod record;

pub use reader::{EventLogNames, EventLogPieces, EventLogRecords, measure_whole_records};
pub(crate) use record::{body, head, words_of};

use crate::keyword;
use crate::value::EventValue;
use record::{keyword_of, record_length, whole_record, write_record_words};

/// Most values of a record.
pub const MOST_VALUES: usize = 16;
/// Longest text of a value, in bytes; a longer one is cut after the last character that fits.
pub const LONGEST_TEXT: usize = 1 << 12;

/// Most names of keywords that a log may define; a log that defines more is damaged.
pub const MOST_NAMES: usize = 1 << 16;

/// The keyword number of a record that defines a name; its values are the number and the name.
const DEFINE: u32 = 1;
/// The keyword number of a record that names the host of the records after it.
const HOST: u32 = 2;

/// A bit in the head of a record in a ring: its time is in ticks of the processor's counter. Never set in an event
/// log.
pub(crate) const TICKS: u64 = 1 << 31;

/// The name of a keyword whose number was not defined.
const UNKNOWN: &str = "UNKNOWN";

/// Records in the binary form.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
    /// Whether the name of each keyword number is defined in the log.
    defined: Vec<bool>,
}

/// A record of an event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord<'t> {
    /// The keyword.
    pub keyword: &'t str,
    /// The host.
    pub host: &'t str,
    /// The time, ns.
    pub at_ns: u64,
    /// The data.
    pub values: Vec<EventValue<'t>>,
}

impl EventLog {
    /// Sets the host of the records that follow.
    pub fn host(&mut self, name: &str) {
        self.write(HOST, 0, &[EventValue::Text(name)]);
    }

    /// Appends a record; `keyword` is the keyword's number in this process. Values beyond [`MOST_VALUES`] are left
    /// out.
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

    /// Appends the whole records in a ring's words, with their ticks converted to ns. Returns how many.
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

    /// Defines the name of a number, unless it is defined already.
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

    /// The log in the binary form.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The log in pieces of whole records, each of at most `most` bytes unless a single record is longer.
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
            // Bytes that are not a record stay with the records before them.
            let (piece, rest) = left.split_at(if length == 0 { left.len() } else { length });
            left = rest;
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }

    /// An event log from bytes in the binary form; it is read up to the first damaged record.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            defined: Vec::new(),
        }
    }

    /// Removes the records; the log still counts the names it has defined as defined.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Removes the records and defines the host and, when they are used, all names again: for a new reader.
    pub fn begin_again(&mut self, host: &str) {
        self.bytes.clear();
        self.defined.clear();
        self.host(host);
    }
}

#[cfg(test)]
mod tests;
