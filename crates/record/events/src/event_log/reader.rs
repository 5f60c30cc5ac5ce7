//! Event logs read: names learned on the way, in memory or from a file of any length.
//!
//! What is no record ends an event log; nothing here panics on bytes from elsewhere.

use super::record::{ABSENT, NUMBER, TEXT, count_of, keyword_of, kind_of, record, whole_record};
use super::{DEFINE, EventLog, EventRecord, HOST, LONGEST_TEXT, MOST_NAMES, MOST_VALUES, UNKNOWN};
use crate::keyword;
use crate::value::EventValue;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

impl EventLog {
    /// Shows every record, in order: its keyword, host, time in ns and values. Unlike [`EventLog::records`] it allocates nothing
    /// for each, and goes on with the names of event logs before: a recorder defines a name and its host only once.
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

    /// Every record, in order.
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

/// What the event logs of one recorder defined so far.
#[derive(Clone, Debug, Default)]
pub struct EventLogNames(DefinedNames<Box<str>>);

impl EventLogNames {
    /// What an event log begins with that goes on with these names.
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

/// Bytes of a long event log that are read at once; more than the longest record.
pub(super) const PIECE: usize = 1 << 20;
/// So many bytes without an event are no event log: what it says of itself is shorter.
const LONGEST_SILENCE: u64 = 32 << 20;

/// An event log of any length, some of it at a time.
#[derive(Debug)]
pub struct EventLogPieces<R> {
    from: R,
    names: EventLogNames,
    rest: Vec<u8>,
    damaged: u64,
    /// Bytes since the last event.
    silent: u64,
}

impl<R: Read> EventLogPieces<R> {
    /// Of what is read from there.
    pub fn of(from: R) -> Self {
        Self {
            from,
            names: EventLogNames::default(),
            rest: Vec::new(),
            damaged: 0,
            silent: 0,
        }
    }

    /// The next records; `None` behind the last, which is before what is no record.
    ///
    /// # Errors
    /// When it cannot be read.
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
            // A record is shorter than a piece: what is none by now never will be.
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

    /// How many bytes behind the last record were no record: what was cut off, or is damaged. Nothing is read behind that.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The events of the whole records at hand, and how many bytes these take.
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

/// Names by number, and whose the records are.
#[derive(Clone, Debug, Default)]
struct DefinedNames<T> {
    names: BTreeMap<u32, T>,
    host: T,
}

impl<'t, T: AsRef<str> + From<&'t str>> DefinedNames<T> {
    /// The next record that is an event: the number of its keyword, its time. What the event log says of itself is learned on the way.
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

    /// Whether a record is what the event log says of itself, which is learned then; nothing where that is more than it may say.
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

/// Walks an event log.
#[derive(Clone, Debug)]
pub struct EventLogRecords<'t> {
    rest: &'t [u8],
    known: DefinedNames<&'t str>,
}

impl<'t> Iterator for EventLogRecords<'t> {
    type Item = EventRecord<'t>;

    /// The next record; nothing more once one is damaged.
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

/// How many bytes of a file of the binary form are whole records, from its beginning; nothing, where it does not begin as one.
/// Memory does not grow with the file.
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

/// Reads over one record; how many bytes it took, nothing where there is none. The first of an event log says whose they are.
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
