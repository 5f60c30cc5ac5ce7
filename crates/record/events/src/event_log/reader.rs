//! Reads event logs, in memory or from a stream of any length, and learns the names that they define.
//!
//! Reading ends at the first damaged record; no bytes can cause a panic.

use super::record::{ABSENT, NUMBER, TEXT, count_of, keyword_of, kind_of, record, whole_record};
use super::{DEFINE, EventLog, EventRecord, HOST, LONGEST_TEXT, MOST_NAMES, MOST_VALUES, UNKNOWN};
use crate::keyword;
use crate::value::EventValue;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

impl EventLog {
    /// Passes the keyword, host, time (ns) and values of every record to `show`, in order. Unlike
    /// [`EventLog::records`] it does not allocate for each record, and it continues with the `names` of earlier logs:
    /// a recorder defines a name and its host only once.
    pub fn each(
        &self,
        names: &mut EventLogNames,
        mut show: impl FnMut(&str, &str, u64, &[EventValue<'_>]),
    ) {
        let (mut rest, mut values) = (self.bytes.as_slice(), Vec::with_capacity(MOST_VALUES));
        while let Some((keyword, at_ns)) = names.0.event(&mut rest, &mut values) {
            show(names.0.name(keyword), &names.0.host, at_ns, &values);
        }
    }

    /// An iterator over the records, in order.
    #[must_use]
    pub const fn records(&self) -> EventLogRecords<'_> {
        EventLogRecords {
            rest: self.bytes.as_slice(),
            known: DefinedNames {
                names: BTreeMap::new(),
                host: "",
            },
        }
    }
}

/// The names that the event logs of a recorder have defined so far.
#[derive(Clone, Debug, Default)]
pub struct EventLogNames(DefinedNames<Box<str>>);

impl EventLogNames {
    /// The beginning of an event log that continues with these names: it defines all of them.
    #[must_use]
    pub fn to_event_log(&self) -> EventLog {
        let mut event_log = EventLog::default();
        if !self.0.host.is_empty() {
            event_log.host(&self.0.host);
        }
        for (id, name) in &self.0.names {
            event_log.write(
                DEFINE,
                0,
                &[EventValue::Number(i64::from(*id)), EventValue::Text(name)],
            );
        }
        event_log
    }
}

/// Bytes that are read from a stream at once; more than the longest record.
pub(super) const PIECE: usize = 1 << 20;
/// After this many bytes of definitions without an event the data are not taken for an event log.
const LONGEST_SILENCE: u64 = 32 << 20;

/// Reads an event log from a stream, in pieces.
#[derive(Debug)]
pub struct EventLogPieces<R> {
    from: R,
    names: EventLogNames,
    /// Bytes that have been read and do not form a whole record yet.
    rest: Vec<u8>,
    /// Bytes that are damaged.
    damaged: u64,
    /// Bytes of records since the last event.
    silent: u64,
}

impl<R: Read> EventLogPieces<R> {
    /// Reads from that stream.
    pub fn new(from: R) -> Self {
        Self {
            from,
            names: EventLogNames::default(),
            rest: Vec::new(),
            damaged: 0,
            silent: 0,
        }
    }

    /// The events of the next piece; `None` after the last, or at the first damaged record.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub fn next_table(&mut self) -> io::Result<Option<crate::EventTable>> {
        loop {
            let before = self.rest.len();
            (&mut self.from)
                .take(PIECE as u64)
                .read_to_end(&mut self.rest)?;
            let ended = self.rest.len() == before;
            let (table, whole) = self.table();
            self.rest.drain(..whole);
            self.silent += whole as u64;
            if !table.is_empty() {
                self.silent = 0;
                return Ok(Some(table));
            }
            // A record is shorter than a piece, so bytes that are not a record here are damaged.
            if ended || (whole == 0 && self.rest.len() >= PIECE) || self.silent > LONGEST_SILENCE {
                self.damaged += if self.silent > LONGEST_SILENCE {
                    self.silent
                } else {
                    0
                };
                self.damaged += std::mem::take(&mut self.rest).len() as u64;
                return Ok(None);
            }
        }
    }

    /// Number of bytes after the last valid record, which are truncated or damaged and are not read.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The events of the whole records in `rest`, and the number of bytes of these records.
    fn table(&mut self) -> (crate::EventTable, usize) {
        let (known, mut table, mut values) =
            (&mut self.names.0, crate::EventTable::default(), Vec::new());
        let mut rest = &self.rest[..];
        loop {
            let mut behind = rest;
            let Some((keyword, at_ns)) = whole_record(&mut behind, &mut values) else {
                break;
            };
            let Some(learned) = known.learn(keyword, &values) else {
                break;
            };
            rest = behind;
            if !learned {
                table.push(known.name(keyword), &known.host, at_ns, &values);
            }
        }
        (table, self.rest.len() - rest.len())
    }
}

/// The names by keyword number, and the host of the records.
#[derive(Clone, Debug, Default)]
struct DefinedNames<T> {
    names: BTreeMap<u32, T>,
    host: T,
}

impl<'t, T: AsRef<str> + From<&'t str>> DefinedNames<T> {
    /// The next record that is an event, as keyword number and time. Definitions on the way are learned.
    fn event(
        &mut self,
        rest: &mut &'t [u8],
        values: &mut Vec<EventValue<'t>>,
    ) -> Option<(u32, u64)> {
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

    /// Learns from a record if it is a definition. Returns whether it is one; `None` when the log defines too many
    /// names.
    fn learn(&mut self, keyword: u32, values: &[EventValue<'t>]) -> Option<bool> {
        match (keyword, values) {
            (DEFINE, [EventValue::Number(id), EventValue::Text(name)]) => {
                self.names
                    .insert(u32::try_from(*id).unwrap_or(0), T::from(name));
            }
            (HOST, [EventValue::Text(name)]) => self.host = T::from(name),
            (0..keyword::FIRST, _) => {}
            _ => return Some(false),
        }
        (self.names.len() <= MOST_NAMES).then_some(true)
    }
}

impl<T: AsRef<str>> DefinedNames<T> {
    fn find(&self, id: u32) -> Option<&T> {
        self.names.get(&id)
    }

    fn name(&self, id: u32) -> &str {
        self.find(id).map_or(UNKNOWN, AsRef::as_ref)
    }
}

/// An iterator over the records of an event log.
#[derive(Clone, Debug)]
pub struct EventLogRecords<'t> {
    rest: &'t [u8],
    known: DefinedNames<&'t str>,
}

impl<'t> Iterator for EventLogRecords<'t> {
    type Item = EventRecord<'t>;

    /// The next record; `None` from the first damaged one on.
    fn next(&mut self) -> Option<EventRecord<'t>> {
        let mut values = Vec::new();
        let (keyword, at_ns) = self.known.event(&mut self.rest, &mut values)?;
        let keyword = self.known.find(keyword).copied().unwrap_or(UNKNOWN);
        Some(EventRecord {
            keyword,
            host: self.known.host,
            at_ns,
            values,
        })
    }
}

/// Measures how many bytes of a file are whole records of the binary form, from its beginning; `None` where it does
/// not begin with one. Memory does not grow with the file.
///
/// # Errors
/// When it cannot be read.
pub fn measure_whole_records(from: impl Read) -> io::Result<Option<u64>> {
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

/// Skips a record. Returns its length in bytes; `None` when it is damaged. The first record of an event log names the
/// host.
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
    from.read_exact(&mut bytes)
        .map(|()| u64::from_le_bytes(bytes))
}
