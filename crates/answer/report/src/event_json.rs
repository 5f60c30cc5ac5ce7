//! Events as JSON, one to a line.

use serde_json::{Map, Value, json};
use stackline_events::{EventRecord, EventValue, catalogue};

/// Appends an event as a line of JSON, with the names of its data.
pub fn write_event_json(record: &EventRecord<'_>, lines: &mut Vec<u8>) {
    let names = catalogue::find(record.keyword).map_or(&[][..], |entry| entry.data);
    let value = |value: &EventValue<'_>| match value {
        EventValue::Absent => Value::Null,
        EventValue::Number(number) => json!(number),
        EventValue::Text(text) => json!(text),
    };
    let name = |at: usize| {
        names
            .get(at)
            .map_or_else(|| (at + 1).to_string(), ToString::to_string)
    };
    let data: Map<String, Value> = record
        .values
        .iter()
        .enumerate()
        .map(|(at, field)| (name(at), value(field)))
        .collect();
    let line = json!({"keyword": record.keyword, "host": record.host, "at_ns": record.at_ns, "data": data});
    lines.extend_from_slice(line.to_string().as_bytes());
    lines.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::{EventLog, keyword};

    #[test]
    fn a_line_of_json_names_its_data() {
        let mut log = EventLog::default();
        log.host("khons");
        let data = [5_i64.into(), 0_i64.into(), 7_i64.into(), EventValue::Absent];
        log.push(keyword::intern("SOFTNET"), 9, &data);
        log.push(keyword::intern("UNKNOWN_KEYWORD"), 9, &["word".into()]);
        let mut lines = Vec::new();
        log.records()
            .for_each(|record| write_event_json(&record, &mut lines));
        let lines: Vec<Value> = lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(
            lines[0]["data"],
            json!({"interval_ns": 5, "core": 0, "packets": 7, "drops": null})
        );
        assert_eq!(lines[1]["data"], json!({"1": "word"}));
    }
}
