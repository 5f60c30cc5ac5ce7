//! Files that clients in other languages wrote, as this crate reads them.

use stackline_events::text::EventTextReader;
use stackline_events::{EventLog, EventValue};
use std::path::Path;

/// An event that needs no event log any more.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) keyword: String,
    pub(crate) host: String,
    pub(crate) at_ns: u64,
    data: Vec<String>,
}

impl Event {
    pub(crate) fn values(&self) -> Vec<EventValue<'_>> {
        self.data
            .iter()
            .map(|field| EventValue::parse(field))
            .collect()
    }

    pub(crate) fn numbers(&self) -> Vec<i64> {
        self.values()
            .iter()
            .filter_map(|value| value.number())
            .collect()
    }
}

/// Every event of an event log, which ends with its last whole record.
pub(crate) fn read_event_log(path: &Path) -> Vec<Event> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(
        stackline_events::event_log::measure_whole_records(&bytes[..]).unwrap(),
        Some(bytes.len() as u64),
        "all of it is whole"
    );
    let event_log = EventLog::from_bytes(bytes);
    let event = |record: stackline_events::EventRecord<'_>| {
        let data = record.values.iter().map(ToString::to_string).collect();
        Event {
            keyword: record.keyword.into(),
            host: record.host.into(),
            at_ns: record.at_ns,
            data,
        }
    };
    event_log.records().map(event).collect()
}

/// Every event of an event log; the text of the same program holds the same.
pub(crate) fn events(event_log: &Path, text: &Path) -> Vec<Event> {
    let events = read_event_log(event_log);
    let text = std::io::BufReader::new(std::fs::File::open(text).unwrap());
    let read: Vec<stackline_events::TextEvent> = EventTextReader::new(text, "text")
        .map(|event| event.unwrap())
        .collect();
    let mut parts: Vec<String> = read
        .iter()
        .map(|event| line(&event.keyword, &event.data))
        .collect();
    let mut same = lines(&events);
    // Threads may have come in another order.
    parts.sort_unstable();
    same.sort_unstable();
    assert_eq!(same, parts);
    events
}

/// Keyword and data of each event, as the text form writes them.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| line(&event.keyword, &event.data))
        .collect()
}

fn line(keyword: &str, data: &[String]) -> String {
    let event = stackline_events::TextEvent {
        keyword: keyword.into(),
        host: "h".into(),
        at_ns: 0,
        data: data.to_vec(),
    };
    event.to_string().replacen("; h; 0; 0", "", 1)
}
