//! Records one after the other, as 64-bit words, low byte first: what a run keeps in memory, and the binary form.
//!
//! A record is a word that says what follows (24 bits of the keyword's number, 8 of how many values, two of each's kind), a word of time, and
//! the values: a number is one word, a text its length in bytes and its bytes. Names precede their numbers in the same tape,
//! so a tape is read without anything else.

use crate::keyword;
use crate::value::{Value, canonical};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

/// Most values of one record.
pub const MOST_VALUES: usize = 16;
/// Longest text of one value, in bytes; a longer one is cut at the last character that fits.
pub const LONGEST_TEXT: usize = 1 << 12;

/// Most names of keywords that a tape tells; one more ends it.
pub const MOST_NAMES: usize = 1 << 16;

/// Gives a number its name: number, name.
const DEFINE: u32 = 1;
/// Says whose the following records are: name of the host.
const HOST: u32 = 2;

const ABSENT: u64 = 0;
const NUMBER: u64 = 1;
const TEXT: u64 = 2;

/// Marks a record in a ring whose time is in ticks of the processor's counter still; never on a tape.
pub(crate) const TICKS: u64 = 1 << 31;

const UNKNOWN: &str = "UNKNOWN";

/// Records in a row.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    bytes: Vec<u8>,
    /// Which numbers have their names.
    defined: Vec<bool>,
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

    /// Adds whole records as a ring holds them, after turning their ticks into ns; how many.
    pub(crate) fn extend(&mut self, words: &mut [u64], ns: impl Fn(u64) -> u64) -> u64 {
        let (mut at, mut count) = (0, 0);
        while let Some(length) = length(&words[at..]).filter(|length| *length <= words.len() - at) {
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
        if !self.defined.get(id as usize).is_some_and(|defined| *defined) {
            self.tell(id);
        }
    }

    #[cold]
    fn tell(&mut self, id: u32) {
        let name = keyword::name(id).unwrap_or(UNKNOWN);
        self.write(DEFINE, 0, &[Value::Number(i64::from(id)), Value::Text(name)]);
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

    /// A tape in the binary form, from elsewhere; what is no record in it ends it.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, defined: Vec::new() }
    }

    /// Forgets the records, but not which names it has told.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Begins anew, for a reader that has seen nothing: forgets the records, and tells the host and every name again.
    pub fn begin_again(&mut self, host: &str) {
        self.bytes.clear();
        self.defined.clear();
        self.host(host);
    }

    /// Shows every record, in order: its keyword, host, time in ns and values. Unlike [`Tape::records`] it allocates nothing
    /// for each, and goes on with the names of tapes before: a recorder tells a name and its host only once.
    pub fn each(&self, names: &mut Names, mut show: impl FnMut(&str, &str, u64, &[Value<'_>])) {
        let (mut rest, mut values) = (self.bytes.as_slice(), Vec::with_capacity(MOST_VALUES));
        while let Some((keyword, at_ns)) = names.0.event(&mut rest, &mut values) {
            show(names.0.name(keyword), &names.0.host, at_ns, &values);
        }
    }

    /// Every record, in order.
    #[must_use]
    pub const fn records(&self) -> Records<'_> {
        Records { rest: self.bytes.as_slice(), known: Known { names: BTreeMap::new(), host: "" } }
    }
}

/// The words of a record.
#[inline(always)]
pub(crate) fn words(keyword: u32, at_ns: u64, values: &[Value<'_>], mut put: impl FnMut(u64)) {
    let values = &values[..values.len().min(MOST_VALUES)];
    put(head(keyword, values));
    put(at_ns);
    body(values, put);
}

/// The words of a record behind its head and time.
#[inline(always)]
pub(crate) fn body(values: &[Value<'_>], mut put: impl FnMut(u64)) {
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
#[inline(always)]
pub(crate) fn words_of(values: &[Value<'_>]) -> usize {
    let mut length = 2;
    for value in values {
        length += match value {
            Value::Absent => 0,
            Value::Number(_) => 1,
            Value::Text(text) => 1 + cut(text).len().div_ceil(8),
        };
    }
    length
}

#[inline(always)]
pub(crate) fn head(keyword: u32, values: &[Value<'_>]) -> u64 {
    let mut head = u64::from(keyword & 0xff_ffff) | (values.len() as u64) << 24;
    for (index, value) in values.iter().enumerate() {
        let kind = match value {
            Value::Absent => ABSENT,
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

/// What the tapes of one recorder told so far.
#[derive(Clone, Debug, Default)]
pub struct Names(Known<Box<str>>);

impl Names {
    /// What a tape begins with that goes on with these names.
    #[must_use]
    pub fn tape(&self) -> Tape {
        let mut tape = Tape::default();
        if !self.0.host.is_empty() {
            tape.host(&self.0.host);
        }
        for (id, name) in &self.0.names {
            tape.write(DEFINE, 0, &[Value::Number(i64::from(*id)), Value::Text(name)]);
        }
        tape
    }
}

/// Bytes of a long tape that are read at once; more than the longest record.
const PIECE: usize = 1 << 20;

/// A tape of any length, some of it at a time.
#[derive(Debug)]
pub struct Pieces<R> {
    from: R,
    names: Names,
    rest: Vec<u8>,
    damaged: u64,
}

impl<R: Read> Pieces<R> {
    /// Of what is read from there.
    pub fn of(from: R) -> Self {
        Self { from, names: Names::default(), rest: Vec::new(), damaged: 0 }
    }

    /// The next records; `None` behind the last, which is before what is no record.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next_table(&mut self) -> io::Result<Option<crate::Table>> {
        loop {
            let before = self.rest.len();
            (&mut self.from).take(PIECE as u64).read_to_end(&mut self.rest)?;
            let ended = self.rest.len() == before;
            let (table, whole) = self.table();
            self.rest.drain(..whole);
            if !table.is_empty() {
                return Ok(Some(table));
            }
            // A record is shorter than a piece: what is none by now never will be.
            if ended || (whole == 0 && self.rest.len() >= PIECE) {
                self.damaged += std::mem::take(&mut self.rest).len() as u64;
                return Ok(None);
            }
        }
    }

    /// How many bytes behind the last record were no record: what was cut off, or is damaged. Nothing is read behind that.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The events of the whole records at hand, and how many bytes these take.
    fn table(&mut self) -> (crate::Table, usize) {
        let (known, mut table, mut values) = (&mut self.names.0, crate::Table::default(), Vec::new());
        let mut rest = &self.rest[..];
        loop {
            let mut behind = rest;
            let Some((keyword, at_ns)) = whole_record(&mut behind, &mut values) else { break };
            let Some(learned) = known.learn(keyword, &values) else { break };
            rest = behind;
            if !learned {
                table.push(known.name(keyword), &known.host, at_ns, &values);
            }
        }
        (table, self.rest.len() - rest.len())
    }
}

/// Names by number, and whose the records are.
#[derive(Clone, Debug, Default)]
struct Known<T> {
    names: BTreeMap<u32, T>,
    host: T,
}

impl<'t, T: AsRef<str> + From<&'t str>> Known<T> {
    /// The next record that is an event: the number of its keyword, its time. What the tape says of itself is learned on the way.
    fn event(&mut self, rest: &mut &'t [u8], values: &mut Vec<Value<'t>>) -> Option<(u32, u64)> {
        loop {
            let (keyword, at_ns) = record(rest, values)?;
            match self.learn(keyword, values) {
                Some(true) => {}
                Some(false) => return Some((keyword, at_ns)),
                None => {
                    *rest = &[];
                    return None;
                }
            }
        }
    }

    /// Whether a record is what the tape says of itself, which is learned then; nothing where that is more than it may say.
    fn learn(&mut self, keyword: u32, values: &[Value<'t>]) -> Option<bool> {
        match (keyword, values) {
            (DEFINE, [Value::Number(id), Value::Text(name)]) => {
                self.names.insert(u32::try_from(*id).unwrap_or(0), T::from(name));
            }
            (HOST, [Value::Text(name)]) => self.host = T::from(name),
            (0..keyword::FIRST, _) => {}
            _ => return Some(false),
        }
        (self.names.len() <= MOST_NAMES).then_some(true)
    }
}

impl<T: AsRef<str>> Known<T> {
    fn find(&self, id: u32) -> Option<&T> {
        self.names.get(&id)
    }

    fn name(&self, id: u32) -> &str {
        self.find(id).map_or(UNKNOWN, AsRef::as_ref)
    }
}

/// Reads one record; what is none ends the bytes.
fn record<'t>(rest: &mut &'t [u8], values: &mut Vec<Value<'t>>) -> Option<(u32, u64)> {
    let found = whole_record(rest, values);
    if found.is_none() {
        *rest = &[];
    }
    found
}

fn whole_record<'t>(rest: &mut &'t [u8], values: &mut Vec<Value<'t>>) -> Option<(u32, u64)> {
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

fn value<'t>(rest: &mut &'t [u8], kind: u64) -> Option<Value<'t>> {
    match kind {
        ABSENT => Some(Value::Absent),
        NUMBER => word(rest).map(|word| Value::Number(word as i64)),
        TEXT => {
            let length = usize::try_from(word(rest)?).ok().filter(|length| *length <= LONGEST_TEXT)?;
            let (text, others) = rest.split_at_checked(length.next_multiple_of(8))?;
            *rest = others;
            let text = std::str::from_utf8(&text[..length]).ok()?;
            // Other writers leave it to readers to see that a text is a number.
            Some(canonical(text.as_bytes()).map_or(Value::Text(text), Value::Number))
        }
        _ => None,
    }
}

/// Walks a tape.
#[derive(Clone, Debug)]
pub struct Records<'t> {
    rest: &'t [u8],
    known: Known<&'t str>,
}

impl<'t> Iterator for Records<'t> {
    type Item = Record<'t>;

    /// The next record; nothing more once one is damaged.
    fn next(&mut self) -> Option<Record<'t>> {
        let mut values = Vec::new();
        let (keyword, at_ns) = self.known.event(&mut self.rest, &mut values)?;
        let keyword = self.known.find(keyword).copied().unwrap_or(UNKNOWN);
        Some(Record { keyword, host: self.known.host, at_ns, values })
    }
}

/// How many bytes of a file of the binary form are whole records, from its beginning; nothing, where it does not begin as one.
/// Memory does not grow with the file.
///
/// # Errors
/// When it cannot be read.
pub fn whole(from: impl Read) -> io::Result<Option<u64>> {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let mut length = 0;
    loop {
        match pass_over(&mut from, length == 0) {
            Ok(Some(record)) => length += record,
            Ok(None) => break,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok((length > 0).then_some(length))
}

/// Reads over one record; how many bytes it took, nothing where there is none. The first of a tape says whose they are.
fn pass_over(from: &mut impl BufRead, first: bool) -> io::Result<Option<u64>> {
    let head = next_word(from)?;
    next_word(from)?;
    if count_of(head) > MOST_VALUES || (first && keyword_of(head) != HOST) {
        return Ok(None);
    }
    let mut length = 16;
    for index in 0..count_of(head) {
        length += match kind_of(head, index) {
            ABSENT => 0,
            NUMBER => next_word(from).map(|_| 8)?,
            TEXT => {
                let size = next_word(from)?;
                if size > LONGEST_TEXT as u64 {
                    return Ok(None);
                }
                let padded = size.next_multiple_of(8);
                if io::copy(&mut from.take(padded), &mut io::sink())? < padded {
                    return Ok(None);
                }
                8 + padded
            }
            _ => return Ok(None),
        };
    }
    Ok(Some(length))
}

fn next_word(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
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

    #[test]
    fn pieces_are_whole_records_and_together_the_tape() {
        let mut tape = Tape::default();
        tape.host("khons");
        for n in 0..100 {
            tape.push(keyword::intern("APP_SEND"), n, &[Value::from(n), Value::Text(&"x".repeat(n as usize * 8))]);
        }
        for most in [1, 100, 500, 10_000, usize::MAX] {
            let pieces: Vec<&[u8]> = tape.pieces(most).collect();
            assert_eq!(pieces.concat(), tape.bytes());
            for piece in pieces {
                let (mut rest, mut values, mut records) = (piece, Vec::new(), 0);
                while !rest.is_empty() {
                    whole_record(&mut rest, &mut values).unwrap();
                    records += 1;
                }
                assert!(piece.len() <= most || records == 1, "{records} records, {} bytes, {most}", piece.len());
            }
        }
        let hostile = Tape::from_bytes(vec![0xff; 100]);
        assert_eq!(hostile.pieces(8).collect::<Vec<_>>(), [[0xff; 100]]);
    }

    #[test]
    fn where_a_tape_was_cut_off_it_ends() {
        let mut tape = Tape::default();
        tape.host("khons");
        tape.push(keyword::intern("APP_SEND"), 5, &[Value::Number(1), Value::Text("nine more"), Value::Absent]);
        let (bytes, mut ends) = (tape.bytes(), Vec::new());
        for length in 0..=bytes.len() {
            let records = Tape::from_bytes(bytes[..length].to_vec()).records().count();
            assert_eq!(records, usize::from(length == bytes.len()));
            ends.push(whole(&bytes[..length]).unwrap());
        }
        ends.dedup();
        assert_eq!(ends, [None, Some(32), Some(72), Some(bytes.len() as u64)], "host, name, event");
        assert_eq!(whole(&bytes[32..]).unwrap(), None, "nobody's records are no file");
    }

    #[test]
    fn what_the_form_does_not_know_yet_is_passed_over_or_ends_it() {
        let send = keyword::intern("APP_SEND");
        let mut tape = Tape::default();
        tape.host("khons");
        tape.write(7, 0, &[Value::Number(1)]);
        tape.push(send, 5, &[]);
        assert_eq!(tape.records().count(), 1, "a control record of tomorrow");
        tape.copy(&[u64::from(send) | 1 << 24 | 3 << 32, 6]);
        assert_eq!(tape.records().count(), 1, "a kind of value of tomorrow");
    }

    #[test]
    fn a_tape_that_tells_more_names_than_it_may_ends_in_whatever_order_they_come() {
        let first = keyword::FIRST as usize;
        for most in [MOST_NAMES, MOST_NAMES + 1] {
            let mut tape = Tape::default();
            tape.host("khons");
            for id in (first..first + most).rev() {
                tape.write(DEFINE, 0, &[Value::Number(id as i64), Value::Text("A_NAME")]);
            }
            tape.write(keyword::FIRST, 5, &[]);
            let expected = usize::from(most == MOST_NAMES);
            assert_eq!(tape.records().count(), expected);
            let (lines, damaged) = in_pieces(tape.bytes());
            assert_eq!((lines.len(), damaged > 0), (expected, expected == 0));
            assert!(lines.iter().all(|line| line.starts_with("A_NAME; khons")));
        }
    }

    fn value() -> impl Strategy<Value = Option<Result<i64, String>>> {
        proptest::option::of(proptest::result::maybe_err(any::<i64>(), "\\PC{0,20}"))
    }

    /// Gives so many bytes at a time.
    struct Slow<'b>(&'b [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(to.len()).min(self.0.len());
            to[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn in_pieces(bytes: &[u8]) -> (Vec<String>, u64) {
        let (mut pieces, mut lines) = (Pieces::of(Slow(bytes, 1 << 16)), Vec::new());
        while let Some(table) = pieces.next_table().unwrap() {
            lines.extend((0..table.len()).map(|row| table.event(row).to_string()));
        }
        (lines, pieces.damaged())
    }

    #[test]
    fn a_long_tape_is_read_in_pieces() {
        let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
        let mut tape = Tape::default();
        tape.host("khons");
        for n in 0..60_000 {
            if n == 30_000 {
                tape.host("udjat");
            }
            tape.push(if n % 3 == 0 { drop } else { send }, n, &[Value::from(n), Value::Text("words")]);
        }
        assert!(tape.bytes().len() > 2 * PIECE);
        let (lines, damaged) = in_pieces(tape.bytes());
        assert_eq!((lines.len(), damaged), (60_000, 0));
        assert_eq!(lines[29_999], "APP_SEND; khons; 0; 29999; 29999; words");
        assert_eq!(lines[59_999], "APP_SEND; udjat; 0; 59999; 59999; words");
        let cut = &tape.bytes()[..tape.bytes().len() - 3];
        assert_eq!(in_pieces(cut).0.len(), 59_999);
        assert!(in_pieces(cut).1 > 0);
    }

    proptest! {
        #[test]
        fn hostile_bytes_in_pieces_are_the_same_records(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let records = Tape::from_bytes(bytes.clone());
            let mut table = crate::Table::default();
            table.push_tape(&records);
            let expected: Vec<String> = (0..table.len()).map(|row| table.event(row).to_string()).collect();
            prop_assert_eq!(in_pieces(&bytes).0, expected);
        }

        #[test]
        fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Tape::from_bytes(bytes.clone()).records().count() < 300);
            prop_assert!(whole(&bytes[..]).unwrap().unwrap_or(0) <= bytes.len() as u64);
        }

        #[test]
        fn what_was_written_is_read(
            at_ns: u64,
            owned in proptest::collection::vec(value(), 0..=MOST_VALUES),
        ) {
            let values: Vec<Value<'_>> = owned.iter().map(|value| match value {
                None => Value::Absent,
                Some(Ok(number)) => Value::Number(*number),
                Some(Err(text)) => canonical(text.as_bytes()).map_or(Value::Text(text), Value::Number),
            }).collect();
            let mut tape = Tape::default();
            tape.host("khons");
            let id = keyword::intern("APP_SEND");
            tape.push(id, at_ns, &values);
            let mut ring = Vec::new();
            words(id, at_ns, &values, |word| ring.push(word));
            prop_assert_eq!(words_of(&values), ring.len());
            ring[0] |= TICKS;
            tape.extend(&mut ring, |ticks| ticks ^ 1);
            let expected = [at_ns, at_ns ^ 1]
                .map(|at_ns| Record { keyword: "APP_SEND", host: "khons", at_ns, values: values.clone() });
            prop_assert_eq!(tape.records().collect::<Vec<_>>(), expected);
            let mut shown = 0;
            tape.each(&mut Names::default(), |keyword, host, _, seen| {
                shown += usize::from((keyword, host, seen) == ("APP_SEND", "khons", &values[..]));
            });
            prop_assert_eq!((shown, whole(tape.bytes()).unwrap()), (2, Some(tape.bytes().len() as u64)));
        }
    }
}
