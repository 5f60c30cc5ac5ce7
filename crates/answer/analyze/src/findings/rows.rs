//! The events of a run as rows of a table: looked up by keyword, in the order of reference time (all hosts' clocks corrected to one), with
//! the bytes that each event is about.

use crate::findings::finding::Evidence;
use crate::findings::input::AnalysisInput;
use stackline_events::catalogue;
use stackline_events::unit_ids::stream_parts;
use std::collections::BTreeMap;

/// The rows of a run's event table by keyword, with the reference time of each and its position in its host's file.
#[derive(Debug)]
pub(crate) struct EventRows<'c> {
    /// The contents of the run directory.
    pub(crate) input: &'c AnalysisInput<'c>,
    /// Reference time of each event, ns, by row.
    times: Vec<u64>,
    /// The position of each event in its own host's file, by row.
    places: Vec<u32>,
    /// The rows of each keyword in the order of time.
    by_keyword: BTreeMap<&'c str, Vec<u32>>,
}

/// A range of bytes in one stream: one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowByteRange {
    /// The stream's id.
    pub(crate) stream: i64,
    /// Offset of the first byte.
    pub(crate) from: i64,
    /// Offset behind the last byte.
    pub(crate) to: i64,
}

impl FlowByteRange {
    /// Whether the two ranges have a byte in common.
    pub(crate) const fn meets(&self, other: &Self) -> bool {
        self.stream == other.stream && self.from < other.to && other.from < self.to
    }
}

impl<'c> EventRows<'c> {
    /// Indexes the events of a run and corrects their times to reference time.
    pub(crate) fn from_input(input: &'c AnalysisInput<'c>) -> Self {
        let table = input.events;
        let mut counts: Vec<u32> = Vec::new();
        let (mut times, mut places) = (
            Vec::with_capacity(table.len()),
            Vec::with_capacity(table.len()),
        );
        let mut by_keyword: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in 0..table.len() {
            let host = table.host[row] as usize;
            if counts.len() <= host {
                counts.resize(host + 1, 0);
            }
            places.push(counts[host]);
            counts[host] += 1;
            let clock = input
                .index
                .hosts
                .get(table.host(row))
                .map(|host| &host.clock);
            times.push(clock.map_or(table.at_ns[row], |clock| {
                clock.reference_ns(table.at_ns[row])
            }));
            rows.entry(table.keyword[row]).or_default().push(row as u32);
        }
        for (keyword, mut rows) in rows {
            rows.sort_by_key(|row| times[*row as usize]);
            by_keyword.insert(table.names.text(keyword), rows);
        }
        Self {
            input,
            times,
            places,
            by_keyword,
        }
    }

    /// The rows of a keyword in the order of time.
    pub(crate) fn rows(&self, keyword: &str) -> &[u32] {
        self.by_keyword.get(keyword).map_or(&[], Vec::as_slice)
    }

    /// Reference time of an event, ns.
    pub(crate) fn at(&self, row: u32) -> u64 {
        self.times[row as usize]
    }

    /// When the last of all events happened, reference time, ns.
    pub(crate) fn last_ns(&self) -> u64 {
        self.times.iter().copied().max().unwrap_or(0)
    }

    /// The host of an event.
    pub(crate) fn host(&self, row: u32) -> &'c str {
        self.input.events.host(row as usize)
    }

    /// The number in the field of that name, where there is one.
    pub(crate) fn number(&self, row: u32, field: &str) -> Option<i64> {
        let at = catalogue::find(self.input.events.keyword(row as usize))?.field(field)?;
        self.input.events.number(row as usize, at)
    }

    /// The text in the field of that name, where there is one.
    pub(crate) fn text(&self, row: u32, field: &str) -> Option<&'c str> {
        let at = catalogue::find(self.input.events.keyword(row as usize))?.field(field)?;
        self.input.events.value(row as usize, at).text()
    }

    /// The unit of an event, as text.
    pub(crate) fn unit(&self, row: u32) -> String {
        let at = catalogue::find(self.input.events.keyword(row as usize))
            .and_then(|entry| entry.field("unit"));
        at.map_or_else(String::new, |at| {
            self.input.events.value(row as usize, at).to_string()
        })
    }

    /// The bytes that an event is about; `None` if they are not known or there are none.
    pub(crate) fn range(&self, row: u32) -> Option<FlowByteRange> {
        let (stream, from) = (self.number(row, "stream")?, self.number(row, "offset")?);
        let bytes = self.number(row, "bytes").filter(|bytes| *bytes > 0)?;
        Some(FlowByteRange {
            stream,
            from,
            to: from.saturating_add(bytes),
        })
    }

    /// The flow of an event's stream.
    pub(crate) fn flow(&self, row: u32) -> Option<u32> {
        self.number(row, "stream")
            .map(|stream| stream_parts(stream).0)
    }

    /// Whether there is any event at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Evidence from these events: it spans the time from the first to the last, and lists the first [`MOST`] events and units.
    pub(crate) fn evidence(&self, what: String, rows: &[u32]) -> Evidence {
        let times = || rows.iter().map(|row| self.at(*row));
        let (from_ns, to_ns) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let mut units: Vec<String> = Vec::new();
        for unit in rows
            .iter()
            .map(|row| self.unit(*row))
            .filter(|unit| !unit.is_empty())
        {
            if units.len() < MOST && !units.contains(&unit) {
                units.push(unit);
            }
        }
        let event = |row: &u32| (self.host(*row).to_owned(), self.places[*row as usize]);
        Evidence {
            what,
            from_ns,
            to_ns,
            units,
            events: rows.iter().take(MOST).map(event).collect(),
        }
    }
}

/// The most units, and the most events, that a piece of evidence lists.
pub(crate) const MOST: usize = 12;
