//! A table of events, column by column: the contents of a file of events, and the input of the analysis.

use crate::event_log::{self, EventLog};
use crate::text::TextEvent;
use crate::value::{EmittedEvent, EventValue};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

/// Number of data fields that have a column of their own; further fields of an imported log are kept as text.
pub const FIELDS: usize = 16;

/// Numbers for texts: each different text is stored once.
#[derive(Clone, Debug, Default)]
pub struct EventTextTable {
    by_text: HashMap<Arc<str>, u32, TextHashSeed>,
    texts: Vec<Arc<str>>,
    /// Approximate memory of the texts, in bytes.
    bytes: usize,
}

/// Creates hashers with a seed that differs from process to process, so that a crafted log cannot make all texts
/// collide.
#[derive(Clone, Debug)]
struct TextHashSeed(u64);

impl Default for TextHashSeed {
    fn default() -> Self {
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(0)))
    }
}

impl BuildHasher for TextHashSeed {
    type Hasher = Fold;
    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

/// A fast hasher that folds eight bytes at a time into one word: every text of every event is looked up.
struct Fold(u64);

impl Fold {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words
            .iter()
            .for_each(|word| self.fold(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last));
        self.fold(bytes.len() as u64);
    }

    #[inline]
    fn write_u8(&mut self, _: u8) {
        // The byte that ends a string adds nothing, because `write` includes the length.
    }
}

impl EventTextTable {
    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let (number, text) = (self.texts.len() as u32, Arc::<str>::from(text));
        // Estimate: two pointers with lengths, and an entry in the map.
        self.bytes += text.len() + 64;
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, number);
        number
    }

    /// The number of a text that is in the table.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    /// The text of a number; empty when there is none.
    #[must_use]
    pub fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |text| text)
    }

    /// Number of texts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.texts.len()
    }

    /// Approximate memory of the texts, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are no texts.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// One data field of all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventColumn {
    /// The number in each row, 0 where the field is not a number.
    pub numbers: Vec<i64>,
    /// For each row: [`EventColumn::NUMBER`], [`EventColumn::ABSENT`], or the number of a text.
    pub texts: Vec<u32>,
}

impl EventColumn {
    /// Marks a row whose value is in `numbers`.
    pub const NUMBER: u32 = u32::MAX;
    /// Marks a row without a value.
    pub const ABSENT: u32 = u32::MAX - 1;

    /// Sets the value of a row, which must be behind the last one.
    fn push(&mut self, value: EventValue<'_>, row: usize, names: &mut EventTextTable) {
        let (number, text) = match value {
            // Absent values at the end of a column are not stored.
            EventValue::Absent => return,
            EventValue::Number(number) => (number, Self::NUMBER),
            EventValue::Text(text) => (0, names.number(text)),
        };
        if self.texts.len() < row {
            self.numbers.resize(row, 0);
            self.texts.resize(row, Self::ABSENT);
        }
        self.numbers.push(number);
        self.texts.push(text);
    }

    /// The number in a row, if it has one.
    #[inline]
    #[must_use]
    pub fn number(&self, row: usize) -> Option<i64> {
        (*self.texts.get(row)? == Self::NUMBER).then(|| self.numbers[row])
    }

    /// The number of the text in a row, if it has one.
    #[inline]
    #[must_use]
    pub fn text(&self, row: usize) -> Option<u32> {
        self.texts
            .get(row)
            .copied()
            .filter(|text| *text < Self::ABSENT)
    }
}

/// A table of events. A data column may be shorter than the table: values behind its end are absent.
#[derive(Clone, Debug, Default)]
pub struct EventTable {
    /// Times, ns.
    pub at_ns: Vec<u64>,
    /// Keywords, as numbers in `names`.
    pub keyword: Vec<u32>,
    /// Hosts, as numbers in `names`.
    pub host: Vec<u32>,
    /// Data columns, at most [`FIELDS`].
    pub data: Vec<EventColumn>,
    /// Data fields beyond them, in the text form, as pairs of row and text, ascending by row.
    pub more: Vec<(u32, String)>,
    /// The texts of keywords, hosts and data.
    pub names: EventTextTable,
}

impl EventTable {
    /// Adds one event.
    pub fn push(&mut self, keyword: &str, host: &str, at_ns: u64, values: &[EventValue<'_>]) {
        let (keyword, host) = (self.names.number(keyword), self.names.number(host));
        self.push_known(keyword, host, at_ns, values);
    }

    /// An emitter that adds events to this table.
    pub fn emitter(&mut self) -> impl FnMut(&EmittedEvent<'_>) {
        |event| self.push(event.keyword, event.host, event.at_ns, event.values)
    }

    /// Adds one event whose keyword and host are numbers in `names`.
    #[inline]
    pub fn push_known(&mut self, keyword: u32, host: u32, at_ns: u64, values: &[EventValue<'_>]) {
        let row = self.at_ns.len();
        self.at_ns.push(at_ns);
        self.keyword.push(keyword);
        self.host.push(host);
        let (columns, more) = values.split_at(values.len().min(FIELDS));
        if self.data.len() < columns.len() {
            self.data.resize(columns.len(), EventColumn::default());
        }
        for (column, value) in self.data.iter_mut().zip(columns) {
            column.push(*value, row, &mut self.names);
        }
        if !more.is_empty() {
            let fields: Vec<String> = more.iter().map(ToString::to_string).collect();
            let fields: Vec<_> = fields
                .iter()
                .map(|field| crate::text::escape_field(field))
                .collect();
            self.more.push((row as u32, fields.join("; ")));
        }
    }

    /// Adds an event that was parsed from the text form.
    pub fn push_event(&mut self, event: &TextEvent) {
        let values: Vec<EventValue<'_>> = event
            .data
            .iter()
            .map(|field| EventValue::parse(field))
            .collect();
        self.push(&event.keyword, &event.host, event.at_ns, &values);
    }

    /// Adds all events of an event log.
    pub fn push_event_log(&mut self, event_log: &EventLog) {
        event_log.each(
            &mut event_log::EventLogNames::default(),
            |keyword, host, at_ns, values| self.push(keyword, host, at_ns, values),
        );
    }

    /// Adds all events of another table.
    pub fn append(&mut self, other: &Self) {
        self.extend(other, 0..other.len());
    }

    /// Adds the events in these rows of another table, in this order.
    pub fn extend(&mut self, other: &Self, rows: impl Iterator<Item = usize> + Clone) {
        let begin = self.len();
        // The number here of each text of the other table; looked up at its first use.
        let mut known = vec![u32::MAX; other.names.len()];
        let names = &mut self.names;
        let mut here = |text: u32| {
            let known = &mut known[text as usize];
            if *known == u32::MAX {
                *known = names.number(other.names.text(text));
            }
            *known
        };
        self.at_ns.extend(rows.clone().map(|row| other.at_ns[row]));
        self.keyword
            .extend(rows.clone().map(|row| here(other.keyword[row])));
        self.host
            .extend(rows.clone().map(|row| here(other.host[row])));
        if self.data.len() < other.data.len() {
            self.data.resize(other.data.len(), EventColumn::default());
        }
        for (to, from) in self
            .data
            .iter_mut()
            .zip(&other.data)
            .filter(|(_, from)| !from.texts.is_empty())
        {
            to.numbers.resize(begin, 0);
            to.texts.resize(begin, EventColumn::ABSENT);
            to.numbers.extend(
                rows.clone()
                    .map(|row| from.numbers.get(row).copied().unwrap_or(0)),
            );
            to.texts
                .extend(rows.clone().map(|row| match from.texts.get(row) {
                    Some(text) if *text < EventColumn::ABSENT => here(*text),
                    Some(kind) => *kind,
                    None => EventColumn::ABSENT,
                }));
        }
        if !other.more.is_empty() {
            let find = |row: usize| {
                other
                    .more
                    .binary_search_by_key(&(row as u32), |(row, _)| *row)
                    .ok()
            };
            let more = rows
                .enumerate()
                .filter_map(|(at, row)| Some((at, find(row)?)));
            self.more
                .extend(more.map(|(at, found)| ((begin + at) as u32, other.more[found].1.clone())));
        }
    }

    /// Removes all events and names; the memory of the columns is kept for reuse.
    pub fn clear(&mut self) {
        self.at_ns.clear();
        self.keyword.clear();
        self.host.clear();
        for column in &mut self.data {
            column.numbers.clear();
            column.texts.clear();
        }
        self.more.clear();
        self.names = EventTextTable::default();
    }

    /// Number of events.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.at_ns.len()
    }

    /// Whether there are no events.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at_ns.is_empty()
    }

    /// The keyword of the event in a row.
    #[must_use]
    pub fn keyword(&self, row: usize) -> &str {
        self.names.text(self.keyword[row])
    }

    /// The host of the event in a row.
    #[must_use]
    pub fn host(&self, row: usize) -> &str {
        self.names.text(self.host[row])
    }

    /// The value of a data field (from 0) of the event in a row.
    #[must_use]
    pub fn value(&self, row: usize, field: usize) -> EventValue<'_> {
        let Some(column) = self.data.get(field) else {
            return EventValue::Absent;
        };
        match (column.number(row), column.text(row)) {
            (Some(number), _) => EventValue::Number(number),
            (None, Some(text)) => EventValue::Text(self.names.text(text)),
            (None, None) => EventValue::Absent,
        }
    }

    /// The number in a data field, if it is one.
    #[must_use]
    pub fn number(&self, row: usize, field: usize) -> Option<i64> {
        self.data.get(field)?.number(row)
    }

    /// The rows in the order of time; rows with equal times in the order they were added.
    #[must_use]
    pub fn by_time(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.sort_by_key(|row| self.at_ns[*row as usize]);
        rows
    }

    /// The event in a row in the text form. Absent fields at its end are left out.
    #[must_use]
    pub fn event(&self, row: usize) -> TextEvent {
        let mut data: Vec<String> = (0..self.data.len())
            .map(|field| self.value(row, field).to_string())
            .collect();
        let more = self
            .more
            .binary_search_by_key(&(row as u32), |(row, _)| *row)
            .ok();
        match more {
            Some(index) => {
                let fields = self.more[index]
                    .1
                    .split("; ")
                    .map(|field| crate::text::unescape_field(field).into_owned());
                data.resize(FIELDS, String::new());
                data.extend(fields);
            }
            None => data.truncate(
                data.iter()
                    .rposition(|field| !field.is_empty())
                    .map_or(0, |last| last + 1),
            ),
        }
        TextEvent {
            keyword: self.keyword(row).to_owned(),
            host: self.host(row).to_owned(),
            at_ns: self.at_ns[row],
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_as_long_as_they_have_to_be() {
        let mut table = EventTable::default();
        table.push(
            "A",
            "khons",
            2,
            &[EventValue::Number(7), EventValue::Text("x")],
        );
        table.push("B", "khons", 1, &[]);
        assert_eq!(
            (
                table.data[0].texts.len(),
                table.number(0, 0),
                table.number(1, 0)
            ),
            (1, Some(7), None)
        );
        assert_eq!(
            (table.value(0, 1), table.value(0, 9)),
            (EventValue::Text("x"), EventValue::Absent)
        );
        assert_eq!(table.by_time(), [1, 0]);
    }

    proptest! {
        #[test]
        fn events_of_another_table_are_the_same_events(
            events in proptest::collection::vec(("[A-C]", proptest::collection::vec("[-0-9a-z;% ]{0,3}", 0..24)), 1..9),
            rows in proptest::collection::vec(any::<proptest::sample::Index>(), 0..9),
        ) {
            let mut table = EventTable::default();
            for (keyword, data) in events {
                table.push_event(&TextEvent { keyword, host: "h".into(), at_ns: 0, data });
            }
            let rows: Vec<usize> = rows.iter().map(|row| row.index(table.len())).collect();
            let mut other = EventTable::default();
            other.push("Z", "z", 7, &[EventValue::Text("a")]);
            other.extend(&table, rows.iter().copied());
            let expected: Vec<TextEvent> = rows.iter().map(|row| table.event(*row)).collect();
            prop_assert_eq!((1..other.len()).map(|row| other.event(row)).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn an_event_comes_back(data in proptest::collection::vec("[-0-9a-z;% ]{0,6}", 0..24), at_ns: u64) {
            let mut event = TextEvent { keyword: "A".into(), host: "h".into(), at_ns, data };
            let mut table = EventTable::default();
            table.push_event(&event);
            table.push_event(&TextEvent { keyword: "B".into(), ..event.clone() });
            // Empty fields at the end look the same as none.
            let length = event.data.iter().rposition(|field| !field.is_empty()).map_or(0, |last| last + 1);
            if event.data.len() <= FIELDS {
                event.data.truncate(length);
            }
            prop_assert_eq!(table.event(0), event);
        }
    }
}
